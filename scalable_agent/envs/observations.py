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
"""Observations on their way to the agent: checked, converted, copied."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tree
from dm_env import specs

from scalable_agent import structs

# Text travels as NumPy bytes of this fixed size: arrays of `object` can neither
# be shared between processes nor preallocated.
MAX_TEXT_BYTES = 1024


def received_spec(declared: structs.Nest) -> structs.Nest:
  """The specs under which declared observations reach the agent.

  float64 becomes float32, text becomes fixed-size bytes (`MAX_TEXT_BYTES`),
  all else stays as it is.
  """
  return tree.map_structure(_received_leaf, declared)


def _received_leaf(spec: specs.Array) -> specs.Array:
  if isinstance(spec, specs.StringArray):
    return specs.Array(spec.shape, f'S{MAX_TEXT_BYTES}', spec.name)
  if spec.dtype.kind not in 'buifS':
    raise ValueError(
      f'observation {spec.name!r} is declared as {spec.dtype}; observations '
      'are numbers, booleans or text (`dm_env.specs.StringArray`).'
    )
  if spec.dtype != np.float64:
    return spec
  if not isinstance(spec, specs.BoundedArray):
    return spec.replace(dtype=np.float32)
  with np.errstate(over='ignore'):
    minimum = spec.minimum.astype(np.float32)
    maximum = spec.maximum.astype(np.float32)
  return spec.replace(dtype=np.float32, minimum=minimum, maximum=maximum)


def allocate(spec: structs.Nest, num_envs: int) -> structs.Nest:
  """Zeros for `num_envs` observations of `spec`: nest of `[E, ...]`."""
  return tree.map_structure(
    lambda leaf: np.zeros((num_envs, *leaf.shape), leaf.dtype), spec
  )


class Receiver:
  """Takes observations of one declared spec.

  What is not as declared raises ValueError. NumPy arrays and scalars must have
  the declared type and shape; Python's numbers, which have none, only need to
  fit. NaN and infinity are refused.
  """

  def __init__(self, declared: structs.Nest):
    """Takes the specs as the environment declares them."""
    self._declared = declared
    self._leaves = [_Leaf(spec) for spec in tree.flatten(declared)]
    self._is_nested = tree.is_nested(declared)

  def write(
    self, observation: structs.Nest, rows: Sequence[np.ndarray], row: int
  ):
    """Copies one observation into a batch.

    Args:
      observation: Nest of arrays without a batch axis.
      rows: Flat leaves `[E, ...]` of the batch.
      row: Which of the `E` to write.
    """
    values = self._flat(observation)
    for leaf, array, value in zip(self._leaves, rows, values, strict=True):
      array[row] = leaf.checked(value, leaf.shape)

  def batch(self, observation: structs.Nest, num_envs: int) -> structs.Nest:
    """A whole batch, converted; its arrays are shared where that is possible.

    Args:
      observation: Nest of `[E, ...]`.
      num_envs: `E`.
    """
    values = [
      leaf.checked(value, (num_envs, *leaf.shape))
      for leaf, value in zip(self._leaves, self._flat(observation), strict=True)
    ]
    values = [
      value.astype(np.float32) if value.dtype == np.float64 else value
      for value in values
    ]
    return tree.unflatten_as(self._declared, values)

  def _flat(self, observation):
    if not self._is_nested:
      return [observation]
    try:
      return tree.flatten_up_to(self._declared, observation)
    except (TypeError, ValueError) as e:
      raise ValueError(
        f'the observation is not nested as the observation spec is: {e}'
      ) from e


class _Leaf:
  """One array of the nest. Looks nothing up in the spec: this is a hot path."""

  def __init__(self, spec):
    self.shape = tuple(spec.shape)
    self._name = spec.name or 'observation'
    self._is_text = isinstance(spec, specs.StringArray)
    self._dtype = spec.dtype
    self._is_float = spec.dtype.kind == 'f'

  def checked(self, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """`value` as an array of `shape` and the declared type."""
    if self._is_text:
      value = _encoded(self._name, value)
    elif isinstance(value, (bool, int, float)):
      value = self._from_python(value)
    elif not isinstance(value, (np.ndarray, np.generic)):
      raise ValueError(
        f'{self._name!r} is a {type(value).__name__}; give a NumPy array of '
        f'shape {shape} and type {self._dtype}.'
      )
    elif value.dtype != self._dtype:
      raise ValueError(
        f'{self._name!r} is of type {value.dtype}, declared is {self._dtype}; '
        'declare what is given.'
      )
    if value.shape != shape:
      raise ValueError(
        f'{self._name!r} has shape {value.shape}, declared is {shape}; declare '
        'what is given.'
      )
    if self._is_float and not np.isfinite(value).all():
      raise ValueError(f'{self._name!r} holds NaN or infinity.')
    return value

  def _from_python(self, value):
    with np.errstate(all='ignore'):
      array = np.array(value).astype(self._dtype)
    if not self._is_float and array != value:
      raise ValueError(
        f'{self._name!r} is {value}, which the declared type {self._dtype} '
        'cannot hold.'
      )
    return array


def _encoded(name, value):
  """Text, or an array of texts, as fixed-size bytes."""
  texts = np.asarray(value, object)
  encoded = [
    text.encode() if isinstance(text, str) else bytes(text)
    for text in texts.flat
  ]
  longest = max(map(len, encoded), default=0)
  if longest > MAX_TEXT_BYTES:
    raise ValueError(
      f'{name!r} is a text of {longest} bytes; at most {MAX_TEXT_BYTES} are '
      'carried.'
    )
  return np.array(encoded, f'S{MAX_TEXT_BYTES}').reshape(texts.shape)
