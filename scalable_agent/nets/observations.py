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
"""Sorts the leaves of an observation: images, numbers, an instruction.

Only uint8 is scaled, once: it is divided by 255. All other numbers reach the
network as they are, in float32.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree
from dm_env import specs

from scalable_agent import structs


class Features(NamedTuple):
  """An observation, sorted and decoded; `N` is any number of leading axes.

  images: one `[N, H, W, C]` per image.
  vector: `[N, I]`, all other numbers side by side, or None.
  instruction: `[N]` strings, or None.
  """

  images: list[tf.Tensor]
  vector: tf.Tensor | None
  instruction: tf.Tensor | None


def name_of(path: tuple[Any, ...]) -> str:
  """Path of a leaf, for people."""
  return '.'.join(map(str, path)) or 'itself'


class Layout:
  """What an observation consists of, read off its spec once.

  Leaves are in the order of `tree.flatten`: dicts by sorted key.
  An image is a uint8 array of 2 or 3 axes or a float array of 3 axes. If
  `flatten_images`, images count as plain numbers.
  """

  def __init__(self, spec: structs.Nest, flatten_images: bool = False):
    self._leaves = dict(tree.flatten_with_path(spec))
    strings = [p for p, leaf in self._leaves.items() if _is_string(leaf)]
    if len(strings) > 1 or any(self._leaves[p].shape for p in strings):
      raise ValueError(
        f'The observation has strings at {", ".join(map(name_of, strings))}; '
        'at most one, of shape [], can be the instruction.'
      )
    self._instruction = strings[0] if strings else None
    self._image_paths = [
      p for p, leaf in self._leaves.items() if _is_image(leaf)
    ]
    self._vectors = [
      p
      for p in self._leaves
      if p not in strings and (flatten_images or p not in self._image_paths)
    ]
    self._flatten_images = flatten_images

  @property
  def has_instruction(self) -> bool:
    """Whether there is a string."""
    return self._instruction is not None

  @property
  def stackable_paths(self) -> list[tuple[Any, ...]]:
    """Paths of the images that come in bytes."""
    return [
      path for path in self._image_paths if self._leaves[path].dtype == np.uint8
    ]

  def frame_shape(self, path: tuple[Any, ...]) -> tuple[int, ...]:
    """Shape of the image at `path` as the environment gives it."""
    return tuple(self._leaves[path].shape)

  def image_shapes(self, frame_stack: int) -> list[tuple[int, ...]]:
    """`(H, W, C)` of each of `Features.images`."""
    if self._flatten_images:
      return []
    shapes = []
    for path in self._image_paths:
      height, width, *channels = self.frame_shape(path)
      shapes.append((height, width, frame_stack * sum(channels or [1])))
    return shapes

  def vector_size(self, frame_stack: int) -> int:
    """Size of `Features.vector`; 0 for none."""
    size = 0
    for path in self._vectors:
      repeats = frame_stack if path in self._image_paths else 1
      size += repeats * int(np.prod(self._leaves[path].shape))
    return size

  def checked(self, observation: structs.Nest) -> dict[Any, tf.Tensor]:
    """Leaves of `observation` by path; raises if they are not as declared.

    Each leaf must have two axes, `[T, B]`, before those of its spec.
    """
    leaves = {
      path: tf.convert_to_tensor(leaf)
      for path, leaf in tree.flatten_with_path(observation)
    }
    if leaves.keys() != self._leaves.keys():
      raise ValueError(
        f'The observation has {", ".join(map(name_of, leaves))}, but its spec '
        f'declares {", ".join(map(name_of, self._leaves))}; they must be equal.'
      )
    for path, leaf in leaves.items():
      declared = self._leaves[path]
      dtype = tf.string if _is_string(declared) else tf.as_dtype(declared.dtype)
      given = leaf.shape[2:]
      if leaf.dtype != dtype or not given.is_compatible_with(declared.shape):
        raise ValueError(
          f'Observation {name_of(path)} is {leaf.dtype.name} of shape '
          f'{tuple(given)}, but its spec declares {dtype.name} of shape '
          f'{tuple(declared.shape)}; correct the one or the other.'
        )
    return leaves

  def features(self, leaves: dict[Any, tf.Tensor], dtype: str) -> Features:
    """Decodes `checked` leaves with one leading axis; numbers in `dtype`.

    An image that is decoded already, in `dtype`, stays as it is.
    """
    images, vectors = [], []
    for path, leaf in leaves.items():
      if path == self._instruction:
        continue
      decoded = decode(leaf, dtype)
      if path in self._vectors:
        vectors.append(tf.reshape(decoded, [-1, _size(decoded)]))
      elif decoded.shape.rank == 3:
        images.append(decoded[..., tf.newaxis])
      else:
        images.append(decoded)
    return Features(
      images=images,
      vector=tf.concat(vectors, axis=-1) if vectors else None,
      instruction=leaves.get(self._instruction),
    )


def decode(values: tf.Tensor, dtype: str) -> tf.Tensor:
  """Numbers in `dtype`; uint8 divided by 255."""
  if values.dtype == tf.uint8:
    # In float32: TensorFlow and XLA multiply by 1 / 255, which half a float
    # knows to three digits only.
    values = tf.cast(values, tf.float32) / 255
  return tf.cast(values, dtype)


def _size(values):
  return values.shape[1:].num_elements()


def _is_string(spec: specs.Array) -> bool:
  return isinstance(spec, specs.StringArray) or spec.dtype.kind in 'SUO'


def _is_image(spec: specs.Array) -> bool:
  if spec.dtype == np.uint8:
    return len(spec.shape) in (2, 3)
  return np.issubdtype(spec.dtype, np.floating) and len(spec.shape) == 3
