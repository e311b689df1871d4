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
"""Tests for what `--level_name` means: DeepMind Lab, weights, suites."""

import csv

import numpy as np
import pytest
from dm_env import specs
from fake_deepmind_lab import lab_double

from scalable_agent import config, evaluate, tasks
from scalable_agent.dmlab30 import curriculum, levels, scores
from scalable_agent.envs import catch, process
from scalable_agent.runtime import learner_loop, score_table
from scalable_agent.suites import base

TWO = ('double/turn_as_told', 'double/long_corridor')
BOTH = ','.join(TWO)


@pytest.fixture(name='lab')
def fixture_lab(monkeypatch):
  return lab_double.install(monkeypatch, episode_seconds=0.2)


def settings(level_name=BOTH, *, actor=None, dmlab=None, **task):
  return config.Config(
    task=config.TaskConfig(
      level_name=level_name, **({'width': 32, 'height': 24} | task)
    ),
    actor=config.ActorConfig(**({'num_actors': 3} | (actor or {}))),
    dmlab=config.DmlabConfig(**(dmlab or {})),
  )


def made_by(task, level=TWO[0]):
  """Settings and schedule of the environments of a level."""
  factory = task.factory(level)
  return factory.settings, factory.schedule


def test_flags_become_settings_of_lab(lab, tmp_path):
  del lab
  given = {
    'action_set': 'extended',
    'allow_hold_out_levels': True,
    'level_cache_dir': str(tmp_path),
    'level_cache_gib': 2.0,
    'level_directory': 'mine',
    'mixer_seed': 7,
    'num_level_seeds': 5,
    'renderer': 'hardware',
  }
  task = tasks.make_task(
    settings(
      dataset_path='dummy',
      num_action_repeats=2,
      dmlab={'lab_setting': 'botCount=2,logLevel=ERROR', **given},
    )
  )
  found, schedule = made_by(task)
  assert {name: getattr(found, name) for name in given} == given
  assert (found.width, found.height, found.num_action_repeats) == (32, 24, 2)
  assert found.dataset_path == 'dummy'
  assert found.config == {'botCount': '2', 'logLevel': 'ERROR'}
  assert schedule is None


def test_what_is_left_open_is_the_original_s(lab):
  del lab
  task = tasks.make_task(settings('rooms_watermaze', width=None, height=None))
  found, _ = made_by(task, 'rooms_watermaze')
  assert (found.width, found.height, found.num_action_repeats) == (96, 72, 4)
  assert found.mixer_seed is None
  assert not found.allow_hold_out_levels


def test_a_test_has_held_out_maps_another_mixer_seed_and_no_curriculum(lab):
  del lab
  chosen = settings(
    'rooms_collect_good_objects_train',
    dmlab={'mixer_seed': 7, 'curriculum': 'difficulty:0.5:2:10:episodes'},
  )
  task = tasks.make_task(chosen, 'test')
  assert task.level_names == ('rooms_collect_good_objects_test',)
  found, schedule = made_by(task, *task.level_names)
  assert (found.mixer_seed, found.allow_hold_out_levels) == (0x600D5EED, True)
  assert schedule is None
  _, schedule = made_by(tasks.make_task(chosen), TWO[0])
  assert schedule == curriculum.Linear('difficulty', 0.5, 2.0, 10, 'episodes')


@pytest.mark.parametrize('action_set', ['paper', 'extended', 'raw'])
def test_the_spec_is_known_without_a_lab_and_true(lab, monkeypatch, action_set):
  task = tasks.make_task(settings(dmlab={'action_set': action_set}))
  with monkeypatch.context() as patch:
    patch.setattr(lab, 'Lab', None)
    known = task.spec()
  assert task._replace(known_spec=None).spec() == known
  assert known.frames_per_step == 4


def test_each_lab_has_its_own_process_unless_asked_otherwise(lab):
  del lab
  for backend, separate in (('auto', True), ('serial', False)):
    task = tasks.make_task(settings(actor={'env_backend': backend}))
    environments = task.build(tasks.Request(TWO[:1], 1, 0))
    environments.close()
    assert isinstance(environments, process.ProcessEnvironments) is separate


def test_the_suite_is_dealt_in_its_order(lab):
  del lab
  task = tasks.make_task(
    settings('dmlab30', dataset_path='dummy', actor={'num_actors': 61})
  )
  assert task.level_names == levels.TRAIN_NAMES
  assert task.suite.name == 'dmlab30'
  dealt = tasks.deal(task.level_names, 61, 1, task.weights)
  assert [name for (name,) in dealt] == [
    levels.TRAIN_NAMES[i % 30] for i in range(61)
  ]


def test_a_level_of_weight_two_has_two_environments_for_one(lab):
  del lab
  task = tasks.make_task(
    settings(level_weights=f'{TWO[1]}=2', actor={'envs_per_actor': 2})
  )
  assert tasks.deal(task.level_names, 3, 2, task.weights) == [
    [TWO[0], TWO[1]],
    [TWO[1], TWO[0]],
    [TWO[1], TWO[1]],
  ]


