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
"""The level cache under many processes and bad disks; filling it ahead."""

import hashlib
import logging
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import time

import pytest
from fake_deepmind_lab import lab_double

from scalable_agent.dmlab30 import cache_filler, environment, level_cache
from scalable_agent.dmlab30 import settings as settings_lib

COMPILED = 'explore_goal_locations_small'
SPAWN = multiprocessing.get_context('spawn')


def maps(folder):
  return [f for f in pathlib.Path(folder).rglob('*') if f.is_file()]


def write_text(cache, key, text, folder):
  source = pathlib.Path(folder) / 'source'
  source.write_text(text)
  return cache.write(key, str(source))


def test_what_was_written_is_fetched(tmp_path):
  cache = level_cache.LevelCache(str(tmp_path / 'not' / 'there' / 'yet'))
  target = tmp_path / 'map.pk3'
  assert cache.fetch('key', str(target)) is False
  assert not target.exists()
  assert write_text(cache, 'key', 'a map', tmp_path) is True
  assert cache.fetch('key', str(target)) is True
  assert target.read_text() == 'a map'
  assert cache.fetch('another', str(target)) is False


@pytest.mark.parametrize('key', ['../up', 'a/b', 'a' * 300, 'm\u00e4p', '.'])
def test_any_key_stays_in_the_folder(tmp_path, key):
  cache = level_cache.LevelCache(str(tmp_path / 'cache'))
  assert write_text(cache, key, key, tmp_path)
  target = tmp_path / 'map'
  assert cache.fetch(key, str(target))
  assert target.read_text() == key
  assert len(maps(tmp_path / 'cache')) == 1


def test_cache_travels_to_processes(tmp_path):
  cache = pickle.loads(pickle.dumps(level_cache.LevelCache(str(tmp_path))))
  assert cache.path('key').startswith(str(tmp_path))


@pytest.mark.parametrize(
  ('folder', 'max_bytes'), [('', 1), ('x', 0)], ids=['folder', 'bytes']
)
def test_wrong_arguments(folder, max_bytes):
  with pytest.raises(ValueError):
    level_cache.LevelCache(folder, max_bytes)


# ---- Several processes.

# Several copying chunks long, so that a half file is likely to be caught.
_BYTES = 3 * 2**20


