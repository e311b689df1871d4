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
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from scalable_agent import config, corrections, losses, vtrace_tf

tfd = tfp.distributions

T, B, A = 6, 3, 4
GAMMA = 0.9
RNG = np.random.RandomState(0)
MU, PI = RNG.standard_normal((2, T, B, A)).astype(np.float32) * 1.5
ACTIONS = RNG.randint(0, A, (T, B)).astype(np.int32)
REWARDS = RNG.standard_normal((T, B)).astype(np.float32)
VALUES = RNG.standard_normal((T, B)).astype(np.float32)
BOOTSTRAP = RNG.standard_normal(B).astype(np.float32)
DISCOUNTS = np.where(RNG.uniform(size=(T, B)) < 0.2, 0, GAMMA).astype(
  np.float32
)
TRUNCATIONS = (RNG.uniform(size=(T, B)) < 0.3) & (DISCOUNTS > 0)
TRUNCATION_VALUES = np.where(TRUNCATIONS, 3.0, 0.0).astype(np.float32)


def log_softmax(logits):
  logits = logits.astype(np.float64)
  return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def log_prob(logits):
  return np.take_along_axis(log_softmax(logits), ACTIONS[..., None], -1)[..., 0]


RHOS = np.exp(log_prob(PI) - log_prob(MU))


def n_step(lambda_=1.0):
  """(targets, advantages) of the n-step return, step by step."""
  vs, advantages = np.zeros((2, T, B))
  for b in range(B):
    v_next, following, correction = BOOTSTRAP[b], BOOTSTRAP[b], 0.0
    for t in reversed(range(T)):
      if TRUNCATIONS[t, b]:
        v_next = following = TRUNCATION_VALUES[t, b]
        correction = 0.0
      discount = DISCOUNTS[t, b]
      advantages[t, b] = REWARDS[t, b] + discount * v_next - VALUES[t, b]
      delta = REWARDS[t, b] + discount * following - VALUES[t, b]
      correction = delta + discount * lambda_ * correction
      v_next, following = VALUES[t, b] + correction, VALUES[t, b]
      vs[t, b] = v_next
  return vs, advantages


def compute(correction, **options):
  return corrections.from_distributions(
    correction,
    tfd.Categorical(MU),
    tfd.Categorical(PI),
    ACTIONS,
    discounts=DISCOUNTS,
    rewards=REWARDS,
    values=VALUES,
    bootstrap_value=BOOTSTRAP,
    truncations=TRUNCATIONS,
    truncation_values=TRUNCATION_VALUES,
    **options,
  )


def test_the_data_tell_the_corrections_apart():
  assert (RHOS > 1.5).any()
  assert (RHOS < 0.5).any()
  assert TRUNCATIONS.any()
  assert (DISCOUNTS == 0).any()


