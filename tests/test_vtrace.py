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
"""V-trace against the original's numbers, the paper's sum, and known cases."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from scalable_agent import losses, vtrace_tf

tfd = tfp.distributions

GOLDEN = pathlib.Path(__file__).parent / 'golden' / 'vtrace_from_logits.npz'
GOLDEN_CASES = [  # T, B, A, rho bar, rho bar of the policy gradient.
  (5, 4, 3, 1.0, 1.0),
  (20, 2, 9, 1.0, 1.0),
  (100, 3, 18, 3.7, 2.2),
  (5, 1, 3, None, None),
  (8, 2, 4, 0.5, 1.0),
]
METHODS = ('sequential', 'associative')
COMPILED = {
  'eager': lambda f: f,
  'function': tf.function,
  'xla': tf.function(jit_compile=True),
}
in_every_method = pytest.mark.parametrize('method', METHODS)
in_every_mode = pytest.mark.parametrize('mode', COMPILED)


def targets_by_definition(
  log_rhos,
  discounts,
  rewards,
  values,
  bootstrap_value,
  clip_rho_threshold=1.0,
  clip_pg_rho_threshold=1.0,
  clip_c_threshold=1.0,
  lambda_=1.0,
  truncations=None,
  truncation_values=None,
):
  """V-trace as the double sum in the paper: slow, and obviously right."""
  rhos = np.exp(np.asarray(log_rhos, np.float64))
  num_steps = len(rhos)
  cut = np.zeros(rhos.shape, bool) if truncations is None else truncations

  def clip(threshold):
    return rhos if threshold is None else np.minimum(rhos, threshold)

  def following(estimates):
    after = np.append(estimates[1:], bootstrap_value[np.newaxis], axis=0)
    return np.where(
      cut, 0.0 if truncations is None else truncation_values, after
    )

  cs = lambda_ * clip(clip_c_threshold)
  deltas = clip(clip_rho_threshold) * (
    rewards + discounts * following(values) - values
  )
  vs = np.array(values, np.float64)
  for s in range(num_steps):
    for t in range(s, num_steps):
      reaches = ~cut[s:t].any(axis=0)
      vs[s] += reaches * np.prod((discounts * cs)[s:t], axis=0) * deltas[t]
  pg_advantages = clip(clip_pg_rho_threshold) * (
    rewards + discounts * following(vs) - values
  )
  return vs, pg_advantages


def random_inputs(num_steps=7, batch_size=3, seed=0, truncated=False):
  rng = np.random.RandomState(seed)
  shape = (num_steps, batch_size)
  inputs = {
    'log_rhos': rng.standard_normal(shape),
    'discounts': 0.9 * (rng.uniform(size=shape) > 0.15),
    'rewards': rng.standard_normal(shape),
    'values': rng.standard_normal(shape),
    'bootstrap_value': rng.standard_normal(batch_size),
  }
  if truncated:
    inputs['truncations'] = rng.uniform(size=shape) < 0.3
    inputs['discounts'][inputs['truncations']] = 0.9
    inputs['truncation_values'] = rng.standard_normal(shape)
  return {
    name: x if x.dtype == bool else x.astype(np.float32)
    for name, x in inputs.items()
  }


def column(**inputs):
  """One column of a batch from flat lists; scalars are repeated over time."""
  num_steps = max(np.size(x) for x in inputs.values())
  bootstrap_value = np.float32([inputs.pop('bootstrap_value')])
  sequences = {
    name: np.broadcast_to(
      np.asarray(x, bool if name == 'truncations' else np.float32), num_steps
    )[:, np.newaxis]
    for name, x in inputs.items()
  }
  return {'bootstrap_value': bootstrap_value, **sequences}


def compute(inputs, method='sequential', mode='eager', **options):
  """`vs` and `pg_advantages` as arrays."""
  function = COMPILED[mode](
    lambda tensors: vtrace_tf.from_importance_weights(
      **tensors, method=method, **options
    )
  )
  tensors = {name: tf.constant(x) for name, x in inputs.items()}
  return [x.numpy() for x in function(tensors)]


def golden_inputs(index):
  num_steps, batch_size, num_actions, *_ = GOLDEN_CASES[index]
  rng = np.random.RandomState(100 + index)
  shape = (num_steps, batch_size)

  def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)

  return {
    'behaviour_policy_logits': normal(*shape, num_actions),
    'target_policy_logits': normal(*shape, num_actions),
    'actions': rng.randint(0, num_actions, shape).astype(np.int32),
    'discounts': (0.99 * (rng.uniform(size=shape) > 0.1)).astype(np.float32),
    'rewards': normal(*shape),
    'values': normal(*shape),
    'bootstrap_value': normal(batch_size),
  }


@pytest.mark.parametrize('index', range(len(GOLDEN_CASES)))
@in_every_method
def test_equals_the_original(index, method):
  *_, rho_bar, pg_rho_bar = GOLDEN_CASES[index]

  returns = vtrace_tf.from_logits(
    **golden_inputs(index),
    clip_rho_threshold=rho_bar,
    clip_pg_rho_threshold=pg_rho_bar,
    method=method,
  )

  with np.load(GOLDEN) as golden:
    for field in vtrace_tf.VTraceFromLogitsReturns._fields:
      np.testing.assert_allclose(
        getattr(returns, field),
        golden[f'case{index}|{field}'],
        rtol=1e-5,
        atol=1e-6,
        err_msg=field,
      )


@pytest.mark.parametrize(
  'options',
  [
    {},
    {'clip_rho_threshold': None, 'clip_pg_rho_threshold': None},
    {'clip_rho_threshold': 0.8, 'clip_pg_rho_threshold': 2.0},
    {'clip_rho_threshold': 0.0, 'clip_pg_rho_threshold': 0.0},
    {'clip_c_threshold': 0.6},
    {'clip_c_threshold': None, 'lambda_': 0.7},
    {'clip_rho_threshold': tf.constant(1.5), 'lambda_': np.float64(0.95)},
  ],
  ids=['defaults', 'no-rho', 'rho-and-pg', 'zero', 'c', 'lambda', 'tensors'],
)
@pytest.mark.parametrize('truncated', [False, True], ids=['ends', 'limits'])
@in_every_method
def test_equals_the_sum_in_the_paper(options, truncated, method):
  inputs = random_inputs(truncated=truncated)

  actual = compute(inputs, method, **options)

  expected = targets_by_definition(
    **inputs,
    **{name: x if x is None else float(x) for name, x in options.items()},
  )
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@in_every_method
@in_every_mode
@pytest.mark.parametrize('num_steps', [1, 2, 21])
def test_methods_and_modes_agree(method, mode, num_steps):
  inputs = random_inputs(num_steps, truncated=True)

  actual = compute(inputs, method, mode, lambda_=0.9)

  expected = targets_by_definition(**inputs, lambda_=0.9)
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


LN3, LN_HALF = np.log(3.0), np.log(0.5)
CASES = {
  'B1-all-ends': (
    {
      'log_rhos': 0,
      'discounts': [0, 0, 0],
      'rewards': [1, 2, 3],
      'values': 0.5,
      'bootstrap_value': 1e30,
    },
    {},
    ([1, 2, 3], [0.5, 1.5, 2.5]),
  ),
  'B2-end-at-last-step': (
    {
      'log_rhos': 0,
      'discounts': [0.9, 0.9, 0],
      'rewards': [1, 2, 3],
      'values': 0.5,
      'bootstrap_value': 100,
    },
    {},
    ([5.23, 4.70, 3.00], [4.73, 4.20, 2.50]),
  ),
  'B3-end-inside': (
    {
      'log_rhos': 0,
      'discounts': [0.9, 0, 0.9, 0.9],
      'rewards': [1, 2, 3, 4],
      'values': 1,
      'bootstrap_value': 10,
    },
    {},
    ([2.8, 2, 14.7, 13], [1.8, 1, 13.7, 12]),
  ),
  'B5-limit-at-last-step': (
    {
      'log_rhos': [0],
      'discounts': 0.9,
      'rewards': 1,
      'values': 2,
      'bootstrap_value': -5,
      'truncations': True,
      'truncation_values': 10,
    },
    {},
    ([10], [8]),
  ),
  'B5-off-policy': (
    {
      'log_rhos': [LN_HALF],
      'discounts': 0.9,
      'rewards': 1,
      'values': 2,
      'bootstrap_value': -5,
      'truncations': True,
      'truncation_values': 10,
    },
    {},
    ([6], [4]),
  ),
  'B7-limit-off-policy': (
    {
      'log_rhos': [0, LN_HALF],
      'discounts': 0.9,
      'rewards': 1,
      'values': 2,
      'bootstrap_value': -5,
      'truncations': [False, True],
      'truncation_values': [0, 10],
    },
    {},
    ([6.4, 6.0], [4.4, 4.0]),
  ),
  'B8-three-clips': (
    {
      'log_rhos': [LN3, LN3],
      'discounts': 0.9,
      'rewards': 1,
      'values': 0,
      'bootstrap_value': 1,
    },
    {'clip_rho_threshold': 2.0, 'clip_pg_rho_threshold': 1.0},
    ([5.42, 3.80], [4.42, 1.90]),
  ),
  'B9-ratio-below-one': (
    {
      'log_rhos': [LN_HALF, LN_HALF],
      'discounts': 0.9,
      'rewards': 1,
      'values': 0,
      'bootstrap_value': 1,
    },
    {},
    ([0.9275, 0.95], [0.9275, 0.95]),
  ),
  'B10-huge-ratio': (
    {
      'log_rhos': [200, -200, 0],
      'discounts': 0.9,
      'rewards': 1,
      'values': 0.5,
      'bootstrap_value': 2,
    },
    {},
    ([1.45, 0.5, 2.8], [0.95, 0, 2.3]),
  ),
  'B11-on-policy': (
    {
      'log_rhos': 0,
      'discounts': 0.5,
      'rewards': 1,
      'values': [7, -3, 2],
      'bootstrap_value': 8,
    },
    {},
    ([2.75, 3.5, 5], [-4.25, 6.5, 3]),
  ),
  # TRL #4209: the advantage took the next episode's value, 99.
  'A1.1-limit-inside': (
    {
      'log_rhos': 0,
      'discounts': 1,
      'rewards': [0, 0, 1],
      'values': [0, 99, 99],
      'bootstrap_value': 99,
      'truncations': [True, False, False],
      'truncation_values': [0, 0, 0],
    },
    {},
    ([0, 100, 100], [0, 1, 1]),
  ),
  'tutorial': (
    {
      'log_rhos': np.subtract([-0.5, -0.3, -0.8], [-1, -0.6, -0.9]),
      'discounts': 0.99,
      'rewards': [0, 1, 0.5],
      'values': [0.2, 0.4, 0.3],
      'bootstrap_value': 0,
    },
    {},
    # All three ratios are above 1, so these are plain discounted returns.
    ([0.99 * 1.495, 1.495, 0.5], [0.99 * 1.495 - 0.2, 1.095, 0.2]),
  ),
}


@pytest.mark.parametrize('case', CASES)
@in_every_method
def test_known_case(case, method):
  inputs, options, expected = CASES[case]

  vs, pg_advantages = compute(column(**inputs), method, **options)

  np.testing.assert_allclose(vs[:, 0], expected[0], rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(
    pg_advantages[:, 0], expected[1], rtol=1e-5, atol=1e-6
  )


@in_every_method
@pytest.mark.parametrize('limit', [False, True], ids=['end', 'limit'])
def test_an_episode_that_stops_inside_equals_two_runs(method, limit):
  inputs = random_inputs(num_steps=6, seed=3)
  first = {name: x[:2] for name, x in inputs.items()}
  second = {name: x[2:] for name, x in inputs.items()}
  second['bootstrap_value'] = inputs['bootstrap_value']
  if limit:
    first['discounts'][1] = 0.9
    first['bootstrap_value'] = np.float32([10, 20, 30])
    inputs['truncations'] = np.zeros((6, 3), bool)
    inputs['truncations'][1] = True
    inputs['truncation_values'] = np.full((6, 3), np.nan, np.float32)
    inputs['truncation_values'][1] = first['bootstrap_value']
  else:
    first['discounts'][1] = 0.0
    first['bootstrap_value'] = np.float32([1e9, 1e9, 1e9])

  actual = compute(inputs, method)

  expected = np.concatenate([compute(first), compute(second)], axis=1)
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_bootstrap_of_a_time_limit_survives_reward_clipping():
  # Case B6: raw reward 7 is clipped to 1; the value of 10 stays 10.
  rewards = losses.clip_rewards([[7.0]], 'abs_one')

  vs, _ = compute(
    {
      'log_rhos': [[0.0]],
      'discounts': [[0.9]],
      'rewards': rewards,
      'values': [[2.0]],
      'bootstrap_value': [-5.0],
      'truncations': [[True]],
      'truncation_values': [[10.0]],
    }
  )

  np.testing.assert_allclose(vs, [[10.0]], rtol=1e-6)


@in_every_method
def test_huge_ratios_count_as_any_other_that_is_clipped(method):
  inputs, _, _ = CASES['B10-huge-ratio']

  huge = compute(column(**inputs), method)
  large = compute(column(**{**inputs, 'log_rhos': [10, -200, 0]}), method)

  np.testing.assert_array_equal(huge, large)


@in_every_method
@in_every_mode
def test_without_clipping_a_masked_step_leaves_loss_and_gradient_finite(
  method, mode
):
  # Case B10. The mask multiplies: 0 * inf would be NaN.
  mask = tf.constant([[0.0], [1.0], [1.0]])
  actions = tf.zeros([3, 1], tf.int32)
  behaviour_logits = tf.constant([[[-200.0, 0]], [[0, -200.0]], [[0, 0]]])
  variables = (
    tf.constant([[[0.0, -200.0]], [[-200.0, 0]], [[0, 0]]]),
    tf.constant([[0.5], [0.5], [0.5]]),
  )

  @COMPILED[mode]
  def loss_and_gradients(logits, values):
    with tf.GradientTape() as tape:
      tape.watch((logits, values))
      returns = vtrace_tf.from_logits(
        behaviour_logits,
        logits,
        actions,
        discounts=tf.fill([3, 1], 0.9),
        rewards=tf.ones([3, 1]),
        values=values,
        bootstrap_value=tf.constant([2.0]),
        clip_rho_threshold=None,
        clip_pg_rho_threshold=None,
        clip_c_threshold=None,
        method=method,
      )
      loss = tf.reduce_sum(
        mask
        * (
          -returns.pg_advantages * returns.target_action_log_probs
          + 0.5 * tf.square(returns.vs - values)
        )
      )
    return loss, tape.gradient(loss, (logits, values))

  loss, gradients = loss_and_gradients(*variables)

  assert np.isfinite(loss)
  for gradient in gradients:
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradient[0], np.zeros_like(gradient[0]))


@in_every_method
def test_huge_ratios_without_any_clipping_stay_finite(method):
  inputs = random_inputs(num_steps=100, seed=1)
  inputs['log_rhos'] *= 200

  targets = compute(
    inputs,
    method,
    clip_rho_threshold=None,
    clip_pg_rho_threshold=None,
    clip_c_threshold=None,
  )

  assert np.isfinite(targets).all()
  assert np.isfinite(np.sum(np.square(targets[0])))


@in_every_method
@pytest.mark.parametrize('bad', [np.nan, np.inf], ids=['nan', 'inf'])
def test_what_is_not_finite_is_not_hidden(method, bad):
  inputs = random_inputs()
  inputs['rewards'][4, 1] = bad

  vs, pg_advantages = compute(inputs, method)

  assert not np.isfinite(vs[4, 1])
  assert not np.isfinite(pg_advantages[4, 1])
  assert np.isfinite(vs[:, [0, 2]]).all()


@in_every_method
def test_no_gradient_leaves_the_targets(method):
  names = ('log_rhos', 'discounts', 'rewards', 'values', 'bootstrap_value')
  inputs = random_inputs(truncated=True)
  tensors = {name: tf.constant(x) for name, x in inputs.items()}
  watched = [tensors[name] for name in (*names, 'truncation_values')]
  threshold = tf.constant(1.0)

  with tf.GradientTape(persistent=True) as tape:
    tape.watch([*watched, threshold])
    vs, pg_advantages = vtrace_tf.from_importance_weights(
      **tensors,
      clip_rho_threshold=threshold,
      clip_c_threshold=threshold,
      lambda_=threshold,
      method=method,
    )

  for target in (vs, pg_advantages):
    assert tape.gradient(target, [*watched, threshold]) == [None] * 7


def test_log_probabilities_keep_their_gradient():
  inputs = {name: tf.constant(x) for name, x in golden_inputs(0).items()}
  logits = inputs['target_policy_logits']

  with tf.GradientTape(persistent=True) as tape:
    tape.watch(logits)
    returns = vtrace_tf.from_logits(**inputs)

  expected = tf.one_hot(inputs['actions'], 3) - tf.nn.softmax(logits)
  for log_probs in (returns.target_action_log_probs, returns.log_rhos):
    np.testing.assert_allclose(
      tape.gradient(log_probs, logits), expected, atol=1e-6
    )


@pytest.mark.parametrize('dtype', ['float16', 'bfloat16', 'float64', 'int32'])
def test_arithmetic_is_float32_whatever_comes_in(dtype):
  inputs = {
    'log_rhos': [[0], [1]],
    'discounts': [[1], [1]],
    'rewards': [[2048], [5]],  # Neither float16 nor bfloat16 knows 2057.
    'values': [[1], [1]],
    'bootstrap_value': [4],
  }

  vs, pg_advantages = vtrace_tf.from_importance_weights(
    **{name: tf.cast(x, dtype) for name, x in inputs.items()}
  )

  assert vs.dtype == pg_advantages.dtype == tf.float32
  np.testing.assert_array_equal(vs, [[2057], [9]])
  np.testing.assert_array_equal(pg_advantages, [[2056], [8]])


def test_logits_in_half_precision_give_float32_log_probabilities():
  logits = tf.constant([[[60000.0, 59968.0]]], tf.float16)

  log_probs = vtrace_tf.log_probs_from_logits_and_actions(logits, [[1]])

  assert log_probs.dtype == tf.float32
  np.testing.assert_allclose(log_probs, [[-32.0]], rtol=1e-6)


def test_several_value_estimates_of_one_policy():
  # [T, B, C] rewards and values, [T, B, 1] of what the policy has once.
  inputs = random_inputs(truncated=True)
  estimates = [
    random_inputs(seed=seed, truncated=True) for seed in (1, 2, 3, 4)
  ]
  of_each = ('rewards', 'values', 'truncation_values', 'bootstrap_value')
  columns = [
    {**inputs, **{name: estimate[name] for name in of_each}}
    for estimate in estimates
  ]
  stacked = {
    name: np.stack([c[name] for c in columns], -1)
    if name in of_each
    else inputs[name][..., np.newaxis]
    for name in inputs
  }

  actual = compute(stacked)

  expected = np.stack([compute(c) for c in columns], -1)
  np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def policies(kind, rng, num_steps=5, batch_size=2):
  """Two distributions, actions, and their log-ratios by hand."""
  event = {'discrete': (), 'multi-discrete': (3,), 'box': (3,)}[kind]
  shape = (num_steps, batch_size, *event)
  if kind == 'box':
    mu, pi, actions = rng.standard_normal((3, *shape)).astype(np.float32)
    squares = np.square(actions - mu) - np.square(actions - pi)
    distributions = [tfd.MultivariateNormalDiag(loc) for loc in (mu, pi)]
    return *distributions, actions, 0.5 * squares.sum(-1)

  logits = rng.standard_normal((2, *shape, 4)).astype(np.float32)
  actions = rng.randint(0, 4, shape)
  chosen = np.take_along_axis(
    logits - np.log(np.exp(logits).sum(-1, keepdims=True)),
    actions[np.newaxis, ..., np.newaxis],
    axis=-1,
  )
  log_mu, log_pi = chosen.reshape(2, num_steps, batch_size, -1).sum(-1)
  distributions = [
    tfd.Independent(tfd.Categorical(x), len(event)) for x in logits
  ]
  return *distributions, actions, log_pi - log_mu


@pytest.mark.parametrize('kind', ['discrete', 'multi-discrete', 'box'])
def test_distributions_of_any_action_space(kind):
  behaviour, target, actions, log_rhos = policies(
    kind, np.random.RandomState(7)
  )
  inputs = random_inputs(num_steps=5, batch_size=2, truncated=True)
  options = {'clip_rho_threshold': 1.2, 'lambda_': 0.9, 'clip_c_threshold': 0.8}
  inputs['log_rhos'] = log_rhos

  expected = targets_by_definition(**inputs, **options)
  del inputs['log_rhos']
  returns = vtrace_tf.from_distributions(
    behaviour, target, actions, **inputs, **options
  )

  np.testing.assert_allclose(returns.log_rhos, log_rhos, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(returns.vs, expected[0], rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(
    returns.pg_advantages, expected[1], rtol=1e-4, atol=1e-5
  )
  np.testing.assert_allclose(
    returns.target_action_log_probs - returns.behaviour_action_log_probs,
    returns.log_rhos,
  )