def _content(writer):
  return hashlib.sha256(str(writer).encode()).digest() * (_BYTES // 32)


def _write_again_and_again(folder, writer, started):
  source = pathlib.Path(folder) / f'source{writer}'
  source.write_bytes(_content(writer))
  cache = level_cache.LevelCache(os.path.join(folder, 'cache'))
  started.set()
  while True:
    cache.write('key', str(source))


def test_two_write_while_a_third_fetches_whole_files_only(tmp_path):
  started = [SPAWN.Event(), SPAWN.Event()]
  writers = [
    SPAWN.Process(
      target=_write_again_and_again, args=(str(tmp_path), i, started[i])
    )
    for i in range(2)
  ]
  for writer in writers:
    writer.start()
  try:
    assert all(event.wait(30) for event in started)
    cache = level_cache.LevelCache(str(tmp_path / 'cache'))
    target, whole = tmp_path / 'target', {_content(0), _content(1)}
    seen = set()
    deadline = time.monotonic() + 60
    fetched = 0
    while (fetched < 30 or len(seen) < 2) and time.monotonic() < deadline:
      if cache.fetch('key', str(target)):
        fetched += 1
        content = target.read_bytes()
        assert content in whole
        seen.add(content)
    assert len(seen) == 2
  finally:
    for writer in writers:
      writer.kill()
      writer.join()
  # Writers killed in the middle leave no name behind that could be fetched.
  named = [f for f in maps(tmp_path / 'cache') if f.suffix == '.pk3']
  assert [f.read_bytes() in whole for f in named] == [True]


def test_fetch_that_fails_in_the_middle_leaves_nothing(tmp_path, monkeypatch):
  cache = level_cache.LevelCache(str(tmp_path / 'cache'))
  write_text(cache, 'key', 'a map', tmp_path)

  def break_off(source, target, length):
    target.write(source.read(2))
    raise OSError('the disk went away')

  monkeypatch.setattr(level_cache.shutil, 'copyfileobj', break_off)
  lab_folder = tmp_path / 'lab'
  lab_folder.mkdir()
  assert cache.fetch('key', str(lab_folder / 'map.pk3')) is False
  assert os.listdir(lab_folder) == []


# ---- Bad disks.


def warnings_of(caplog):
  return [r for r in caplog.records if r.levelno == logging.WARNING]


def test_a_folder_that_is_none_is_said_once(tmp_path, caplog):
  (tmp_path / 'file').write_text('not a folder')
  cache = level_cache.LevelCache(str(tmp_path / 'file' / 'cache'))
  for _ in range(3):
    assert cache.fetch('key', str(tmp_path / 'map')) is False
    assert write_text(cache, 'key', 'a map', tmp_path) is False
  texts = [r.getMessage() for r in warnings_of(caplog)]
  assert len(texts) == 2
  assert 'cannot read' in texts[0]
  assert 'cannot write' in texts[1]


def test_a_map_that_cannot_be_read_is_compiled_again(tmp_path, caplog):
  cache = level_cache.LevelCache(str(tmp_path / 'cache'))
  os.makedirs(cache.path('key'))  # Root may read any file, but no folder.
  assert cache.fetch('key', str(tmp_path / 'map')) is False
  assert len(warnings_of(caplog)) == 1


_FULL = """
import pathlib, resource, sys
from scalable_agent.dmlab30 import level_cache
folder = pathlib.Path(sys.argv[1])
source = folder / 'source'
source.write_bytes(b'x' * 200_000)
cache = level_cache.LevelCache(str(folder / 'cache'))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
print(cache.write('key', str(source)), cache.write('key', str(source)))
print(cache.fetch('key', str(folder / 'target')))
"""


def test_a_disk_that_takes_no_more_is_no_error(tmp_path):
  done = subprocess.run(
    [sys.executable, '-c', _FULL, str(tmp_path)],
    capture_output=True,
    text=True,
    check=True,
  )
  assert done.stdout.split() == ['False', 'False', 'False']
  assert done.stderr.count('cannot write') == 1
  assert maps(tmp_path / 'cache') == []


def test_training_goes_on_without_a_usable_cache(monkeypatch, tmp_path):
  lab_double.install(monkeypatch, episode_seconds=0.1)
  (tmp_path / 'file').write_text('not a folder')
  settings = settings_lib.LabSettings(level_cache_dir=str(tmp_path / 'file'))
  env = environment.LabFactory(COMPILED, settings)(seed=1)
  assert [env.reset().first() for _ in range(3)] == [True] * 3
  env.close()


# ---- Bounded size.


def test_maps_longest_unused_go_first(tmp_path):
  cache = level_cache.LevelCache(str(tmp_path / 'cache'), max_bytes=300)
  for age, key in enumerate(('a', 'b', 'c')):
    write_text(cache, key, 'x' * 100, tmp_path)
    os.utime(cache.path(key), (1000 + age, 1000 + age))
  assert cache.fetch('a', str(tmp_path / 'map'))  # Used just now.
  write_text(cache, 'd', 'x' * 150, tmp_path)
  there = [k for k in 'abcd' if os.path.exists(cache.path(k))]
  assert there == ['a', 'd']


def test_a_map_larger_than_the_cache_is_kept_alone(tmp_path):
  cache = level_cache.LevelCache(str(tmp_path / 'cache'), max_bytes=10)
  write_text(cache, 'a', 'x' * 5, tmp_path)
  write_text(cache, 'b', 'x' * 50, tmp_path)
  assert not os.path.exists(cache.path('a'))
  assert cache.fetch('b', str(tmp_path / 'map'))


def test_copies_left_by_the_killed_are_removed(tmp_path):
  cache = level_cache.LevelCache(str(tmp_path / 'cache'))
  write_text(cache, 'a', 'x', tmp_path)
  folder = pathlib.Path(cache.path('a')).parent
  old, new = folder / 'old.part', folder / 'new.part'
  old.touch()
  new.touch()
  os.utime(old, (1000, 1000))
  write_text(cache, 'b', 'x', tmp_path)
  assert not old.exists()
  assert new.exists()


# ---- With Lab.


@pytest.fixture(name='lab')
def fixture_lab(monkeypatch):
  return lab_double.install(monkeypatch, episode_seconds=0.1)


def lab_settings(tmp_path, **kwargs):
  return settings_lib.LabSettings(
    width=32, height=24, level_cache_dir=str(tmp_path / 'cache'), **kwargs
  )


def test_environments_share_maps(lab, tmp_path, monkeypatch):
  make = environment.LabFactory(COMPILED, lab_settings(tmp_path))
  fetched = []
  fetch = level_cache.LevelCache.fetch
  monkeypatch.setattr(
    level_cache.LevelCache,
    'fetch',
    lambda *args: fetched.append(fetch(*args)) or fetched[-1],
  )
  for _ in range(2):
    env = make(seed=1)
    for _ in range(3):
      env.reset()
    env.close()
  assert fetched == 3 * [False] + 3 * [True]
  assert len(maps(tmp_path / 'cache')) == 3


def fill(tmp_path, names, **kwargs):
  reports = []
  progress = cache_filler.fill(
    names,
    lab_settings(tmp_path, **kwargs),
    num_workers=2,
    report=lambda progress, seconds: reports.append(progress.done),
  )
  assert reports[-1] == progress.total
  return progress


def test_filled_maps_are_the_ones_that_are_played(lab, tmp_path, monkeypatch):
  names = [COMPILED, 'rooms_watermaze', 'lasertag_one_opponent_small']
  progress = fill(tmp_path, names, num_level_seeds=3)
  assert (progress.compiled, progress.present, progress.failed) == (6, 0, 0)
  assert len(maps(tmp_path / 'cache')) == 6
  again = fill(tmp_path, names, num_level_seeds=4)
  assert (again.compiled, again.present, again.failed) == (2, 6, 0)

  def no_write(*args):
    raise AssertionError('A map was compiled.')

  monkeypatch.setattr(level_cache.LevelCache, 'write', no_write)
  settings = lab_settings(tmp_path, num_level_seeds=4)
  env = environment.LabFactory(COMPILED, settings)(seed=1)
  for _ in range(10):
    env.reset()
  env.close()


def test_a_level_that_fails_costs_only_itself(lab, tmp_path):
  progress = fill(tmp_path, [COMPILED, 'no/such/level'], num_level_seeds=2)
  assert (progress.compiled, progress.failed) == (2, 2)
  [failure] = progress.failures
  assert 'no/such/level: 2 maps not made' in failure
  assert 'Level not found' in failure


def test_a_full_disk_is_a_failure_of_the_filling(lab, tmp_path):
  (tmp_path / 'cache').write_text('not a folder')
  progress = fill(tmp_path, [COMPILED], num_level_seeds=2)
  assert (progress.compiled, progress.failed) == (0, 2)
  assert 'takes no more maps' in progress.failures[0]


def test_filling_wants_a_folder_and_a_number(tmp_path):
  for settings in (
    settings_lib.LabSettings(num_level_seeds=1),
    settings_lib.LabSettings(level_cache_dir=str(tmp_path)),
  ):
    with pytest.raises(ValueError, match='give both'):
      cache_filler.fill([COMPILED], settings, 1, print)


def run_script(*args):
  script = pathlib.Path(__file__).parents[1] / 'scripts/fill_level_cache.py'
  return subprocess.run(
    [sys.executable, str(script), *args],
    env=lab_double.environ(),
    capture_output=True,
    text=True,
    timeout=120,
    check=False,
  )


def test_script_fills_and_says_how_far_it_is(tmp_path):
  done = run_script(
    f'--level_name={COMPILED},rooms_watermaze,skymaze_irreversible_path_hard',
    '--mode=test',
    f'--level_cache_dir={tmp_path}',
    '--num_level_seeds=1',
    '--num_workers=2',
    '--lab_setting=episodeLengthSeconds=1',
  )
  assert done.returncode == 0, done.stderr
  assert '2/2 maps: 2 compiled, 0 there before, 0 failed' in done.stdout
  assert len(maps(tmp_path)) == 2


@pytest.mark.parametrize(
  ('flag', 'words'),
  [
    ('--level_name=rooms_keys_doors_puzle', 'rooms_keys_doors_puzzle'),
    ('--lab_setting=width=3', 'use width'),
    ('--lab_setting=width', 'name=value'),
  ],
)
def test_script_answers_mistakes_in_one_line(tmp_path, flag, words):
  done = run_script(f'--level_cache_dir={tmp_path}', flag)
  assert done.returncode == 2
  assert words in done.stderr
  assert done.stderr.count('\n') == 1
