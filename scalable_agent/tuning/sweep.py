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
"""A sweep in its folder: plan it once, run or resume it, sum it up."""

import csv
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scalable_agent import files
from scalable_agent.reports import curves, runs
from scalable_agent.tuning import trials

PLAN_FILE = 'sweep.json'
TABLE_FILE = 'sweep.csv'


class Row(NamedTuple):
  """One trial of the table.

  trial: name of its directory.
  settings: those that differ from trial to trial, at the end.
  progress: how far it came.
  returns: by level, mean of the last episodes.
  status: 'done', 'failed' or 'unfinished'.
  reason: why it failed; else ''.
  """

  trial: str
  settings: Mapping[str, str]
  progress: trials.Progress
  returns: Mapping[str, float]
  status: str
  reason: str


def prepare(
  folder: str, base: Sequence[str], combinations: Sequence[Mapping[str, str]]
) -> list[str]:
  """Makes the directories of the trials, or finds them as they were left.

  Args:
    folder: of the sweep.
    base: flags that all trials have.
    combinations: the settings of each trial.

  Returns:
    Their paths, absolute.

  Raises:
    ValueError: another sweep is in `folder`.
  """
  folder = os.path.abspath(folder)
  plan = {'flags': list(base), 'trials': [dict(c) for c in combinations]}
  path = os.path.join(folder, PLAN_FILE)
  if os.path.exists(path):
    with open(path, encoding='utf-8') as file:
      if json.load(file) != plan:
        raise ValueError(
          f'{folder} holds a sweep of other settings; resume it with the flags '
          'it was started with, or choose another --logdir.'
        )
  digits = len(str(len(combinations) - 1))
  paths = [
    os.path.join(folder, f'trial_{index:0{digits}}')
    for index in range(len(combinations))
  ]
  for trial, settings in zip(paths, combinations, strict=True):
    if not trials.has_state(trial):
      trials.write_state(trial, base, trials.State(settings))
  files.write_atomically(path, (json.dumps(plan, indent=2) + '\n').encode())
  return paths


def rows(
  paths: Sequence[str],
  errors: Mapping[int, str],
  total_frames: int,
  window: int,
) -> list[Row]:
  """What became of the trials, the best first.

  Args:
    paths: of the trials.
    errors: why trials failed, by index.
    total_frames: that each was to train.
    window: episodes per level that a return or a fitness is a mean of.
  """
  found = []
  for index, path in enumerate(paths):
    state = trials.read_state(path)
    progress = trials.progress(path, window)
    status = 'done' if progress.env_frames >= total_frames else 'unfinished'
    found.append(
      Row(
        os.path.basename(path),
        state.settings,
        progress,
        _returns(path, window),
        'failed' if index in errors else status,
        errors.get(index, ''),
      )
    )
  return sorted(found, key=_fitness, reverse=True)


def write_table(folder: str, found: Sequence[Row]) -> str:
  """Writes sweep.csv; returns its path."""
  text = io.StringIO()
  csv.writer(text, lineterminator='\n').writerows(_cells(found))
  path = os.path.join(folder, TABLE_FILE)
  files.write_atomically(path, text.getvalue().encode())
  return path


def lines(found: Sequence[Row]) -> list[str]:
  """The table for the user."""
  cells = [[_short(value) for value in row] for row in _cells(found)]
  widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
  return [
    '  '.join(
      f'{cell:{w}}' for cell, w in zip(row, widths, strict=True)
    ).rstrip()
    for row in cells
  ]


def _fitness(row: Row) -> float:
  """For sorting: a trial without an episode comes last."""
  fitness = row.progress.fitness
  return -math.inf if math.isnan(fitness) else fitness


def _cells(found: Sequence[Row]) -> list[list[Any]]:
  names = list(dict.fromkeys(name for row in found for name in row.settings))
  levels = list(dict.fromkeys(level for row in found for level in row.returns))
  head = ['trial', 'status', 'env_frames', 'episodes', 'fitness', *levels]
  table: list[list[Any]] = [[*head, *names, 'reason']]
  for row in found:
    returns = [row.returns.get(level, '') for level in levels]
    settings = [row.settings.get(name, '') for name in names]
    table.append(
      [row.trial, row.status, *row.progress, *returns, *settings, row.reason]
    )
  return table


def _short(value: Any) -> str:
  """A cell for the terminal: numbers with four digits, text cut."""
  try:
    number = float(value)
  except ValueError:
    return value if len(value) <= 60 else value[:57] + '...'
  return f'{number:,.0f}' if number.is_integer() else f'{number:.4g}'


def _returns(path: str, window: int) -> dict[str, float]:
  try:
    run = runs.read(path)
  except (FileNotFoundError, ValueError):
    return {}
  return {k: curves.final_return(run, k, window) for k in run.curves}
