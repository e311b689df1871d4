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
"""What the IMPALA paper reports per level (Espeholt et al. 2018, v3).

Raw mean returns. Atari: Table C.1, 200 million frames per game, up to 30
no-ops. DMLab-30: Table B.1, test levels.
"""

from collections.abc import Mapping
from typing import NamedTuple

from scalable_agent.atari import games
from scalable_agent.dmlab30 import levels, scores

_ATARI_PREFIX = 'atari/'


class Atari(NamedTuple):
  """A game's line of Table C.1.

  shallow: one shallow agent per game.
  deep: one deep agent per game.
  multi_task: one deep agent for all 57 games.
  """

  shallow: float
  deep: float
  multi_task: float


class Dmlab(NamedTuple):
  """A level's line of Table B.1.

  experts: one deep agent per level.
  pbt: one deep agent for all 30 levels, with population based training.
  """

  experts: float
  pbt: float


class Reference(NamedTuple):
  """What a return on a level can be compared with.

  suite: 'atari57' or 'dmlab30'.
  random: mean return of random play.
  human: of a human.
  published: mean returns of the paper's agents.
  """

  suite: str
  random: float
  human: float
  published: Mapping[str, float]

  def percent(self, value: float) -> float:
    """Human-normalized: 0 is random play, 100 the human."""
    return 100 * (value - self.random) / (self.human - self.random)


def reference(level: str) -> Reference | None:
  """Scores to compare with; None where neither humans nor the paper played.

  Args:
    level: as `--level_name` has it: `atari/pong`, or a train or test level of
      DMLab-30.
  """
  game = level.removeprefix(_ATARI_PREFIX)
  if level.startswith(_ATARI_PREFIX) and game in games.SCORES:
    random, human = games.SCORES[game]
    return Reference('atari57', random, human, ATARI57[game]._asdict())
  found = levels.find(level)
  if found is None:
    return None
  name = found.test_name
  return Reference(
    'dmlab30',
    scores.RANDOM_SCORES[name],
    scores.HUMAN_SCORES[name],
    DMLAB30[name]._asdict(),
  )


