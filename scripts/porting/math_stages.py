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
"""Stages `vtrace` and `losses`: pure functions of drawn numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from porting import kit
from scalable_agent import losses, vtrace_tf

DISCOUNTING = 0.9

INPUTS = {
  'log_rhos': 'log of pi over mu for the actions taken, [T, B]',
  'discounts': 'gamma; 0 where the transition ended an episode, [T, B]',
  'rewards': 'of the transitions, [T, B]',
  'values': 'V of the observations acted upon, [T, B]',
  'bootstrap_value': 'V of the observation after the last transition, [B]',
  'truncations': 'a time limit cut the episode with this transition, [T, B]',
  'truncation_values': 'V of the observation at which it was cut, [T, B]',
  'behaviour_policy_logits': 'of mu, [T, B, A]',
  'target_policy_logits': 'of pi, [T, B, A]',
  'actions': 'drawn from mu, [T, B]',
}
OUTPUTS = {
  'vs': 'targets of the baseline, [T, B]',
  'pg_advantages': 'weights of the policy gradient, [T, B]',
  'log_rhos': 'log of pi over mu, unclipped, [T, B]',
  'behaviour_action_log_probs': 'log mu of the actions, [T, B]',
  'target_action_log_probs': 'log pi of the actions, [T, B]',
}
DEFAULTS = {
  'clip_rho_threshold': 1.0,
  'clip_pg_rho_threshold': 1.0,
  'clip_c_threshold': 1.0,
  'lambda_': 1.0,
}
_NO_CLIPS = {
  'clip_rho_threshold': None,
  'clip_pg_rho_threshold': None,
  'clip_c_threshold': None,
}
# Of each case: T, B, settings, and what else is special about it.
_VTRACE_CASES: dict[str, tuple[int, int, dict[str, Any], tuple[str, ...]]] = {
  'on_policy': (5, 2, {}, ('on_policy',)),
  'off_policy': (5, 2, {}, ()),
  'one_step': (1, 3, {}, ()),
  'long': (100, 4, {}, ('ends',)),
  'rho_bar': (6, 2, {'clip_rho_threshold': 2.5}, ()),
  'pg_rho_bar': (6, 2, {'clip_pg_rho_threshold': 2.5}, ()),
  'c_bar': (6, 2, {'clip_c_threshold': 0.5}, ()),
  'lambda': (6, 2, {'lambda_': 0.8}, ()),
  'no_clips': (6, 2, _NO_CLIPS, ()),
  'ends': (6, 2, {}, ('ends',)),
  'truncations': (6, 2, {}, ('truncations',)),
  'ends_and_truncations': (
    12,
    3,
    {'clip_rho_threshold': 2.0, 'lambda_': 0.9},
    ('ends', 'truncations'),
  ),
  'huge_ratio': (4, 1, _NO_CLIPS, ('huge',)),
  'from_logits': (6, 2, {}, ('ends', 'logits')),
}


def vtrace_stage(seed: int) -> kit.Stage:
  """V-trace with all options, truncation included."""
  stage = kit.Stage(
    'vtrace',
    """V-trace targets and policy-gradient advantages. A threshold of null is
    no clipping. Log-ratios above 20 count as 20.""",
    tolerance=1e-5,
  )
  for index, (case, (t, b, changed, special)) in enumerate(
    _VTRACE_CASES.items()
  ):
    settings = {**DEFAULTS, **changed}
    stage.add_case(case, **settings)
    inputs = vtrace_inputs(np.random.default_rng((seed, index)), t, b, special)
    function = vtrace_tf.from_importance_weights
    if 'logits' in special:
      function = vtrace_tf.from_logits
    returns = function(**inputs, **settings)
    stage.add(case, 'input', inputs, INPUTS)
    stage.add(case, 'output', returns._asdict(), OUTPUTS)
  return stage


def vtrace_inputs(
  random: np.random.Generator,
  num_steps: int,
  batch_size: int,
  special: Sequence[str],
) -> dict[str, np.ndarray]:
  """Draws what V-trace is given; `special` is of a case of `vtrace`."""
  shape = (num_steps, batch_size)

  def normal(*more):
    return random.standard_normal((*shape, *more)).astype(np.float32)

  inputs = {
    'log_rhos': 0.7 * normal() + np.float32(0.2),
    'discounts': np.full(shape, DISCOUNTING, np.float32),
    'rewards': normal(),
    'values': normal(),
    'bootstrap_value': normal()[0],
  }
  if 'on_policy' in special:
    inputs['log_rhos'][:] = 0
  if 'huge' in special:
    inputs['log_rhos'] = np.array([[30], [-30], [0], [1]], np.float32)
  if 'ends' in special:
    # The last transition of a column too, where masks are forgotten.
    inputs['discounts'][num_steps // 3, 0] = 0
    inputs['discounts'][-1, -1] = 0
  if 'truncations' in special:
    truncations = np.zeros(shape, bool)
    truncations[num_steps // 2, 0] = truncations[1, 1] = True
    truncations[-1, -1] |= 'ends' not in special
    inputs['truncations'] = truncations
    inputs['truncation_values'] = np.where(truncations, 5 + normal(), 0).astype(
      np.float32
    )
  if 'logits' in special:
    del inputs['log_rhos']
    inputs['behaviour_policy_logits'] = normal(4)
    inputs['target_policy_logits'] = normal(4)
    inputs['actions'] = random.integers(0, 4, shape).astype(np.int32)
  return inputs


def losses_stage(seed: int) -> kit.Stage:
  """Reward clipping, the losses and their gradients."""
  stage = kit.Stage(
    'losses',
    """What the learner does to rewards; the three losses and their weighted
    total, all sums over time and batch; and the gradients of each. V-trace's
    results are constants to them.""",
    tolerance=1e-5,
  )
  _add_reward_clipping(stage)
  random = np.random.default_rng((seed, 1000))
  _add_losses(stage, 'plain', random, impossible=False)
  _add_losses(stage, 'impossible_action', random, impossible=True)
  return stage


def _add_reward_clipping(stage):
  rewards = np.array([-10, -5, -1, -0.5, 0, 0.5, 1, 5, 10], np.float32)
  stage.add_case('reward_clipping')
  stage.add('reward_clipping', 'input', {'rewards': rewards}, 'raw, [9]')
  stage.add(
    'reward_clipping',
    'output',
    {
      name: losses.clip_rewards(rewards, name)
      for name in ('abs_one', 'soft_asymmetric')
    },
    'rewards under the reward_clipping of this name, [9]',
  )


def _add_losses(stage, case, random, impossible):
  """Losses of V-trace's results, which come from the same numbers."""
  settings = {'baseline_cost': 0.5, 'entropy_cost': 0.05}
  stage.add_case(case, **settings, **DEFAULTS)
  inputs = vtrace_inputs(random, 6, 3, ('ends', 'logits'))
  if impossible:
    actions = inputs['actions']
    actions[actions == 3] = 0
    for name in ('behaviour_policy_logits', 'target_policy_logits'):
      inputs[name][..., 3] = -1e9
  stage.add(case, 'input', inputs, INPUTS)
  _add_gradients(stage, case, inputs, settings)


