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
"""Episodes of DeepMind Lab as a `dm_env.Environment`.

What plays behind it is anything with the methods of `deepmind_lab.Lab`; its
rules are stricter than its documentation, and kept here: Python ints as seeds,
`np.intc` actions of shape `[7]`, no observation once an episode is over.
"""

from collections.abc import Callable, Mapping
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from scalable_agent.dmlab30 import actions, curriculum, levels

FRAME = 'RGB_INTERLEAVED'
INSTRUCTION = 'INSTR'


class LabEnvironment(dm_env.Environment):
  """One level, one action repeat, endless episodes with seeds of their own.

  Observations are `{'RGB_INTERLEAVED': [height, width, 3] uint8, 'INSTR':
  str}`. Lab does not tell a time limit from an end: as in the original, every
  episode ends with discount 0. Lab shows nothing once an episode is over; the
  last time step repeats the observation before it.
  """

  def __init__(
    self,
    open_lab: Callable[[Mapping[str, str]], Any],
    seed: int,
    *,
    num_action_repeats: int = 4,
    action_set: str = 'paper',
    num_level_seeds: int | None = None,
    schedule: curriculum.Curriculum | None = None,
    progress: curriculum.Progress | None = None,
  ):
    """Opens the Lab, so that a wrong level is heard at once.

    Args:
      open_lab: makes an object that plays like `deepmind_lab.Lab` from the
        settings that the schedule adds.
      seed: of the sequence of the episodes' seeds.
      num_action_repeats: frames that each action is held.
      action_set: see `actions.ACTION_SETS`.
      num_level_seeds: episodes draw among so many seeds; None: 2**31 - 1.
      schedule: level settings by progress; asked before each episode.
      progress: where a resumed environment goes on.
    """
    self._open_lab = open_lab
    self._actions = actions.Actions(action_set)
    self._num_action_repeats = num_action_repeats
    self._num_level_seeds = num_level_seeds or 2**31 - 1
    self._schedule = schedule or (lambda progress: {})
    self._progress = progress or curriculum.Progress()
    self._observation: dict[str, Any] = {}
    self._closed = False
    self._needs_reset = True
    self.seed(seed)
    self._scheduled = dict(self._schedule(self._progress))
    self._lab = open_lab(self._scheduled)
    try:
      self._shape = self._check_lab()
    except BaseException:
      self._lab.close()
      raise

  @property
  def frames_per_step(self) -> int:
    """Simulator frames behind one step."""
    return self._num_action_repeats

  @property
  def progress(self) -> curriculum.Progress:
    """Episodes finished and frames played."""
    return self._progress

  def seed(self, seed: int) -> None:
    """Starts the sequence of the episodes' seeds anew."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
      raise ValueError(f'seed is {seed!r}; give a whole number.')
    if not 0 <= seed < 2**32:
      raise ValueError(f'seed is {seed}; it must be from 0 to 2**32 - 1.')
    self._random = np.random.RandomState(int(seed))

  def reset(self) -> dm_env.TimeStep:
    """Begins an episode with the next seed."""
    if self._closed:
      raise RuntimeError('The environment is closed; make a new one.')
    self._follow_schedule()
    # Lab takes Python ints only, and keeps 31 bits of them.
    self._lab.reset(seed=int(self._random.randint(0, self._num_level_seeds)))
    self._needs_reset = False
    self._observation = self._observe()
    return dm_env.restart(dict(self._observation))

  def step(self, action: int | np.ndarray) -> dm_env.TimeStep:
    """Holds `action` for `num_action_repeats` frames; resets after an end."""
    if self._needs_reset:
      return self.reset()
    reward = self._lab.step(
      self._actions.to_lab(action), num_steps=self._num_action_repeats
    )
    episodes, frames = self._progress
    frames += self._num_action_repeats
    if self._lab.is_running():
      self._progress = curriculum.Progress(episodes, frames)
      self._observation = self._observe()
      return dm_env.transition(reward, dict(self._observation))
    self._progress = curriculum.Progress(episodes + 1, frames)
    self._needs_reset = True
    return self._last(reward)

  def observation_spec(self) -> dict[str, specs.Array]:
    """Specs of the frame and the instruction."""
    return observation_spec(*self._shape)

  def action_spec(self) -> specs.Array:
    """Spec of the action set."""
    return self._actions.spec

  def render(self) -> np.ndarray:
    """The frame last seen, `[height, width, 3]` uint8, for films."""
    if not self._observation:
      raise RuntimeError('There is no frame before the first reset.')
    return self._observation[FRAME]

  def close(self) -> None:
    """Closes the Lab and removes its files. May be called twice."""
    self._closed = True
    self._needs_reset = True
    self._lab.close()

  def _last(self, reward: float) -> dm_env.TimeStep:
    return dm_env.termination(reward, self._repeat_observation())

  def _repeat_observation(self) -> dict[str, Any]:
    # A copy: nobody expects two time steps to share a frame.
    return self._observation | {FRAME: self.render().copy()}

  def _observe(self) -> dict[str, Any]:
    seen = self._lab.observations()
    text = seen.get(INSTRUCTION, '')
    return {FRAME: seen[FRAME], INSTRUCTION: levels.to_str(text)}

  def _follow_schedule(self) -> None:
    scheduled = dict(self._schedule(self._progress))
    if scheduled == self._scheduled:
      return
    self._lab.close()
    self._lab = self._open_lab(scheduled)
    self._scheduled = scheduled

  def _check_lab(self) -> tuple[int, int]:
    """Height and width of the frame; refuses what the actions do not fit."""
    names = [action['name'] for action in self._lab.action_spec()]
    if names != list(actions.NAMES):
      surplus = ', '.join(sorted(set(names) ^ set(actions.NAMES)))
      raise ValueError(
        f"The level's actions differ from Lab's seven by {surplus}; remove the "
        'setting that changes them.'
      )
    shapes = {s['name']: s['shape'] for s in self._lab.observation_spec()}
    height, width, _ = shapes[FRAME]
    return height, width


def observation_spec(height: int, width: int) -> dict[str, specs.Array]:
  """`RGB_INTERLEAVED` `[height, width, 3]` uint8 and `INSTR`, one text."""
  return {
    FRAME: specs.BoundedArray((height, width, 3), np.uint8, 0, 255, FRAME),
    INSTRUCTION: specs.StringArray((), str, INSTRUCTION),
  }
