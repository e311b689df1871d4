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
"""Tests of the table of games and of the score that it defines."""

import csv
import pathlib

import numpy as np
import pytest
from ale_py import roms

from scalable_agent.atari import games, simulator

GOLDEN = pathlib.Path(__file__).parent / 'golden' / 'atari57.csv'


@pytest.fixture(scope='module')
def table():
  with GOLDEN.open() as file:
    return list(csv.DictReader(file))


def test_all_57_games_have_roms(table):
  assert list(games.GAMES) == [row['game'] for row in table]
  assert len(set(games.GAMES)) == 57
  assert set(games.GAMES) <= set(roms.get_all_rom_ids())


def test_scores_are_those_of_the_table(table):
  for row in table:
    expected = float(row['random_score']), float(row['human_score'])
    assert games.SCORES[row['game']] == expected


@pytest.mark.parametrize(
  ('column', 'median'),
  [
    ('impala_shallow_experts', 93.2),
    ('impala_deep_experts', 191.8),
    ('impala_deep_multitask', 59.7),
  ],
)
def test_medians_of_the_paper(table, column, median):
  """Table C.1 through the function gives Table 4 of the paper."""
  scores = [
    games.human_normalized(row['game'], float(row[column])) for row in table
  ]
  np.testing.assert_allclose(np.median(scores), median, atol=0.05)


def test_random_and_human_are_the_ends_of_the_scale():
  for game, (random, human) in games.SCORES.items():
    assert games.human_normalized(game, random) == 0
    np.testing.assert_allclose(games.human_normalized(game, human), 100)


def test_games_without_a_human_score_are_refused():
  with pytest.raises(ValueError, match="'adventure' is none of the 57"):
    games.human_normalized('adventure', 1.0)


@pytest.mark.parametrize(
  ('name', 'meant'),
  [
    ('MsPacman', 'ms_pacman'),
    ('mspacman', 'ms_pacman'),
    ('brekout', 'breakout'),
    ('Pong-v5', 'pong'),
    ('???', 'pong'),
  ],
)
def test_unknown_games_are_refused_with_a_hint(name, meant):
  with pytest.raises(ValueError, match='as in ms_pacman') as error:
    simulator.rom_path(name)
  assert meant in str(error.value).split('Did you mean')[1]
