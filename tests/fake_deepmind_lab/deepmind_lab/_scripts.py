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
"""Level scripts: which exist, what they need, which settings they take."""

import dataclasses
import os
from collections.abc import Callable

from deepmind_lab import _games

EPISODE_SECONDS_VARIABLE = 'DEEPMIND_LAB_DOUBLE_EPISODE_SECONDS'

# Names that every script with `setting_overrides` takes, used or not.
WHITELIST = frozenset(
  (
    'episodeLengthSeconds',
    'invocationMode',
    'allowHoldOutLevels',
    'levelGenerator',
    'playerId',
    'players',
    'randomSeed',
    'datasetPath',
    'enableCameraMovement',
    'logLevel',
  )
)


@dataclasses.dataclass(frozen=True)
class Script:
  """One level script.

  game: makes its game from its own parameters.
  seconds: longest episode.
  params: its own settings with defaults.
  overrides: it has `setting_overrides`; `rooms_keys_doors_puzzle` has not.
  observations: it has Lab's custom observations.
  """

  game: Callable[..., _games.Game]
  seconds: float
  params: tuple = ()
  held_out: bool = False
  dataset: bool = False
  compiles: bool = False
  bots: bool = False
  overrides: bool = True
  observations: bool = True
  events: bool = False


def _ring(**kwargs):
  """A game that its script's own settings do not change, but for its map."""
  return lambda **params: _games.RingWorld(**kwargs)


# Of `factories/explore/factory.lua`; the levels change some of the values.
_EXPLORE_PARAMS = (
  ('decalFrequency', 0.1),
  ('extraConnectionProbability', 0.0),
  ('maxVariations', 1.0),
  ('mazeHeight', 11.0),
  ('mazeWidth', 11.0),
  ('objectCount', 4.0),
  ('roomCount', 4.0),
  ('roomMaxSize', 5.0),
  ('roomMinSize', 3.0),
  ('spawnCount', 5.0),
)


def _suite():
  """The 32 scripts of `contributed/dmlab30`."""
  families = {
    'rooms': _ring(),
    'language': _ring(worth=10, told=True, num_objects=3),
    'lasertag': _ring(fire=True),
    'natlab': _ring(num_objects=8),
    'skymaze': _ring(worth=100, num_objects=1, last=True),
    'psychlab': _ring(),
    'explore': _ring(worth=10),
  }
  # Seconds, then `h`eld out, `d`ata set, `c`ompiled map, `b`ots.
  table = """
    rooms_collect_good_objects_train 60
    rooms_collect_good_objects_test 60 h
    rooms_exploit_deferred_effects_train 60
    rooms_exploit_deferred_effects_test 60 h
    rooms_select_nonmatching_object 12
    rooms_watermaze 120
    rooms_keys_doors_puzzle 60 c
    language_select_described_object 60
    language_select_located_object 120
    language_execute_random_task 120
    language_answer_quantitative_question 60
    lasertag_one_opponent_small 240 cb
    lasertag_three_opponents_small 240 cb
    lasertag_one_opponent_large 240 cb
    lasertag_three_opponents_large 240 cb
    natlab_fixed_large_map 120
    natlab_varying_map_regrowth 120
    natlab_varying_map_randomized 120
    skymaze_irreversible_path_hard 60 c
    skymaze_irreversible_path_varied 60 c
    psychlab_arbitrary_visuomotor_mapping 300 d
    psychlab_continuous_recognition 300 d
    psychlab_sequential_comparison 300
    psychlab_visual_search 150
    explore_object_locations_small 90 c
    explore_object_locations_large 120 c
    explore_obstructed_goals_small 90 c
    explore_obstructed_goals_large 120 c
    explore_goal_locations_small 90 c
    explore_goal_locations_large 120 c
    explore_object_rewards_few 90 c
    explore_object_rewards_many 120 c
  """
  scripts = {}
  for line in table.strip().splitlines():
    name, seconds, *flags = line.split()
    flags = ''.join(flags)
    family = name.split('_')[0]
    scripts['contributed/dmlab30/' + name] = Script(
      families[family],
      float(seconds),
      params=_EXPLORE_PARAMS if family == 'explore' else (),
      held_out='h' in flags,
      dataset='d' in flags,
      compiles='c' in flags,
      bots='b' in flags,
      overrides=name != 'rooms_keys_doors_puzzle',
    )
  return scripts


SCRIPTS = _suite() | {
  'seekavoid_arena_01': Script(_ring(), 20),
  'lt_chasm': Script(_ring(fire=True), 120),
  'nav_maze_static_01': Script(_ring(last=True), 60),
  'stairway_to_melon': Script(_ring(), 60),
  'tests/empty_room_test': Script(_ring(), 60, observations=False),
  'double/turn_as_told': Script(_games.TurnAsTold, 10, events=True),
  'double/remember_colour': Script(_games.RememberColour, 20, events=True),
  'double/long_corridor': Script(
    _games.LongCorridor, 20, params=(('difficulty', 1.0),), events=True
  ),
}


def find(level_name, level_directory):
  """The script of that name; RuntimeError as Lab's if there is none."""
  if not level_name:
    raise RuntimeError(
      'Failed to init environment - "Missing level script must set setting '
      "'levelName'!\""
    )
  parts = [level_directory, level_name] if level_directory else [level_name]
  name = '/'.join(parts)
  if name not in SCRIPTS:
    raise RuntimeError(
      f'Failed to init environment - "Level not found: cannot open {name}.lua"'
    )
  return name, SCRIPTS[name]


def default_seconds(script):
  """Episode length of a script without a setting."""
  seconds = os.environ.get(EPISODE_SECONDS_VARIABLE)
  return float(seconds or script.seconds)


def parameters(script, settings):
  """The script's parameters after `api:init`; ValueError if it raises."""
  if script.held_out and settings.get('allowHoldOutLevels') != 'true':
    raise ValueError(
      'This level must only be used during evaluation. For training, use the '
      '*_train.lua version of the level.'
    )
  params = {'episodeLengthSeconds': default_seconds(script)}
  if not script.overrides:
    return params
  params |= {'gadgetSelect': False, 'gadgetSwitch': False, 'datasetPath': ''}
  params |= dict(script.params)
  for key, value in settings.items():
    if key in params:
      params[key] = from_text(value)
    elif key not in WHITELIST:
      raise ValueError(f'Invalid setting: "{key}" = "{value}"')
  for key in ('episodeLengthSeconds', *dict(script.params)):
    if isinstance(params[key], bool) or not isinstance(params[key], float):
      raise ValueError(f'attempt to compare number with {params[key]!r}')
  return params


def from_text(text):
  """Lua's `helpers.fromString`: truth values and numbers, else text."""
  if text in ('true', 'false'):
    return text == 'true'
  try:
    return float(text)
  except ValueError:
    return text
