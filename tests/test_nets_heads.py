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
"""Policies over the three kinds of action spaces, against NumPy."""

import math

import numpy as np
import pytest
import tensorflow as tf
from dm_env import specs

from scalable_agent.nets import clipped_normal, heads

INF = math.inf


def log_softmax(logits):
  logits = logits - logits.max(axis=-1, keepdims=True)
  return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def normal_cdf(x):
  return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_pdf(x):
  return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def parameters_for(head, *shape):
  random = np.random.RandomState(0)
  return random.standard_normal((*shape, head.num_parameters)).astype('f')


def test_discrete_equals_softmax():
  head = heads.head_for(specs.DiscreteArray(5))
  logits = parameters_for(head, 3, 2)
  actions = np.array([[0, 4], [1, 2], [3, 3]], np.int32)
  policy = head.distribution(tf.constant(logits))
  log_probs = log_softmax(logits)
  np.testing.assert_allclose(
    policy.log_prob(actions),
    np.take_along_axis(log_probs, actions[..., None], -1)[..., 0],
    rtol=1e-5,
  )
  np.testing.assert_allclose(
    policy.entropy(), -np.sum(np.exp(log_probs) * log_probs, -1), rtol=1e-5
  )
  np.testing.assert_array_equal(policy.mode(), logits.argmax(-1))
  samples = policy.sample(seed=1)
  assert samples.dtype == tf.int32
  assert samples.shape == (3, 2)
  np.testing.assert_array_equal(head.encode(actions), np.eye(5)[actions])


@pytest.fixture
def several():
  """Three choices, of 2, 4 and 3 values."""
  return heads.head_for(
    specs.BoundedArray((3,), np.int32, minimum=0, maximum=[1, 3, 2])
  )


def test_multi_discrete_is_a_product_of_softmaxes(several):
  assert several.num_parameters == several.encoded_size == 9
  logits = parameters_for(several, 2)
  actions = np.array([[1, 3, 0], [0, 2, 2]], np.int32)
  policy = several.distribution(tf.constant(logits))
  log_probs, entropies = np.zeros(2), np.zeros(2)
  modes = []
  for k, (begin, end) in enumerate([(0, 2), (2, 6), (6, 9)]):
    choice = log_softmax(logits[:, begin:end])
    log_probs += choice[[0, 1], actions[:, k]]
    entropies -= np.sum(np.exp(choice) * choice, axis=-1)
    modes.append(choice.argmax(-1))
  np.testing.assert_allclose(policy.log_prob(actions), log_probs, rtol=1e-5)
  np.testing.assert_allclose(policy.entropy(), entropies, rtol=1e-5)
  np.testing.assert_array_equal(policy.mode(), np.stack(modes, axis=-1))
  np.testing.assert_array_equal(
    several.encode(actions),
    [[0, 1, 0, 0, 0, 1, 1, 0, 0], [1, 0, 0, 0, 1, 0, 0, 0, 1]],
  )


def test_multi_discrete_samples_exist_and_gradients_are_finite(several):
  logits = tf.zeros([1000, 9])
  with tf.GradientTape() as tape:
    tape.watch(logits)
    policy = several.distribution(logits)
    samples = policy.sample(seed=3)
    loss = tf.reduce_sum(policy.log_prob(samples) + policy.entropy())
  assert samples.dtype == tf.int32
  np.testing.assert_array_equal(np.max(samples, axis=0), [1, 3, 2])
  np.testing.assert_array_equal(np.min(samples, axis=0), [0, 0, 0])
  gradient = tape.gradient(loss, logits)
  assert np.isfinite(gradient).all()
  # Each choice: one-hot minus uniform. Entropy is flat where it is greatest.
  uniform = np.repeat([1 / 2, 1 / 4, 1 / 3], [2, 4, 3])
  np.testing.assert_allclose(
    gradient, several.encode(samples) - uniform, atol=1e-6
  )


# Mean, deviation, low, high.
LAWS = {
  'inside': (0.2, 0.5, -1.0, 1.0),
  'wide': (0.0, 3.0, -2.0, 1.0),
  'beyond': (4.0, 0.7, -1.0, 1.0),
  'half-open': (0.3, 1.0, 0.0, INF),
  'unbounded': (-1.0, 2.0, -INF, INF),
}


def log_prob_by_definition(x, loc, scale, low, high):
  """Density inside; on a bound, the log of all the mass beyond."""
  if x <= low:
    return math.log(normal_cdf((low - loc) / scale))
  if x >= high:
    return math.log(normal_cdf((loc - high) / scale))
  return math.log(normal_pdf((x - loc) / scale) / scale)


@pytest.mark.parametrize('law', LAWS.values(), ids=LAWS.keys())
def test_clipped_normal_log_prob_equals_the_definition(law):
  loc, scale, low, high = law
  values = [max(low, -5.0), 0.1, 0.9, min(high, 5.0)]
  policy = clipped_normal.ClippedNormal(loc, scale, low, high)
  np.testing.assert_allclose(
    policy.log_prob(values),
    [log_prob_by_definition(x, *law) for x in values],
    rtol=1e-4,
    atol=1e-6,
  )


