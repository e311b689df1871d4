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
"""What a sweep notes beside its runs: its table, and who copied whom."""

import csv
import json
import os
from typing import NamedTuple

from scalable_agent.reports import page

TABLE_FILE = 'sweep.csv'
HISTORY_FILE = 'history.jsonl'


class Turn(NamedTuple):
  """One turn of a trial in population based training.

  trial: index of the trial.
  turn: how many it had before.
  env_frames, episodes: that it had trained and finished.
  fitness: its own.
  compared_with, its_fitness: the other trial, and that one's.
  copied: whether that one's weights and settings were taken.
  before, after: the settings that can change.
  """

  trial: int
  turn: int
  env_frames: int
  episodes: int
  fitness: float
  compared_with: int
  its_fitness: float
  copied: bool
  before: dict[str, float]
  after: dict[str, float]


def read_history(folder: str) -> list[Turn]:
  """The turns of the population in `folder`, in their order; [] if none.

  A turn that a crash made necessary again counts as it came out last.

  Raises:
    ValueError: the file holds something else.
  """
  if not is_population(folder):
    return []
  path = os.path.join(folder, HISTORY_FILE)
  with open(path, encoding='utf-8') as file:
    text = file.read()
  turns: dict[tuple[int, int], Turn] = {}
  try:
    for line in text[: text.rfind('\n') + 1].splitlines():
      turn = Turn(**json.loads(line))
      turns.pop((turn.trial, turn.turn), None)
      turns[turn.trial, turn.turn] = turn
  except (TypeError, ValueError) as error:
    raise ValueError(
      f'{path} is no history of a population ({error}); move it away.'
    ) from error
  return list(turns.values())


def is_population(folder: str) -> bool:
  """Whether trials in `folder` copied one another and changed settings."""
  return os.path.exists(os.path.join(folder, HISTORY_FILE))


def read_table(folder: str) -> page.Table | None:
  """The table that scripts/sweep.py wrote into `folder`, or None."""
  path = os.path.join(folder, TABLE_FILE)
  if not os.path.exists(path):
    return None
  with open(path, encoding='utf-8', newline='') as file:
    lines = [[_number(cell) for cell in line] for line in csv.reader(file)]
  return page.Table([str(name) for name in lines[0]], lines[1:])


def history_table(turns: list[Turn]) -> page.Table:
  """Turns as a table, one column per setting."""
  names = list(turns[0].after)
  columns = ['trial', 'turn', 'env_frames', 'episodes', 'fitness']
  columns += ['compared with', 'its fitness', 'copied', *names]
  return page.Table(
    columns,
    [
      [*t[:7], 'yes' if t.copied else 'no', *(t.after[n] for n in names)]
      for t in turns
    ],
  )


def _number(cell: str) -> str | float | int | None:
  """A cell as what it stands for; None where it is empty."""
  if not cell:
    return None
  for kind in (int, float):
    try:
      return kind(cell)
    except ValueError:
      pass
  return cell
