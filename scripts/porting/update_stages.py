# Copyright 2026 The scalable_agent Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     https://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Stages `update` and `training`: what the learner does to a batch."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree
from dm_env import specs

from porting import kit, network_stages
from scalable_agent import config, learner, structs, vtrace_tf

NUM_UPDATES = 5


class _Case(NamedTuple):
  """A network, a batch and settings."""

  network: network_stages.Network
  unroll_length: int
  truncated: bool
  settings: dict[str, Any]


# Small images keep the files small; the networks are whole.
_CASES = {
  'original': _Case(
    network_stages.NETWORKS['deep_lstm_instruction']._replace(
      observation={
        'RGB_INTERLEAVED': specs.Array((24, 32, 3), np.uint8),
        'INSTR': specs.StringArray(()),
      }
    ),
    unroll_length=6,
    truncated=False,
    settings={
      'reward_clipping': 'soft_asymmetric',
      'entropy_cost': 0.00334,
      'total_environment_frames': 1000,
    },
  ),
  'atari': _Case(
    network_stages.NETWORKS['shallow']._replace(
      observation=specs.Array((36, 36), np.uint8)
    ),
    unroll_length=5,
    truncated=True,
    settings={
      'reward_clipping': 'abs_one',
      'entropy_cost': 0.01,
      'epsilon': 0.01,
      'learning_rate': 0.0006,
      'clip_gradient_norm': 10.0,
      'total_environment_frames': 1000,
    },
  ),
}
_BATCH_SIZE = 3
_METRICS = (
  'total_loss',
  'policy_gradient_loss',
  'baseline_loss',
  'entropy_loss',
  'gradient_norm',
  'learning_rate',
)
_VTRACE = {
  'discounts': 'gamma, or 0 where an episode ended, [T, B]',
  'rewards': 'clipped, [T, B]',
  'values': 'baselines of slots 0 to T - 1, [T, B]',
  'bootstrap_value': 'baseline of slot T, [B]',
  'log_rhos': 'log of pi over mu, [T, B]',
  'vs': 'targets of the baseline, [T, B]',
  'pg_advantages': 'weights of the policy gradient, [T, B]',
}


def stages(seed: int) -> list[kit.Stage]:
  """One whole update, then some more on the same batch."""
  update = kit.Stage(
    'update',
    """One whole update of the learner: network over T + 1 slots, shift of time,
    V-trace, losses, gradients, RMSProp. The batch is as actors write it: slot t
    holds the action, the behaviour logits and the reward that led to x_t.""",
    tolerance=3e-4,
  )
  training = kit.Stage(
    'training',
    f"""{NUM_UPDATES} updates on the batch of stage update, from its weights,
    whose settings hold here too: what each one reported, and what the network
    says afterwards. Rounding grows tenfold with each update, where ReLUs are
    within it of zero.""",
    tolerance=3e-3,
  )
  for index, (name, case) in enumerate(_CASES.items()):
    random = np.random.default_rng((seed, 4000 + index))
    _add_case(update, training, name, case, random)
  return [update, training]


def _add_case(update, training, name, case, random):
  agent = case.network.make()
  settings = config.LearnerConfig(
    batch_size=_BATCH_SIZE, unroll_length=case.unroll_length, **case.settings
  )
  own = learner.Learner(agent, settings, frames_per_step=4)
  told = _told(settings)
  update.add_case(
    name,
    **case.network.settings,
    num_actions=case.network.num_actions,
    frame_stack=case.network.frame_stack,
    frames_per_step=4,
    **told,
  )
  training.add_case(name, num_updates=NUM_UPDATES)
  weights = network_stages.draw_weights(agent, random)
  update.add(name, 'weight', weights, 'before the update')
  batch = _draw_batch(case, agent, random)
  _add_batch(update, name, batch)

  batch = tree.map_structure(tf.constant, batch)
  _add_gradients(update, name, own, batch)
  metrics = []
  for k in range(NUM_UPDATES):
    metrics.append(own.update(batch))
    if k == 0:
      _add_result(update, name, own, metrics[0])
  _add_trace(training, name, own, batch, metrics)


def _told(settings):
  names = """batch_size unroll_length total_environment_frames entropy_cost
    baseline_cost discounting reward_clipping learning_rate decay momentum
    epsilon clip_gradient_norm clip_rho_threshold clip_pg_rho_threshold
    clip_c_threshold lambda_"""
  return {name: getattr(settings, name) for name in names.split()}