@pytest.mark.parametrize('correction', ['epsilon', 'none'])
@pytest.mark.parametrize('lambda_', [1.0, 0.7])
def test_without_correction_targets_are_the_n_step_return(correction, lambda_):
  # Thresholds below 1 must not shrink what is meant to stay 1.
  returns = compute(
    correction,
    lambda_=lambda_,
    clip_rho_threshold=0.5,
    clip_pg_rho_threshold=0.5,
    clip_c_threshold=0.5,
  )
  vs, advantages = n_step(lambda_)
  np.testing.assert_allclose(returns.vs, vs, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(
    returns.pg_advantages, advantages, rtol=1e-4, atol=1e-5
  )


@pytest.mark.parametrize('threshold', [1.0, 2.0, None])
def test_one_step_weighs_the_policy_gradient_alone(threshold):
  returns = compute('one_step', clip_pg_rho_threshold=threshold)
  vs, advantages = n_step()
  rhos = RHOS if threshold is None else np.minimum(RHOS, threshold)
  np.testing.assert_allclose(returns.vs, vs, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(
    returns.pg_advantages, rhos * advantages, rtol=1e-4, atol=1e-5
  )


def test_vtrace_is_vtrace():
  options = {'clip_rho_threshold': 1.3, 'clip_c_threshold': 0.8}
  expected = vtrace_tf.from_logits(
    MU,
    PI,
    ACTIONS,
    DISCOUNTS,
    REWARDS,
    VALUES,
    BOOTSTRAP,
    truncations=TRUNCATIONS,
    truncation_values=TRUNCATION_VALUES,
    **options,
  )
  for value, wanted in zip(compute('vtrace', **options), expected, strict=True):
    np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('correction', config.CORRECTIONS)
def test_rhos_are_told_whatever_the_correction(correction):
  returns = compute(correction)
  np.testing.assert_allclose(np.exp(returns.log_rhos), RHOS, rtol=1e-4)


@pytest.mark.parametrize('correction', config.CORRECTIONS)
def test_on_policy_they_are_all_the_same(correction):
  mu = tfd.Categorical(PI)
  returns = corrections.from_distributions(
    correction,
    mu,
    mu,
    ACTIONS,
    discounts=DISCOUNTS,
    rewards=REWARDS,
    values=VALUES,
    bootstrap_value=BOOTSTRAP,
    truncations=TRUNCATIONS,
    truncation_values=TRUNCATION_VALUES,
  )
  for value, expected in zip(returns[:2], n_step(), strict=True):
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('correction', config.CORRECTIONS)
def test_targets_have_no_gradient(correction):
  values, pi = tf.constant(VALUES), tf.constant(PI)
  with tf.GradientTape() as tape:
    tape.watch([values, pi])
    returns = corrections.from_distributions(
      correction,
      tfd.Categorical(MU),
      tfd.Categorical(pi),
      ACTIONS,
      discounts=DISCOUNTS,
      rewards=REWARDS,
      values=values,
      bootstrap_value=BOOTSTRAP,
    )
    loss = tf.reduce_sum(returns.vs) + tf.reduce_sum(returns.pg_advantages)
  assert tape.gradient(loss, [values, pi]) == [None, None]


def test_an_unknown_correction_is_refused():
  with pytest.raises(ValueError, match="'retrace'; choose one of vtrace, one"):
    compute('retrace')
  with pytest.raises(ValueError, match="correction is 'retrace'; choose one"):
    config.LearnerConfig(correction='retrace')


@pytest.mark.parametrize('correction', config.CORRECTIONS)
def test_only_epsilon_has_an_epsilon(correction):
  pi = tfd.Categorical(probs=[[[1e-6, 1 - 1e-6]]])
  loss = corrections.policy_gradient_loss(correction, pi, [[0]], [[1.0]])
  expected = -np.log(2e-6 if correction == 'epsilon' else 1e-6)
  np.testing.assert_allclose(loss, expected, rtol=1e-4)


@pytest.mark.parametrize('epsilon', [0.0, 1e-6, 0.1])
def test_epsilon_stands_under_the_logarithm(epsilon):
  """d/dlogits log(pi + e) is pi / (pi + e) of what it is without."""
  # The first action is all but impossible: pi is 2e-9.
  logits = np.zeros((1, 2, 3), np.float32)
  logits[0, 0, 0] = -20
  actions = np.zeros((1, 2), np.int32)
  advantages = np.array([[2.0, -1.0]])
  pi = np.exp(log_softmax(logits))
  chosen = pi[..., 0]

  x = tf.constant(logits)
  with tf.GradientTape() as tape:
    tape.watch(x)
    loss = losses.policy_gradient_loss(
      tfd.Categorical(x), actions, advantages, epsilon
    )
  np.testing.assert_allclose(
    loss, -np.sum(advantages * np.log(chosen + epsilon)), rtol=1e-5
  )
  share = (chosen / (chosen + epsilon))[..., np.newaxis]
  expected = advantages[..., np.newaxis] * (pi - [1, 0, 0]) * share
  np.testing.assert_allclose(
    tape.gradient(loss, x), expected, rtol=1e-4, atol=1e-9
  )
