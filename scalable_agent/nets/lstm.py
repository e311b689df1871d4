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
"""The LSTM of TensorFlow 1, unrolled by a loop op, with resets inside.

Gates are computed as `[x, h] @ kernel + bias` in the order i, j (new input), f,
o; the forget bias of 1 is added at run time and not stored. The product with x
needs no state, so it is taken for all steps at once, before the loop.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

FORGET_BIAS = 1.0


class LSTMState(NamedTuple):
  """`c` (cell) and `h` (output), `[B, H]` float32 each."""

  c: tf.Tensor
  h: tf.Tensor


class LSTM(keras.layers.Layer):
  """An LSTM of `size` units over inputs of `size_in` features.

  Under mixed precision the matrix products run in half precision; gates and
  state are float32, so that a long episode does not wear the state out.
  Initialised as TensorFlow 1 does: Glorot uniform kernel, zero bias.
  """

  def __init__(
    self,
    size_in: int,
    size: int,
    seed: int,
    *,
    name: str = 'lstm',
    dtype: str = 'float32',
  ):
    super().__init__(name=name, dtype=dtype)
    self.size_in = size_in
    self.size = size
    self.kernel = self.add_weight(
      name='kernel',
      shape=(size_in + size, 4 * size),
      initializer=keras.initializers.GlorotUniform(seed=seed),
    )
    self.bias = self.add_weight(
      name='bias', shape=(4 * size,), initializer='zeros'
    )
    self.built = True

  def initial_state(self, batch_size: int | tf.Tensor) -> LSTMState:
    """Zeros, `[batch_size, size]`."""
    zeros = tf.zeros([batch_size, self.size])
    return LSTMState(zeros, zeros)

  def unroll(
    self, inputs: tf.Tensor, resets: tf.Tensor, state: LSTMState
  ) -> tuple[tf.Tensor, LSTMState]:
    """Consumes `T` steps.

    Args:
      inputs: `[T, B, I]`.
      resets: `[T, B]` bool; true zeroes the state before the step is consumed.
      state: before the first step.

    Returns:
      Outputs `[T, B, H]` float32, and the state after the last step.
    """
    keep = tf.cast(tf.logical_not(resets), tf.float32)[..., tf.newaxis]
    recurrent_kernel = tf.convert_to_tensor(self.kernel)[self.size_in :]
    outputs, c, h = _recurrence(
      self._project(inputs),
      keep,
      *state,
      tf.cast(recurrent_kernel, self.compute_dtype),
    )
    return outputs, LSTMState(c, h)

  def last_output(self, inputs: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """`[B, H]` float32 outputs after `lengths` `[B]` steps of `[T, B, I]`.

    Zeros where the length is 0. Steps beyond the length have no influence.
    """
    shape = tf.shape(inputs)
    no_resets = tf.zeros(shape[:2], tf.bool)
    state = self.initial_state(shape[1])
    outputs, _ = self.unroll(inputs, no_resets, state)
    outputs = tf.concat([state.h[tf.newaxis], outputs], axis=0)
    columns = tf.range(shape[1], dtype=lengths.dtype)
    return tf.gather_nd(outputs, tf.stack([lengths, columns], axis=-1))

  def _project(self, inputs):
    """`[T, B, 4 H]` float32: the part of the gates that needs no state."""
    kernel = tf.convert_to_tensor(self.kernel)[: self.size_in]
    kernel = tf.cast(kernel, self.compute_dtype)
    gates = tf.matmul(tf.cast(_rows(inputs), self.compute_dtype), kernel)
    gates = tf.nn.bias_add(tf.cast(gates, tf.float32), self.bias)
    shape = tf.concat([tf.shape(inputs)[:2], [4 * self.size]], axis=0)
    gates = tf.reshape(gates, shape)
    return tf.ensure_shape(gates, [*inputs.shape[:2], 4 * self.size])


@tf.custom_gradient
def _recurrence(projected, keep, c, h, kernel):
  """The LSTM after its input projection.

  The gradient is written by hand, for speed: whatever needs no state is
  computed for all steps at once, and the gradient of the kernel is one product
  instead of the sum of T small ones.

  Args:
    projected: `[T, B, 4 H]` float32 gates without their recurrent part.
    keep: `[T, B, 1]` float32; 0 zeroes the state before that step.
    c: `[B, H]` float32 cell before the first step.
    h: `[B, H]` float32 output before the first step.
    kernel: `[H, 4 H]` in the dtype of the products.

  Returns:
    Outputs `[T, B, H]`, and the last `c` and `h`.
  """
  (last_c, last_h), history = _forward(projected, keep, c, h, kernel)
  outputs, cells, i, j, f, o = history

  def gradient(d_outputs, d_last_c, d_last_h):
    past_c = tf.concat([c[tf.newaxis], cells[:-1]], axis=0) * keep
    past_h = tf.concat([h[tf.newaxis], outputs[:-1]], axis=0) * keep
    squashed = tf.tanh(cells)
    # What a gate's raw value does to c (i, j, f) and to h (o).
    slopes = [
      j * i * (1 - i),
      i * (1 - tf.square(j)),
      past_c * f * (1 - f),
      squashed * o * (1 - o),
    ]
    (d_c, d_h), d_gates = _backward(
      d_outputs,
      (d_last_c, d_last_h),
      slopes=tf.concat(slopes, axis=-1),
      h_by_c=o * (1 - tf.square(squashed)),
      c_by_past_c=f * keep,
      keep=keep,
      kernel=kernel,
    )
    d_kernel = tf.matmul(
      tf.cast(_rows(past_h), kernel.dtype),
      tf.cast(_rows(d_gates), kernel.dtype),
      transpose_a=True,
    )
    return d_gates, None, d_c, d_h, d_kernel

  return (outputs, last_c, last_h), gradient


def _forward(projected, keep, c, h, kernel):
  """The last c and h, and h, c, i, j, f, o of all steps, `[T, B, H]` each."""

  def step(t, state):
    c, h = (s * keep[t] for s in state)
    product = tf.matmul(tf.cast(h, kernel.dtype), kernel)
    gates = projected[t] + tf.cast(product, tf.float32)
    i, j, f, o = tf.split(gates, 4, axis=-1)
    i, f, o = tf.sigmoid(i), tf.sigmoid(f + FORGET_BIAS), tf.sigmoid(o)
    j = tf.tanh(j)
    c = f * c + i * j
    h = o * tf.tanh(c)
    return (c, h), (h, c, i, j, f, o)

  return _scan(step, projected, (c, h), [h.shape] * 6)


def _backward(d_outputs, d_state, *, slopes, h_by_c, c_by_past_c, keep, kernel):
  """Gradients of c and h before the first step, and of all gates."""

  def step(t, d_state):
    d_c, d_h = d_state
    d_h += d_outputs[t]
    d_c += d_h * h_by_c[t]
    d_gates = tf.concat([d_c, d_c, d_c, d_h], axis=-1) * slopes[t]
    product = tf.matmul(
      tf.cast(d_gates, kernel.dtype), kernel, transpose_b=True
    )
    d_h = tf.cast(product, tf.float32) * keep[t]
    return (d_c * c_by_past_c[t], d_h), (d_gates,)

  state, (d_gates,) = _scan(
    step, slopes, d_state, [slopes.shape[1:]], reverse=True
  )
  return state, d_gates


def _scan(step, like, state, shapes, reverse=False):
  """A loop op: `state, outputs = step(t, state)` for each slot of `like`.

  Returns the last state, and the outputs, of the given shapes, of all slots.
  """
  static_steps = like.shape[0]
  num_steps = tf.shape(like)[0] if static_steps is None else static_steps
  arrays = [
    tf.TensorArray(tf.float32, num_steps, element_shape=shape)
    for shape in shapes
  ]

  def body(n, state, arrays):
    t = num_steps - 1 - n if reverse else n
    state, outputs = step(t, state)
    arrays = [a.write(t, x) for a, x in zip(arrays, outputs, strict=True)]
    return n + 1, state, arrays

  _, state, arrays = tf.while_loop(
    lambda n, *_: n < num_steps,
    body,
    (0, tuple(state), arrays),
    maximum_iterations=static_steps,
  )
  outputs = [
    tf.ensure_shape(array.stack(), [static_steps, *shape])
    for array, shape in zip(arrays, shapes, strict=True)
  ]
  return state, outputs


def _rows(values):
  """`[T, B, D]` to `[T * B, D]`."""
  return tf.reshape(values, [-1, values.shape[-1]])
