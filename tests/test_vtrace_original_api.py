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
"""What was written against the original's module works after a new import."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from scalable_agent import vtrace_tf

v1 = tf.compat.v1

ARGUMENTS = {
  'log_probs_from_logits_and_actions': ['policy_logits', 'actions'],
  'from_logits': [
    'behaviour_policy_logits',
    'target_policy_logits',
    'actions',
    'discounts',
    'rewards',
    'values',
    'bootstrap_value',
    ('clip_rho_threshold', 1.0),
    ('clip_pg_rho_threshold', 1.0),
    ('name', 'vtrace_from_logits'),
  ],
  'from_importance_weights': [
    'log_rhos',
    'discounts',
    'rewards',
    'values',
    'bootstrap_value',
    ('clip_rho_threshold', 1.0),
    ('clip_pg_rho_threshold', 1.0),
    ('name', 'vtrace_from_importance_weights'),
  ],
}


@pytest.mark.parametrize('function', ARGUMENTS)
def test_arguments_and_defaults(function):
  parameters = inspect.signature(getattr(vtrace_tf, function)).parameters

  positional = [
    p.name if p.default is p.empty else (p.name, p.default)
    for p in parameters.values()
    if p.kind is p.POSITIONAL_OR_KEYWORD
  ]
  others = [p for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
  assert positional == ARGUMENTS[function]
  assert len(parameters) == len(positional) + len(others)
  assert all(p.default is not p.empty for p in others)


def test_result_fields():
  assert vtrace_tf.VTraceReturns._fields == ('vs', 'pg_advantages')
  assert vtrace_tf.VTraceFromLogitsReturns._fields == (
    'vs',
    'pg_advantages',
    'log_rhos',
    'behaviour_action_log_probs',
    'target_action_log_probs',
  )


def arrays(num_steps=5, batch_size=2, num_actions=3):
  rng = np.random.RandomState(5)
  shape = (num_steps, batch_size)
  return {
    'behaviour_policy_logits': rng.standard_normal((*shape, num_actions)),
    'target_policy_logits': rng.standard_normal((*shape, num_actions)),
    'actions': rng.randint(0, num_actions, shape),
    'discounts': rng.uniform(size=shape),
    'rewards': rng.standard_normal(shape),
    'values': rng.standard_normal(shape),
    'bootstrap_value': rng.standard_normal(batch_size),
  }


def placeholder(array, shape):
  dtype = tf.int32 if array.dtype.kind == 'i' else tf.float32
  return v1.placeholder(dtype, shape)


@pytest.mark.parametrize(
  'rank_is_known', [True, False], ids=['rank', 'nothing']
)
@pytest.mark.parametrize('threshold', [None, 1.0], ids=['unclipped', 'clipped'])
def test_placeholders_of_unknown_shape(rank_is_known, threshold):
  values = arrays()
  options = dict.fromkeys(
    ('clip_rho_threshold', 'clip_pg_rho_threshold'), threshold
  )

  with tf.Graph().as_default(), v1.Session() as session:
    placeholders = {
      name: placeholder(x, [None] * x.ndim if rank_is_known else None)
      for name, x in values.items()
    }
    returns = vtrace_tf.from_logits(**placeholders, **options)
    feed = {placeholders[name]: x for name, x in values.items()}
    actual = session.run(returns, feed)

  # Positional, as the original allowed, and on NumPy's float64.
  expected = vtrace_tf.from_logits(*values.values(), threshold, threshold)
  assert isinstance(actual, vtrace_tf.VTraceFromLogitsReturns)
  for field, array in actual._asdict().items():
    np.testing.assert_allclose(
      array, getattr(expected, field), rtol=1e-5, atol=1e-6, err_msg=field
    )


def test_further_axes_keep_their_static_size():
  with tf.Graph().as_default():
    returns = vtrace_tf.from_importance_weights(
      log_rhos=v1.placeholder(tf.float32, [None, None, 1]),
      discounts=v1.placeholder(tf.float32, [None, None, 1]),
      rewards=v1.placeholder(tf.float32, [None, None, 42]),
      values=v1.placeholder(tf.float32, [None, None, 42]),
      bootstrap_value=v1.placeholder(tf.float32, [None, 42]),
    )

  assert returns.vs.shape.as_list() == [None, None, 42]
  assert returns.pg_advantages.shape.as_list() == [None, None, 42]


def test_further_axes_of_unknown_size():
  rng = np.random.RandomState(6)
  values = {
    'log_rhos': rng.standard_normal((4, 2, 1)),
    'discounts': rng.uniform(size=(4, 2, 1)),
    'rewards': rng.standard_normal((4, 2, 3)),
    'values': rng.standard_normal((4, 2, 3)),
    'bootstrap_value': rng.standard_normal((2, 3)),
  }
  with tf.Graph().as_default(), v1.Session() as session:
    placeholders = {name: placeholder(x, None) for name, x in values.items()}
    returns = vtrace_tf.from_importance_weights(**placeholders)
    feed = {placeholders[name]: x for name, x in values.items()}
    actual = session.run(returns, feed)

  expected = vtrace_tf.from_importance_weights(**values)
  np.testing.assert_allclose(actual.vs, expected.vs, rtol=1e-5, atol=1e-6)


def test_a_wrong_rank_is_found_before_anything_runs():
  with (
    tf.Graph().as_default(),
    pytest.raises(ValueError, match=r'bootstrap_value .* must have rank 2'),
  ):
    vtrace_tf.from_importance_weights(
      log_rhos=v1.placeholder(tf.float32, [None, None, 1]),
      discounts=v1.placeholder(tf.float32, [None, None, 1]),
      rewards=v1.placeholder(tf.float32, [None, None, 42]),
      values=v1.placeholder(tf.float32, [None, None, 42]),
      bootstrap_value=v1.placeholder(tf.float32, [None]),
    )


def test_no_axis_of_batch():
  # The original never asked for one.
  actual = vtrace_tf.from_importance_weights(
    log_rhos=[0.0, 0.0],
    discounts=[0.5, 0.5],
    rewards=[1.0, 2.0],
    values=[3.0, 4.0],
    bootstrap_value=8.0,
  )

  np.testing.assert_allclose(actual.vs, [4.0, 6.0])


def test_operations_live_under_the_given_name():
  with tf.Graph().as_default() as graph:
    vtrace_tf.from_logits(**arrays(), name='targets')

  names = [op.name for op in graph.get_operations()]
  assert names
  assert all(name.startswith('targets/') for name in names)
