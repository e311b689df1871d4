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
"""Human-normalized scores: values, caps, names, and what is missing."""

import csv
import pathlib

import numpy as np
import pytest

from scalable_agent.dmlab30 import levels, scores

GOLDEN = pathlib.Path(__file__).parent / 'golden' / 'dmlab30_levels.csv'
TWO = ['rooms_collect_good_objects_train', 'rooms_watermaze']


def golden_rows():
  lines = GOLDEN.read_text().splitlines()
  return list(csv.DictReader(x for x in lines if not x.startswith('#')))


def at_percent(name, percent):
  """A return that is `percent` of the way from random to human."""
  test_name = levels.find(name).test_name
  random, human = (
    scores.RANDOM_SCORES[test_name],
    scores.HUMAN_SCORES[test_name],
  )
  return random + percent / 100 * (human - random)


def test_baselines_are_the_original_ones():
  expected = {r['test_name']: r for r in golden_rows()}
  assert {k: float(r['random_score']) for k, r in expected.items()} == (
    scores.RANDOM_SCORES
  )
  assert {k: float(r['human_score']) for k, r in expected.items()} == (
    scores.HUMAN_SCORES
  )
  assert list(scores.HUMAN_SCORES) == list(levels.TEST_NAMES)


@pytest.mark.parametrize(
  ('column', 'percent'),
  [('paper_experts', 45.74), ('paper_pbt', 50.06)],
)
def test_mean_capped_score_of_the_papers_table(column, percent):
  # Computed once from Table B.1 with these baselines; R2D2 quotes 45.8 for the
  # first.
  returns = {r['test_name']: [float(r[column])] for r in golden_rows()}
  score = scores.compute_human_normalized_score(returns, per_level_cap=100)
  assert score == pytest.approx(percent, abs=0.005)


@pytest.mark.parametrize(('cap', 'expected'), [(100, 50), (None, 100)])
def test_cap_is_per_level_and_before_the_mean(cap, expected):
  returns = {TWO[0]: [at_percent(TWO[0], 200)], TWO[1]: [at_percent(TWO[1], 0)]}
  score = scores.compute_human_normalized_score(returns, cap, TWO)
  assert score == pytest.approx(expected)


def test_a_levels_episodes_are_averaged_before_the_cap():
  returns = {TWO[1]: [at_percent(TWO[1], 0), at_percent(TWO[1], 160)]}
  score = scores.compute_human_normalized_score(returns, 100, [TWO[1]])
  assert score == pytest.approx(80)


def test_train_names_bytes_and_test_names_are_one_level():
  names = [
    'rooms_collect_good_objects_train',
    'rooms_collect_good_objects_test',
    b'rooms_collect_good_objects_train',
  ]
  values = [scores.human_normalized(name, 10) for name in names]
  assert values == [100, 100, 100]
  returns = {name: [x] for name, x in zip(names, (0, 10, 20), strict=True)}
  score = scores.compute_human_normalized_score(returns, None, names[:1])
  assert score == pytest.approx(100)


@pytest.mark.parametrize('how', ['absent', 'empty'])
def test_a_level_without_an_episode_is_an_error_not_a_zero(how):
  returns = {name: [1.0] for name in levels.TRAIN_NAMES}
  scores.compute_human_normalized_score(returns, 100)
  if how == 'absent':
    del returns['natlab_fixed_large_map']
  else:
    returns['natlab_fixed_large_map'] = []
  with pytest.raises(ValueError, match=r'1 of 30 levels.*natlab_fixed_large'):
    scores.compute_human_normalized_score(returns, 100)


@pytest.mark.parametrize('name', ['lt_chasm', b'atari/pong'])
def test_a_level_of_another_suite_has_no_score(name):
  with pytest.raises(ValueError, match='not in DMLab-30'):
    scores.human_normalized(name, 1.0)
  with pytest.raises(ValueError, match='not in DMLab-30'):
    scores.compute_human_normalized_score({name: [1.0]}, 100)


def test_lasertag_follows_the_code_not_the_papers_table():
  small = scores.HUMAN_SCORES['lasertag_one_opponent_small']
  large = scores.HUMAN_SCORES['lasertag_one_opponent_large']
  np.testing.assert_allclose((small, large), (12.65, 18.6))
