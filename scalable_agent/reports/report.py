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
"""A report on runs: a folder with pictures, tables and one page."""

import csv
import datetime
import io
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from scalable_agent import files
from scalable_agent.reports import (
  curves,
  page,
  pictures,
  runs,
  scores,
  sweeps,
)

PAGE = 'report.html'


class Options(NamedTuple):
  """What a report shows.

  window: length of running means, and of what a final return is, in episodes.
  targets: returns whose times are told; none: what `curves.targets` picks.
  line_by: settings by which the stability plot tells lines apart.
  """

  window: int
  targets: Sequence[float] = ()
  line_by: Sequence[str] = ()


class _Writer:
  """Collects sections; every table of one becomes a CSV file too."""

  def __init__(self, folder: str):
    self.folder = folder
    self.sections: list[page.Section] = []

  def add(self, name: str, title: str, text: str, figure=None, table=None):
    """Saves picture and table under `name`, and adds them to the page."""
    picture = None
    if figure is not None:
      picture = pictures.save(figure, self.folder, name)
    if table is not None:
      write_table(os.path.join(self.folder, f'{name}.csv'), table)
    self.sections.append(page.Section(title, text, picture, table))


def write(paths: Sequence[str], folder: str, options: Options) -> str:
  """Reports on the runs in `paths` into `folder`; returns the page's path.

  Raises:
    ValueError: `paths` hold no run that has finished an episode.
    pictures.MissingError: Matplotlib is not installed.
  """
  pictures.check()
  members, left_out = _read_all(runs.find(paths))
  groups = curves.group(members)
  for name in options.line_by:
    if name not in groups[0].settings:
      raise ValueError(
        f'line_by has {name!r}, which is no setting; give names of flags of '
        'scripts/train.py, without dashes.'
      )
  os.makedirs(folder, exist_ok=True)
  writer = _Writer(folder)
  _add_curves(writer, groups, options)
  _add_scores(writer, groups, options)
  _add_stability(writer, groups, options)
  _add_times(writer, groups, options)
  _add_running(writer, groups)
  _add_sweeps(writer, paths)
  _add_runs(writer, groups)
  now = datetime.datetime.now(datetime.timezone.utc)
  text = f'{len(members)} runs, written {now:%Y-%m-%d %H:%M} UTC.'
  if left_out:
    text += f' Left out: {" ".join(left_out)}'
  path = os.path.join(folder, PAGE)
  title = 'Report on ' + ', '.join(dict.fromkeys(g.label for g in groups))
  html = page.render(
    title if len(title) < 90 else 'Report', text, writer.sections
  )
  files.write_atomically(path, html.encode())
  return path


def write_table(path: str, table: page.Table) -> None:
  """Writes a table as CSV, numbers in full."""
  text = io.StringIO()
  lines = csv.writer(text, lineterminator='\n')
  lines.writerow(table.columns)
  lines.writerows(
    ['' if page.cell(value) == '' else value for value in row]
    for row in table.rows
  )
  files.write_atomically(path, text.getvalue().encode())


def _read_all(paths: Sequence[str]) -> tuple[list[runs.Run], list[str]]:
  """The runs that can be read, and why the others cannot."""
  members, left_out = [], []
  for path in paths:
    try:
      members.append(runs.read(path))
    except ValueError as error:
      left_out.append(str(error))
  if not members:
    raise ValueError(' '.join(left_out))
  return members, left_out


def _add_curves(writer, groups, options: Options) -> None:
  rows: list[list[Any]] = []
  for found in groups:
    for level in found.levels:
      band = curves.return_band(found, level, options.window)
      rows += [
        [found.label, level, *map(float, point)]
        for point in zip(*band, strict=True)
      ]
  columns = ('group', 'level', 'env_frames', 'mean', 'lowest', 'highest')
  path = os.path.join(writer.folder, 'learning_curves.csv')
  write_table(path, page.Table(columns, rows))
  writer.add(
    'learning_curves',
    'Learning curves',
    f'Raw return, mean of the last {options.window} episodes, of training. '
    'Thick: mean over seeds; band: from the lowest to the highest seed; thin: '
    'single intervals.',
    pictures.learning_curves(groups, options.window),
  )
  figure = pictures.human_normalized(groups, options.window)
  if figure is not None:
    writer.add(
      'human_normalized',
      'Human-normalized scores over the levels',
      'Mean over the levels of a run, from where all of them have finished an '
      'episode. 0 is random play, 100 a human.',
      figure,
    )


