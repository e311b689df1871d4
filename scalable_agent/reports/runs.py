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
"""Reads run directories: settings, metrics and tests."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from scalable_agent import config, metrics, run_record
from scalable_agent.runtime import score_table, training

_RETURN = '/episode_return'
_COUNT = '/num_episodes'


class Curve(NamedTuple):
  """What one run did on one level; each entry is an interval of training.

  frames: `[N]`, environment frames of all levels at the interval's end.
  hours: `[N]`, of training until then.
  returns: `[N]`, mean raw return of the episodes that ended.
  episodes: `[N]`, how many these were.
  """

  frames: np.ndarray
  hours: np.ndarray
  returns: np.ndarray
  episodes: np.ndarray


class Run(NamedTuple):
  """A run directory.

  path: of the directory.
  settings: by name, all sections together; defaults where it predates one.
  series: `[N]` float64 per column of metrics.csv, NaN where a cell is empty.
  curves: by level, those that finished an episode.
  tests: rows of test.csv.
  """

  path: str
  settings: dict[str, Any]
  series: dict[str, np.ndarray]
  curves: dict[str, Curve]
  tests: list[score_table.Row]

  @property
  def name(self) -> str:
    """The directory's own name."""
    return os.path.basename(os.path.normpath(self.path))


def find(paths: Sequence[str]) -> list[str]:
  """Run directories: `paths`, and those inside of `paths` that are none.

  Raises:
    ValueError: one of `paths` is no run and holds none.
  """
  found = []
  for path in paths:
    if _is_run(path):
      inside = [path]
    elif os.path.isdir(path):
      folders = (os.path.join(path, name) for name in sorted(os.listdir(path)))
      inside = [folder for folder in folders if _is_run(folder)]
    else:
      inside = []
    if not inside:
      raise ValueError(
        f'{path} is no run and holds none: there is no {training.CSV_FILE}; '
        'name a directory that scripts/train.py or scripts/sweep.py wrote.'
      )
    found += [run for run in inside if run not in found]
  return found


def read(path: str) -> Run:
  """Reads a run, finished or not.

  Raises:
    ValueError: no episode has ended, or a file is not what it should be.
  """
  columns, rows = metrics.read_table(os.path.join(path, training.CSV_FILE))
  series = {
    name: np.array([float(row.get(name) or 'nan') for row in rows])
    for name in columns
  }
  levels = [c.removesuffix(_RETURN) for c in columns if c.endswith(_RETURN)]
  curves = {level: _curve(series, level) for level in levels}
  curves = {k: curve for k, curve in curves.items() if len(curve.frames)}
  if not curves:
    raise ValueError(f'No episode has ended in {path}; train longer.')
  tests = score_table.read(os.path.join(path, score_table.FILE))
  return Run(path, _settings(path), series, curves, tests)


def training_hours(series: Mapping[str, np.ndarray]) -> np.ndarray:
  """`[N]`, hours of training at each row: pauses between starts not counted."""
  frames = np.diff(series['env_frames'], prepend=0.0)
  speed = series.get('frames_per_sec', np.full(len(frames), np.nan))
  seconds = np.divide(frames, speed, where=speed > 0, out=np.zeros(len(frames)))
  return np.cumsum(seconds) / 3600


def _is_run(path: str) -> bool:
  return os.path.isfile(os.path.join(path, training.CSV_FILE))


def _curve(series: Mapping[str, np.ndarray], level: str) -> Curve:
  returns = series[level + _RETURN]
  there = ~np.isnan(returns)
  counts = series[level + _COUNT][there]
  return Curve(
    series['env_frames'][there],
    training_hours(series)[there],
    returns[there],
    # An interval that a crash cut from the table may leave a difference of 0.
    np.maximum(np.diff(counts, prepend=0.0), 1.0),
  )


def _settings(path: str) -> dict[str, Any]:
  settings = {
    field.name: field.default
    for section in dataclasses.fields(config.Config)
    for field in dataclasses.fields(section.type)  # type: ignore[arg-type]
  }
  name = os.path.join(path, run_record.CONFIG_FILE)
  try:
    with open(name, encoding='utf-8') as file:
      for section in json.load(file).values():
        settings.update(section)
  except (OSError, ValueError, AttributeError, TypeError) as error:
    raise ValueError(
      f'{name} holds no settings ({error}); it is written as a run starts.'
    ) from error
  return settings
