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
"""Runs that differ in their seed only, together: means, spread, times."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from scalable_agent.reports import published, runs, sweeps

# Where a run writes, what it is started with by chance, and how often it
# reports: two runs that differ in these are the same experiment.
_INCIDENTAL = (
  'logdir',
  'seed',
  'checkpoint_secs',
  'checkpoints_kept',
  'summary_secs',
  'dataset_path',
  'level_cache_dir',
  'level_cache_gib',
)


class Group(NamedTuple):
  """Runs of one experiment.

  label: what sets it apart from the other groups.
  settings: of all its runs, without the incidental ones; those at the end.
  members: the runs.
  evolved: it is a trial of a population, whose settings have changed.
  """

  label: str
  settings: dict[str, Any]
  members: list[runs.Run]
  evolved: bool = False

  @property
  def levels(self) -> list[str]:
    """Levels on which an episode ended in one run at least."""
    return list(dict.fromkeys(k for run in self.members for k in run.curves))


class Band(NamedTuple):
  """A curve with the spread of the seeds; all `[N]`."""

  frames: np.ndarray
  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray


def group(members: Sequence[runs.Run]) -> list[Group]:
  """Groups runs that differ in nothing but seed and folder.

  Each trial of a population is a group of its own, under its name. Other
  labels name the settings in which groups of one level differ; where there are
  none, what the names of the folders begin with. Groups that differ in their
  level only have one label: together they are an experiment.
  """
  groups: dict[tuple, Group] = {}
  evolved = []
  for run in members:
    settings = _settings(run)
    if sweeps.is_population(os.path.dirname(os.path.abspath(run.path))):
      evolved.append(Group(run.name, settings, [run], True))
      continue
    empty = Group('', settings, [])
    groups.setdefault(tuple(settings.items()), empty).members.append(run)
  return _label(list(groups.values())) + evolved


def shorten(value: Any) -> str:
  """A setting as a label shows it."""
  return f'{value:.3g}' if isinstance(value, float) else str(value)


def running_mean(curve: runs.Curve, window: int) -> np.ndarray:
  """`[N]`, over the newest intervals that hold `window` episodes together."""
  counts = np.concatenate([[0.0], np.cumsum(curve.episodes)])
  sums = np.concatenate([[0.0], np.cumsum(curve.episodes * curve.returns)])
  starts = np.searchsorted(counts, counts[1:] - window, side='right') - 1
  starts = np.clip(starts, 0, np.arange(len(curve.returns)))
  return (sums[1:] - sums[starts]) / (counts[1:] - counts[starts])


def final_return(run: runs.Run, level: str, window: int) -> float:
  """Mean return of the last `window` episodes of training; NaN if none."""
  if level not in run.curves:
    return float('nan')
  return float(running_mean(run.curves[level], window)[-1])


def return_band(found: Group, level: str, window: int, points=200) -> Band:
  """Running mean returns of a group on a level.

  From where all its runs have finished an episode to where the first one ends.
  """
  curves = [run.curves[level] for run in found.members if level in run.curves]
  lines = [(c.frames, running_mean(c, window)) for c in curves]
  return _band(lines, points)


def series_band(found: Group, name: str, points: int = 200) -> Band | None:
  """The same of a column of metrics.csv; None where no run has it."""
  lines = []
  for run in found.members:
    values = run.series.get(name, np.array([]))
    there = np.isfinite(values)
    if there.any():
      lines.append((run.series['env_frames'][there], values[there]))
  return _band(lines, points) if lines else None


def human_band(found: Group, cap: float | None, window: int) -> Band | None:
  """Mean human-normalized score, in percent, over the levels of a group.

  Args:
    found: the group.
    cap: most that one level counts, in percent; None: no cap.
    window: length of the running means, in episodes.

  Returns:
    None unless the group plays several levels and humans played all of them.
  """
  references = {level: published.reference(level) for level in found.levels}
  if len(references) < 2 or not all(references.values()):
    return None
  lines = []
  for run in found.members:
    if set(run.curves) != set(references):
      continue
    start = max(curve.frames[0] for curve in run.curves.values())
    end = max(curve.frames[-1] for curve in run.curves.values())
    frames = np.linspace(start, end, 200)
    scores = []
    for level, curve in run.curves.items():
      line = np.interp(frames, curve.frames, running_mean(curve, window))
      percent = references[level].percent(line)  # type: ignore[union-attr]
      scores.append(percent if cap is None else np.minimum(percent, cap))
    lines.append((frames, np.mean(scores, axis=0)))
  return _band(lines, 200) if lines else None


class Reached(NamedTuple):
  """When a group's runs first had a mean return.

  label, level: of the group, and where.
  target: the mean return of the last episodes.
  reached, members: how many runs got there, and of how many.
  frames, hours: median over those that did; NaN if none.
  """

  label: str
  level: str
  target: float
  reached: int
  members: int
  frames: float
  hours: float


def time_to(found: Group, level: str, target: float, window: int) -> Reached:
  """When the running mean of each run first was `target` or more."""
  times = []
  for run in found.members:
    curve = run.curves.get(level)
    if curve is None:
      continue
    there = running_mean(curve, window) >= target
    # A few lucky episodes at the start are no score.
    there &= np.cumsum(curve.episodes) >= window
    if there.any():
      first = int(np.argmax(there))
      times.append((curve.frames[first], curve.hours[first]))
  frames, hours = np.median(times, axis=0) if times else (np.nan, np.nan)
  return Reached(
    found.label,
    level,
    target,
    len(times),
    len(found.members),
    float(frames),
    float(hours),
  )


def targets(groups: Sequence[Group], level: str, window: int) -> list[float]:
  """Returns worth a time: half of human and human, or 90 % of the way up.

  Where no human played, the way is from the worst running mean of all groups
  to the best one.
  """
  known = published.reference(level)
  if known is not None:
    span = known.human - known.random
    return [known.random + span * share for share in (0.5, 1.0)]
  lines = [
    running_mean(run.curves[level], window)
    for found in groups
    for run in found.members
    if level in run.curves
  ]
  lowest = min(line.min() for line in lines)
  highest = max(line.max() for line in lines)
  return [float(lowest + 0.9 * (highest - lowest))]


def _settings(run: runs.Run) -> dict[str, Any]:
  return {k: v for k, v in run.settings.items() if k not in _INCIDENTAL}


def _label(groups: Sequence[Group]) -> list[Group]:
  """The groups with their labels."""
  labelled = []
  for found in groups:
    same = [g for g in groups if _but_level(g) == _but_level(found)]
    levels = {g.settings['level_name'] for g in same}
    rivals = [g.settings for g in groups if g.settings['level_name'] in levels]
    label = ', '.join(
      f'{name}={shorten(value)}'
      for name, value in _but_level(found).items()
      if any(other.get(name) != value for other in rivals)
    )
    if not label:
      label = _common_name([run for g in same for run in g.members])
    labelled.append(found._replace(label=label))
  return labelled


def _but_level(found: Group) -> dict[str, Any]:
  return {k: v for k, v in found.settings.items() if k != 'level_name'}


def _common_name(members: Sequence[runs.Run]) -> str:
  """What the folders are called: catch_1 and catch_2 are runs of catch."""
  names = [run.name for run in members]
  if len(names) == 1:
    return names[0]
  same = [len(set(letters)) == 1 for letters in zip(*names, strict=False)]
  begin = names[0][: [*same, False].index(False)].rstrip('_-.0123456789')
  folder = os.path.basename(os.path.dirname(os.path.abspath(members[0].path)))
  # Trials of a sweep are called after it.
  return folder if begin in ('', 'trial') else begin


def _band(lines: Sequence[tuple[np.ndarray, np.ndarray]], points: int) -> Band:
  """Lines over frames, brought to the frames that all of them have."""
  start = max(frames[0] for frames, _ in lines)
  end = max(min(frames[-1] for frames, _ in lines), start)
  frames = np.linspace(start, end, points if end > start else 1)
  values = np.array([np.interp(frames, x, y) for x, y in lines])
  return Band(frames, values.mean(0), values.min(0), values.max(0))
