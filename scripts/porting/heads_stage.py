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
"""Stage `heads`: policies over all kinds of actions, and what is learned.

Cases are one per head of `scalable_agent.nets.heads`, and one more with
policies that are nearly certain. The path is the learner's: head, distribution,
correction, losses.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from dm_env import specs

from porting import kit, math_stages
from scalable_agent import corrections, losses
from scalable_agent.nets import heads

_NUM_STEPS, _BATCH_SIZE = 6, 3
# Of each case: the action space. None is no bound.
_CASES: dict[str, dict[str, Any]] = {
  'discrete': {'head': 'discrete', 'num_values': 4},
  'multi_discrete': {'head': 'multi_discrete', 'num_values': [2, 4, 3]},
  'box': {
    'head': 'box',
    'low': [-2.0, 0.0, None, None],
    'high': [4.0, None, 2.0, None],
  },
  'box_far': {'head': 'box', 'low': [-1.0, -3.0], 'high': [1.0, 5.0]},
}
# How much farther from mu the locations of pi are in `box_far`.
_FAR = 16.0
_DIFFERENTIATED = (
  'target_action_log_probs',
  'policy_gradient_loss',
  'entropy_loss',
  'total_loss',
)
_INPUTS = {
  **math_stages.INPUTS,
  'behaviour_policy_logits': 'parameters of mu, [T, B, P]',
  'target_policy_logits': 'parameters of pi, [T, B, P]',
  'actions': 'drawn from mu, [T, B], or [T, B, D] for D choices or numbers',
}
_OUTPUTS = {
  **math_stages.OUTPUTS,
  'encoded_actions': 'the actions as features of the core, [T, B, F]',
  'loc': 'mean of pi before clipping, [T, B, D]',
  'scale': 'standard deviation of pi before clipping, [T, B, D]',
  'mode': 'the most likely action of pi, shaped as actions',
  'log_probs_by_dimension': 'log pi of each choice or number, [T, B, D]',
  'entropy_by_dimension': 'of each choice or number under pi, [T, B, D]',
  'entropy': 'of pi, [T, B]',
}


def heads_stage(seed: int) -> kit.Stage:
  """Discrete, multi-discrete and continuous policies."""
  stage = kit.Stage(
    'heads',
    """From the parameters of a policy to log-probabilities, entropies, V-trace
    and the losses, with gradients to the parameters of pi. A null among low and
    high is no bound. Locations, then scales, are in units of half the interval
    around its middle, or of 1 around 0 without two bounds; a scale of x is
    softplus(x + log(e - 1)) + 0.001. Numbers beyond a bound are clipped to it:
    the probability of a bound is all the mass beyond.""",
    tolerance=1e-5,
  )
  settings = {'baseline_cost': 0.5, 'entropy_cost': 0.05}
  for index, (case, space) in enumerate(_CASES.items()):
    stage.add_case(case, **space, **settings, **math_stages.DEFAULTS)
    head = heads.head_for(_action_spec(space))
    random = np.random.default_rng((seed, 2000 + index))
    inputs = _inputs(random, head, far=case == 'box_far')
    stage.add(case, 'input', inputs, _INPUTS)
    _add_policy(stage, case, head, inputs)
    _add_losses(stage, case, head, inputs, settings)
  return stage


def _action_spec(space: Mapping[str, Any]) -> specs.Array:
  """The spec of an action space as a case's settings tell it."""
  if space['head'] == 'discrete':
    return specs.DiscreteArray(space['num_values'])
  if space['head'] == 'multi_discrete':
    high = np.subtract(space['num_values'], 1)
    return specs.BoundedArray(high.shape, np.int32, minimum=0, maximum=high)
  low, high = (
    np.array([none if bound is None else bound for bound in space[name]])
    for name, none in (('low', -np.inf), ('high', np.inf))
  )
  return specs.BoundedArray(low.shape, np.float32, minimum=low, maximum=high)


def _inputs(random, head, far):
  inputs = math_stages.vtrace_inputs(
    random, _NUM_STEPS, _BATCH_SIZE, special=('ends',)
  )
  del inputs['log_rhos']
  size = (_NUM_STEPS, _BATCH_SIZE, head.num_parameters)
  behaviour, change = random.standard_normal((2, *size)).astype(np.float32)
  if far:
    change[..., : head.num_parameters // 2] *= _FAR
  inputs['behaviour_policy_logits'] = behaviour
  inputs['target_policy_logits'] = behaviour + np.float32(0.5) * change
  policy = head.distribution(tf.constant(behaviour))
  sampling_seed = tf.constant(random.integers(2**31, size=2), tf.int32)
  inputs['actions'] = policy.sample(seed=sampling_seed).numpy()
  return inputs


def _add_policy(stage, case, head, inputs):
  """What the target policy says, apart from learning."""
  actions = inputs['actions']
  policy = head.distribution(tf.constant(inputs['target_policy_logits']))
  said = {'encoded_actions': head.encode(tf.constant(actions))}
  if isinstance(head, heads.Box):
    normal = policy.distribution.parameters
    said |= {name: normal[name] for name in ('loc', 'scale')}
  said['mode'] = policy.mode()
  if not isinstance(head, heads.Discrete):
    each = policy.distribution
    said['log_probs_by_dimension'] = each.log_prob(actions)
    said['entropy_by_dimension'] = each.entropy()
  said['entropy'] = policy.entropy()
  stage.add(case, 'output', said, _OUTPUTS)


def _add_losses(stage, case, head, inputs, settings):
  """V-trace, the losses and their gradients to the target's parameters."""
  given = dict(inputs)
  actions = given.pop('actions')
  behaviour = head.distribution(
    tf.constant(given.pop('behaviour_policy_logits'))
  )
  logits = tf.constant(given.pop('target_policy_logits'))
  with tf.GradientTape(persistent=True) as tape:
    tape.watch(logits)
    target = head.distribution(logits)
    returns = corrections.from_distributions(
      'vtrace', behaviour, target, actions, **given
    )
    named = {
      'policy_gradient_loss': corrections.policy_gradient_loss(
        'vtrace', target, actions, returns.pg_advantages
      ),
      'baseline_loss': losses.compute_baseline_loss(
        returns.vs - given['values']
      ),
      'entropy_loss': losses.entropy_loss(target),
    }
    named['total_loss'] = (
      named['policy_gradient_loss']
      + settings['baseline_cost'] * named['baseline_loss']
      + settings['entropy_cost'] * named['entropy_loss']
    )
  names = 'behaviour_action_log_probs target_action_log_probs log_rhos vs'
  for name in (*names.split(), 'pg_advantages'):
    stage.add(case, 'output', {name: getattr(returns, name)}, _OUTPUTS)
  # Sums of terms of both signs, whose rounding may be large beside them.
  stage.add(case, 'output', named, 'the loss, scalar', tolerance=1e-4)
  named['target_action_log_probs'] = returns.target_action_log_probs
  for name in _DIFFERENTIATED:
    stage.add(
      case,
      'output',
      {f'd_logits/{name}': tape.gradient(named[name], logits)},
      'gradient of it, or of its sum, with respect to target_policy_logits',
    )
