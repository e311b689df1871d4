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
"""The LSTM: against its definition in NumPy, with resets and gradients."""

import numpy as np
import pytest
import tensorflow as tf

from scalable_agent.nets import lstm

T, B, D, H = 6, 3, 5, 4


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


def by_definition(kernel, bias, inputs, resets, c, h):
  """TensorFlow 1's cell, one row at a time, in float64."""
  outputs = np.zeros((*inputs.shape[:2], h.shape[-1]))
  c, h = c.astype(np.float64), h.astype(np.float64)
  for t in range(len(inputs)):
    for b in range(inputs.shape[1]):
      if resets[t, b]:
        c[b], h[b] = 0, 0
      gates = np.concatenate([inputs[t, b], h[b]]) @ kernel + bias
      i, j, f, o = np.split(gates, 4)
      c[b] = c[b] * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
      h[b] = np.tanh(c[b]) * sigmoid(o)
    outputs[t] = h
  return outputs, c, h


@pytest.fixture
def layer():
  """An LSTM whose biases are not zero."""
  layer = lstm.LSTM(D, H, seed=1)
  random = np.random.RandomState(0)
  layer.kernel.assign(random.standard_normal(layer.kernel.shape))
  layer.bias.assign(random.standard_normal(layer.bias.shape))
  return layer


def make_inputs():
  random = np.random.RandomState(1)
  inputs = random.standard_normal((T, B, D)).astype(np.float32)
  resets = random.uniform(size=(T, B)) < 0.3
  c, h = random.standard_normal((2, B, H)).astype(np.float32)
  return inputs, resets, lstm.LSTMState(c, h)


def tensors(nest):
  return tf.nest.map_structure(tf.constant, nest)


@pytest.mark.parametrize('jit_compile', [None, False, True], ids=str)
def test_unroll_equals_the_definition(layer, jit_compile):
  inputs, resets, state = make_inputs()
  unroll = layer.unroll
  if jit_compile is not None:
    unroll = tf.function(unroll, jit_compile=jit_compile)
  outputs, last = unroll(*tensors((inputs, resets, state)))
  expected = by_definition(
    layer.kernel.numpy(), layer.bias.numpy(), inputs, resets, *state
  )
  for actual, value in zip((outputs, *last), expected, strict=True):
    np.testing.assert_allclose(actual, value, rtol=1e-5, atol=1e-6)


def counting_layer():
  """An LSTM whose cell adds up its input, in units of tanh(1e-3)."""
  layer = lstm.LSTM(1, 1, seed=0)
  layer.kernel.assign([[0, 1e-3, 0, 0], [0, 0, 0, 0]])
  layer.bias.assign([100, 0, 100, 100])  # Gates i, f and o wide open.
  return layer


@pytest.mark.parametrize(
  ('resets', 'expected'),
  [
    ([1, 0, 0, 1, 0], [1, 2, 3, 1, 2]),
    ([0, 0, 0, 1, 0], [11, 12, 13, 1, 2]),
  ],
  ids=['fresh', 'continued'],
)
def test_state_is_reset_before_the_step_is_consumed(resets, expected):
  unit = np.tanh(1e-3)
  state = lstm.LSTMState(
    tf.constant([[10 * unit]], tf.float32), tf.zeros([1, 1])
  )
  outputs, last = counting_layer().unroll(
    tf.ones([5, 1, 1]), tf.constant(resets)[:, tf.newaxis] > 0, state
  )
  counts = np.arctanh(outputs[:, 0, 0]) / unit
  np.testing.assert_allclose(counts, expected, rtol=1e-4)
  np.testing.assert_allclose(last.c[0, 0] / unit, expected[-1], rtol=1e-4)


def gradients(layer, inputs, resets, state, unroll):
  variables = [layer.kernel.value, layer.bias.value]
  with tf.GradientTape() as tape:
    tape.watch([inputs, *state])
    outputs, last = unroll(inputs, resets, state)
    loss = tf.reduce_sum(tf.sin(3 * outputs)) + tf.reduce_sum(last.c * last.h)
  return tape.gradient(loss, [inputs, *state, *variables])


