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
"""Stacks of the newest frames, built inside the network from single frames.

So a frame travels and is stored once, not `frame_stack` times. The result is
what `ale_py.vector_env.AtariVectorEnv` stacks itself: the newest frame is the
last channel, and after a reset the channels of frames that were never seen are
zeros.
"""

from collections.abc import Sequence

import tensorflow as tf

# `n` bytes side by side are one little-endian integer of `n` bytes, and adding
# up shifted integers is several times as fast as interleaving single bytes.
_PACKED_DTYPES = {2: tf.uint16, 4: tf.uint32, 8: tf.uint64}


def initial_history(
  batch_size: int | tf.Tensor, frame_shape: Sequence[int], frame_stack: int
) -> tf.Tensor:
  """`[B, frame_stack - 1, *frame_shape]` uint8 zeros: no frame seen yet."""
  return tf.zeros([batch_size, frame_stack - 1, *frame_shape], tf.uint8)


def stack(
  frames: tf.Tensor, first: tf.Tensor, history: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Stacks each frame with its predecessors in the same episode.

  Args:
    frames: `[T, B, H, W]` or `[T, B, H, W, C]` uint8.
    first: `[T, B]` bool; true where a frame is the first of an episode.
    history: `[B, S - 1, H, W]` or `[B, S - 1, H, W, C]` uint8, the frames
      before slot 0, oldest first.

  Returns:
    Stacks `[T, B, H, W, S * C]`, oldest frame first, and the history after
    the last slot.
  """
  num_past = history.shape[1]
  num_slots = tf.shape(frames)[0]
  timeline = tf.concat([*map(_slot, tf.unstack(history, axis=1)), frames], 0)
  # History holds zeros where an episode began within it: no flags needed.
  starts = tf.pad(first, [[num_past, 0], [0, 0]])
  visible = tf.ones_like(first)
  newest_first = [frames]
  for age in range(1, num_past + 1):
    begin = num_past - age
    visible &= ~starts[begin + 1 : begin + 1 + num_slots]
    mask = tf.cast(visible, tf.uint8)
    mask = mask[(..., *[tf.newaxis] * (frames.shape.rank - 2))]
    newest_first.append(timeline[begin : begin + num_slots] * mask)
  layers = newest_first[::-1]
  following = tf.stack([layer[-1] for layer in layers[1:]], axis=1)
  return _interleave(layers), following


def _slot(frame):
  return frame[tf.newaxis]


def _interleave(layers):
  """`[..., H, W, S * C]` uint8 of `S` layers `[..., H, W]` or with `C`."""
  packed_dtype = _PACKED_DTYPES.get(len(layers))
  if layers[0].shape.rank == 5:
    return tf.concat(layers, axis=-1)
  if packed_dtype is None:
    return tf.stack(layers, axis=-1)
  packed = tf.add_n(
    [
      tf.cast(layer, packed_dtype) * tf.constant(256**i, packed_dtype)
      for i, layer in enumerate(layers)
    ]
  )
  return tf.bitcast(packed, tf.uint8)