def _add_gradients(stage, case, inputs, settings):
  """The losses, and their gradients to logits and values."""
  logits = tf.constant(inputs['target_policy_logits'])
  values = tf.constant(inputs['values'])
  with tf.GradientTape(persistent=True) as tape:
    tape.watch((logits, values))
    returns = vtrace_tf.from_logits(
      **{**inputs, 'target_policy_logits': logits, 'values': values}
    )
    named = {
      'policy_gradient_loss': losses.compute_policy_gradient_loss(
        logits, inputs['actions'], returns.pg_advantages
      ),
      'baseline_loss': losses.compute_baseline_loss(returns.vs - values),
      'entropy_loss': losses.compute_entropy_loss(logits),
    }
    named['total_loss'] = (
      named['policy_gradient_loss']
      + settings['baseline_cost'] * named['baseline_loss']
      + settings['entropy_cost'] * named['entropy_loss']
    )
  stage.add(
    case,
    'output',
    {'vs': returns.vs, 'pg_advantages': returns.pg_advantages},
    OUTPUTS,
  )
  stage.add(case, 'output', named, 'the loss, scalar')
  zero = tf.UnconnectedGradients.ZERO
  for name, loss in named.items():
    d_logits, d_values = tape.gradient(
      loss, (logits, values), unconnected_gradients=zero
    )
    stage.add(
      case,
      'output',
      {f'd_logits/{name}': d_logits, f'd_values/{name}': d_values},
      'gradient of the loss with respect to target_policy_logits or values',
    )
