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
"""Wrong shapes are named, while tracing or while running; none broadcasts."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from scalable_agent import shapes, vtrace_tf

tfd = tfp.distributions


def right(*shape):
  """Arguments of `from_importance_weights` of shape `[T, B, ...]`."""
  return {
    'log_rhos': np.zeros(shape, np.float32),
    'discounts': np.full(shape, 0.9, np.float32),
    'rewards': np.ones(shape, np.float32),
    'values': np.zeros(shape, np.float32),
    'bootstrap_value': np.ones(shape[1:], np.float32),
    'truncations': np.zeros(shape, bool),
    'truncation_values': np.zeros(shape, np.float32),
  }


# Shape of the rest, name of the wrong one, its shape, and what must be said.
WRONG = [
  ((2, 2), 'rewards', (2,), 'rewards', '(2, 2)'),
  ((2, 2), 'values', (2, 2, 1), 'log_rhos', '(2, 2, 1)'),
  ((2, 2), 'bootstrap_value', (2, 1), 'bootstrap_value', '(2,)'),
  ((2, 2), 'bootstrap_value', (), 'bootstrap_value', '(2,)'),
  ((2, 3), 'rewards', (3, 2), 'rewards', '(2, 3)'),
  ((2, 3), 'values', (3, 2), 'log_rhos', '(3, 2)'),
  ((2, 3), 'log_rhos', (1, 3), 'log_rhos', '(2, 3)'),
  ((2, 3), 'discounts', (2, 1), 'discounts', '(2, 3)'),
  ((2, 3), 'discounts', (), 'discounts', '(2, 3)'),
  ((2, 3), 'rewards', (2, 1), 'rewards', '(2, 3)'),
  ((2, 3), 'bootstrap_value', (1,), 'bootstrap_value', '(3,)'),
  ((2, 3), 'truncations', (2, 1), 'truncations', '(2, 3)'),
  ((2, 3), 'truncation_values', (2,), 'truncation_values', '(2, 3)'),
  ((2, 2, 3), 'rewards', (2, 2, 1), 'rewards', '(2, 2, 3)'),
  ((2, 2, 3), 'bootstrap_value', (2, 1), 'bootstrap_value', '(2, 3)'),
  ((2, 2, 3), 'log_rhos', (2, 1, 1), 'log_rhos', '(2, 2, 3)'),
  ((2, 2, 1), 'log_rhos', (2, 2, 3), 'log_rhos', '(2, 2, 1)'),
]
in_every_wrong_way = pytest.mark.parametrize(
  ('shape', 'wrong', 'wrong_shape', 'named', 'expected'),
  WRONG,
  ids=[f'{name}-{bad}-among-{good}' for good, name, bad, _, _ in WRONG],
)


def with_wrong(shape, wrong, wrong_shape):
  inputs = right(*shape)
  inputs[wrong] = np.zeros(wrong_shape, inputs[wrong].dtype)
  return inputs


@in_every_wrong_way
def test_wrong_shape(shape, wrong, wrong_shape, named, expected):
  inputs = with_wrong(shape, wrong, wrong_shape)

  with pytest.raises(ValueError, match=named) as error:
    vtrace_tf.from_importance_weights(**inputs)

  message = str(error.value)
  assert message.startswith(f'{named} has shape {inputs[named].shape}, but')
  assert expected in message


@tf.function(input_signature=[dict.fromkeys(right(1, 1), tf.TensorSpec(None))])
def anything(inputs):
  """V-trace of tensors of which tracing knows nothing."""
  truncations = tf.cast(inputs['truncations'], tf.bool)
  return vtrace_tf.from_importance_weights(
    **{**inputs, 'truncations': truncations}
  )


@tf.function(
  jit_compile=True,
  input_signature=[dict.fromkeys(right(1, 1), tf.TensorSpec(None))],
)
def anything_in_xla(inputs):
  return anything.python_function(inputs)


def as_floats(inputs):
  return {name: tf.constant(x, tf.float32) for name, x in inputs.items()}


@in_every_wrong_way
def test_wrong_shape_that_only_running_tells(
  shape, wrong, wrong_shape, named, expected
):
  inputs = with_wrong(shape, wrong, wrong_shape)

  with pytest.raises(tf.errors.InvalidArgumentError) as error:
    anything(as_floats(inputs))

  message = str(error.value)
  numbers = expected.strip('(,)').replace(',', '')
  assert f'{named} has shape' in message
  assert f'[but must have shape] [{numbers}]' in message


# One of each kind: every compilation takes a second.
@pytest.mark.parametrize(
  ('shape', 'wrong', 'wrong_shape', 'named'),
  [WRONG[i][:4] for i in (0, 2, 4, 7, 16)],
  ids=[f'{WRONG[i][1]}-{WRONG[i][2]}' for i in (0, 2, 4, 7, 16)],
)
def test_wrong_shape_under_xla_which_drops_assertions(
  shape, wrong, wrong_shape, named
):
  inputs = with_wrong(shape, wrong, wrong_shape)

  with pytest.raises(tf.errors.InvalidArgumentError) as error:
    anything_in_xla(as_floats(inputs))

  assert named in str(error.value)


@pytest.mark.parametrize('function', [anything, anything_in_xla])
def test_right_shapes_pass_although_unknown(function):
  inputs = right(3, 2, 4)
  inputs['log_rhos'] = inputs['log_rhos'][..., :1]

  actual = function(as_floats(inputs))

  expected = vtrace_tf.from_importance_weights(**inputs)
  np.testing.assert_allclose(actual.vs, expected.vs, rtol=1e-6)


def test_what_may_be_spread_is():
  expected = shapes.shape_of(tf.zeros([2, 3, 4]))

  tensor = shapes.require(
    tf.fill([2, 3, 1], 5.0), 'x', expected, 'said so', spread_from=2
  )

  np.testing.assert_array_equal(tensor, np.full((2, 3, 4), 5.0))


LOGITS = {
  'behaviour_policy_logits': (2, 3, 4),
  'target_policy_logits': (2, 3, 4),
  'actions': (2, 3),
}


@pytest.mark.parametrize(
  ('wrong', 'wrong_shape', 'said'),
  [
    ('behaviour_policy_logits', (2, 3), 'must have rank 3'),
    ('target_policy_logits', (2, 3, 1, 4), 'must have rank 3'),
    ('actions', (2, 3, 1), 'must have rank 2'),
    ('actions', (3, 2), 'but must have shape (2, 3)'),
    (
      'behaviour_policy_logits',
      (2, 1, 4),
      'behaviour_policy_logits, (2, 1, 4)',
    ),
  ],
)
def test_wrong_logits_or_actions(wrong, wrong_shape, said):
  given = {**LOGITS, wrong: wrong_shape}
  rest = right(2, 3)
  del rest['log_rhos']

  with pytest.raises(ValueError, match=wrong) as error:
    vtrace_tf.from_logits(
      **{name: np.zeros(shape, np.float32) for name, shape in given.items()},
      **rest,
    )

  assert said in str(error.value)


@pytest.mark.parametrize(
  ('distribution', 'actions', 'named', 'said'),
  [
    (tfd.Categorical(np.zeros((2, 3, 4))), (3,), 'actions', '(2, 3)'),
    (tfd.Categorical(np.zeros((3, 4))), (2, 3), 'actions', '(3,)'),
    (tfd.Normal(np.zeros((2, 3, 1)), 1.0), (2, 3, 1), 'log_rhos', '(2, 3)'),
    (
      tfd.MultivariateNormalDiag(np.zeros((2, 3, 5))),
      (2, 3, 1),
      'actions',
      '(2, 3, 5), the batch and event shape of behaviour_distribution',
    ),
  ],
  ids=['actions-of-one-step', 'policy-of-one-step', 'no-event', 'event'],
)
def test_wrong_distributions(distribution, actions, named, said):
  rest = right(2, 3)
  del rest['log_rhos']

  with pytest.raises(ValueError, match=f'{named} has shape') as error:
    vtrace_tf.from_distributions(
      distribution, distribution, np.zeros(actions), **rest
    )

  assert said in str(error.value)


@pytest.mark.parametrize(
  'name',
  [
    'clip_rho_threshold',
    'clip_pg_rho_threshold',
    'clip_c_threshold',
    'lambda_',
  ],
)
def test_a_threshold_is_a_scalar(name):
  with pytest.raises(ValueError, match=f'{name} has shape .3,., but must have'):
    vtrace_tf.from_importance_weights(**right(2, 3), **{name: [1.0, 1.0, 1.0]})


@pytest.mark.parametrize('missing', ['truncations', 'truncation_values'])
def test_truncations_and_their_values_come_together(missing):
  inputs = right(2, 3)
  del inputs[missing]

  with pytest.raises(ValueError, match='belong together'):
    vtrace_tf.from_importance_weights(**inputs)


def test_truncations_are_bool():
  inputs = {**right(2, 3), 'truncations': np.zeros((2, 3), np.float32)}

  with pytest.raises(ValueError, match='truncations has dtype float32'):
    vtrace_tf.from_importance_weights(**inputs)
