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
"""Return after learning from recorded unrolls alone, against their age.

    python scripts/experiment.py recorded --output=/tmp/recorded

An agent that has half learned `catch` goes on without playing, from unrolls
that the agent of so many updates ago has recorded, frozen. All else is the
same: weights to start with, number of unrolls, updates. Writes recorded.csv (a
row per run) and recorded.png, and prints a table.
"""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import config_flags
import numpy as np
from absl import flags

from experiments import _grid

CORRECTIONS = ('vtrace', 'one_step', 'none')
_NUM_RECORDED = 100
_NUM_EPISODES = 500


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of all grids, ages, and numbers of updates."""
  _grid.define_flags(flag_values)
  flags.DEFINE_list(
    'ages',
    ['0', '10', '30', '60', '90'],
    'Ages of the recorded data, separated by commas, none above --start. '
    'Unit: updates.',
    flag_values=flag_values,
  )
  for name, default, meaning in (
    ('start', 90, 'Updates of the agent that goes on.'),
    ('updates', 60, 'Updates on recorded unrolls.'),
  ):
    flags.DEFINE_integer(
      name,
      default,
      meaning + ' Unit: updates.',
      lower_bound=1,
      flag_values=flag_values,
    )


def run(flag_values: flags.FlagValues) -> Iterator[str]:
  """Trains, records, trains on the records, then tells."""
  ages = [int(age) for age in flag_values.ages]
  start, output = flag_values.start, flag_values.output
  if max(ages) > start:
    config_flags.fail(f'ages has {max(ages)}, above start ({start}); lower it.')
  found: dict[tuple[str, int], list[float]] = {}
  before: list[float] = []
  rows: list[list[Any]] = []
  for seed in range(1, flag_values.num_seeds + 1):
    study = _Study(output, seed, start, flag_values.updates)
    before.append(study.test_start())
    for age in ages:
      for correction in CORRECTIONS:
        value = study.learn(age, correction)
        found.setdefault((correction, age), []).append(value)
        rows.append([correction, age, seed, value, before[-1]])
    _grid.write_table(
      os.path.join(output, 'recorded.csv'),
      ['correction', 'age', 'seed', 'test_return', 'test_return_before'],
      rows,
    )
  yield f'Before: {_grid.spread(before)}'
  yield '| correction | ' + ' | '.join(f'age {age}' for age in ages) + ' |'
  yield '|---|' + '--:|' * len(ages)
  for correction in CORRECTIONS:
    cells = [_grid.spread(found[correction, age]) for age in ages]
    yield f'| {correction} | ' + ' | '.join(cells) + ' |'
  path = os.path.join(output, 'recorded.png')
  _draw(found, ages, before, path)
  yield f'Wrote {path}.'


class _Study:
  """One seed: an agent, its former selves, and what they recorded."""

  def __init__(self, output, seed, start, num_updates):
    self._output = output
    self._seed = seed
    self._start = start
    self._num_updates = num_updates
    self._checkpoints = self._source()

  def _logdir(self, name):
    return os.path.join(self._output, f'{name}_seed{self._seed}')

  def _source(self):
    """Checkpoints of an ordinary run by number of updates, one each."""
    from scalable_agent import checkpoint

    logdir = self._logdir('source')
    every = {'checkpoint_secs': 0.0, 'checkpoints_kept': 1000}
    _grid.train(_grid.Cell('source', run=every), self._seed, logdir)
    found = {}
    for entry in os.scandir(logdir):
      if entry.name.startswith('checkpoint-'):
        counters = checkpoint.read(entry.path).counters
        found[counters['learner']['num_updates']] = entry.path
    return found

  def _train(self, name, num_before, num_updates, learning_rate, **more):
    """Trains from a checkpoint of the source; settings and their run."""
    logdir = self._logdir(name)
    if num_before and not os.path.exists(logdir):
      os.makedirs(logdir)
      shutil.copy(
        self._checkpoints[num_before],
        os.path.join(logdir, 'checkpoint-00000000.npz'),
      )
    num_updates += num_before
    learner = {
      'total_environment_frames': num_updates * _grid.FRAMES_PER_UPDATE,
      'learning_rate': learning_rate,
    }
    cell = _grid.Cell(
      name,
      learner=learner | more.get('learner', {}),
      run=more.get('run', {}),
    )
    return _grid.train(cell, self._seed, logdir)

  def _record(self, age):
    """Folder of what the agent of `age` updates ago plays, frozen."""
    folder = os.path.join(self._logdir(f'age{age}'), 'unrolls')
    self._train(
      f'age{age}',
      self._start - age,
      _NUM_RECORDED,
      learning_rate=0.0,
      run={'record_unrolls': folder},
    )
    return folder

  def learn(self, age, correction):
    """Return in tests after learning from records of that age."""
    # The rate falls to zero at the last frame: here it begins at its full.
    share = self._num_updates / (self._start + self._num_updates)
    settings = self._train(
      f'{correction}_age{age}',
      self._start,
      self._num_updates,
      learning_rate=_grid.LEARNING_RATE / share,
      learner={'from_unrolls': self._record(age), 'correction': correction},
    )
    return _test(settings)

  def test_start(self):
    """Return in tests of the agent that goes on."""
    return _test(self._train('start', self._start, 0, learning_rate=0.0))


def _test(settings):
  from scalable_agent.runtime import testing

  (row,) = testing.run_test(settings, _NUM_EPISODES, say=lambda line: None)
  return row.mean_return


def _draw(found, ages, before, path):
  """Means as lines, single seeds as points."""
  import matplotlib

  matplotlib.use('Agg')
  from matplotlib import pyplot

  figure, axes = pyplot.subplots(figsize=(6, 4), layout='constrained')
  axes.axhline(np.mean(before), color='grey', linestyle='--', label='before')
  for correction in CORRECTIONS:
    means = [np.mean(found[correction, age]) for age in ages]
    (line,) = axes.plot(ages, means, label=correction)
    for age in ages:
      values = found[correction, age]
      axes.plot([age] * len(values), values, '.', color=line.get_color())
  axes.set_xlabel('age of the recorded unrolls (updates)')
  axes.set_ylabel('mean return of 500 test episodes')
  axes.set_ylim(-1.05, 1.05)
  axes.grid(alpha=0.3)
  axes.legend()
  figure.savefig(path, dpi=120)
