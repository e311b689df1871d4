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
"""Scores of runs beside random play, humans and the paper's agents."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scalable_agent.reports import curves, published, runs

# Table 2 of the paper averages the three best of a sweep's settings.
BEST = 3


class Score(NamedTuple):
  """How a group did on a level.

  label, level: the group, and where.
  mean: of its runs' mean returns.
  deviation: standard deviation over runs; 0 for one run.
  runs: how many there are.
  episodes: over how many each of them is taken.
  tested: they are test episodes; else the last ones of training.
  percent: human-normalized; NaN where no human played.
  reference: what to compare with; None where no human played.
  """

  label: str
  level: str
  mean: float
  deviation: float
  runs: int
  episodes: int
  tested: bool
  percent: float
  reference: published.Reference | None


class Figures(NamedTuple):
  """Percent of humans over some levels of a suite.

  label: the group, or the agent of the paper.
  suite: 'atari57' or 'dmlab30'.
  levels: how many levels these are.
  mean, median: over levels.
  capped: mean with each level at most 100.
  """

  label: str
  suite: str
  levels: int
  mean: float
  median: float
  capped: float


class Setting(NamedTuple):
  """One point of a hyperparameter-stability plot.

  line: values of the settings that lines are told apart by; '' if none is.
  level: where.
  rank: of the line's settings, 1 is the best.
  label: the settings.
  final_return: mean over seeds of the last episodes' mean return.
  """

  line: str
  level: str
  rank: int
  label: str
  final_return: float


def score(found: curves.Group, level: str, window: int) -> Score:
  """Test returns if every run has been tested there, else the last training's.

  Of several tests those of the most trained weights count.
  """
  members = [run for run in found.members if level in run.curves]
  tests = [_newest_test(run, level) for run in members]
  tested = all(tests)
  if tested:
    returns = [test.mean_return for test in tests if test]
    episodes = min(test.episodes for test in tests if test)
  else:
    returns = [curves.final_return(run, level, window) for run in members]
    done = min(run.curves[level].episodes.sum() for run in members)
    episodes = int(min(window, done))
  mean = float(np.mean(returns))
  known = published.reference(level)
  return Score(
    found.label,
    level,
    mean,
    float(np.std(returns, ddof=1)) if len(returns) > 1 else 0.0,
    len(returns),
    episodes,
    tested,
    known.percent(mean) if known else float('nan'),
    known,
  )


def figures(scores: Sequence[Score]) -> list[Figures]:
  """Of each group and suite, and of the paper's agents on the same levels."""
  found = []
  for suite in dict.fromkeys(s.reference.suite for s in scores if s.reference):
    here = [s for s in scores if s.reference and s.reference.suite == suite]
    references = {s.level: s.reference for s in here if s.reference}
    for label in dict.fromkeys(s.label for s in here):
      percents = [s.percent for s in here if s.label == label]
      found.append(_figures(label, suite, percents))
    for agent in next(iter(references.values())).published:
      percents = [r.percent(r.published[agent]) for r in references.values()]
      found.append(_figures(f'paper: {agent}', suite, percents))
  return found


def stability(
  groups: Sequence[curves.Group], window: int, line_by: Sequence[str] = ()
) -> list[Setting]:
  """Settings in the order of their final return, as in the paper's figure 4.

  Args:
    groups: one per setting.
    window: the last episodes that make a final return.
    line_by: names of settings by which lines are told apart, such as
      'correction'; none: one line per level.

  Returns:
    The settings of each level and line; none where there is one group only.
    Trials of a population have no settings of their own.
  """
  lines: dict[tuple[str, str], list[tuple[float, str]]] = {}
  for found in groups:
    if found.evolved:
      continue
    line = ', '.join(f'{name}={found.settings.get(name)}' for name in line_by)
    for level in found.levels:
      finals = [curves.final_return(r, level, window) for r in found.members]
      point = (float(np.nanmean(finals)), found.label)
      lines.setdefault((level, line), []).append(point)
  return [
    Setting(line, level, rank, label, value)
    for (level, line), points in lines.items()
    if len(points) > 1
    for rank, (value, label) in enumerate(sorted(points, reverse=True), 1)
  ]


def best_mean(settings: Sequence[Setting]) -> dict[tuple[str, str], float]:
  """By level and line: mean of the best three settings, as in Table 2."""
  best: dict[tuple[str, str], list[float]] = {}
  for point in settings:
    if point.rank <= BEST:
      key = (point.level, point.line)
      best.setdefault(key, []).append(point.final_return)
  return {key: float(np.mean(values)) for key, values in best.items()}


def _newest_test(run: runs.Run, level: str):
  rows = [row for row in run.tests if row.level == level]
  return max(rows, key=lambda row: row.env_frames) if rows else None


def _figures(label: str, suite: str, percents: Sequence[float]) -> Figures:
  return Figures(
    label,
    suite,
    len(percents),
    float(np.mean(percents)),
    float(np.median(percents)),
    float(np.mean(np.minimum(percents, 100))),
  )
