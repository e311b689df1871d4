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
"""The losses against their definitions and derivatives by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from scalable_agent import config, losses, vtrace_tf

tfd = tfp.distributions

LOGITS = np.random.RandomState(0).standard_normal((5, 3, 4)).astype(np.float32)
ACTIONS = np.random.RandomState(1).randint(0, 4, (5, 3)).astype(np.int32)
ADVANTAGES = np.random.RandomState(2).standard_normal((5, 3)).astype(np.float32)
CHOSEN = np.eye(4, dtype=np.float32)[ACTIONS]


def softmax(logits):
  exponentials = np.exp(np.asarray(logits, np.float64))
  return exponentials / exponentials.sum(-1, keepdims=True)


def value_and_gradient(function, x):
  x = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(x)
    value = function(x)
  return value.numpy(), tape.gradient(value, x).numpy()


POLICY_GRADIENT_LOSSES = {
  'logits': losses.compute_policy_gradient_loss,
  'distribution': lambda logits, actions, advantages: (
    losses.policy_gradient_loss(tfd.Categorical(logits), actions, advantages)
  ),
}
ENTROPY_LOSSES = {
  'logits': losses.compute_entropy_loss,
  'distribution': lambda logits: losses.entropy_loss(tfd.Categorical(logits)),
}
of_each_policy_gradient_loss = pytest.mark.parametrize(
  'loss', POLICY_GRADIENT_LOSSES.values(), ids=POLICY_GRADIENT_LOSSES
)
of_each_entropy_loss = pytest.mark.parametrize(
  'loss', ENTROPY_LOSSES.values(), ids=ENTROPY_LOSSES
)


@of_each_policy_gradient_loss
def test_policy_gradient(loss):
  value, gradient = value_and_gradient(
    lambda logits: loss(logits, ACTIONS, ADVANTAGES), LOGITS
  )

  policy = softmax(LOGITS)
  log_probs = np.log((policy * CHOSEN).sum(-1))
  np.testing.assert_allclose(value, -np.sum(ADVANTAGES * log_probs), rtol=1e-5)
  np.testing.assert_allclose(
    gradient, ADVANTAGES[..., np.newaxis] * (policy - CHOSEN), atol=1e-6
  )


@of_each_policy_gradient_loss
def test_advantages_are_constants_to_the_policy_gradient(loss):
  advantages = tf.constant(ADVANTAGES)
  with tf.GradientTape() as tape:
    tape.watch(advantages)
    value = loss(LOGITS, ACTIONS, advantages)

  assert tape.gradient(value, advantages) is None


def test_baseline():
  value, gradient = value_and_gradient(losses.compute_baseline_loss, ADVANTAGES)

  np.testing.assert_allclose(value, 0.5 * np.sum(ADVANTAGES**2), rtol=1e-6)
  np.testing.assert_allclose(gradient, ADVANTAGES, rtol=1e-6)


@of_each_entropy_loss
def test_entropy(loss):
  value, gradient = value_and_gradient(loss, LOGITS)

  policy = softmax(LOGITS)
  negative_entropies = np.sum(policy * np.log(policy), -1, keepdims=True)
  np.testing.assert_allclose(value, negative_entropies.sum(), rtol=1e-5)
  np.testing.assert_allclose(
    gradient, policy * (np.log(policy) - negative_entropies), atol=1e-6
  )


@of_each_policy_gradient_loss
def test_known_policy_gradient(loss):
  # Case B13.
  value = loss([[[1.0, 2.0, 3.0]]], [[2]], [[2.0]])

  np.testing.assert_allclose(value, 0.81521, rtol=1e-5)


@of_each_entropy_loss
def test_known_entropy_and_its_sign(loss):
  # Case B13: minimizing the loss makes the policy uniform.
  value, gradient = value_and_gradient(loss, [[[1.0, 2.0, 3.0]]])
  least, flat = value_and_gradient(loss, [[[2.0, 2.0, 2.0]]])

  np.testing.assert_allclose(value, -0.83240, rtol=1e-5)
  np.testing.assert_allclose(least, -np.log(3), rtol=1e-6)
  np.testing.assert_allclose(flat, np.zeros((1, 1, 3)), atol=1e-7)
  assert gradient[0, 0, 2] > 0 > gradient[0, 0, 0]


def test_entropy_of_actions_that_do_not_exist():
  # Case B42: 9 of 18 actions.
  logits = np.zeros((1, 1, 18), np.float32)
  logits[..., 9:] = -np.inf
  logits[0, 0, 0] = 1.0

  uniform = losses.compute_entropy_loss(
    np.where(np.isinf(logits), logits, np.float32(0))
  )
  value, gradient = value_and_gradient(losses.compute_entropy_loss, logits)
  expected = value_and_gradient(losses.compute_entropy_loss, logits[..., :9])

  np.testing.assert_allclose(uniform, -np.log(9), rtol=1e-6)
  np.testing.assert_allclose(value, expected[0], rtol=1e-6)
  np.testing.assert_allclose(gradient[..., :9], expected[1], rtol=1e-5)
  np.testing.assert_array_equal(gradient[..., 9:], np.zeros((1, 1, 9)))


def test_policy_gradient_of_actions_that_do_not_exist():
  logits = np.zeros((1, 1, 4), np.float32)
  logits[..., 2:] = -np.inf

  value, gradient = value_and_gradient(
    lambda x: losses.compute_policy_gradient_loss(x, [[0]], [[1.0]]), logits
  )

  np.testing.assert_allclose(value, np.log(2), rtol=1e-6)
  np.testing.assert_allclose(gradient, [[[-0.5, 0.5, 0, 0]]], atol=1e-6)


def test_several_actions_at_once_add_up():
  logits = np.stack([LOGITS, LOGITS[::-1]], 2)
  actions = np.stack([ACTIONS, ACTIONS[::-1]], 2)
  policy = tfd.Independent(tfd.Categorical(logits), 1)

  value = losses.policy_gradient_loss(policy, actions, ADVANTAGES)
  entropy = losses.entropy_loss(policy)

  parts = [
    losses.compute_policy_gradient_loss(x, a, ADVANTAGES)
    for x, a in ((LOGITS, ACTIONS), (LOGITS[::-1], ACTIONS[::-1]))
  ]
  np.testing.assert_allclose(value, sum(parts), rtol=1e-5)
  np.testing.assert_allclose(
    entropy, 2 * losses.compute_entropy_loss(LOGITS), rtol=1e-5
  )


def test_continuous_actions():
  mean = np.random.RandomState(3).standard_normal((5, 3, 2)).astype(np.float32)
  actions = np.zeros((5, 3, 2), np.float32)

  value, gradient = value_and_gradient(
    lambda x: losses.policy_gradient_loss(
      tfd.MultivariateNormalDiag(x, [1.0, 1.0]), actions, ADVANTAGES
    ),
    mean,
  )
  entropy = losses.entropy_loss(tfd.MultivariateNormalDiag(mean, [1.0, 2.0]))

  log_probs = -0.5 * np.sum(mean**2, -1) - np.log(2 * np.pi)
  np.testing.assert_allclose(value, -np.sum(ADVANTAGES * log_probs), rtol=1e-5)
  np.testing.assert_allclose(
    gradient, ADVANTAGES[..., np.newaxis] * mean, atol=1e-6
  )
  per_slot = 1 + np.log(2 * np.pi) + np.log(2.0)
  np.testing.assert_allclose(entropy, -15 * per_slot, rtol=1e-6)


def total_loss(logits, values, rewards, discounts, actions=ACTIONS):
  returns = vtrace_tf.from_logits(
    tf.zeros_like(logits),
    logits,
    actions,
    discounts=discounts,
    rewards=rewards,
    values=values,
    bootstrap_value=tf.zeros_like(values[0]),
  )
  return (
    losses.compute_policy_gradient_loss(logits, actions, returns.pg_advantages)
    + 0.5 * losses.compute_baseline_loss(returns.vs - values)
    + 0.01 * losses.compute_entropy_loss(logits)
  ), returns


def loss_and_gradients(logits, values, *rest, **more):
  logits, values = tf.constant(logits), tf.constant(values)
  with tf.GradientTape() as tape:
    tape.watch((logits, values))
    loss, returns = total_loss(logits, values, *rest, **more)
  return loss, tape.gradient(loss, (logits, values)), returns


def episode():
  """One batch of whole episodes: the last discount is 0."""
  rng = np.random.RandomState(4)
  discounts = np.full((5, 3), 0.9, np.float32)
  discounts[-1] = 0
  values, rewards = rng.standard_normal((2, 5, 3)).astype(np.float32)
  return LOGITS, values, rewards, discounts


def test_values_learn_from_the_baseline_loss_alone():
  logits, values, rewards, discounts = episode()

  _, (_, gradient), returns = loss_and_gradients(
    logits, values, rewards, discounts
  )

  np.testing.assert_allclose(gradient, 0.5 * (values - returns.vs), atol=1e-6)


@pytest.mark.parametrize('axis', [0, 1], ids=['time', 'batch'])
def test_losses_are_sums(axis):
  # Case B14: twice the data is twice the loss and the gradient of each.
  once = loss_and_gradients(*episode())
  doubled = [np.concatenate([x, x], axis) for x in episode()]
  twice = loss_and_gradients(
    *doubled, actions=np.concatenate([ACTIONS, ACTIONS], axis)
  )

  np.testing.assert_allclose(twice[0], 2 * once[0], rtol=1e-5)
  for gradient, half in zip(twice[1], once[1], strict=True):
    np.testing.assert_allclose(
      gradient, np.concatenate([half, half], axis), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize('dtype', ['float16', 'bfloat16', 'float64'])
def test_losses_are_float32_whatever_comes_in(dtype):
  logits = tf.zeros([64, 64, 2], dtype)
  advantages = tf.ones([64, 64], dtype)
  actions = tf.zeros([64, 64], tf.int64)
  uniform = 4096 * np.log(2)

  for value, expected in (
    (losses.compute_policy_gradient_loss(logits, actions, advantages), uniform),
    (losses.compute_entropy_loss(logits), -uniform),
    (losses.compute_baseline_loss(advantages * 8), 131072),
    (
      losses.entropy_loss(tfd.Categorical(tf.cast(logits, 'float32'))),
      -uniform,
    ),
  ):
    assert value.dtype == tf.float32
    np.testing.assert_allclose(value, expected, rtol=1e-5)


# Case B15.
RAW = [-10, -5, -1, 0, 1, 5, 10, 0.5]
CLIPPED = {
  'abs_one': [-1, -1, -1, 0, 1, 1, 1, 0.5],
  'soft_asymmetric': [
    *(-1.44604, -1.14239, -0.29606, 0, 0.98688, 3.80797, 4.82014),
    5 * np.tanh(0.1),
  ],
  'none': RAW,
}


@pytest.mark.parametrize('reward_clipping', config.REWARD_CLIPPINGS)
def test_reward_clipping(reward_clipping):
  clipped = losses.clip_rewards(RAW, reward_clipping)

  assert clipped.dtype == tf.float32
  np.testing.assert_allclose(clipped, CLIPPED[reward_clipping], atol=1e-5)


def test_unknown_reward_clipping():
  with pytest.raises(
    ValueError, match="'sign'; choose one of abs_one, soft_as"
  ):
    losses.clip_rewards([1.0], 'sign')


@pytest.mark.parametrize(
  ('actions', 'advantages', 'said'),
  [
    ((5, 3), (3,), r'advantages has shape \(3,\), but must have rank 2'),
    ((5, 3), (5, 1), r'advantages has shape \(5, 1\), but .*shape \(5, 3\)'),
    ((5, 1), (5, 3), r'actions has shape \(5, 1\), but .*shape \(5, 3\)'),
    ((3,), (5, 3), r'actions has shape \(3,\), but must have rank 2'),
  ],
)
@of_each_policy_gradient_loss
def test_wrong_shapes_are_named(loss, actions, advantages, said):
  with pytest.raises(ValueError, match=said):
    loss(LOGITS, np.zeros(actions, np.int32), np.zeros(advantages, np.float32))