@pytest.mark.parametrize(
  ('level_name', 'message'),
  [
    ('rooms_watermaz', 'did you mean rooms_watermaze'),
    ('dmlab3', 'did you mean dmlab30'),
    ('rooms_watermaze,catchh', 'did you mean catch'),
    ('catch,rooms_watermaze', 'several of one kind'),
    ('atari/pong,double/turn_as_told', 'several of one kind'),
    ('rooms_watermaze,rooms_watermaze', 'named twice'),
  ],
)
def test_wrong_names_are_refused(lab, level_name, message):
  del lab
  with pytest.raises(ValueError, match=message):
    tasks.make_task(settings(level_name))


@pytest.mark.parametrize(
  ('level_name', 'kwargs'),
  [
    ('gym/CartPole-v1,gym/Acrobot-v1', {}),
    ('atari/pong,atari/breakout', {'full_action_set': False}),
  ],
  ids=['gym', 'atari'],
)
def test_levels_of_different_actions_are_refused_at_the_start(
  level_name, kwargs
):
  task = tasks.make_task(settings(level_name, **kwargs))
  with pytest.raises(ValueError, match='one agent plays environments of one'):
    task.spec()


def test_games_of_different_actions_are_padded_to_all_eighteen():
  task = tasks.make_task(settings('atari/pong,atari/breakout'))
  assert task.spec().action == specs.DiscreteArray(18, np.int32, 'action')


def test_human_scores_are_known_for_the_suite_s_levels_only(lab):
  del lab
  task = tasks.make_task(settings())
  assert task.human_normalized(TWO[0], 1.0) is None
  assert task.suite is None
  name = 'rooms_collect_good_objects_train'
  assert task.human_normalized(name, 10) == pytest.approx(100)


def test_suite_scores_come_once_every_level_has_an_episode(lab):
  del lab
  task = tasks.make_task(
    settings('dmlab30', dataset_path='dummy', actor={'num_actors': 30})
  )
  own = learner_loop._SuiteScores(task.suite, task.level_names)

  def episodes(names, percent):
    for name in names:
      test_name = levels.find(name).test_name
      human = scores.HUMAN_SCORES[test_name]
      random = scores.RANDOM_SCORES[test_name]
      result = random + percent / 100 * (human - random)
      yield learner_loop.episodes.Episode(name, result, 1)

  assert own.take(episodes(task.level_names[:29], 0)) == {}
  first = own.take(episodes(task.level_names[29:], 600))
  assert first['dmlab30/training_no_cap'] == pytest.approx(20)
  assert first['dmlab30/training_cap_100'] == pytest.approx(100 / 30)
  # Every episode counts once.
  assert own.take(episodes(task.level_names[29:], 600)) == {}
  assert own.take(episodes(task.level_names[:29], 50)) != {}


def test_the_median_of_the_57_games_is_told():
  task = tasks.make_task(settings('atari57', actor={'num_actors': 57}))
  returns = {name: [0.0] for name in task.level_names}
  percents = [task.human_normalized(name, 0.0) for name in task.level_names]
  assert task.suite.scores(returns) == {
    'mean': pytest.approx(np.mean(percents)),
    'median': pytest.approx(np.median(percents)),
  }


def make_key(chosen=None, weight=1.0, num_episodes=2, greedy=False):
  chosen = chosen or settings()
  return score_table.make_key(
    chosen, [np.ones(3) * weight], num_episodes, greedy
  )


def test_a_test_is_the_same_only_with_the_same_weights_and_settings():
  others = [
    make_key(weight=2.0),
    make_key(num_episodes=3),
    make_key(greedy=True),
    make_key(settings(width=64)),
    make_key(settings(dmlab={'action_set': 'extended'})),
  ]
  assert len({make_key(), *others}) == 6
  same = settings('rooms_watermaze', actor={'num_actors': 9})
  assert make_key(same) == make_key()


def test_a_table_of_tests_is_read_as_it_was_written(tmp_path):
  path = str(tmp_path / 'test.csv')
  task = base.Task(('a',), 1, None, lambda _: catch.Catch)
  rows = [
    score_table.make_row(
      8, evaluate.LevelResult('a', [1.0, 2.0], [3, 4]), task, 'k'
    ),
    score_table.make_row(
      9,
      evaluate.LevelResult('a', [0.1], [3]),
      task._replace(human_normalized=lambda *_: 12.5),
      '0123',
    ),
  ]
  for row in rows:
    score_table.append(path, row)
  assert score_table.read(path) == rows
  with open(path, newline='') as file:
    first, second = csv.DictReader(file)
  assert (first['mean_return'], first['standard_error']) == ('1.5', '0.5')
  assert (first['human_normalized_percent'], first['mean_steps']) == ('', '3.5')
  assert second['human_normalized_percent'] == '12.5'


def test_a_table_of_another_version_is_refused(tmp_path):
  path = tmp_path / 'test.csv'
  path.write_text('env_frames,level\n1,catch\n')
  with pytest.raises(ValueError, match=r'test\.csv is no table.*move it away'):
    score_table.read(str(path))
