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
"""What ports put into stage `heads` that make a mistake, and which they make.

Like `wrong`: functions from the stage to an array. `LISTED` has, for each
mistake, its text, the stage, the array that shows it, and the function.
"""

import numpy as np

from porting import reference, reference_heads

_MULTI, _BOX, _FAR = 'multi_discrete', 'box', 'box_far'
_FLOOR = 1e-6


def _policy(stage, case, kind='target', parameters=None):
  """The policy of a case in NumPy, by other parameters if they are given."""
  if parameters is None:
    parameters = stage.arrays[f'{case}/input/{kind}_policy_logits']
  return reference_heads.policy_for(stage.cases[case], parameters)


def _of_box(make, case=_BOX):
  """What `make` makes of the policy and the actions of a case."""
  return lambda stage: make(
    _policy(stage, case), stage.arrays[f'{case}/input/actions']
  )


def _mean(name):
  """The mean over the choices of what is to be summed."""
  return lambda stage: stage.arrays[f'{_MULTI}/output/{name}'].mean(axis=-1)


def _one_softmax(stage):
  """Log-probabilities with all choices normalized together."""
  given = stage.part(_MULTI, 'input')
  log_policy = reference.log_softmax(given['target_policy_logits'])
  hot = _policy(stage, _MULTI).encode(given['actions'])
  return (hot * log_policy).sum(axis=-1)


def _padded_by_zeros(stage):
  """Entropies of choices that were padded to the same size by logits of 0."""
  sizes = stage.cases[_MULTI]['num_values']
  logits = stage.arrays[f'{_MULTI}/input/target_policy_logits']
  total = 0.0
  for size, part in zip(
    sizes, np.split(logits, np.cumsum(sizes)[:-1], axis=-1), strict=True
  ):
    padding = [(0, 0)] * (part.ndim - 1) + [(0, max(sizes) - size)]
    log_policy = reference.log_softmax(np.pad(part, padding))
    total = total - (np.exp(log_policy) * log_policy).sum(axis=-1)
  return total


def _clipped_alone(stage):
  """V-trace's targets where each choice's ratio is clipped by itself."""
  given = stage.part(_MULTI, 'input')
  target, behaviour = (
    _policy(stage, _MULTI, kind).log_probs(given['actions'])
    for kind in ('target', 'behaviour')
  )
  log_rhos = np.minimum(target - behaviour, 0).sum(axis=-1)
  names = ('discounts', 'rewards', 'values', 'bootstrap_value')
  vs, _ = reference.vtrace(log_rhos, *(given[name] for name in names))
  return vs


def _pairs(stage):
  """Locations where each number's location and scale are neighbours."""
  logits = stage.arrays[f'{_BOX}/input/target_policy_logits']
  halves = np.concatenate([logits[..., ::2], logits[..., 1::2]], axis=-1)
  return _policy(stage, _BOX, parameters=halves).loc


def _exponentials(stage):
  """Deviations that are exponentials of the parameters."""
  logits = stage.arrays[f'{_BOX}/input/target_policy_logits']
  raw = np.split(logits.astype(np.float64), 2, axis=-1)[1]
  return _policy(stage, _BOX).half * np.exp(raw)


def _units_forgotten(policy, actions):
  """Log-densities per unit of half the interval."""
  on_bound = (actions <= policy.low) | (actions >= policy.high)
  change = np.where(on_bound, 0, np.log(policy.half))
  return (policy.log_probs(actions) + change).sum(axis=-1)


def _kept_from_zero(policy, actions):
  """Log-probabilities where a small number is added to masses."""
  log_probs = policy.log_probs(actions)
  on_bound = (actions <= policy.low) | (actions >= policy.high)
  kept = np.log(np.exp(log_probs) + _FLOOR)
  return np.where(on_bound, kept, log_probs).sum(axis=-1)


LISTED = tuple(
  (text, 'heads', key, compute)
  for text, key, compute in (
    (
      'The log-probabilities of several choices are averaged, not summed.',
      f'{_MULTI}/output/target_action_log_probs',
      _mean('log_probs_by_dimension'),
    ),
    (
      'One softmax runs over the logits of all choices.',
      f'{_MULTI}/output/target_action_log_probs',
      _one_softmax,
    ),
    (
      'The entropies of several choices are averaged, not summed.',
      f'{_MULTI}/output/entropy',
      _mean('entropy_by_dimension'),
    ),
    (
      'Choices are padded to one size by logits of 0, which are likely.',
      f'{_MULTI}/output/entropy',
      _padded_by_zeros,
    ),
    (
      'The ratio of each choice is clipped, not that of the whole action.',
      f'{_MULTI}/output/vs',
      _clipped_alone,
    ),
    (
      'Continuous actions are fed to the core unscaled, in their own units.',
      f'{_BOX}/output/encoded_actions',
      _of_box(lambda _, actions: actions),
    ),
    (
      'Locations are not in units of half the interval around its middle.',
      f'{_BOX}/output/loc',
      _of_box(lambda policy, _: (policy.loc - policy.middle) / policy.half),
    ),
    (
      'Parameters come in pairs, not all locations before all scales.',
      f'{_BOX}/output/loc',
      _pairs,
    ),
    (
      'The deviation is the exponential of its parameter, not the softplus.',
      f'{_BOX}/output/scale',
      _exponentials,
    ),
    (
      'The most likely action is not clipped to the bounds.',
      f'{_BOX}/output/mode',
      _of_box(lambda policy, _: policy.loc),
    ),
    (
      'A number on its bound counts its density, not all the mass beyond.',
      f'{_BOX}/output/target_action_log_probs',
      _of_box(lambda policy, actions: policy.densities(actions).sum(axis=-1)),
    ),
    (
      'Densities are per unit of half the interval: no log-determinant.',
      f'{_BOX}/output/target_action_log_probs',
      _of_box(_units_forgotten),
    ),
    (
      'The entropy is that of the normal before it is clipped.',
      f'{_BOX}/output/entropy',
      _of_box(lambda policy, _: policy.unclipped_entropies().sum(axis=-1)),
    ),
    (
      'Small masses beyond a bound are kept from 0, log(mass + 1e-6).',
      f'{_FAR}/output/target_action_log_probs',
      _of_box(_kept_from_zero, _FAR),
    ),
  )
)
