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
"""The 30 levels of DMLab-30: names, order, needs; who plays which.

Order and names: `dmlab30.py` of the original. Needs: the level scripts of
DeepMind Lab, `game_scripts/levels/contributed/dmlab30/` and `factories/`.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

SUITE = 'dmlab30'
FOLDER = 'contributed/dmlab30/'

# Levels that come with DeepMind Lab and are not part of the suite.
OTHER_LEVELS = (
  'lt_chasm',
  'lt_hallway_slope',
  'lt_horseshoe_color',
  'lt_space_bounce_hard',
  'nav_maze_random_goal_01',
  'nav_maze_random_goal_02',
  'nav_maze_random_goal_03',
  'nav_maze_static_01',
  'nav_maze_static_02',
  'nav_maze_static_03',
  'seekavoid_arena_01',
  'stairway_to_melon',
)

MODES = ('train', 'test')


class Level(NamedTuple):
  """One task of the suite.

  train_name: name while training.
  test_name: name in the suite's test, where scores are defined; two levels
    have another map there, which Lab shows only if `allowHoldOutLevels`.
  episode_seconds: longest episode, in game seconds of 60 frames.
  needs_dataset: shows the images of Brady, Konkle and Oliva (2008).
  needs_language: gives instructions in INSTR, empty elsewhere.
  compiles_maps: compiles a new map at each reset, unless it is cached.
  ends_early: an episode may end before `episode_seconds`.
  """

  train_name: str
  test_name: str
  episode_seconds: int
  needs_dataset: bool = False
  needs_language: bool = False
  compiles_maps: bool = False
  ends_early: bool = False


def _level(name: str, seconds: int, needs: str = '') -> Level:
  """A level; `{}` in its name is `train` or `test`."""
  words = needs.split()
  return Level(
    name.format('train'),
    name.format('test'),
    seconds,
    needs_dataset='dataset' in words,
    needs_language='language' in words,
    compiles_maps='maps' in words,
    ends_early='early' in words,
  )


LEVELS = (
  _level('rooms_collect_good_objects_{}', 60, 'early'),
  _level('rooms_exploit_deferred_effects_{}', 60, 'early'),
  _level('rooms_select_nonmatching_object', 12),
  _level('rooms_watermaze', 120),
  _level('rooms_keys_doors_puzzle', 60, 'maps early'),
  _level('language_select_described_object', 60, 'language'),
  _level('language_select_located_object', 120, 'language'),
  _level('language_execute_random_task', 120, 'language'),
  _level('language_answer_quantitative_question', 60, 'language'),
  _level('lasertag_one_opponent_small', 240, 'maps'),
  _level('lasertag_three_opponents_small', 240, 'maps'),
  _level('lasertag_one_opponent_large', 240, 'maps'),
  _level('lasertag_three_opponents_large', 240, 'maps'),
  _level('natlab_fixed_large_map', 120),
  _level('natlab_varying_map_regrowth', 120),
  _level('natlab_varying_map_randomized', 120),
  _level('skymaze_irreversible_path_hard', 60, 'maps early'),
  _level('skymaze_irreversible_path_varied', 60, 'maps early'),
  _level('psychlab_arbitrary_visuomotor_mapping', 300, 'dataset early'),
  _level('psychlab_continuous_recognition', 300, 'dataset early'),
  _level('psychlab_sequential_comparison', 300, 'early'),
  _level('psychlab_visual_search', 150, 'early'),
  _level('explore_object_locations_small', 90, 'maps'),
  _level('explore_object_locations_large', 120, 'maps'),
  _level('explore_obstructed_goals_small', 90, 'maps'),
  _level('explore_obstructed_goals_large', 120, 'maps'),
  _level('explore_goal_locations_small', 90, 'maps'),
  _level('explore_goal_locations_large', 120, 'maps'),
  _level('explore_object_rewards_few', 90, 'maps'),
  _level('explore_object_rewards_many', 120, 'maps'),
)

TRAIN_NAMES = tuple(level.train_name for level in LEVELS)
TEST_NAMES = tuple(level.test_name for level in LEVELS)
LEVEL_MAPPING = dict(zip(TRAIN_NAMES, TEST_NAMES, strict=True))

_BY_NAME = {level.train_name: level for level in LEVELS} | {
  level.test_name: level for level in LEVELS
}
ALL_NAMES = tuple(_BY_NAME)


def to_str(name: str | bytes) -> str:
  """The name as text: pipelines give bytes back."""
  return name.decode() if isinstance(name, bytes) else str(name)


def find(name: str | bytes) -> Level | None:
  """The suite's level of that train or test name; None: not of the suite."""
  return _BY_NAME.get(to_str(name))