def _draw_batch(case, agent, random):
  num_slots = case.unroll_length + 1
  actions, env_outputs = network_stages.draw_slots(
    case.network, random, num_slots, _BATCH_SIZE
  )
  shape = env_outputs.done.shape
  truncated = np.zeros(shape, bool)
  if case.truncated:
    truncated[2, 0] = truncated[-1, 2] = True
    ended = env_outputs.done | truncated
    # A lost life ends the episode for the learner, not for the stack of frames.
    first = ended.copy()
    first[3, 2] = False
    ended[3, 2] = True
    env_outputs = env_outputs._replace(
      done=ended, first=first, truncated=truncated
    )
  values = 3 * random.standard_normal(shape).astype(np.float32)
  logits = (*shape, case.network.num_actions)
  return structs.Unroll(
    level=np.zeros(_BATCH_SIZE, np.int32),
    version=np.zeros(_BATCH_SIZE, np.int64),
    core_state=network_stages.draw_core_state(agent, random, _BATCH_SIZE),
    env_outputs=env_outputs,
    agent_outputs=structs.AgentOutput(
      action=actions,
      policy_logits=random.standard_normal(logits).astype(np.float32),
      baseline=np.zeros(shape, np.float32),
    ),
    truncation_values=np.where(truncated, values, np.float32(0)),
  )


def _add_batch(stage, name, batch):
  env_outputs, agent_outputs = batch.env_outputs, batch.agent_outputs
  named = network_stages.named_slots(agent_outputs.action, env_outputs)
  named['truncated'] = env_outputs.truncated
  named['truncation_values'] = batch.truncation_values
  named['behaviour_policy_logits'] = agent_outputs.policy_logits
  stage.add(name, 'input', named, network_stages.SLOTS_MEANING)
  state = network_stages.named_state(batch.core_state)
  stage.add(name, 'input', state, 'before slot 0')


@contextlib.contextmanager
def _recorded_vtrace() -> Iterator[dict[str, Any]]:
  """Gives a dict that fills with what V-trace is given and returns."""
  records: dict[str, Any] = {}
  original = vtrace_tf.from_distributions

  def call(*args, **kwargs):
    returns = original(*args, **kwargs)
    records.update(kwargs, **returns._asdict())
    return returns

  vtrace_tf.from_distributions = call
  try:
    yield records
  finally:
    vtrace_tf.from_distributions = original


def _add_gradients(stage, name, own, batch):
  variables = own.agent.trainable_variables
  with tf.GradientTape() as tape, _recorded_vtrace() as records:
    loss, _ = own.loss(batch)
  gradients = tape.gradient(
    loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
  )
  output, _ = own.agent.unroll(
    batch.agent_outputs.action, batch.env_outputs, batch.core_state
  )
  stage.add(
    name,
    'output',
    output._asdict(),
    {
      'policy_logits': 'of the network at each slot, [T + 1, B, A]',
      'baseline': 'of the network at each slot, [T + 1, B]',
    },
  )
  stage.add(name, 'output', {n: records[n] for n in _VTRACE}, _VTRACE)
  stage.add(
    name,
    'output',
    {
      f'gradients/{v.path}': tf.convert_to_tensor(g)
      for v, g in zip(variables, gradients, strict=True)
    },
    'of the total loss, before clipping',
  )


def _add_result(stage, name, own, metrics):
  stage.add(
    name,
    'output',
    {metric: metrics[metric] for metric in _METRICS},
    'of the update, scalar',
  )
  stage.add(
    name, 'output', {'env_frames': own.env_frames}, 'counted afterwards'
  )
  for variable in own.agent.trainable_variables:
    for kind, value in {
      'weights': variable,
      'mean_square': own.optimizer.slots(variable)['mean_square'],
    }.items():
      stage.add(
        name,
        'output',
        {f'{kind}/{variable.path}': value.numpy()},
        'after the update',
      )


def _add_trace(stage, name, own, batch, metrics):
  stage.add(
    name,
    'output',
    {
      metric: np.stack([m[metric].numpy() for m in metrics])
      for metric in _METRICS
    },
    'of each update, [K]',
  )
  output, _ = own.agent.unroll(
    batch.agent_outputs.action, batch.env_outputs, batch.core_state
  )
  stage.add(
    name,
    'output',
    {f'{key}_after': value for key, value in output._asdict().items()},
    'of the network after the last update, [T + 1, B, ...]',
  )
  stage.add(
    name, 'output', {'env_frames': own.env_frames}, 'counted afterwards'
  )
