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
"""One Atari game as a `dm_env.Environment`, to read, to evaluate and to film.

Frame by frame the same as the vector environment that training uses; a test
holds the two together. Where the vector environment has habits of its own, they
are copied, and marked as such.
"""

import dm_env
import numpy as np
from dm_env import specs

from scalable_agent.atari import resize, settings, simulator


class Atari(dm_env.Environment):
  """A game.

  A game over is `LAST` with discount 0. The time limit is `LAST` with
  discount 1. A lost life is `MID` with discount 0: an end for the learner, and
  for nobody else. Rewards are raw.
  """

  def __init__(self, game: str, seed: int, protocol: settings.Settings):
    """Loads the game.

    Args:
      game: Name of its ROM, as in `ms_pacman`.
      seed: Seeds the simulator and the no-op starts.
      protocol: How it is played and shown.
    """
    self._game = game
    self._protocol = protocol
    self._ale = simulator.load(game, seed, protocol.sticky_actions)
    self._random = np.random.default_rng(seed)
    full = protocol.full_action_set
    self._actions = (
      self._ale.getLegalActionSet() if full else self._ale.getMinimalActionSet()
    )
    names = [action.name for action in self._actions]
    self.action_names = tuple(names)
    self._noop = self._actions[names.index('NOOP')]
    self._fire = None
    if protocol.fire_on_reset and 'FIRE' in names:
      self._fire = self._actions[names.index('FIRE')]
    screen = self._ale.getScreenDims()
    self._resize = resize.AreaResizer(
      tuple(screen), (protocol.height, protocol.width)
    )
    shape = screen if protocol.grayscale else (*screen, 3)
    # The last frame of a step and the one before it.
    self._screens = np.zeros((2, *shape), np.uint8)
    self._steps = 0
    self._lives = 0
    self._playing = False

  @property
  def frames_per_step(self) -> int:
    """Simulator frames behind one step."""
    return self._protocol.num_action_repeats

  def reseed(self, seed: int):
    """Makes all from the next `reset` on as in a new `Atari` of this seed."""
    simulator.reseed(self._ale, self._game, seed)
    self._random = np.random.default_rng(seed)
    self._playing = False

  def reset(self) -> dm_env.TimeStep:
    """Starts a game: FIRE if so set, then up to `noop_max` no-ops."""
    self._ale.reset_game()
    num_noops = int(self._random.integers(self._protocol.noop_max + 1))
    if self._fire is not None:
      self._ale.act(self._fire)
      num_noops -= 1
    for _ in range(num_noops):
      self._ale.act(self._noop)
      if self._ale.game_over():
        self._ale.reset_game()
    self._capture(self._screens[0])
    self._screens[1] = 0
    self._steps = 0
    self._lives = self._ale.lives()
    self._playing = True
    return dm_env.restart(self._observation())

  def step(self, action: int) -> dm_env.TimeStep:
    """Repeats `action`, an index into the action set, for a step's frames."""
    if not self._playing:
      return self.reset()
    reward = float(self._repeat(self._actions[action]))
    self._steps += 1
    observation = self._observation()
    lives, self._lives = self._lives, self._ale.lives()
    if self._ale.game_over():
      self._playing = False
      return dm_env.termination(reward, observation)
    if self._steps >= self._protocol.max_episode_steps:
      self._playing = False
      return dm_env.truncation(reward, observation)
    # No life left need not be the end: Bank Heist is still played then.
    lost = self._protocol.life_loss_ends_episode and self._lives < lives
    return dm_env.transition(reward, observation, 0.0 if lost else 1.0)

  def observation_spec(self) -> specs.BoundedArray:
    """One frame: `[H, W]` uint8, or `[H, W, 3]` in colour."""
    return specs.BoundedArray(
      self._protocol.frame_shape, np.uint8, 0, 255, 'frame'
    )

  def action_spec(self) -> specs.DiscreteArray:
    """Index into `action_names`."""
    return specs.DiscreteArray(len(self._actions), name='action')

  def lives(self) -> int:
    """Lives left."""
    return self._ale.lives()

  def render(self) -> np.ndarray:
    """The screen as the game drew it, `[210, 160, 3]` uint8."""
    return self._ale.getScreenRGB()

  def _repeat(self, action):
    reward = 0
    for frames_left in reversed(range(self._protocol.num_action_repeats)):
      reward += self._ale.act(action)
      if self._ale.game_over():
        # As the vector environment does: the screen of a game over, which no
        # agent ever sees, is not looked at.
        break
      if frames_left < 2:
        self._capture(self._screens[frames_left])
    return reward

  def _capture(self, screen):
    if self._protocol.grayscale:
      self._ale.getScreenGrayscale(screen)
    else:
      self._ale.getScreenRGB(screen)

  def _observation(self):
    if self._protocol.max_pool:
      # In place, as the vector environment does: after a game over the next
      # maximum is taken over this one.
      np.maximum(*self._screens, out=self._screens[0])
    return self._resize(self._screens[0])