def lab_name(name: str, level_directory: str = '') -> str:
  """What DeepMind Lab calls the level: levels of the suite have a folder."""
  if name in _BY_NAME and not level_directory:
    return FOLDER + name
  return name


def resolve(
  names: str | bytes | Iterable[str | bytes],
  mode: str = 'train',
  level_directory: str = '',
) -> list[str]:
  """The levels meant by `--level_name`, checked, as `mode` plays them.

  Args:
    names: one name, several separated by commas, or a sequence. `dmlab30`
      stands for the whole suite in its order. A name with a slash is a level
      script below Lab's own level folder; only Lab can check it.
    mode: `train`, or `test` for the suite's test levels.
    level_directory: where Lab looks for level scripts. If it is given, names
      cannot be checked.

  Raises:
    ValueError: a level is unknown, held out, or named twice.
  """
  if mode not in MODES:
    raise ValueError(f'mode is {mode!r}; choose train or test.')
  if isinstance(names, str | bytes):
    names = to_str(names).split(',')
  result = []
  for name in map(to_str, names):
    result.extend(_resolve_one(name.strip(), mode, level_directory))
  twice = sorted({name for name in result if result.count(name) > 1})
  if twice:
    raise ValueError(
      f'Level {twice[0]!r} is named twice; give it a weight instead.'
    )
  return result


def _resolve_one(name: str, mode: str, level_directory: str) -> Sequence[str]:
  if name == SUITE:
    return TRAIN_NAMES if mode == 'train' else TEST_NAMES
  level = _BY_NAME.get(name)
  if level is not None:
    if mode == 'test':
      return [level.test_name]
    if name != level.train_name:
      raise ValueError(
        f'Level {name!r} is held out for testing; train on '
        f'{level.train_name!r} instead.'
      )
    return [name]
  if name and (name in OTHER_LEVELS or '/' in name or level_directory):
    return [name]
  known = (SUITE, *ALL_NAMES, *OTHER_LEVELS)
  near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
  hint = (
    f'the nearest names are {", ".join(near)}'
    if near
    else (
      f"name {SUITE}, a level of it, or a script below Lab's level folder with "
      'its folder'
    )
  )
  raise ValueError(f'DeepMind Lab has no level {name!r}; {hint}.')


def deal(
  names: Sequence[str],
  num_envs: int,
  weights: Mapping[str, int] | None = None,
) -> list[str]:
  """Which level each of `num_envs` environments plays, round robin.

  Without weights environment `i` plays level `i % len(names)`, as in the
  original. A level of weight `w` is dealt in the first `w` rounds of a cycle.

  Raises:
    ValueError: a level would get no environment, or a weight is wrong.
  """
  weights = dict(weights or {})
  surplus = sorted(set(weights) - set(names))
  if surplus:
    raise ValueError(
      f'Level {surplus[0]!r} has a weight and is not played; remove it.'
    )
  for name, weight in weights.items():
    if not isinstance(weight, int) or weight < 1:
      raise ValueError(
        f'The weight of {name!r} is {weight!r}; give a whole number from 1 on.'
      )
  if num_envs < len(names):
    raise ValueError(
      f'{num_envs} environments are too few for {len(names)} levels, each of '
      'which needs one; use more environments or fewer levels.'
    )
  rounds = max((weights.get(name, 1) for name in names), default=1)
  cycle = [
    name
    for turn in range(rounds)
    for name in names
    if weights.get(name, 1) > turn
  ]
  return [cycle[i % len(cycle)] for i in range(num_envs)]
