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
"""Combinations of settings: a grid, and draws made beforehand.

All of a sweep's combinations are drawn before its first run, from one seed: the
paper compares agents on identical ones (section 5.2.1 and Table D.1).
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

# Table D.1 of the paper.
TABLE_D1 = (
  'learning_rate=log_uniform:5e-6:5e-3',
  'entropy_cost=log_uniform:5e-5:1e-2',
  'epsilon=choice:0.1:0.001:1e-5:1e-7',
)
# Of the same table: how many are drawn.
NUM_SAMPLES = 24


class LogUniform(NamedTuple):
  """Numbers whose logarithm is uniform between those of `low` and `high`."""

  low: float
  high: float

  def draw(self, rng: np.random.Generator) -> str:
    """One of them, as a flag takes it."""
    return repr(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))


class Choice(NamedTuple):
  """One of some values, each as likely as the others."""

  values: tuple[str, ...]

  def draw(self, rng: np.random.Generator) -> str:
    """One of them."""
    return self.values[rng.integers(len(self.values))]


def parse_draw(text: str) -> tuple[str, LogUniform | Choice]:
  """Reads `NAME=log_uniform:LOW:HIGH` or `NAME=choice:VALUE:VALUE...`.

  Raises:
    ValueError: it is neither.
  """
  name, _, spec = text.partition('=')
  kind, *values = spec.split(':')
  if name and kind == 'log_uniform' and len(values) == 2:
    try:
      low, high = map(float, values)
    except ValueError:
      low, high = 0.0, 0.0
    if 0 < low < high < math.inf:
      return name, LogUniform(low, high)
  if name and kind == 'choice' and values and all(values):
    return name, Choice(tuple(values))
  raise ValueError(
    f'{text!r} says not what to draw; give NAME=log_uniform:LOW:HIGH with '
    '0 < LOW < HIGH, or NAME=choice:VALUE:VALUE.'
  )


def parse_grid(text: str) -> tuple[str, tuple[str, ...]]:
  """Reads `NAME=VALUE,VALUE...`.

  Raises:
    ValueError: it is not that.
  """
  name, _, values = text.partition('=')
  if not name or not values or not all(values.split(',')):
    raise ValueError(f'{text!r} is no part of a grid; give NAME=VALUE,VALUE.')
  return name, tuple(values.split(','))


def combinations(
  draws: Mapping[str, LogUniform | Choice],
  grid: Mapping[str, Sequence[str]],
  num_samples: int,
  seed: int,
) -> list[dict[str, str]]:
  """All settings of a sweep: every draw at every point of the grid.

  Args:
    draws: what to draw, by name. Without any there is one "draw".
    grid: values by name. The same draws are made at each of its points.
    num_samples: how many draws; the first ones stay when this is raised.
    seed: of the draws.

  Raises:
    ValueError: a name is in both.
  """
  if both := set(draws) & set(grid):
    raise ValueError(f'{both.pop()} is both drawn and in the grid; choose one.')
  rng = np.random.default_rng(seed)
  samples = [
    {name: draw.draw(rng) for name, draw in draws.items()}
    for _ in range(num_samples if draws else 1)
  ]
  points = [
    dict(zip(grid, values, strict=True))
    for values in itertools.product(*grid.values())
  ]
  return [{**point, **sample} for point in points for sample in samples]
