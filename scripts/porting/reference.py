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
"""V-trace and the losses in NumPy: plain, slow, and read to the end.

The reference for ports, and for the tests of this project. Nothing here knows
of TensorFlow or of scalable_agent. Everything is float64 and time-major,
`[T, B]`. Equations are those of Espeholt et al. 2018, arXiv 1802.01561.
"""

import numpy as np


def vtrace(
  log_rhos,
  discounts,
  rewards,
  values,
  bootstrap_value,
  *,
  clip_rho_threshold=1.0,
  clip_pg_rho_threshold=1.0,
  clip_c_threshold=1.0,
  lambda_=1.0,
  truncations=None,
  truncation_values=None,
):
  """V-trace targets by the recursion of Remark 1, and the advantages.

  Arguments are those of `scalable_agent.vtrace_tf.from_importance_weights`.
  Returns `vs` and `pg_advantages`, `[T, B]`.
  """
  rhos = _rhos(log_rhos)
  cut, after_cut = _cuts(truncations, truncation_values, values)
  clipped_rhos = _clip(rhos, clip_rho_threshold)
  cs = lambda_ * _clip(rhos, clip_c_threshold)

  next_values = np.append(values[1:], [bootstrap_value], axis=0)
  next_values = np.where(cut, after_cut, next_values)
  deltas = clipped_rhos * (rewards + discounts * next_values - values)

  vs = np.zeros_like(deltas)
  correction = np.zeros_like(deltas[0])  # v_{t+1} - V(x_{t+1}).
  for t in reversed(range(len(deltas))):
    later = np.where(cut[t], 0.0, discounts[t] * cs[t] * correction)
    correction = deltas[t] + later
    vs[t] = values[t] + correction

  next_vs = np.append(vs[1:], [bootstrap_value], axis=0)
  next_vs = np.where(cut, after_cut, next_vs)
  pg_rhos = _clip(rhos, clip_pg_rho_threshold)
  return vs, pg_rhos * (rewards + discounts * next_vs - values)


def vtrace_by_definition(
  log_rhos,
  discounts,
  rewards,
  values,
  bootstrap_value,
  *,
  clip_rho_threshold=1.0,
  clip_c_threshold=1.0,
  lambda_=1.0,
  truncations=None,
  truncation_values=None,
):
  """`vs` as the double sum of equation (1): obviously right."""
  rhos = _rhos(log_rhos)
  cut, after_cut = _cuts(truncations, truncation_values, values)
  cs = lambda_ * _clip(rhos, clip_c_threshold)
  next_values = np.append(values[1:], [bootstrap_value], axis=0)
  next_values = np.where(cut, after_cut, next_values)
  deltas = _clip(rhos, clip_rho_threshold) * (
    rewards + discounts * next_values - values
  )
  vs = np.array(values, np.float64)
  for s in range(len(vs)):
    for t in range(s, len(vs)):
      factor = np.prod((discounts * cs * ~cut)[s:t], axis=0)
      vs[s] += factor * deltas[t]
  return vs


def _rhos(log_rhos):
  """Importance weights; a logarithm above 20 counts as 20."""
  return np.exp(np.minimum(np.asarray(log_rhos, np.float64), 20.0))


def _clip(rhos, threshold):
  return rhos if threshold is None else np.minimum(threshold, rhos)


def _cuts(truncations, truncation_values, values):
  """Where a time limit cut the episode, and the values that follow there."""
  if truncations is None:
    return np.zeros(np.shape(values), bool), np.zeros(np.shape(values))
  return np.asarray(truncations), np.asarray(truncation_values, np.float64)


def clip_rewards(rewards, reward_clipping):
  """Rewards as the learner sees them."""
  rewards = np.asarray(rewards, np.float64)
  if reward_clipping == 'abs_one':
    return np.clip(rewards, -1.0, 1.0)
  if reward_clipping == 'soft_asymmetric':
    squeezed = 5.0 * np.tanh(rewards / 5.0)
    return np.where(rewards < 0.0, 0.3 * squeezed, squeezed)
  return rewards


def log_softmax(logits):
  """Log-probabilities `[..., A]`."""
  logits = np.asarray(logits, np.float64)
  logits = logits - logits.max(axis=-1, keepdims=True)
  return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def action_log_probs(logits, actions):
  """Log-probabilities `[T, B]` of `actions` `[T, B]`."""
  chosen = np.asarray(actions)[..., np.newaxis]
  return np.take_along_axis(log_softmax(logits), chosen, axis=-1)[..., 0]


def losses(
  logits, actions, values, vs, pg_advantages, baseline_cost, entropy_cost
):
  """The losses and the gradient of the total. Sums over time and batch.

  `vs` and `pg_advantages` are constants: no gradient flows through them.

  Args:
    logits: `[T, B, A]` of the policy that is learned.
    actions: `[T, B]`.
    values: `[T, B]` baselines.
    vs: `[T, B]` targets.
    pg_advantages: `[T, B]`.
    baseline_cost: weight of the baseline loss.
    entropy_cost: weight of the entropy loss.

  Returns:
    The four losses by name, then the gradients of `total_loss`: with respect to
    the logits, `[T, B, A]`, and to the values, `[T, B]`.
  """
  log_policy = log_softmax(logits)
  policy = np.exp(log_policy)
  taken = np.eye(policy.shape[-1])[actions]
  advantages = np.asarray(pg_advantages, np.float64)[..., np.newaxis]
  negative_entropy = (policy * log_policy).sum(axis=-1, keepdims=True)

  policy_gradient_loss = -(advantages * taken * log_policy).sum()
  baseline_loss = 0.5 * ((vs - values) ** 2).sum()
  entropy_loss = negative_entropy.sum()
  total_loss = (
    policy_gradient_loss
    + baseline_cost * baseline_loss
    + entropy_cost * entropy_loss
  )
  d_logits = advantages * (policy - taken)
  d_logits = d_logits + entropy_cost * policy * (log_policy - negative_entropy)
  d_values = baseline_cost * (values - vs)
  named = {
    'policy_gradient_loss': policy_gradient_loss,
    'baseline_loss': baseline_loss,
    'entropy_loss': entropy_loss,
    'total_loss': total_loss,
  }
  return named, d_logits, d_values
