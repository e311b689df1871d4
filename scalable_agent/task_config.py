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
"""Settings of what is played, on DeepMind Lab and elsewhere. See `config`."""

import dataclasses

from scalable_agent import options

LAB_ACTION_SETS = ('paper', 'extended', 'raw')
LAB_RENDERERS = ('software', 'hardware')

option = options.option


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskConfig(options.Validated):
  """What is played, and how it is shown to the agent."""

  level_name: str = option(
    'explore_goal_locations_small',
    'What to play: a DMLab-30 level, `dmlab30`, `atari/<game>`, `atari57`, '
    '`gym/<id>`, `catch`, or several of a kind separated by commas.',
  )
  level_weights: str = option(
    '',
    'How many environments play which level, as level=weight, separated by '
    'commas: one of weight 2 gets twice as many. Default: all the same.',
  )
  num_action_repeats: int | None = option(
    None,
    'Simulator frames per agent step. None: 4 for DMLab and Atari, else 1.',
    unit='frames',
  )
  width: int | None = option(
    None,
    'Width of the observation. None: 96 for DMLab, 84 for Atari.',
    unit='pixels',
  )
  height: int | None = option(
    None,
    'Height of the observation. None: 72 for DMLab, 84 for Atari.',
    unit='pixels',
  )
  dataset_path: str = option(
    '', 'Folder of the data set that the two psychlab levels of DMLab-30 need.'
  )
  gym_import: str = option(
    '', 'Module to import before `gym/<id>` is made: it registers your own.'
  )
  frame_stack: int = option(
    4, 'Atari: number of newest frames that the agent sees.', unit='frames'
  )
  grayscale: bool = option(True, 'Atari: gray frames (true) or colour (false).')
  max_pool: bool = option(
    True, 'Atari: maximum over the last two frames of a step, against flicker.'
  )
  noop_max: int = option(
    30, 'Atari: most no-op actions at the start of an episode.', unit='steps'
  )
  sticky_actions: float = option(
    0.0, 'Atari: probability of repeating the last action at each frame.'
  )
  life_loss_ends_episode: bool = option(
    True,
    'Atari: a lost life ends the episode for the learner; the game goes on. '
    'Never in evaluation.',
  )
  full_action_set: bool | None = option(
    None,
    'Atari: all 18 actions. None: only where several games are played.',
  )
  fire_on_reset: bool = option(
    False, 'Atari: press FIRE at the start of an episode.'
  )
  max_episode_frames: int = option(
    108_000, 'Atari: time limit of an episode.', unit='frames'
  )

  def _check(self):
    self._at_least(1, 'num_action_repeats', 'width', 'height', 'frame_stack')
    self._at_least(1, 'max_episode_frames')
    self._at_least(0, 'noop_max')
    if not self.level_name:
      raise ValueError('level_name is empty; name what to play.')
    if not 0 <= self.sticky_actions < 1:
      raise ValueError(
        f'sticky_actions is {self.sticky_actions}; it is a probability below 1.'
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DmlabConfig(options.Validated):
  """What concerns DeepMind Lab alone; `dmlab30.settings` checks the rest."""

  action_set: str = option(
    'paper',
    "DMLab: the paper's 9, PopArt's 15 (extended), or Lab's 7 numbers (raw).",
    choices=LAB_ACTION_SETS,
  )
  renderer: str = option(
    'software',
    'DMLab: draw on the CPU (software) or on a GPU (hardware).',
    choices=LAB_RENDERERS,
  )
  mixer_seed: int | None = option(
    None,
    "DMLab: mixed into all seeds of training, not of tests. None: Lab's own.",
  )
  allow_hold_out_levels: bool = option(
    False,
    'DMLab: permit the two levels with a test map; tests always do.',
  )
  level_directory: str = option(
    '', "DMLab: folder of your level scripts, absolute or below Lab's own."
  )
  lab_setting: str = option(
    '',
    'DMLab: further settings of Lab or the level: name=value, with commas.',
  )
  curriculum: str = option(
    '',
    'DMLab: a setting that rises while training, as '
    'setting:first:last:over[:unit], such as difficulty:0.5:2.0:10000:episodes,'
    ' counted by each environment alone.',
  )
  num_level_seeds: int | None = option(
    None,
    'DMLab: draw episodes among so many seeds, so that compiled maps are met '
    'again. None: among all 2**31 - 1, as the original.',
  )
  level_cache_dir: str = option(
    '', 'DMLab: folder of compiled maps, shared by all; empty: none is kept.'
  )
  level_cache_gib: float = option(
    20.0, 'DMLab: most that the folder of maps may hold.', unit='GiB'
  )
