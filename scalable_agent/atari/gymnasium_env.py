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
"""Atari games as Gymnasium environments, for other agents and for playing.

Importing this module registers `atari/<game>-v0` for the 57 games:

    import gymnasium
    import scalable_agent.atari.gymnasium_env
    env = gymnasium.make('atari/pong-v0', frame_stack=1)
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from scalable_agent import config
from scalable_agent.atari import environment, games, settings

_FRAMES_PER_SECOND = 60
_KEYS = {'UP': 'w', 'LEFT': 'a', 'DOWN': 's', 'RIGHT': 'd', 'FIRE': ' '}


class AtariEnv(gymnasium.Env):
  """A game, shown and played as the experiments do.

  Observations: `[S, H, W]` uint8, or `[S, H, W, 3]` in colour: the `S` newest
  frames, the newest last. Frames from before the reset are zeros. A game over
  is `terminated`, the time limit is `truncated`. A lost life is neither:
  `info` has `lives` and `life_lost`.
  """

  metadata = {'render_modes': ['rgb_array'], 'render_fps': 15}  # noqa: RUF012

  def __init__(self, game: str, render_mode: str | None = None, **task: Any):
    """Loads the game.

    Args:
      game: Name of its ROM, as in `ms_pacman`.
      render_mode: 'rgb_array' or None.
      **task: Fields of `config.TaskConfig`: `frame_stack`, `sticky_actions`...
    """
    chosen = config.TaskConfig(level_name=f'atari/{game}', **task)
    self._game = game
    self._protocol = settings.from_task(chosen, evaluation=True)
    self.render_mode = render_mode
    self.metadata = self.metadata | {
      'render_fps': _FRAMES_PER_SECOND / self._protocol.num_action_repeats
    }
    self._environment = environment.Atari(game, 0, self._protocol)
    self._stack = np.zeros(
      (chosen.frame_stack, *self._protocol.frame_shape), np.uint8
    )
    self._lives = 0
    self.observation_space = spaces.Box(0, 255, self._stack.shape, np.uint8)
    self.action_space = spaces.Discrete(len(self._environment.action_names))

  @property
  def frames_per_step(self) -> int:
    """Simulator frames behind one step."""
    return self._environment.frames_per_step

  def reset(
    self,
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
  ) -> tuple[np.ndarray, dict[str, Any]]:
    """Starts a game, anew from `seed` or with what the last one left."""
    is_first = self._np_random is None
    super().reset(seed=seed)
    if seed is None and is_first:
      seed = int(self.np_random.integers(2**31 - 1))
    if seed is not None:
      # The simulator takes 31 bits.
      self._environment.reseed(seed % (2**31 - 1))
    self._stack[:] = 0
    return self._observe(self._environment.reset())

  def step(
    self, action: int
  ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
    """Plays one step."""
    timestep = self._environment.step(action)
    observation, info = self._observe(timestep)
    terminated = timestep.last() and timestep.discount == 0
    truncated = timestep.last() and not terminated
    return observation, timestep.reward, terminated, truncated, info

  def render(self) -> np.ndarray | None:
    """The screen as the game drew it, `[210, 160, 3]` uint8."""
    return self._environment.render() if self.render_mode else None

  def get_keys_to_action(self) -> dict[tuple[str, ...], int]:
    """Keys of `gymnasium.utils.play`: w, a, s, d, and space for fire."""
    return {
      tuple(key for part, key in _KEYS.items() if part in name): index
      for index, name in enumerate(self._environment.action_names)
    }

  def _observe(self, timestep):
    self._stack[:-1] = self._stack[1:]
    self._stack[-1] = timestep.observation
    lives, self._lives = self._lives, self._environment.lives()
    lost = not timestep.first() and self._lives < lives
    return self._stack.copy(), {'lives': self._lives, 'life_lost': lost}


for _game in games.GAMES:
  gymnasium.register(
    f'atari/{_game}-v0', f'{__name__}:AtariEnv', kwargs={'game': _game}
  )
