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
"""How Atari games are played and shown: the protocol of the experiments."""

import dataclasses

from scalable_agent import config

# Of all games of the benchmark, in pixels.
SCREEN_HEIGHT = 210
SCREEN_WIDTH = 160


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
  """The settings of `config.TaskConfig` that concern Atari, all decided.

  See there for what each means; `from_task` decides those left open.
  """

  num_action_repeats: int
  height: int
  width: int
  grayscale: bool
  max_pool: bool
  noop_max: int
  sticky_actions: float
  life_loss_ends_episode: bool
  full_action_set: bool
  fire_on_reset: bool
  max_episode_frames: int

  def __post_init__(self):
    if self.height > SCREEN_HEIGHT or self.width > SCREEN_WIDTH:
      raise ValueError(
        f'height is {self.height} and width {self.width}; Atari screens have '
        f'{SCREEN_HEIGHT} by {SCREEN_WIDTH} pixels and are only ever shrunk.'
      )

  @property
  def frame_shape(self) -> tuple[int, ...]:
    """Shape of one observation: `[H, W]` gray, `[H, W, 3]` in colour."""
    gray = (self.height, self.width)
    return gray if self.grayscale else (*gray, 3)

  @property
  def max_episode_steps(self) -> int:
    """The time limit in steps of the agent, rounded up."""
    return -(-self.max_episode_frames // self.num_action_repeats)


def from_task(
  task: config.TaskConfig,
  *,
  several_games: bool = False,
  evaluation: bool = False,
) -> Settings:
  """The settings of a task.

  Args:
    task: What the user asked for.
    several_games: One agent plays several games: all 18 actions by default.
    evaluation: Lives do not end episodes, whatever the task says.

  Returns:
    The settings, each decided.
  """

  def either(value, default):
    return default if value is None else value

  return Settings(
    num_action_repeats=either(task.num_action_repeats, 4),
    height=either(task.height, 84),
    width=either(task.width, 84),
    grayscale=task.grayscale,
    max_pool=task.max_pool,
    noop_max=task.noop_max,
    sticky_actions=task.sticky_actions,
    life_loss_ends_episode=task.life_loss_ends_episode and not evaluation,
    full_action_set=either(task.full_action_set, several_games),
    fire_on_reset=task.fire_on_reset,
    max_episode_frames=task.max_episode_frames,
  )
