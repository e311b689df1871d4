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
"""First-order linear recurrences over time, one after the other or in rounds.

The sum over time in V-trace is one. As T tiny steps it is nothing on a CPU, and
much on an accelerator, where starting an operation costs more than running it.
Composing two steps gives a step of the same form, and composing is associative,
so a parallel prefix computation (Blelloch 1990) finds all of them in a number
of rounds that grows with log T.
"""

import tensorflow as tf

METHODS = ('auto', 'sequential', 'associative')

_BOUND = 1e15


def solve_backwards(
  decays: tf.Tensor, deltas: tf.Tensor, method: str = 'auto'
) -> tf.Tensor:
  """Solves `x_t = deltas_t + decays_t * x_{t+1}`, with `x_T = 0`.

  Args:
    decays: `[T, ...]` float32.
    deltas: `[T, ...]` float32, of the same shape.
    method: 'sequential' goes through time backwards, T small steps one after
      the other, in the order of the original's arithmetic. 'associative' takes
      about 2 log2(T) larger steps; T must be known while tracing. Results are
      equal up to rounding. 'auto' is sequential on CPUs and where T is unknown,
      associative on accelerators.

  Returns:
    `[T, ...]` float32. What would overflow is held at a few times 1e15.
  """
  if method not in METHODS:
    raise ValueError(
      f'method is {method!r}; choose one of {", ".join(METHODS)}.'
    )
  num_steps = deltas.shape.as_list()[0] if deltas.shape.rank else None
  if method == 'auto':
    sequential = num_steps is None or _on_cpu(deltas)
    method = 'sequential' if sequential else 'associative'
  if method == 'sequential':
    return _sequential(decays, deltas)
  if num_steps is None:
    raise ValueError(
      "method is 'associative', which needs the number of steps T while "
      f'tracing, but the shape is {deltas.shape}; set it with tf.ensure_shape, '
      "or choose 'sequential'."
    )
  return _associative(decays, deltas)


def _sequential(decays, deltas):
  return tf.scan(
    lambda later, now: now[1] + _bounded(now[0] * later),
    (decays, deltas),
    tf.zeros(tf.shape(deltas)[1:], deltas.dtype),
    parallel_iterations=1,
    reverse=True,
    name='scan',
  )


def _associative(decays, deltas):
  # Imported where it is needed: it costs a second.
  import tensorflow_probability as tfp

  def combine(later, now):
    # Two steps are one step: x -> b2 + a2 * (b1 + a1 * x).
    return (
      _bounded(later[0] * now[0]),
      now[1] + _bounded(now[0] * later[1]),
    )

  backwards = tf.reverse(decays, [0]), tf.reverse(deltas, [0])
  _, solution = tfp.math.scan_associative(combine, backwards)
  return tf.reverse(solution, [0])


def _bounded(product):
  # Many factors above 1 would overflow, and infinity times 0 is NaN.
  return tf.clip_by_value(product, -_BOUND, _BOUND)


def _on_cpu(tensor):
  """Whether the operation that made a tensor runs on a CPU, as far as known."""
  device_type = tf.DeviceSpec.from_string(tensor.device).device_type
  if device_type is None:  # In a graph, left for TensorFlow to place.
    devices = tf.config.get_visible_devices()
    return all(device.device_type == 'CPU' for device in devices)
  return device_type == 'CPU'
