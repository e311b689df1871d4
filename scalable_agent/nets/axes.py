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
"""The axes `[T, B]` that every input of the network begins with."""

import tensorflow as tf


def add_time(values: tf.Tensor) -> tf.Tensor:
  """`[...]` to `[1, ...]`."""
  return tf.convert_to_tensor(values)[tf.newaxis]


def fold(values: tf.Tensor) -> tf.Tensor:
  """`[T, B, ...]` to `[T * B, ...]`."""
  return tf.reshape(values, tf.concat([[-1], tf.shape(values)[2:]], axis=0))


def unfold(values: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
  """`[T * B, ...]` to `[T, B, ...]`, with `T` and `B` of `like`."""
  inner = values.shape[1:]
  shape = tf.concat([tf.shape(like)[:2], inner], axis=0)
  return tf.ensure_shape(tf.reshape(values, shape), [*like.shape[:2], *inner])


def check(**inputs: tf.Tensor) -> None:
  """Raises unless all inputs agree on their first two axes, `[T, B]`."""
  axes = [values.shape[:2] for values in inputs.values()]
  if all(a.rank == 2 and a.is_compatible_with(axes[0]) for a in axes):
    return
  given = ', '.join(f'{name} {value.shape}' for name, value in inputs.items())
  raise ValueError(
    f'The inputs must all begin with the same axes [T, B]; given were {given}.'
  )
