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
"""Measurements as a table, beside older ones."""

import json
import pathlib
from collections.abc import Sequence
from typing import Any

from rich import console, table

Measurement = dict[str, Any]


def write(path: str, measurements: Sequence[Measurement]) -> None:
  """Writes a list of JSON objects, one a line."""
  lines = ',\n'.join(json.dumps(m) for m in measurements)
  pathlib.Path(path).write_text(f'[\n{lines}\n]\n')


def read(path: str) -> list[Measurement]:
  """Reads what `write` wrote; raises `ValueError` in one sentence."""
  try:
    measurements = json.loads(pathlib.Path(path).read_text())
    if all(isinstance(m, dict) for m in measurements):
      return measurements
  except (OSError, ValueError, TypeError) as error:
    raise ValueError(f'{path} cannot be read ({error}).') from error
  raise ValueError(f'{path} holds no list of measurements.')


def show(
  measurements: Sequence[Measurement], old: Sequence[Measurement] | None
) -> None:
  """Prints one row for each measurement.

  Args:
    measurements: those of now.
    old: others; each figure gets its ratio, now / then, if they have the
      measurement: the same text and whole numbers.
  """
  shown = table.Table('measured', 'on', 'figures', show_lines=True)
  then = {_key(m): m for m in old or ()}
  varied = _varied(measurements)
  for measurement in measurements:
    before = then.get(_key(measurement), {})
    settings = [f'{k}={measurement[k]}' for k in varied if k in measurement]
    figures = [
      f'{name} {value:g}{_ratio(value, before.get(name))}'
      for name, value in measurement.items()
      if isinstance(value, float)
    ]
    shown.add_row(
      measurement['benchmark'], '\n'.join(settings), '\n'.join(figures)
    )
  console.Console().print(shown)


def _ratio(value, before):
  if not before:
    return ''
  return f' (x{value / before:.3f})'


def _key(measurement):
  """What was measured: all that is not a result."""
  return frozenset(
    (k, v) for k, v in measurement.items() if not isinstance(v, float)
  )


def _varied(measurements):
  """Settings in which the measurements differ."""
  seen: dict[str, set[Any]] = {}
  for measurement in measurements:
    for name, value in measurement.items():
      if not isinstance(value, float) and name != 'benchmark':
        seen.setdefault(name, set()).add(value)
  return [name for name, values in seen.items() if len(values) > 1]
