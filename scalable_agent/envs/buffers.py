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
"""The arrays that `E` environments are played in, in one piece of memory."""

from typing import Any, NamedTuple

import numpy as np
import tree

from scalable_agent import structs

# Of each array's start in bytes: a cache line, so that environments in
# different processes do not slow each other down.
_ALIGNMENT = 64


class Buffers:
  """Arrays of `E` environments; one row each.

  actions: `[E, ...]`, the actions of the step.
  rewards: `[E]` float64, raw.
  outcomes: `[E]` uint8, a `base.Outcome` each.
  observation: Nest of `[E, ...]`, after any reset.
  final_observation: Alike, the last one of a truncated episode.
  observation_leaves, final_leaves: The same two, flat.
  """

  def __init__(
    self,
    actions: np.ndarray,
    rewards: np.ndarray,
    outcomes: np.ndarray,
    observation: structs.Nest,
    final_observation: structs.Nest,
  ):
    self.actions = actions
    self.rewards = rewards
    self.outcomes = outcomes
    self.observation = observation
    self.final_observation = final_observation
    self.observation_leaves = tree.flatten(observation)
    self.final_leaves = tree.flatten(final_observation)


class _Place(NamedTuple):
  """Where an array lies."""

  shape: tuple[int, ...]
  dtype: np.dtype
  offset: int


class Layout:
  """Where the arrays of `Buffers` lie in memory. Small, and picklable.

  num_bytes: Size of the memory.
  """

  def __init__(self, spec: structs.EnvironmentSpec, num_envs: int):
    """Lays out the arrays for `num_envs` environments of `spec`."""
    self.num_bytes = 0

    def place(shape, dtype):
      where = _Place((num_envs, *shape), np.dtype(dtype), self.num_bytes)
      num_bytes = int(np.prod(where.shape)) * where.dtype.itemsize
      self.num_bytes += -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
      return where

    action = structs.no_actions(spec.action, 1)
    self._places = [
      place(action.shape[1:], action.dtype),
      place((), np.float64),
      place((), np.uint8),
    ]
    # Flat: a nest of `_Place`, being tuples, would be nested too deep.
    self._spec = spec.observation
    leaves = tree.flatten(spec.observation)
    self._observation = [place(leaf.shape, leaf.dtype) for leaf in leaves]
    self._final = [place(leaf.shape, leaf.dtype) for leaf in leaves]

  def buffers(self, memory: Any) -> Buffers:
    """The arrays in `memory`, a writable buffer of `num_bytes`."""

    def array(place):
      return np.ndarray(place.shape, place.dtype, memory, place.offset)

    nests = [
      tree.unflatten_as(self._spec, [array(place) for place in places])
      for places in (self._observation, self._final)
    ]
    return Buffers(*map(array, self._places), *nests)
