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

import functools
from collections.abc import Sequence

import tensorflow as tf

from scalable_agent.nets import observations

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
  visible = [tf.ones_like(first)]
  for begin in reversed(range(num_past)):
    later_starts = starts[begin + 1 : begin + 1 + num_slots]
    visible.insert(0, visible[0] & ~later_starts)
  to_frames = (..., *[tf.newaxis] * (frames.shape.rank - 2))
  masks = [mask[to_frames] for mask in visible]
  layers = [timeline[i : i + num_slots] for i in range(num_past + 1)]
  following = tf.stack(
    [
      _masked(layer[-1], mask[-1])
      for layer, mask in zip(layers[1:], masks[1:], strict=True)
    ],
    axis=1,
  )
  return _interleave(layers, masks), following


@functools.partial(tf.function, jit_compile=True, autograph=False)
def stack_decoded(
  frames: tf.Tensor, first: tf.Tensor, history: tf.Tensor, dtype: str
) -> tuple[tf.Tensor, tf.Tensor]:
  """`stack` with the stacks in `dtype`, divided by 255.

  XLA makes one loop over the pixels of it. As one operation after the other it
  was a tenth of an update of the shallow network on a CPU, and half the
  inference for 32 environments.
  """
  stacks, following = stack(frames, first, history)
  return observations.decode(stacks, dtype), following


def _slot(frame):
  return frame[tf.newaxis]


def _masked(frames, mask):
  return frames * tf.cast(mask, frames.dtype)


def _interleave(layers, masks):
  """`[..., H, W, S * C]` uint8 of `S` layers `[..., H, W]` or with `C`.

  Zeros where a mask, `[..., 1, 1]` or `[..., 1, 1, 1]` bool, is false.
  """
  packed_dtype = _PACKED_DTYPES.get(len(layers))
  if layers[0].shape.rank == 5 or packed_dtype is None:
    layers = list(map(_masked, layers, masks))
    if layers[0].shape.rank == 5:
      return tf.concat(layers, axis=-1)
    return tf.stack(layers, axis=-1)
  shifts = [
    tf.cast(mask, packed_dtype) * tf.constant(256**i, packed_dtype)
    for i, mask in enumerate(masks)
  ]
  packed = tf.add_n(
    [
      tf.cast(layer, packed_dtype) * shift
      for layer, shift in zip(layers, shifts, strict=True)
    ]
  )
  return tf.bitcast(packed, tf.uint8)