@pytest.mark.parametrize('law', LAWS.values(), ids=LAWS.keys())
def test_clipped_normal_has_total_probability_one(law):
  loc, scale, low, high = law
  edges = np.linspace(
    max(low, loc - 9 * scale), min(high, loc + 9 * scale), 20001
  )
  middles = (edges[1:] + edges[:-1]) / 2
  policy = clipped_normal.ClippedNormal(loc, scale, low, high)
  total = np.exp(policy.log_prob(middles)).sum() * (edges[1] - edges[0])
  for bound in (low, high):
    if math.isfinite(bound):
      total += np.exp(policy.log_prob(bound))
  np.testing.assert_allclose(total, 1, rtol=1e-3)


@pytest.mark.parametrize('law', LAWS.values(), ids=LAWS.keys())
def test_clipped_normal_entropy_is_the_mean_of_minus_log_prob(law):
  policy = clipped_normal.ClippedNormal(*law)
  samples = policy.sample(200_000, seed=5)
  assert np.min(samples) >= law[2]
  assert np.max(samples) <= law[3]
  log_probs = policy.log_prob(samples).numpy()
  error = 5 * log_probs.std() / np.sqrt(log_probs.size) + 1e-6
  np.testing.assert_allclose(policy.entropy(), -log_probs.mean(), atol=error)


def test_clipped_normal_without_bounds_is_normal():
  policy = clipped_normal.ClippedNormal(1.0, 2.0, -INF, INF)
  expected = 0.5 * math.log(2 * math.pi * math.e * 4)
  np.testing.assert_allclose(policy.entropy(), expected, rtol=1e-6)


@pytest.fixture
def box():
  """Bounded, half-open and free dimensions."""
  return heads.head_for(
    specs.BoundedArray(
      (3,), np.float32, minimum=[-2, 0, -INF], maximum=[4, INF, INF]
    )
  )


def test_box_with_zero_parameters_is_in_the_middle(box):
  policy = box.distribution(tf.zeros([box.num_parameters]))
  np.testing.assert_allclose(policy.mode(), [1, 0, 0])
  scale = policy.distribution.parameters['scale']
  np.testing.assert_allclose(scale, [3, 1, 1], rtol=2e-3)


def test_box_sums_its_dimensions(box):
  parameters = parameters_for(box, 2)
  policy = box.distribution(tf.constant(parameters))
  actions = np.array([[-2, 0.5, 9], [4, 0, -3]], np.float32)
  expected = []
  for (*locs, a, b, c), action in zip(parameters, actions, strict=True):
    total = 0
    for d, raw in enumerate((a, b, c)):
      middle, half = ((1, 3), (0, 1), (0, 1))[d]
      low, high = ((-2, 4), (0, INF), (-INF, INF))[d]
      softplus = math.log1p(math.exp(raw + math.log(math.e - 1)))
      total += log_prob_by_definition(
        action[d],
        middle + half * locs[d],
        half * (softplus + 1e-3),
        low,
        high,
      )
    expected.append(total)
  np.testing.assert_allclose(policy.log_prob(actions), expected, rtol=1e-4)
  np.testing.assert_allclose(
    policy.entropy(),
    np.sum(policy.distribution.entropy(), axis=-1),
    rtol=1e-6,
  )


@pytest.mark.parametrize('size', [1, 30, 1000])
def test_box_stays_finite_at_the_bounds_and_far_away(box, size):
  random = np.random.RandomState(0)
  parameters = tf.constant(
    size * random.standard_normal((500, box.num_parameters)), tf.float32
  )
  bounds = tf.constant([[-2, 0, -1e4], [4, 1e4, 1e4]], tf.float32)
  with tf.GradientTape() as tape:
    tape.watch(parameters)
    policy = box.distribution(parameters)
    actions = tf.concat([policy.sample(seed=1)[:-2], bounds], axis=0)
    log_probs, entropy = policy.log_prob(actions), policy.entropy()
    loss = tf.reduce_sum(log_probs) + tf.reduce_sum(entropy)
  for values in (log_probs, entropy, tape.gradient(loss, parameters)):
    assert np.isfinite(values).all()
  np.testing.assert_array_equal(actions[:, :2] >= [-2, 0], True)
  np.testing.assert_array_equal(actions[:, 0] <= 4, True)


def test_box_encodes_in_units_of_half_its_interval(box):
  actions = tf.constant([[-2, 5, -7], [4, 0, 0]], tf.float32)
  np.testing.assert_allclose(box.encode(actions), [[-1, 5, -7], [1, 0, 0]])


@pytest.mark.parametrize(
  'spec',
  [
    specs.Array((2,), np.float32),
    specs.BoundedArray((2,), np.int32, minimum=1, maximum=3),
    specs.BoundedArray((2, 2), np.float32, minimum=0, maximum=1),
    specs.BoundedArray((2,), np.float32, minimum=1, maximum=1),
    specs.BoundedArray((), np.int32, minimum=0, maximum=1),
  ],
  ids=['unbounded', 'from 1', 'matrix', 'empty', 'scalar'],
)
def test_other_action_specs_are_refused_with_what_to_give(spec):
  with pytest.raises(ValueError, match=r'action spec is .*give a Discrete'):
    heads.head_for(spec)
