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
"""Catch: a ball falls down a small board, a paddle must be under it."""

import dm_env
import numpy as np
from dm_env import specs


class Catch(dm_env.Environment):
  """The smallest game worth learning; bsuite has the same rules and size.

  The ball starts in the top row of a random column and falls one row per step.
  The paddle moves along the bottom row. The episode ends when the ball reaches
  that row, after `rows - 1` steps, with reward 1 if it was caught and -1 if it
  was not; all other rewards are 0. A random player's mean return is about -0.6.

  Observations are `[rows, columns]` float32: 1 where the ball and the paddle
  are, else 0. Actions: 0 left, 1 stay, 2 right.
  """

  def __init__(self, seed: int, rows: int = 10, columns: int = 5):
    """Sets up the board.

    Args:
      seed: Decides where the balls start.
      rows: Height of the board.
      columns: Width of the board.
    """
    self._random = np.random.default_rng(seed)
    self._shape = (rows, columns)
    self._ball_row = 0
    self._ball_column = 0
    self._paddle_column = 0
    self._playing = False

  def reset(self) -> dm_env.TimeStep:
    """Drops a new ball."""
    self._ball_row = 0
    self._ball_column = int(self._random.integers(self._shape[1]))
    self._paddle_column = self._shape[1] // 2
    self._playing = True
    return dm_env.restart(self._board())

  def step(self, action: int) -> dm_env.TimeStep:
    """Moves the paddle by `action - 1`, then the ball by one row."""
    if not self._playing:
      return self.reset()
    rows, columns = self._shape
    self._paddle_column += int(action) - 1
    self._paddle_column = min(max(self._paddle_column, 0), columns - 1)
    self._ball_row += 1
    if self._ball_row < rows - 1:
      return dm_env.transition(reward=0.0, observation=self._board())
    self._playing = False
    caught = self._paddle_column == self._ball_column
    return dm_env.termination(1.0 if caught else -1.0, self._board())

  def observation_spec(self) -> specs.BoundedArray:
    """`[rows, columns]` float32."""
    return specs.BoundedArray(self._shape, np.float32, 0, 1, 'board')

  def action_spec(self) -> specs.DiscreteArray:
    """Left, stay, right."""
    return specs.DiscreteArray(3, name='action')

  def render(self) -> np.ndarray:
    """`[rows, columns, 3]` uint8, for films."""
    gray = (self._board() * 255).astype(np.uint8)
    return np.repeat(gray[..., np.newaxis], 3, axis=-1)

  def _board(self):
    board = np.zeros(self._shape, np.float32)
    board[self._ball_row, self._ball_column] = 1
    board[-1, self._paddle_column] = 1
    return board
