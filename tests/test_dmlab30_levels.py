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
"""The level table against a copy of its sources; who plays what."""

import csv
import pathlib

import pytest

from scalable_agent.dmlab30 import levels

GOLDEN = pathlib.Path(__file__).parent / 'golden' / 'dmlab30_levels.csv'


def golden_rows():
  lines = GOLDEN.read_text().splitlines()
  return list(csv.DictReader(x for x in lines if not x.startswith('#')))


def test_levels_are_the_suite_in_its_order_with_their_needs():
  expected = [
    levels.Level(
      train_name=row['train_name'],
      test_name=row['test_name'],
      episode_seconds=int(row['episode_seconds']),
      needs_dataset=row['dataset'] == 'yes',
      needs_language=row['language'] == 'yes',
      compiles_maps=row['maps'] == 'yes',
      ends_early=row['early'] == 'yes',
    )
    for row in golden_rows()
  ]
  assert len(expected) == 30
  assert list(levels.LEVELS) == expected


def test_only_two_levels_have_another_name_in_the_test():
  differ = {k for k, v in levels.LEVEL_MAPPING.items() if k != v}
  assert differ == {
    'rooms_collect_good_objects_train',
    'rooms_exploit_deferred_effects_train',
  }
  assert len(levels.ALL_NAMES) == 32


@pytest.mark.parametrize('name', ['rooms_watermaze', b'rooms_watermaze'])
def test_a_name_may_be_text_or_bytes(name):
  assert levels.find(name).test_name == 'rooms_watermaze'
  assert levels.resolve(name) == ['rooms_watermaze']
  assert levels.to_str(name) == 'rooms_watermaze'


@pytest.mark.parametrize(
  ('names', 'mode', 'expected'),
  [
    ('dmlab30', 'train', list(levels.TRAIN_NAMES)),
    ('dmlab30', 'test', list(levels.TEST_NAMES)),
    ('rooms_watermaze, lt_chasm', 'train', ['rooms_watermaze', 'lt_chasm']),
    (['own/level', b'natlab_fixed_large_map'], 'train', None),
    (
      'rooms_collect_good_objects_train',
      'test',
      ['rooms_collect_good_objects_test'],
    ),
  ],
  ids=['suite', 'suite-test', 'comma', 'sequence', 'train-name-in-test'],
)
def test_resolve(names, mode, expected):
  if expected is None:
    expected = ['own/level', 'natlab_fixed_large_map']
  assert levels.resolve(names, mode) == expected


@pytest.mark.parametrize(
  ('names', 'mode', 'words'),
  [
    ('rooms_watermase', 'train', ['rooms_watermase', 'rooms_watermaze']),
    ('explore_goal_location', 'train', ['explore_goal_locations_small']),
    ('', 'train', ["no level ''", 'dmlab30']),
    (
      'rooms_collect_good_objects_test',
      'train',
      ['held out', 'rooms_collect_good_objects_train'],
    ),
    ('lt_chasm,lt_chasm', 'train', ['named twice', 'weight']),
    ('dmlab30,rooms_watermaze', 'train', ['named twice']),
    ('lt_chasm', 'play', ['train or test']),
  ],
)
def test_resolve_says_in_one_sentence_what_is_wrong(names, mode, words):
  with pytest.raises(ValueError) as error:
    levels.resolve(names, mode)
  text = str(error.value)
  assert all(word in text for word in words), text
  assert text.endswith('.')
  assert text.count('. ') == 0


def test_own_scripts_are_not_checked():
  assert levels.resolve('my_level', level_directory='mine') == ['my_level']
  assert levels.lab_name('my_level', 'mine') == 'my_level'
  assert levels.lab_name('rooms_watermaze', 'mine') == 'rooms_watermaze'


def test_levels_of_the_suite_have_a_folder_in_lab():
  assert levels.lab_name('rooms_watermaze') == (
    'contributed/dmlab30/rooms_watermaze'
  )
  assert levels.lab_name('seekavoid_arena_01') == 'seekavoid_arena_01'


def test_levels_are_dealt_round_robin():
  # As the original: actor i plays level i % 30.
  dealt = levels.deal(levels.TRAIN_NAMES, 150)
  assert dealt == [levels.TRAIN_NAMES[i % 30] for i in range(150)]


@pytest.mark.parametrize(
  ('num_envs', 'expected'),
  [(3, 'abc'), (4, 'abca'), (8, 'abcacaab'), (12, 'abcacaabcaca')],
)
def test_weights_deal_a_level_more_often(num_envs, expected):
  # A cycle: a b c, a c, a.
  dealt = levels.deal('abc', num_envs, {'a': 3, 'c': 2})
  assert ''.join(dealt) == expected


@pytest.mark.parametrize(
  ('num_envs', 'weights', 'words'),
  [
    (29, None, ['29 environments are too few for 30 levels']),
    (30, {'rooms_watermaze': 0}, ['weight', 'rooms_watermaze', '0']),
    (30, {'lt_chasm': 2}, ['lt_chasm', 'not played']),
  ],
  ids=['too-few', 'weight-zero', 'weight-of-another'],
)
def test_deal_refuses(num_envs, weights, words):
  with pytest.raises(ValueError) as error:
    levels.deal(levels.TRAIN_NAMES, num_envs, weights)
  assert all(word in str(error.value) for word in words)