@pytest.mark.parametrize('mode', ['eager', 'graph', 'xla'])
def test_gradient_equals_that_of_the_unrolled_cell(layer, mode):
  """TensorFlow differentiates the cell, written out step by step."""

  def unrolled(inputs, resets, state):
    c, h = state
    outputs = []
    for t in range(T):
      c, h = (tf.where(resets[t][:, tf.newaxis], 0.0, s) for s in (c, h))
      gates = tf.concat([inputs[t], h], axis=-1) @ layer.kernel + layer.bias
      i, j, f, o = tf.split(gates, 4, axis=-1)
      c = c * tf.sigmoid(f + 1) + tf.sigmoid(i) * tf.tanh(j)
      h = tf.tanh(c) * tf.sigmoid(o)
      outputs.append(h)
    return tf.stack(outputs), lstm.LSTMState(c, h)

  arguments = tensors(make_inputs())
  expected = gradients(layer, *arguments, unrolled)

  def compute(*arguments):
    return gradients(layer, *arguments, layer.unroll)

  if mode != 'eager':
    compute = tf.function(compute, jit_compile=mode == 'xla')
  for actual, value in zip(compute(*arguments), expected, strict=True):
    assert np.abs(value).max() > 0.01  # There is something to compare.
    np.testing.assert_allclose(actual, value, rtol=1e-4, atol=1e-6)


def test_last_output_is_that_of_each_row_alone(layer):
  inputs, _, _ = make_inputs()
  lengths = [0, 2, T]
  outputs = layer.last_output(tf.constant(inputs), tf.constant(lengths))
  zeros = np.zeros((1, H))
  for b, length in enumerate(lengths):
    expected = by_definition(
      layer.kernel.numpy(),
      layer.bias.numpy(),
      inputs[:length, b : b + 1],
      np.zeros((length, 1), bool),
      zeros,
      zeros,
    )[2][0]
    np.testing.assert_allclose(outputs[b], expected, rtol=1e-5, atol=1e-6)


def test_the_graph_does_not_grow_with_the_number_of_steps(layer):
  def num_nodes(num_steps):
    def update(inputs, resets, state):
      return gradients(layer, inputs, resets, state, layer.unroll)

    arguments = (
      tf.zeros([num_steps, B, D]),
      tf.zeros([num_steps, B], tf.bool),
      layer.initial_state(B),
    )
    graph = tf.function(update).get_concrete_function(*arguments).graph
    return len(graph.as_graph_def().node)

  assert num_nodes(100) < num_nodes(5) + 10


@pytest.mark.parametrize('precision', ['mixed_float16', 'mixed_bfloat16'])
def test_half_precision_keeps_a_float32_state(precision):
  exact = lstm.LSTM(D, H, seed=1)
  half = lstm.LSTM(D, H, seed=1, dtype=precision)
  inputs, resets, state = tensors(make_inputs())
  expected = exact.unroll(inputs, resets, state)
  actual = half.unroll(inputs, resets, state)
  for value, right in zip(
    tf.nest.flatten(actual), tf.nest.flatten(expected), strict=True
  ):
    assert value.dtype == tf.float32
    np.testing.assert_allclose(value, right, atol=0.03)
    assert np.any(value != right)  # The products did run in half precision.


def test_initial_weights_are_those_of_tensorflow_1():
  layer = lstm.LSTM(586, 256, seed=3)
  kernel = layer.kernel.numpy()
  limit = np.sqrt(6 / (586 + 256 + 4 * 256))  # Glorot uniform.
  assert 0.999 * limit < np.abs(kernel).max() <= limit
  np.testing.assert_allclose(kernel.std(), limit / np.sqrt(3), rtol=0.01)
  assert not layer.bias.numpy().any()
