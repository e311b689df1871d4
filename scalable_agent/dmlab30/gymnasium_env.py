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
"""DeepMind Lab as Gymnasium environments.

Importing this module registers `dmlab30/<level>-v0` for all train and test
levels of the suite:

    import gymnasium
    import scalable_agent.dmlab30.gymnasium_env
    env = gymnasium.make('dmlab30/rooms_watermaze-v0', width=96, height=72)

Keywords are those of `LabEnv`: `mode='test'` plays the suite's test.
"""

import string
from typing import Any

import gymnasium
import numpy as np
from dm_env import specs
from gymnasium import spaces

from scalable_agent.dmlab30 import actions, environment, episodes, levels
from scalable_agent.dmlab30 import settings as settings_lib

_FRAMES_PER_SECOND = 60
_LONGEST_INSTRUCTION = 1024


class LabEnv(gymnasium.Env):
  """One level. Ends are `terminated`: Lab does not tell time limits apart.

  Observations: `Dict` of `RGB_INTERLEAVED` `[height, width, 3]` uint8 and
  `INSTR`, a text. Actions: `Discrete(9)` (`action_set='paper'`),
  `Discrete(15)` (`'extended'`), or with `'raw'` a `MultiDiscrete` of Lab's own
  seven numbers. Without a seed, each episode draws one from the generator that
  the last seeded `reset` started.
  """

  metadata = {'render_modes': ['rgb_array'], 'render_fps': 15}  # noqa: RUF012

  def __init__(
    self,
    level: str,
    mode: str = 'train',
    render_mode: str | None = None,
    **settings: Any,
  ):
    """Checks all settings and opens the Lab.

    Args:
      level: a level of the suite or of Lab, see `levels.resolve`.
      mode: `train`, or `test` for held-out maps and the tests' mixer seed.
      render_mode: `rgb_array` or None.
      **settings: fields of `LabSettings`.
    """
    lab_settings = settings_lib.LabSettings(**settings)
    if mode == 'test':
      lab_settings = lab_settings.for_test()
    settings_lib.check_settings([level], lab_settings, mode)
    [self.level] = levels.resolve(level, mode, lab_settings.level_directory)
    factory = environment.LabFactory(self.level, lab_settings)
    self.render_mode = render_mode
    self.metadata = self.metadata | {
      'render_fps': _FRAMES_PER_SECOND / lab_settings.num_action_repeats
    }
    self.observation_space = spaces.Dict(
      {
        episodes.FRAME: spaces.Box(
          0, 255, (lab_settings.height, lab_settings.width, 3), np.uint8
        ),
        episodes.INSTRUCTION: spaces.Text(
          _LONGEST_INSTRUCTION, min_length=0, charset=string.printable
        ),
      }
    )
    self.action_space = _action_space(factory.spec.action)
    self._offset = (
      np.array(actions.MINIMUM)
      if isinstance(self.action_space, spaces.MultiDiscrete)
      else 0
    )
    self._env = factory(seed=0)
    self._frame: np.ndarray | None = None

  def reset(
    self, *, seed: int | None = None, options: dict[str, Any] | None = None
  ) -> tuple[dict[str, Any], dict[str, Any]]:
    """Begins an episode; `seed` also starts the episodes after it anew."""
    super().reset(seed=seed, options=options)
    self._env.seed(int(self.np_random.integers(2**32)))
    observation = self._env.reset().observation
    self._frame = observation[episodes.FRAME]
    return observation, {'level': self.level}

  def step(
    self, action: Any
  ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
    """Plays one agent step. The last observation is the one before the end."""
    if self._frame is None:
      raise RuntimeError('step is called before reset; call reset first.')
    step = self._env.step(np.asarray(action) - self._offset)
    if step.first():
      raise RuntimeError('The episode is over; call reset before step.')
    self._frame = step.observation[episodes.FRAME]
    info = {'level': self.level}
    return step.observation, float(step.reward), step.last(), False, info

  def render(self) -> np.ndarray | None:
    """The newest frame `[height, width, 3]` if `render_mode` is `rgb_array`."""
    return self._frame if self.render_mode == 'rgb_array' else None

  def close(self) -> None:
    """Closes the Lab. May be called twice."""
    self._env.close()


def _action_space(spec: specs.Array) -> spaces.Space:
  if isinstance(spec, specs.DiscreteArray):
    return spaces.Discrete(spec.num_values)
  return spaces.MultiDiscrete(
    np.asarray(spec.maximum, np.int64) + 1,
    np.int64,
    start=np.array(actions.MINIMUM, np.int64),
  )


def env_id(level: str) -> str:
  """The registered id of a level."""
  return f'{levels.SUITE}/{level}-v0'


def register_levels() -> None:
  """Registers all train and test levels; registered ids are left alone."""
  for name in levels.ALL_NAMES:
    if env_id(name) not in gymnasium.registry:
      held_out = name not in levels.TRAIN_NAMES
      gymnasium.register(
        env_id(name),
        entry_point=LabEnv,
        kwargs={'level': name, 'mode': 'test' if held_out else 'train'},
        disable_env_checker=False,
      )


register_levels()
