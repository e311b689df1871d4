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
"""Gymnasium spaces as dm_env specs, and the agent's actions as theirs."""

from collections.abc import Callable
from typing import Any

import numpy as np
from dm_env import specs
from gymnasium import spaces

from scalable_agent import structs


def observation_spec(space: spaces.Space, name: str = '') -> structs.Nest:
  """Specs of an observation space.

  Args:
    space: `Box`, `Discrete`, or a `Dict` of such, nested or not.
    name: Where it lies within the outermost `Dict`.

  Returns:
    A spec, or a dict of nests of specs.
  """
  name = name or 'observation'
  if isinstance(space, spaces.Dict):
    return {
      key: observation_spec(inner, f'{name}/{key}')
      for key, inner in space.spaces.items()
    }
  if isinstance(space, spaces.Discrete):
    if space.start == 0:
      return specs.DiscreteArray(int(space.n), space.dtype, name)
    last = space.start + space.n - 1
    return specs.BoundedArray((), space.dtype, space.start, last, name)
  if isinstance(space, spaces.Box):
    return specs.BoundedArray(
      space.shape, space.dtype, space.low, space.high, name
    )
  raise ValueError(
    f'the observation space {name!r} is {space}; this agent sees Box, Discrete '
    'and Dict. Convert it with a wrapper, for example '
    'gymnasium.wrappers.FlattenObservation.'
  )


def action_spec(space: spaces.Space) -> specs.Array:
  """Spec of an action space: see `structs.EnvironmentSpec.action`."""
  if isinstance(space, spaces.Discrete):
    return specs.DiscreteArray(int(space.n), name='action')
  if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
    return specs.BoundedArray(
      space.shape, np.int32, 0, space.nvec - 1, 'action'
    )
  if isinstance(space, spaces.Box) and space.dtype.kind == 'f':
    low, high = (
      bound.reshape(-1).astype(np.float32) for bound in (space.low, space.high)
    )
    return specs.BoundedArray(low.shape, np.float32, low, high, 'action')
  raise ValueError(
    f'the action space is {space}; this agent acts in Discrete, in '
    'MultiDiscrete with one axis, and in Box of floats. Convert it with a '
    'wrapper.'
  )


def action_converter(space: spaces.Space) -> Callable[[Any], Any]:
  """A function from the agent's actions to those of `space`.

  It takes one action or a batch of them (`[E, ...]`). Discrete actions are
  counted from the space's start; those of a `Box`, which the agent draws from
  the whole line, are clipped to its bounds.
  """
  if isinstance(space, spaces.Box):

    def to_box(action):
      action = np.asarray(action, space.dtype)
      # The agent's are flat; what stands before their one axis is the batch.
      action = action.reshape((*action.shape[:-1], *space.shape))
      return np.asarray(np.clip(action, space.low, space.high))

    return to_box
  start = np.asarray(space.start, space.dtype)

  def to_discrete(action):
    return np.asarray(action, space.dtype) + start

  return to_discrete
