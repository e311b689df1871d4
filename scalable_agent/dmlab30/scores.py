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
"""Human-normalized scores of DMLab-30, as in `dmlab30.py` of the original.

Per level `100 * (return - random) / (human - random)`: 0 is a random policy,
100 a human. Table B.1 of the paper prints the four lasertag pairs with small
and large exchanged; these are the code's, with which results are compared.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from scalable_agent.dmlab30 import levels

HUMAN_SCORES = {
  'rooms_collect_good_objects_test': 10,
  'rooms_exploit_deferred_effects_test': 85.65,
  'rooms_select_nonmatching_object': 65.9,
  'rooms_watermaze': 54,
  'rooms_keys_doors_puzzle': 53.8,
  'language_select_described_object': 389.5,
  'language_select_located_object': 280.7,
  'language_execute_random_task': 254.05,
  'language_answer_quantitative_question': 184.5,
  'lasertag_one_opponent_small': 12.65,
  'lasertag_three_opponents_small': 18.55,
  'lasertag_one_opponent_large': 18.6,
  'lasertag_three_opponents_large': 31.5,
  'natlab_fixed_large_map': 36.9,
  'natlab_varying_map_regrowth': 24.45,
  'natlab_varying_map_randomized': 42.35,
  'skymaze_irreversible_path_hard': 100,
  'skymaze_irreversible_path_varied': 100,
  'psychlab_arbitrary_visuomotor_mapping': 58.75,
  'psychlab_continuous_recognition': 58.3,
  'psychlab_sequential_comparison': 39.5,
  'psychlab_visual_search': 78.5,
  'explore_object_locations_small': 74.45,
  'explore_object_locations_large': 65.65,
  'explore_obstructed_goals_small': 206,
  'explore_obstructed_goals_large': 119.5,
  'explore_goal_locations_small': 267.5,
  'explore_goal_locations_large': 194.5,
  'explore_object_rewards_few': 77.7,
  'explore_object_rewards_many': 106.7,
}

RANDOM_SCORES = {
  'rooms_collect_good_objects_test': 0.073,
  'rooms_exploit_deferred_effects_test': 8.501,
  'rooms_select_nonmatching_object': 0.312,
  'rooms_watermaze': 4.065,
  'rooms_keys_doors_puzzle': 4.135,
  'language_select_described_object': -0.07,
  'language_select_located_object': 1.929,
  'language_execute_random_task': -5.913,
  'language_answer_quantitative_question': -0.33,
  'lasertag_one_opponent_small': -0.224,
  'lasertag_three_opponents_small': -0.214,
  'lasertag_one_opponent_large': -0.083,
  'lasertag_three_opponents_large': -0.102,
  'natlab_fixed_large_map': 2.173,
  'natlab_varying_map_regrowth': 2.989,
  'natlab_varying_map_randomized': 7.346,
  'skymaze_irreversible_path_hard': 0.1,
  'skymaze_irreversible_path_varied': 14.4,
  'psychlab_arbitrary_visuomotor_mapping': 0.163,
  'psychlab_continuous_recognition': 0.224,
  'psychlab_sequential_comparison': 0.129,
  'psychlab_visual_search': 0.085,
  'explore_object_locations_small': 3.575,
  'explore_object_locations_large': 4.673,
  'explore_obstructed_goals_small': 6.76,
  'explore_obstructed_goals_large': 2.61,
  'explore_goal_locations_small': 7.66,
  'explore_goal_locations_large': 3.14,
  'explore_object_rewards_few': 2.073,
  'explore_object_rewards_many': 2.438,
}


def human_normalized(level_name: str | bytes, episode_return: float) -> float:
  """Percent of the way from random to human that `episode_return` is.

  Args:
    level_name: train or test name; both have the test level's baselines.
    episode_return: undiscounted, unclipped.

  Raises:
    ValueError: the level is not one of the 30.
  """
  name = _test_name(level_name)
  random, human = RANDOM_SCORES[name], HUMAN_SCORES[name]
  return 100 * (float(episode_return) - random) / (human - random)


def compute_human_normalized_score(
  level_returns: Mapping[str | bytes, Sequence[float]],
  per_level_cap: float | None,
  level_names: Sequence[str] | None = None,
) -> float:
  """Mean over levels of each level's mean score, in percent.

  Each level's score is capped, then the mean is taken: the published figures
  are `per_level_cap=100`.

  Args:
    level_returns: episode returns by level, under train or test names.
    per_level_cap: most that one level counts, in percent; None: no cap.
    level_names: the levels of the mean; None: all 30.

  Raises:
    ValueError: one of the levels has no episode. It is never counted as zero.
  """
  names = [_test_name(n) for n in level_names or levels.TEST_NAMES]
  returns: dict[str, list[float]] = {}
  for level_name, values in level_returns.items():
    returns.setdefault(_test_name(level_name), []).extend(values)
  missing = [name for name in names if not returns.get(name)]
  if missing:
    raise ValueError(
      f'{len(missing)} of {len(names)} levels, {missing[0]!r} first, have no '
      'finished episode; the mean needs one of each.'
    )
  scores = [human_normalized(name, np.mean(returns[name])) for name in names]
  if per_level_cap is not None:
    scores = [min(score, per_level_cap) for score in scores]
  return float(np.mean(scores))


def _test_name(level_name: str | bytes) -> str:
  level = levels.find(level_name)
  if level is None:
    raise ValueError(
      f'Level {levels.to_str(level_name)!r} is not in DMLab-30 and has no '
      'human score; give one of its 30 levels.'
    )
  return level.test_name
