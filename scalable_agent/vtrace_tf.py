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
r"""V-trace targets: the off-policy correction of IMPALA, as pure functions.

Espeholt et al. 2018, "IMPALA: Scalable Distributed Deep-RL with Importance
Weighted Actor-Learner Architectures", https://arxiv.org/abs/1802.01561,
section 4.1 and Remark 2. The behaviour policy mu acted, the target policy pi is
learned, and with `rho_t = pi(a_t | x_t) / mu(a_t | x_t)`

    v_s = V(x_s) + sum_{t=s}^{T-1} (prod_{i=s}^{t-1} discount_i c_i) delta_t
    delta_t = min(clip_rho, rho_t) (r_t + discount_t V(x_{t+1}) - V(x_t))
    c_i = lambda min(clip_c, rho_i)
    advantage_s = min(clip_pg_rho, rho_s) (r_s + discount_s v_{s+1} - V(x_s))

Names, argument order, defaults and result fields are those of the original's
`vtrace.py`; what is new is keyword-only and neutral by default. `[T, B]` is
time by batch. Whatever precision comes in, the arithmetic is float32. No
gradient flows out of `vs` and `pg_advantages`.

Finite inputs give finite targets, with and without clipping: a log-ratio above
20 counts as 20 (a rho of 5e8), and what later steps add to a target ends at
1e15 (see `recurrence`). With thresholds near 1 neither bound is ever felt.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from scalable_agent import recurrence, shapes

MAX_LOG_RHO = 20.0

# What one policy has once, however many value estimates there are.
_OF_THE_POLICY = ('log_rhos', 'discounts', 'truncations')


class VTraceFromLogitsReturns(NamedTuple):
  """V-trace targets, and the log-probabilities that they came from.

  vs: `[T, B]` float32, target of the baseline. No gradient.
  pg_advantages: `[T, B]` float32, weight of the gradient of the action's
    log-probability. No gradient.
  log_rhos: `[T, B]` float32, log of pi over mu, before any clipping.
  behaviour_action_log_probs: `[T, B]` float32, log mu of the actions.
  target_action_log_probs: `[T, B]` float32, log pi of the actions.
  """

  vs: tf.Tensor
  pg_advantages: tf.Tensor
  log_rhos: tf.Tensor
  behaviour_action_log_probs: tf.Tensor
  target_action_log_probs: tf.Tensor


class VTraceReturns(NamedTuple):
  """V-trace targets.

  vs: `[T, B]` float32, target of the baseline. No gradient.
  pg_advantages: `[T, B]` float32, weight of the gradient of the action's
    log-probability. No gradient.
  """

  vs: tf.Tensor
  pg_advantages: tf.Tensor


def log_probs_from_logits_and_actions(
  policy_logits: Any, actions: Any
) -> tf.Tensor:
  """Log-probabilities of actions under a softmax policy.

  Args:
    policy_logits: `[T, B, A]`, unnormalized log-probabilities of A actions.
    actions: `[T, B]` integers from 0 to A - 1.

  Returns:
    `[T, B]` float32.
  """
  return _categorical_log_probs(policy_logits, actions, 'policy_logits')


def from_logits(
  behaviour_policy_logits: Any,
  target_policy_logits: Any,
  actions: Any,
  discounts: Any,
  rewards: Any,
  values: Any,
  bootstrap_value: Any,
  clip_rho_threshold: Any = 1.0,
  clip_pg_rho_threshold: Any = 1.0,
  name: str = 'vtrace_from_logits',
  *,
  clip_c_threshold: Any = 1.0,
  lambda_: Any = 1.0,
  truncations: Any = None,
  truncation_values: Any = None,
  method: str = 'auto',
) -> VTraceFromLogitsReturns:
  """V-trace for softmax policies.

  Args:
    behaviour_policy_logits: `[T, B, A]`, logits of the policy that acted.
    target_policy_logits: `[T, B, A]`, logits of the policy that is learned.
    actions: `[T, B]` integers, drawn from the behaviour policy.

  The other arguments are those of `from_importance_weights`.

  Returns:
    `VTraceFromLogitsReturns`.
  """
  with tf.name_scope(name):
    target_action_log_probs = _categorical_log_probs(
      target_policy_logits, actions, 'target_policy_logits'
    )
    behaviour_action_log_probs = _categorical_log_probs(
      behaviour_policy_logits, actions, 'behaviour_policy_logits'
    )
    return _from_log_probs(
      behaviour_action_log_probs,
      target_action_log_probs,
      discounts=discounts,
      rewards=rewards,
      values=values,
      bootstrap_value=bootstrap_value,
      clip_rho_threshold=clip_rho_threshold,
      clip_pg_rho_threshold=clip_pg_rho_threshold,
      clip_c_threshold=clip_c_threshold,
      lambda_=lambda_,
      truncations=truncations,
      truncation_values=truncation_values,
      method=method,
    )


def from_distributions(
  behaviour_distribution: Any,
  target_distribution: Any,
  actions: Any,
  discounts: Any,
  rewards: Any,
  values: Any,
  bootstrap_value: Any,
  clip_rho_threshold: Any = 1.0,
  clip_pg_rho_threshold: Any = 1.0,
  name: str = 'vtrace_from_distributions',
  *,
  clip_c_threshold: Any = 1.0,
  lambda_: Any = 1.0,
  truncations: Any = None,
  truncation_values: Any = None,
  method: str = 'auto',
) -> VTraceFromLogitsReturns:
  """V-trace for policies of any kind over one tensor of actions.

  Args:
    behaviour_distribution: TensorFlow Probability distribution of batch shape
      `[T, B]`, the policy that acted. Several actions at once are one event:
      wrap them in `tfp.distributions.Independent`.
    target_distribution: the same for the policy that is learned.
    actions: `[T, B, *event]`, drawn from the behaviour policy.

  The other arguments are those of `from_importance_weights`.

  Returns:
    `VTraceFromLogitsReturns`.
  """
  with tf.name_scope(name):
    return _from_log_probs(
      shapes.log_probs(
        behaviour_distribution, actions, 'behaviour_distribution'
      ),
      shapes.log_probs(target_distribution, actions, 'target_distribution'),
      discounts=discounts,
      rewards=rewards,
      values=values,
      bootstrap_value=bootstrap_value,
      clip_rho_threshold=clip_rho_threshold,
      clip_pg_rho_threshold=clip_pg_rho_threshold,
      clip_c_threshold=clip_c_threshold,
      lambda_=lambda_,
      truncations=truncations,
      truncation_values=truncation_values,
      method=method,
    )


def from_importance_weights(
  log_rhos: Any,
  discounts: Any,
  rewards: Any,
  values: Any,
  bootstrap_value: Any,
  clip_rho_threshold: Any = 1.0,
  clip_pg_rho_threshold: Any = 1.0,
  name: str = 'vtrace_from_importance_weights',
  *,
  clip_c_threshold: Any = 1.0,
  lambda_: Any = 1.0,
  truncations: Any = None,
  truncation_values: Any = None,
  method: str = 'auto',
) -> VTraceReturns:
  """V-trace from the logarithms of the importance weights.

  All tensors may have the same further axes: `[T, B, C]`, `bootstrap_value`
  `[B, C]`. There, and only there, `log_rhos`, `discounts` and `truncations` may
  have size 1 and then count for all C, as with C value estimates of one policy.

  Args:
    log_rhos: `[T, B]`, log of pi over mu for the actions taken.
    discounts: `[T, B]`, gamma, or 0 where the transition ended an episode.
    rewards: `[T, B]`, of the transitions that the actions led to.
    values: `[T, B]`, V of the observations acted upon.
    bootstrap_value: `[B]`, V of the observation after the last transition.
    clip_rho_threshold: scalar, the paper's rho bar. None: no clipping.
    clip_pg_rho_threshold: scalar, clips rho in `pg_advantages`. None: no
      clipping.
    name: name scope of the operations.
    clip_c_threshold: scalar, the paper's c bar. None: no clipping.
    lambda_: scalar, factor of every c (Remark 2).
    truncations: `[T, B]` bool, true where a time limit ended the episode with
      this transition. `truncation_values` is then the value that follows, and
      nothing later counts. `discounts` is gamma there, not 0.
    truncation_values: `[T, B]`, V of the observation at which the episode was
      cut; read where `truncations` is true.
    method: how the sum over time is computed: 'auto', 'sequential' or
      'associative'. See `recurrence.solve_backwards`.

  Returns:
    `VTraceReturns`.
  """
  with tf.name_scope(name):
    steps = _checked_steps(
      log_rhos=log_rhos,
      discounts=discounts,
      rewards=rewards,
      values=values,
      bootstrap_value=bootstrap_value,
      truncations=truncations,
      truncation_values=truncation_values,
    )
    rhos = tf.exp(tf.minimum(steps.log_rhos, MAX_LOG_RHO))
    cs = _clipped(rhos, clip_c_threshold, 'clip_c_threshold')
    cs *= _scalar(lambda_, 'lambda_')
    clipped_rhos = _clipped(rhos, clip_rho_threshold, 'clip_rho_threshold')
    pg_rhos = _clipped(rhos, clip_pg_rho_threshold, 'clip_pg_rho_threshold')

    deltas = clipped_rhos * steps.advantages_over(steps.values)
    corrections = recurrence.solve_backwards(steps.decays(cs), deltas, method)
    vs = steps.values + corrections
    pg_advantages = pg_rhos * steps.advantages_over(vs)
    return VTraceReturns(
      vs=tf.stop_gradient(vs), pg_advantages=tf.stop_gradient(pg_advantages)
    )


class _Steps(NamedTuple):
  """Checked arguments of `from_importance_weights`, all float32 and alike."""

  log_rhos: tf.Tensor
  discounts: tf.Tensor
  rewards: tf.Tensor
  values: tf.Tensor
  bootstrap_value: tf.Tensor
  truncations: tf.Tensor | None
  truncation_values: tf.Tensor | None

  def advantages_over(self, estimates):
    """One-step returns that end in `estimates` of x_{t+1}, less V(x_t)."""
    following = tf.concat(
      [estimates[1:], self.bootstrap_value[tf.newaxis]], axis=0
    )
    if self.truncations is not None:
      # x_{t+1} of a cut episode is its own last observation, not the first one
      # of the next episode, which is what the array holds one step later.
      following = tf.where(self.truncations, self.truncation_values, following)
    return self.rewards + self.discounts * following - self.values

  def decays(self, cs):
    """How much of the next step's correction counts for this step."""
    decays = self.discounts * cs
    if self.truncations is not None:
      decays = tf.where(self.truncations, 0.0, decays)
    return decays


