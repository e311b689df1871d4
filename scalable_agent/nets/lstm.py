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

    def step(t, state):
      return self._cell(LSTMState(*(s * keep[t] for s in state)), projected[t])

    projected = self._project(inputs)
    return self._loop(step, tf.shape(inputs)[0], inputs.shape[0], state)

  def last_output(self, inputs: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """`[B, H]` float32 outputs after `lengths` `[B]` steps of `[T, B, I]`.

    Zeros where the length is 0. Steps beyond the length are not seen.
    """

    def step(t, state):
      running = (t < lengths)[:, tf.newaxis]
      following = self._cell(state, projected[t])
      return LSTMState(
        *(
          tf.where(running, n, s) for n, s in zip(following, state, strict=True)
        )
      )

    projected = self._project(inputs)
    state = self.initial_state(tf.shape(lengths)[0])
    num_steps = tf.shape(inputs)[0]
    return self._loop(step, num_steps, inputs.shape[0], state)[1].h

  def _project(self, inputs):
    """`[T, B, 4 H]` float32: the part of the gates that needs no state."""
    kernel = tf.cast(self.kernel[: self.size_in], self.compute_dtype)
    rows = tf.reshape(inputs, [-1, self.size_in])
    gates = tf.matmul(tf.cast(rows, self.compute_dtype), kernel)
    gates = tf.nn.bias_add(tf.cast(gates, tf.float32), self.bias)
    shape = tf.concat([tf.shape(inputs)[:2], [4 * self.size]], axis=0)
    gates = tf.reshape(gates, shape)
    return tf.ensure_shape(gates, [*inputs.shape[:2], 4 * self.size])

  def _cell(self, state, projected):
    """The state after one step; its `h` is the step's output."""
    kernel = tf.cast(self.kernel[self.size_in :], self.compute_dtype)
    recurrent = tf.matmul(tf.cast(state.h, self.compute_dtype), kernel)
    gates = projected + tf.cast(recurrent, tf.float32)
    i, j, f, o = tf.split(gates, 4, axis=-1)
    c = tf.sigmoid(f + FORGET_BIAS) * state.c + tf.sigmoid(i) * tf.tanh(j)
    return LSTMState(c, tf.sigmoid(o) * tf.tanh(c))

  def _loop(self, step, num_steps, static_num_steps, state):
    """Outputs `[T, B, H]` and the last state of `num_steps` times `step`."""
    outputs = tf.TensorArray(tf.float32, num_steps, element_shape=state.h.shape)

    def body(t, state, outputs):
      state = step(t, state)
      return t + 1, state, outputs.write(t, state.h)

    _, state, outputs = tf.while_loop(
      lambda t, *_: t < num_steps,
      body,
      (0, LSTMState(*state), outputs),
      maximum_iterations=static_num_steps,
    )
    outputs = outputs.stack()
    return tf.ensure_shape(outputs, [static_num_steps, *state.h.shape]), state