ATARI57: Mapping[str, Atari] = {
  'alien': Atari(1536.05, 15962.1, 2344.6),
  'amidar': Atari(497.62, 1554.79, 136.82),
  'assault': Atari(12086.86, 19148.47, 2116.32),
  'asterix': Atari(29692.5, 300732.0, 2609.0),
  'asteroids': Atari(3508.1, 108590.05, 2011.05),
  'atlantis': Atari(773355.5, 849967.5, 460430.5),
  'bank_heist': Atari(1200.35, 1223.15, 55.15),
  'battle_zone': Atari(13015.0, 20885.0, 7705.0),
  'beam_rider': Atari(8219.92, 32463.47, 698.36),
  'berzerk': Atari(888.3, 1852.7, 647.8),
  'bowling': Atari(35.73, 59.92, 31.06),
  'boxing': Atari(96.3, 99.96, 96.63),
  'breakout': Atari(640.43, 787.34, 35.67),
  'centipede': Atari(5528.13, 11049.75, 4916.84),
  'chopper_command': Atari(5012.0, 28255.0, 5036.0),
  'crazy_climber': Atari(136211.5, 136950.0, 115384.0),
  'defender': Atari(58718.25, 185203.0, 16667.5),
  'demon_attack': Atari(107264.73, 132826.98, 10095.2),
  'double_dunk': Atari(-0.35, -0.33, -1.92),
  'enduro': Atari(0.0, 0.0, 971.28),
  'fishing_derby': Atari(32.08, 44.85, 35.27),
  'freeway': Atari(0.0, 0.0, 21.41),
  'frostbite': Atari(269.65, 317.75, 2744.15),
  'gopher': Atari(1002.4, 66782.3, 913.5),
  'gravitar': Atari(211.5, 359.5, 282.5),
  'hero': Atari(33853.15, 33730.55, 18818.9),
  'ice_hockey': Atari(-5.25, 3.48, -13.55),
  'jamesbond': Atari(440.0, 601.5, 284.0),
  'kangaroo': Atari(47.0, 1632.0, 8240.5),
  'krull': Atari(9247.6, 8147.4, 10807.8),
  'kung_fu_master': Atari(42259.0, 43375.5, 41905.0),
  'montezuma_revenge': Atari(0.0, 0.0, 0.0),
  'ms_pacman': Atari(6501.71, 7342.32, 3415.05),
  'name_this_game': Atari(6049.55, 21537.2, 5719.3),
  'phoenix': Atari(33068.15, 210996.45, 7486.5),
  'pitfall': Atari(-11.14, -1.66, -1.22),
  'pong': Atari(20.4, 20.98, 8.58),
  'private_eye': Atari(92.42, 98.5, 0.0),
  'qbert': Atari(18901.25, 351200.12, 10717.38),
  'riverraid': Atari(17401.9, 29608.05, 2850.15),
  'road_runner': Atari(37505.0, 57121.0, 24435.5),
  'robotank': Atari(2.3, 12.96, 9.94),
  'seaquest': Atari(1716.9, 1753.2, 844.6),
  'skiing': Atari(-29975.0, -10180.38, -8988.0),
  'solaris': Atari(2368.4, 2365.0, 1160.4),
  'space_invaders': Atari(1726.28, 43595.78, 199.65),
  'star_gunner': Atari(69139.0, 200625.0, 1855.5),
  'surround': Atari(-8.13, 7.56, -8.51),
  'tennis': Atari(-1.89, 0.55, -8.12),
  'time_pilot': Atari(6617.5, 48481.5, 3747.5),
  'tutankham': Atari(267.82, 292.11, 105.22),
  'up_n_down': Atari(273058.1, 332546.75, 82155.3),
  'venture': Atari(0.0, 0.0, 1.0),
  'video_pinball': Atari(228642.52, 572898.27, 20125.14),
  'wizard_of_wor': Atari(4203.0, 9157.5, 2106.0),
  'yars_revenge': Atari(80530.13, 84231.14, 14739.41),
  'zaxxon': Atari(1148.5, 32935.5, 6497.0),
}
DMLAB30: Mapping[str, Dmlab] = {
  'rooms_collect_good_objects_test': Dmlab(9.0, 5.8),
  'rooms_exploit_deferred_effects_test': Dmlab(15.6, 11.0),
  'rooms_select_nonmatching_object': Dmlab(7.3, 26.1),
  'rooms_watermaze': Dmlab(26.9, 31.1),
  'rooms_keys_doors_puzzle': Dmlab(28.0, 24.3),
  'language_select_described_object': Dmlab(324.6, 593.1),
  'language_select_located_object': Dmlab(189.0, 301.7),
  'language_execute_random_task': Dmlab(-49.9, 66.8),
  'language_answer_quantitative_question': Dmlab(219.4, 264.0),
  'lasertag_one_opponent_small': Dmlab(-0.1, 2.5),
  'lasertag_three_opponents_small': Dmlab(19.1, 11.3),
  'lasertag_one_opponent_large': Dmlab(-0.2, 0.3),
  'lasertag_three_opponents_large': Dmlab(-0.1, 4.1),
  'natlab_fixed_large_map': Dmlab(34.7, 12.2),
  'natlab_varying_map_regrowth': Dmlab(20.7, 15.9),
  'natlab_varying_map_randomized': Dmlab(36.1, 29.0),
  'skymaze_irreversible_path_hard': Dmlab(13.6, 30.0),
  'skymaze_irreversible_path_varied': Dmlab(45.1, 53.6),
  'psychlab_arbitrary_visuomotor_mapping': Dmlab(16.4, 14.3),
  'psychlab_continuous_recognition': Dmlab(29.9, 29.9),
  'psychlab_sequential_comparison': Dmlab(0.0, 0.0),
  'psychlab_visual_search': Dmlab(0.0, 0.0),
  'explore_object_locations_small': Dmlab(57.8, 62.6),
  'explore_object_locations_large': Dmlab(37.0, 51.1),
  'explore_obstructed_goals_small': Dmlab(135.2, 188.8),
  'explore_obstructed_goals_large': Dmlab(39.5, 71.0),
  'explore_goal_locations_small': Dmlab(209.4, 252.5),
  'explore_goal_locations_large': Dmlab(83.1, 125.3),
  'explore_object_rewards_few': Dmlab(39.8, 43.2),
  'explore_object_rewards_many': Dmlab(58.7, 62.6),
}