def _checked_steps(bootstrap_value, truncations, truncation_values, **steps):
  if (truncations is None) != (truncation_values is None):
    raise ValueError(
      'truncations and truncation_values belong together, but only one of them '
      'was given; give both, or neither.'
    )
  steps = {name: shapes.to_float(x) for name, x in steps.items()}
  if truncations is not None:
    steps['truncations'] = _to_bool(truncations)
    steps['truncation_values'] = shapes.to_float(truncation_values)

  values = steps['values']
  expected = shapes.shape_of(values)
  checked = dict.fromkeys(_Steps._fields)
  for name, tensor in steps.items():
    checked[name] = shapes.require(
      tensor,
      name,
      expected,
      'the shape of values',
      spread_from=2 if name in _OF_THE_POLICY else None,
    )
  checked['bootstrap_value'] = shapes.require(
    shapes.to_float(bootstrap_value),
    'bootstrap_value',
    expected.part(1),
    f'the shape of values, {values.shape}, without time',
  )
  return _Steps(**checked)


def _from_log_probs(behaviour, target, **steps_and_options):
  log_rhos = target - behaviour
  returns = from_importance_weights(log_rhos, **steps_and_options)
  return VTraceFromLogitsReturns(*returns, log_rhos, behaviour, target)


def _categorical_log_probs(logits, actions, name):
  logits = shapes.to_float(logits)
  shapes.require_rank(logits, name, 3, '[T, B, A]')
  return shapes.categorical_log_probs(logits, actions, name)


def _to_bool(truncations):
  truncations = tf.convert_to_tensor(truncations)
  if truncations.dtype != tf.bool:
    raise ValueError(
      f'truncations has dtype {truncations.dtype.name}, but must be bool.'
    )
  return truncations


def _scalar(value, name):
  value = shapes.to_float(value)
  shapes.require_rank(value, name, 0, 'a scalar')
  return value


def _clipped(rhos, threshold, name):
  return (
    rhos if threshold is None else tf.minimum(_scalar(threshold, name), rhos)
  )
