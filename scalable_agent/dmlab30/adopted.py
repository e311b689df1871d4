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
"""Plays Gymnasium environments of Lab that other packages made.

Two kinds are known: `dmlab-gym` (`DmLabEnv`: actions `Box(7)`) and Shimmy's
`DmLabCompatibilityV0` (actions `Dict` of the seven names). Both play single
frames, so action repeat is done here, frame by frame; each repeated frame is
drawn, which `LabEnvironment` alone spares.
"""

from collections.abc import Mapping
from typing import Any

import dm_env
import gymnasium
import numpy as np
from gymnasium import spaces

from scalable_agent.dmlab30 import actions, episodes


class AdoptedEnvironment(episodes.LabEnvironment):
  """A `LabEnvironment` that plays a Gymnasium environment of Lab.

  What the environment calls `truncated` ends with discount 1: such a limit is
  its own, not Lab's. INSTR is empty if the environment does not show it.
  """

  def __init__(
    self,
    env: gymnasium.Env,
    seed: int,
    *,
    num_action_repeats: int = 4,
    action_set: str = 'paper',
  ):
    """Takes the environment over; `close` closes it.

    Args:
      env: shows `RGB_INTERLEAVED`, alone or in a `Dict`.
      seed: of the sequence of the episodes' seeds.
      num_action_repeats: frames that each action is held.
      action_set: see `actions.ACTION_SETS`.

    Raises:
      ValueError: the environment shows or takes something else.
    """
    inside = _lab_inside(env)
    lab = _InsideLab(env, inside) if inside else _GymnasiumLab(env)
    super().__init__(
      lambda extra: lab,
      seed,
      num_action_repeats=num_action_repeats,
      action_set=action_set,
    )
    self._adopted = lab

  def _last(self, reward: float) -> dm_env.TimeStep:
    if self._adopted.truncated:
      return dm_env.truncation(reward, self._repeat_observation())
    return super()._last(reward)


class _GymnasiumLab:
  """What `LabEnvironment` needs of a Lab, from Gymnasium's interface."""

  def __init__(self, env: gymnasium.Env):
    self._env = env
    self._named = _frame_space(env)
    self._convert = _action_converter(env.action_space)
    self._seen: Any = None
    self._running = False
    self.truncated = False

  def reset(self, seed: int) -> bool:
    self._seen, _ = self._env.reset(seed=seed)
    self._running, self.truncated = True, False
    return True

  def step(self, action: np.ndarray, num_steps: int) -> float:
    total = 0.0
    for _ in range(num_steps):
      self._seen, reward, terminated, truncated, _ = self._env.step(
        self._convert(action)
      )
      total += float(reward)
      if terminated or truncated:
        self._running, self.truncated = False, not terminated
        break
    return total

  def is_running(self) -> bool:
    return self._running

  def observations(self) -> Mapping[str, Any]:
    if self._named:
      return self._seen
    return {episodes.FRAME: self._seen}

  def observation_spec(self) -> list[dict[str, Any]]:
    space = self._env.observation_space
    if self._named:
      space = space[episodes.FRAME]
    return [{'name': episodes.FRAME, 'shape': space.shape}]

  def action_spec(self) -> list[dict[str, Any]]:
    return [{'name': name} for name in actions.NAMES]

  def close(self) -> None:
    self._env.close()


class _InsideLab:
  """The Lab inside Shimmy's wrapper, whose own `step` fails at every end.

  It asks Lab for observations once the episode is over, which Lab refuses, and
  so the last reward never arrives.
  """

  truncated = False

  def __init__(self, env: gymnasium.Env, lab: Any):
    _frame_space(env)
    self._env = env
    self.reset = lab.reset
    self.step = lab.step
    self.is_running = lab.is_running
    self.observations = lab.observations
    self.observation_spec = lab.observation_spec
    self.action_spec = lab.action_spec

  def close(self) -> None:
    self._env.close()


def _lab_inside(env: gymnasium.Env) -> Any | None:
  """Shimmy's Lab. Wrappers around Shimmy's do not take part."""
  lab = getattr(env.unwrapped, '_env', None)
  methods = ('observations', 'is_running', 'observation_spec', 'step')
  return lab if all(hasattr(lab, name) for name in methods) else None


def _frame_space(env: gymnasium.Env) -> bool:
  """Whether the frame comes in a `Dict`. Refuses what has no frame."""
  space = env.observation_space
  named = isinstance(space, spaces.Dict)
  frame = space.get(episodes.FRAME) if named else space
  if (
    isinstance(frame, spaces.Box)
    and frame.dtype == np.uint8
    and len(frame.shape) == 3
    and frame.shape[-1] == 3
  ):
    return named
  raise ValueError(
    f'The environment shows {space}; make it show {episodes.FRAME}, '
    '[height, width, 3] of uint8, alone or in a Dict.'
  )


def _action_converter(space: spaces.Space) -> Any:
  """Turns Lab's seven numbers into an action of the space."""
  if isinstance(space, spaces.Box) and space.shape == (len(actions.NAMES),):
    return lambda action: action.astype(space.dtype)
  if isinstance(space, spaces.Dict) and set(space) == set(actions.NAMES):
    return lambda action: {
      name: np.full(space[name].shape, value, space[name].dtype)
      for name, value in zip(actions.NAMES, action, strict=True)
    }
  raise ValueError(
    f'The environment takes {space}; give one that takes the seven numbers of '
    'a Lab action, as a Box or as a Dict of their names.'
  )
