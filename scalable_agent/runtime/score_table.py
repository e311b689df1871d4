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
"""The table of tests in a run directory: what was played, and how it went."""

import csv
import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scalable_agent import config, evaluate, files, tasks

FILE = 'test.csv'


class Row(NamedTuple):
  """One level's test.

  env_frames: that the weights were trained for.
  level: its name.
  episodes: how many were played.
  mean_return, standard_error, min_return, max_return: of their raw returns.
  mean_steps: their length in agent steps.
  human_normalized_percent: of the mean return; None where no human played.
  key: what else must be the same for a test to be the same; see `make_key`.
  """

  env_frames: int
  level: str
  episodes: int
  mean_return: float
  standard_error: float
  min_return: float
  max_return: float
  mean_steps: float
  human_normalized_percent: float | None
  key: str

  @property
  def line(self) -> str:
    """The row as a line for the user."""
    text = (
      f'{self.level}: mean return {self.mean_return:.2f} '
      f'(standard error {self.standard_error:.2f}, {self.min_return:g} to '
      f'{self.max_return:g}, {self.episodes} episodes)'
    )
    if self.human_normalized_percent is not None:
      text += f', human-normalized {self.human_normalized_percent:.1f} %'
    return text


def make_row(
  env_frames: int, result: evaluate.LevelResult, task: tasks.Task, key: str
) -> Row:
  """The row of a level that was played."""
  returns = np.asarray(result.returns)
  mean = float(returns.mean())
  error = 0.0
  if len(returns) > 1:
    error = float(returns.std(ddof=1) / len(returns) ** 0.5)
  return Row(
    env_frames,
    result.level,
    len(returns),
    mean,
    error,
    float(returns.min()),
    float(returns.max()),
    float(np.mean(result.num_steps)),
    task.human_normalized(result.level, mean),
    key,
  )


def make_key(
  settings: config.Config,
  weights: Sequence[np.ndarray],
  num_episodes: int,
  greedy: bool,
) -> str:
  """Twelve digits that differ where a test would be another one.

  Depends on the weights, on what is shown to the agent, on the network, the
  seed, the number of episodes and on how actions are chosen; not on the number
  of environments, which only decides how fast it goes.
  """
  shown = dataclasses.asdict(settings.task)
  del shown['level_name']
  parts = (
    shown,
    dataclasses.asdict(settings.dmlab),
    dataclasses.asdict(settings.agent),
    settings.run.seed,
    num_episodes,
    greedy,
  )
  digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
  for weight in weights:
    digest.update(np.ascontiguousarray(weight).tobytes())
  return digest.hexdigest()[:12]


def read(path: str) -> list[Row]:
  """The rows of a table; none if it is not there.

  Raises:
    ValueError: it is no table of tests of this version.
  """
  if not os.path.exists(path):
    return []
  with open(path, encoding='utf-8', newline='') as file:
    lines = list(csv.reader(file))
  try:
    if lines[0] != list(Row._fields):
      raise ValueError(f'its columns are {", ".join(lines[0])}')
    return [_parse(line) for line in lines[1:]]
  except (IndexError, TypeError, ValueError) as error:
    raise ValueError(
      f'{path} is no table of tests as this version writes them ({error}); '
      'move it away.'
    ) from error


def append(path: str, row: Row) -> None:
  """Adds a row to a table, with a head if it is new."""
  values = ['' if value is None else value for value in row]
  lines: list[Sequence] = [values]
  if not os.path.exists(path):
    lines = [Row._fields, values]
  text = io.StringIO()
  csv.writer(text, lineterminator='\n').writerows(lines)
  files.append(path, text.getvalue().encode())


def lines(rows: Sequence[Row], figures: Mapping[str, float]) -> list[str]:
  """The table for the user, with the suite's figures below it."""
  width = max(len(name) for name in ('level', *[r.level for r in rows]))
  width = max([width, *map(len, figures)])
  head = f'{"level":{width}} {"episodes":>8} {"return":>10} {"error":>8}'
  shown = [f'{head} {"human %":>8}', '-' * (len(head) + 9)]
  for row in rows:
    percent = row.human_normalized_percent
    shown.append(
      f'{row.level:{width}} {row.episodes:8} {row.mean_return:10.2f} '
      f'{row.standard_error:8.2f} '
      f'{"" if percent is None else format(percent, ".1f"):>8}'
    )
  if figures:
    shown.append(shown[1])
  for name, value in figures.items():
    shown.append(f'{name:{width}} {value:{len(head) + 8 - width}.1f}')
  return [line.rstrip() for line in shown]


def _parse(line: Sequence[str]) -> Row:
  frames, level, episodes, *numbers, percent, key = line
  return Row(
    int(frames),
    level,
    int(episodes),
    *map(float, numbers),
    float(percent) if percent else None,
    key,
  )
