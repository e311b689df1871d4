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
"""Return on `catch` against an artificial policy lag, for each correction.

    python scripts/experiment.py lag --output=/tmp/lag

Actors see weights that are exactly so many updates old; all else is the same.
Writes lag.csv (a row per run) and lag.png, and prints a table.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import flags

from experiments import _grid
from scalable_agent import config

CORRECTIONS = config.CORRECTIONS


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of all grids, and the lags."""
  _grid.define_flags(flag_values)
  flags.DEFINE_list(
    'lags',
    ['1', '5', '20', '50'],
    'Policy lags, separated by commas. Unit: updates.',
    flag_values=flag_values,
  )


def run(flag_values: flags.FlagValues) -> Iterator[str]:
  """Trains all cells, then tells."""
  lags = [int(lag) for lag in flag_values.lags]
  cells = [
    _grid.Cell(
      f'{correction}_lag{lag}',
      actor={'policy_lag': lag},
      learner={'correction': correction},
    )
    for lag in lags
    for correction in CORRECTIONS
  ]
  found: dict[tuple[str, int], list[float]] = {}
  rows: list[list[Any]] = []
  output = flag_values.output
  for cell, seed, value in _grid.run(cells, output, flag_values.num_seeds):
    key = cell.learner['correction'], cell.actor['policy_lag']
    found.setdefault(key, []).append(value)
    rows.append([*key, seed, round(value, 4)])
    _grid.write_table(
      os.path.join(output, 'lag.csv'),
      ['correction', 'policy_lag', 'seed', 'final_return'],
      rows,
    )
  yield from _table(found, lags)
  path = os.path.join(output, 'lag.png')
  _draw(found, lags, path)
  yield f'Wrote {path}.'


def _table(found, lags):
  yield '| correction | ' + ' | '.join(f'lag {lag}' for lag in lags) + ' |'
  yield '|---|' + '--:|' * len(lags)
  for correction in CORRECTIONS:
    cells = [_grid.spread(found[correction, lag]) for lag in lags]
    yield f'| {correction} | ' + ' | '.join(cells) + ' |'


def _draw(found, lags, path):
  """Means as lines, single seeds as points."""
  import matplotlib

  matplotlib.use('Agg')
  from matplotlib import pyplot

  figure, axes = pyplot.subplots(figsize=(6, 4), layout='constrained')
  for i, correction in enumerate(CORRECTIONS):
    means = [np.mean(found[correction, lag]) for lag in lags]
    (line,) = axes.plot(range(len(lags)), means, label=correction)
    for x, lag in enumerate(lags):
      values = found[correction, lag]
      # Side by side, or they would hide one another.
      places = np.full(len(values), x + 0.05 * (i - 1.5))
      axes.plot(places, values, '.', color=line.get_color(), alpha=0.6)
  axes.set_xticks(range(len(lags)), [str(lag) for lag in lags])
  axes.set_xlabel('policy lag (updates)')
  axes.set_ylabel('mean return of the last 500 episodes')
  axes.set_ylim(-1.05, 1.05)
  axes.grid(alpha=0.3)
  axes.legend()
  figure.savefig(path, dpi=120)
