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
"""Experiments on `catch`, each in its shortest form: files and tables."""

import csv
import dataclasses
import sys

import experiment
import pytest
from absl import flags
from experiments import _grid

pytestmark = pytest.mark.slow


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
  """Runs a part with one seed of ten updates; its printed table and rows."""
  monkeypatch.setattr(flags, 'FLAGS', flags.FlagValues())
  monkeypatch.setattr(sys.modules['__main__'], '__doc__', '')
  short = dataclasses.replace(
    _grid._BASE.learner, total_environment_frames=10 * _grid.FRAMES_PER_UPDATE
  )
  monkeypatch.setattr(
    _grid, '_BASE', dataclasses.replace(_grid._BASE, learner=short)
  )

  def play(part, *more):
    arguments = ['--num_seeds=1', f'--output={tmp_path}', *more]
    experiment.main(experiment.parse(['experiment.py', part, *arguments]))
    table = [
      line for line in capsys.readouterr().out.splitlines() if line[:1] == '|'
    ]
    assert (tmp_path / f'{part}.png').stat().st_size > 10_000
    with open(tmp_path / f'{part}.csv', newline='') as file:
      return table, list(csv.DictReader(file))

  return play


def test_lag(run):
  table, rows = run('lag', '--lags=1,5')
  assert len(rows) == 2 * 4
  assert len(table) == 2 + 4


def test_replay(run):
  table, rows = run('replay')
  assert len(rows) == 2 * 2
  assert len(table) == 2 + 2


def test_a2c(run):
  table, rows = run('a2c')
  assert [row['runtime'] for row in rows] == [
    'IMPALA',
    'A2C, each step',
    'A2C, each trajectory',
  ]
  assert len(table) == 2 + 3


def test_recorded(run):
  table, rows = run('recorded', '--ages=0,2,4', '--start=4', '--updates=3')
  assert len(rows) == 3 * 3
  assert len(table) == 2 + 3
  # Half-trained agents are tested before, all of a seed the same.
  assert len({row['test_return_before'] for row in rows}) == 1
  assert len({row['test_return'] for row in rows}) > 1