def _add_scores(writer, groups, options: Options) -> None:
  found = [
    scores.score(one, level, options.window)
    for one in groups
    for level in one.levels
  ]
  figures = scores.figures(found)
  text = (
    'Mean raw return of test episodes if every run was tested, else of the '
    'last ones of training; deviation is that of the runs.'
  )
  if figures:
    text += (
      " The paper's agents had 200 million frames per game, or about 333 "
      'million per level.'
    )
  writer.add('scores', 'Scores', text, table=_score_table(found))
  if figures:
    writer.add(
      'human_normalized_scores',
      'Human-normalized, over these levels',
      "In percent, over the levels above only; the paper's agents on the same "
      'ones. The paper reports the median for Atari-57, and the mean with each '
      'level at most 100 for DMLab-30.',
      table=page.Table(scores.Figures._fields, figures),
    )


def _score_table(found: Sequence[scores.Score]) -> page.Table:
  """With columns of the paper's agents that played one of the levels."""
  known = [s.reference for s in found if s.reference]
  agents = list(dict.fromkeys(name for r in known for name in r.published))
  columns = ['group', 'level', 'return', 'deviation', 'runs', 'episodes', 'of']
  if known:
    columns += ['human %', 'random', 'human']
  columns += [f'paper: {agent}' for agent in agents]
  rows = []
  for s in found:
    row = [s.label, s.level, s.mean, s.deviation, s.runs, s.episodes]
    row.append('test' if s.tested else 'training')
    if s.reference:
      row += [s.percent, s.reference.random, s.reference.human]
      row += [s.reference.published.get(agent) for agent in agents]
    rows.append(row + [None] * (len(columns) - len(row)))
  return page.Table(columns, rows)


def _add_stability(writer, groups, options: Options) -> None:
  settings = scores.stability(groups, options.window, options.line_by)
  if not settings:
    return
  writer.add(
    'stability',
    'Stability over hyperparameters',
    "Final return of each setting, the best first: the form of the paper's "
    'figure 4.',
    pictures.stability(settings),
    page.Table(scores.Setting._fields, settings),
  )
  best = scores.best_mean(settings)
  writer.add(
    'best_settings',
    'The best settings',
    f'Mean final return of the best {scores.BEST} settings, which is what the '
    "paper's table 2 has.",
    table=page.Table(
      ('level', 'line', 'mean of the best'),
      [[*key, value] for key, value in best.items()],
    ),
  )


def _add_times(writer, groups, options: Options) -> None:
  rows = [
    curves.time_to(found, level, target, options.window)
    for level in dict.fromkeys(k for found in groups for k in found.levels)
    for target in options.targets
    or curves.targets(groups, level, options.window)
    for found in groups
    if level in found.levels
  ]
  columns = ('group', 'level', 'target', 'reached by', 'of', 'frames', 'hours')
  writer.add(
    'time_to_score',
    'Time to a score',
    f'When the mean of the last {options.window} training episodes first was '
    'the target: frames and hours of training, median over the runs that got '
    'there. Hours are of the machine that trained.',
    table=page.Table(columns, rows),
  )


def _add_running(writer, groups) -> None:
  writer.add(
    'running',
    'Policy lag, importance weights, entropy, speed',
    'Over time, mean over seeds. Lag is counted in updates between the start '
    'of an unroll and its use; rho is target over behaviour policy.',
    pictures.running(groups),
  )


def _add_sweeps(writer, paths: Sequence[str]) -> None:
  for path in paths:
    name = os.path.basename(os.path.normpath(path))
    turns = sweeps.read_history(path)
    if turns:
      copied = sum(turn.copied for turn in turns)
      writer.add(
        f'population_{name}',
        f'Population based training in {name}',
        f'{len(turns)} turns, at {copied} of which a trial copied another one: '
        'dots. The table says which.',
        pictures.population(turns),
        sweeps.history_table(turns),
      )
    table = sweeps.read_table(path)
    if table is not None:
      writer.add(
        f'sweep_{name}',
        f'Trials of {name}',
        'As scripts/sweep.py left them.',
        table=table,
      )


def _add_runs(writer, groups) -> None:
  rows = [
    [
      found.label,
      run.path,
      run.settings['seed'],
      int(run.series['env_frames'][-1]),
      float(runs.training_hours(run.series)[-1]),
    ]
    for found in groups
    for run in found.members
  ]
  columns = ('group', 'run', 'seed', 'frames', 'hours')
  writer.add(
    'runs',
    'Runs',
    'Settings, versions and machine of each are in its config.json and '
    'starts.json.',
    table=page.Table(columns, rows),
  )
