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
import json
import os
import pathlib
import platform
import subprocess

import numpy as np
import pytest

from scalable_agent import config as config_lib
from scalable_agent import run_record

CONFIG = config_lib.Config(
  task=config_lib.TaskConfig(level_name='atari/pong', width=84),
  learner=config_lib.LearnerConfig(learning_rate=1e-3),
)


def starts(logdir: pathlib.Path) -> list[dict]:
  return json.loads((logdir / 'starts.json').read_text())


def git(folder, *arguments):
  identity = ['-c', 'user.name=A', '-c', 'user.email=a@example.com']
  subprocess.run(['git', '-C', folder, *identity, *arguments], check=True)


def make_checkout(folder: pathlib.Path) -> pathlib.Path:
  """A repository with a package in it, and the package's folder."""
  package = folder / 'package'
  package.mkdir(parents=True)
  (package / '__init__.py').write_text('1\n')
  git(folder, 'init', '--quiet')
  git(folder, 'add', '.')
  git(folder, 'commit', '--quiet', '--message=First')
  return package


def test_settings_come_back_as_they_were(tmp_path):
  run_record.record_start(str(tmp_path / 'new' / 'run'), CONFIG, ['train.py'])
  assert run_record.load_config(str(tmp_path / 'new' / 'run')) == CONFIG


def test_a_start_says_what_ran_where(tmp_path):
  command = ['scripts/train.py', '--level_name=atari/pong', '--width=84']
  run_record.record_start(str(tmp_path), CONFIG, command)
  (start,) = starts(tmp_path)
  assert start['command'] == command
  assert start['env_frames'] == 0
  assert start['config']['task']['level_name'] == 'atari/pong'
  assert start['python'] == platform.python_version()
  assert start['packages']['numpy'] == np.__version__
  assert start['num_cpus'] == os.cpu_count()
  assert all(start[key] for key in ('cpu', 'os'))
  assert start['time'].endswith('+00:00')


def test_a_continued_run_keeps_its_history(tmp_path):
  run_record.record_start(str(tmp_path), config_lib.Config(), ['first'])
  run_record.record_start(str(tmp_path), CONFIG, ['second'], env_frames=400)
  history = starts(tmp_path)
  assert [s['command'] for s in history] == [['first'], ['second']]
  assert [s['env_frames'] for s in history] == [0, 400]
  assert [s['config']['learner']['learning_rate'] for s in history] == [
    0.00048,
    1e-3,
  ]
  assert run_record.load_config(str(tmp_path)) == CONFIG


def test_the_process_environment_stays_out(tmp_path, monkeypatch):
  monkeypatch.setenv('SOME_TOKEN', 'tell-nobody-5713')
  monkeypatch.setenv('tell-nobody-5714', 'x')
  run_record.record_start(str(tmp_path), CONFIG, ['train.py'])
  written = b''.join(p.read_bytes() for p in tmp_path.iterdir())
  assert b'learning_rate' in written
  assert b'tell-nobody' not in written


def test_nothing_else_is_left_in_the_folder(tmp_path):
  run_record.record_start(str(tmp_path), CONFIG, [])
  names = sorted(p.name for p in tmp_path.iterdir())
  assert names == ['config.json', 'starts.json']


def test_a_failed_write_leaves_the_old_record(tmp_path, monkeypatch):
  run_record.record_start(str(tmp_path), CONFIG, ['first'])

  def fail(descriptor):
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(os, 'fsync', fail)
  with pytest.raises(OSError, match='No space left'):
    run_record.record_start(str(tmp_path), config_lib.Config(), ['second'])
  assert [s['command'] for s in starts(tmp_path)] == [['first']]
  assert run_record.load_config(str(tmp_path)) == CONFIG
  assert len(list(tmp_path.iterdir())) == 2


def test_a_damaged_history_is_named(tmp_path):
  (tmp_path / 'starts.json').write_text('{')
  with pytest.raises(ValueError, match=r'starts\.json is not JSON .* move it'):
    run_record.record_start(str(tmp_path), CONFIG, [])


def test_loading_without_a_run_is_named(tmp_path):
  with pytest.raises(ValueError, match=r'config\.json is missing'):
    run_record.load_config(str(tmp_path))


@pytest.mark.parametrize(
  'change',
  [
    lambda saved: saved['learner'].update(no_such_setting=1),
    lambda saved: saved.update(no_such_section={}),
  ],
  ids=['setting', 'section'],
)
def test_settings_of_another_version_are_refused(tmp_path, change):
  run_record.record_start(str(tmp_path), CONFIG, [])
  path = tmp_path / 'config.json'
  saved = json.loads(path.read_text())
  change(saved)
  path.write_text(json.dumps(saved))
  with pytest.raises(ValueError, match='use the version that wrote it'):
    run_record.load_config(str(tmp_path))


def test_what_is_newer_than_the_run_has_its_default(tmp_path):
  run_record.record_start(str(tmp_path), CONFIG, [])
  path = tmp_path / 'config.json'
  saved = json.loads(path.read_text())
  del saved['distributed'], saved['learner']['on_nonfinite']
  path.write_text(json.dumps(saved))
  assert run_record.load_config(str(tmp_path)) == CONFIG


def test_git_commit_and_dirty_flag(tmp_path):
  package = make_checkout(tmp_path)
  clean = run_record.git_state(str(package))
  head = (tmp_path / '.git' / 'HEAD').read_text().split()[-1]
  assert clean == {
    'commit': (tmp_path / '.git' / head).read_text().strip(),
    'dirty': False,
  }
  (package / '__init__.py').write_text('2\n')
  assert run_record.git_state(str(package)) == {**clean, 'dirty': True}


def test_installed_inside_a_foreign_repository_is_no_checkout(tmp_path):
  make_checkout(tmp_path)
  installed = tmp_path / 'venv' / 'package'
  installed.mkdir(parents=True)
  (installed / '__init__.py').write_text('1\n')
  assert run_record.git_state(str(installed)) is None


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
  package = make_checkout(tmp_path)
  monkeypatch.setenv('PATH', '')
  assert run_record.git_state(str(package)) is None
