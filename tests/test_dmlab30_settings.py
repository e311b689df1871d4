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
"""Settings are checked before a process starts, with one sentence each."""

import sys

import pytest
from fake_deepmind_lab import lab_double

from scalable_agent.dmlab30 import curriculum, environment, settings

PSYCHLAB = 'psychlab_continuous_recognition'


@pytest.fixture(name='lab')
def fixture_lab(monkeypatch):
  return lab_double.install(monkeypatch)


def one_sentence(text, *words):
  assert all(word in text for word in words), text
  assert text.endswith('.')
  assert '\n' not in text
  assert '. ' not in text


@pytest.mark.parametrize(
  ('wrong', 'words'),
  [
    ({'width': 97}, ['width is 97', 'multiples of 4', '96']),
    ({'height': 0}, ['height is 0', '4']),
    ({'num_action_repeats': 0}, ['num_action_repeats is 0']),
    ({'num_level_seeds': 0}, ['num_level_seeds is 0']),
    ({'mixer_seed': 2**32}, ['mixer_seed is 4294967296']),
    ({'mixer_seed': -1}, ['mixer_seed is -1']),
    ({'renderer': 'sdl'}, ['renderer', 'software', 'hardware']),
    ({'action_set': '9'}, ['action_set', 'paper', 'extended', 'raw']),
    ({'level_directory': '/no/such'}, ['/no/such', 'not a folder']),
    ({'level_cache_gib': 0.0}, ['level_cache_gib is 0.0']),
    ({'config': {'width': '96'}}, ["'width'", 'use width']),
    ({'config': {'mixerSeed': '1'}}, ["'mixerSeed'", 'use mixer_seed']),
    ({'config': {'levelName': 'x'}}, ["'levelName'", 'level_name']),
    ({'config': {'minimalUI': 'yes'}}, ["'minimalUI'", 'true or false']),
    ({'config': {'': 'x'}}, ['not a name']),
    ({'config': {'a': 'b\0c'}}, ["'a'", 'zero character']),
  ],
  ids=lambda value: next(iter(value)) if isinstance(value, dict) else '',
)
def test_wrong_setting(wrong, words):
  with pytest.raises(ValueError) as error:
    settings.LabSettings(**wrong)
  one_sentence(str(error.value), *words)


@pytest.mark.parametrize(
  ('names', 'kwargs', 'mode', 'words'),
  [
    (['rooms_watermase'], {}, 'train', ['rooms_watermase', 'rooms_watermaze']),
    ([PSYCHLAB], {}, 'train', [PSYCHLAB, 'dataset_path is empty', 'dummy']),
    (['dmlab30'], {}, 'train', ['psychlab_arb', 'dataset_path is empty']),
    (
      [PSYCHLAB],
      {'dataset_path': '/no/such'},
      'test',
      ['/no/such', '0001.png'],
    ),
    (
      ['rooms_collect_good_objects_train'],
      {},
      'test',
      ['rooms_collect_good_objects_test', 'held out', 'test mode'],
    ),
  ],
  ids=['unknown', 'dataset', 'suite', 'dataset-not-there', 'held-out'],
)
def test_level_and_settings_do_not_fit(lab, names, kwargs, mode, words):
  with pytest.raises(ValueError) as error:
    settings.check_settings(names, settings.LabSettings(**kwargs), mode)
  one_sentence(str(error.value), *words)


@pytest.mark.parametrize('mode', ['train', 'test'])
def test_what_fits_is_let_through(lab, tmp_path, mode):
  (tmp_path / '0001.png').touch()
  for path in ('dummy', str(tmp_path)):
    good = settings.LabSettings(dataset_path=path)
    good = good.for_test() if mode == 'test' else good
    settings.check_settings(['dmlab30'], good, mode)
  settings.check_settings(
    ['rooms_watermaze', 'lt_chasm'], settings.LabSettings()
  )


@pytest.fixture(name='no_lab')
def fixture_no_lab(monkeypatch):
  for name in [n for n in sys.modules if n.split('.')[0] == 'deepmind_lab']:
    monkeypatch.delitem(sys.modules, name)
  paths = [path for path in sys.path if 'fake_deepmind_lab' not in path]
  monkeypatch.setattr(sys, 'path', paths)


def test_missing_lab_is_said_with_what_to_do(no_lab):
  for call in (
    lambda: settings.check_settings(['lt_chasm'], settings.LabSettings()),
    lambda: environment.LabFactory('lt_chasm')(seed=1),
  ):
    with pytest.raises(ValueError) as error:
      call()
    one_sentence(str(error.value), 'deepmind_lab is not installed', 'docs/')


def test_broken_lab_says_why(no_lab, monkeypatch, tmp_path):
  (tmp_path / 'deepmind_lab.py').write_text(
    "raise ImportError('libOSMesa.so.8: cannot open')\n"
  )
  monkeypatch.syspath_prepend(str(tmp_path))
  with pytest.raises(ValueError) as error:
    environment.LabFactory('lt_chasm')(seed=1)
  one_sentence(str(error.value), 'libOSMesa', 'docs/dmlab30.md')


def test_checking_does_not_import_lab(lab, monkeypatch):
  monkeypatch.delitem(sys.modules, 'deepmind_lab')
  settings.check_settings(['lt_chasm'], settings.LabSettings())
  assert 'deepmind_lab' not in sys.modules


def test_config_is_text_as_lab_reads_it():
  config = settings.LabSettings(
    width=96,
    height=72,
    dataset_path='/data',
    level_directory='mine',
    mixer_seed=0,
    config={'botCount': 2, 'minimalUI': True, 'scale': 0.5, 'logLevel': 'INFO'},
  ).lab_config({'scale': 2.0})
  assert config == {
    'width': '96',
    'height': '72',
    'datasetPath': '/data',
    'levelDirectory': 'mine',
    'mixerSeed': '0',
    'botCount': '2',
    'minimalUI': 'true',
    'scale': '2.0',
    'logLevel': 'INFO',
  }


def test_a_schedule_may_not_set_what_has_a_field():
  with pytest.raises(ValueError, match='use width'):
    settings.LabSettings().lab_config({'width': '32'})


def test_test_settings_are_the_originals():
  config = settings.LabSettings().for_test().lab_config()
  assert config == {
    'width': '96',
    'height': '72',
    'logLevel': 'WARN',
    'allowHoldOutLevels': 'true',
    'mixerSeed': str(0x600D5EED),
  }


def test_flags_text_becomes_settings():
  assert settings.parse_config(['a=1', 'b=x=y', 'c=']) == {
    'a': '1',
    'b': 'x=y',
    'c': '',
  }
  for wrong in ('a', '=1', ''):
    with pytest.raises(ValueError, match='name=value'):
      settings.parse_config([wrong])


# ---- Schedules.


@pytest.mark.parametrize(
  ('episodes', 'expected'),
  [(0, 0.5), (666, 0.5), (667, 0.6), (5_000, 1.2), (9_999, 1.9), (10_000, 2.0)],
)
def test_linear_schedule_rises_from_one_half_to_two(episodes, expected):
  schedule = curriculum.Linear('difficulty')
  setting = schedule(curriculum.Progress(episodes, 123))
  assert {k: float(v) for k, v in setting.items()} == {'difficulty': expected}
  assert type(setting['difficulty']) is str


def test_linear_schedule_holds_its_end_and_may_fall():
  schedule = curriculum.Linear('light', 1, 0, over=100, unit='frames', stages=4)
  values = [
    float(schedule(curriculum.Progress(0, frames))['light'])
    for frames in (0, 24, 25, 50, 75, 100, 10**9)
  ]
  assert values == [1, 1, 0.75, 0.5, 0.25, 0, 0]


def test_schedule_from_text():
  assert curriculum.parse('difficulty:0.5:2.0:10000') == curriculum.Linear(
    'difficulty', 0.5, 2.0, 10_000, 'episodes'
  )
  assert curriculum.parse('a:1:2:3:frames').unit == 'frames'
  for wrong in (
    'a',
    'a:1:2',
    'a:b:2:3',
    'a:1:2:0',
    'a:1:2:3:days',
    'a:1:2:3:x:1:2',
  ):
    with pytest.raises(ValueError, match='setting:first:last:over'):
      curriculum.parse(wrong)
