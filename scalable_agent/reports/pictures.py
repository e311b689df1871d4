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
"""The pictures of a report, drawn with Matplotlib (the `plots` extra)."""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scalable_agent.reports import curves, published, scores, sweeps

# Okabe and Ito's colours, told apart by the colour-blind, and three more.
_COLORS = (
  '#0072B2',
  '#D55E00',
  '#009E73',
  '#CC79A7',
  '#E69F00',
  '#56B4E9',
  '#000000',
  '#882255',
  '#888888',
  '#999933',
)
_MAX_LEGEND = 12
_PANEL = (4.2, 2.9)

_RUNNING = (
  ('policy_lag_mean', 'policy lag, mean (updates)'),
  ('policy_lag_max', 'policy lag, largest (updates)'),
  ('rho_mean', 'rho, mean'),
  ('rho_clipped_share', 'share of rho that is clipped'),
  ('entropy', 'entropy of the policy (nats per step)'),
  ('frames_per_sec', 'frames per second'),
)


class MissingError(RuntimeError):
  """Matplotlib is not installed."""


def check() -> None:
  """Raises MissingError, before any work, if pictures cannot be drawn."""
  try:
    import matplotlib
  except ImportError:
    raise MissingError(
      "Matplotlib is not installed; pip install '.[plots]' does it."
    ) from None
  matplotlib.use('Agg')


def save(figure: Any, folder: str, name: str) -> str:
  """Writes `name`.png and `name`.svg into `folder`; returns the PNG's path."""
  import matplotlib.pyplot as plt

  path = os.path.join(folder, f'{name}.png')
  figure.savefig(os.path.join(folder, f'{name}.svg'))
  figure.savefig(path, dpi=110)
  plt.close(figure)
  return path


def learning_curves(groups: Sequence[curves.Group], window: int) -> Any:
  """A panel per level: mean return against frames, band from seed to seed."""
  levels = list(dict.fromkeys(k for found in groups for k in found.levels))
  colors = _group_colors(groups)

  def draw(axes, level):
    for found, color in zip(groups, colors, strict=True):
      if level not in found.levels:
        continue
      for run in found.members if len(groups) * len(found.members) < 7 else ():
        if level in run.curves:
          x, y = run.curves[level].frames, run.curves[level].returns
          axes.plot(x, y, color=color, alpha=0.22, lw=0.7)
      band = curves.return_band(found, level, window)
      _draw_band(axes, band, color, _counted(found, level))
    axes.set_ylabel('episode return')
    _mark_human(axes, level)

  return _panels(levels, draw)


def human_normalized(groups: Sequence[curves.Group], window: int) -> Any | None:
  """Mean percent of humans over a run's levels; None if no run has several."""
  colors, draws = _group_colors(groups), []
  for title, cap in (('each level at most 100', 100.0), ('no cap', None)):
    bands = [curves.human_band(found, cap, window) for found in groups]
    draws.append((title, bands))
  if not any(band for _, bands in draws for band in bands):
    return None

  def draw(axes, title):
    for found, color, band in zip(
      groups, colors, dict(draws)[title], strict=True
    ):
      if band is not None:
        _draw_band(axes, band, color, found.label)
    axes.set_ylabel('mean human-normalized score (%)')

  return _panels([title for title, _ in draws], draw)


def running(groups: Sequence[curves.Group]) -> Any:
  """How runs went over time: policy lag, importance weights, entropy, speed."""
  names, colors = dict(_RUNNING), _group_colors(groups)
  there = [
    name
    for name in names
    if any(curves.series_band(found, name, 1) for found in groups)
  ]

  def draw(axes, name):
    for found, color in zip(groups, colors, strict=True):
      band = curves.series_band(found, name)
      if band is not None:
        _draw_band(axes, band, color, found.label)
    axes.set_title(names[name])
    if name != 'rho_mean':
      axes.set_ylim(bottom=0)

  return _panels(there, draw, titles=False)


def stability(settings: Sequence[scores.Setting]) -> Any:
  """Final return over settings, best first: as in the paper's figure 4."""
  levels = list(dict.fromkeys(point.level for point in settings))
  lines = list(dict.fromkeys(point.line for point in settings))

  from matplotlib import ticker

  def draw(axes, level):
    for index, line in enumerate(lines):
      points = [p for p in settings if (p.level, p.line) == (level, line)]
      x, y = [p.rank for p in points], [p.final_return for p in points]
      axes.plot(x, y, 'o-', color=_color(index), ms=3.5, lw=1.3, label=line)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(ticker.ScalarFormatter())
    axes.set_xlabel('setting, the best first')
    axes.set_ylabel('final return')

  return _panels(levels, draw, legend=any(lines))


def population(turns: Sequence[sweeps.Turn]) -> Any:
  """Fitness and settings of a population over frames; dots where one copied."""
  trials = sorted({turn.trial for turn in turns})

  def draw(axes, name):
    for trial in trials:
      own = [turn for turn in turns if turn.trial == trial]
      frames = [turn.env_frames for turn in own]
      if name == 'fitness':
        values = [turn.fitness for turn in own]
        marked = values
      else:
        marked = [turn.after[name] for turn in own]
        frames, values = [0, *frames], [own[0].before[name], *marked]
        axes.set_yscale('log')
      color = _color(trials.index(trial))
      style = 'default' if name == 'fitness' else 'steps-post'
      axes.plot(
        frames, values, color=color, lw=1.2, ds=style, label=f'trial {trial}'
      )
      copies = [i for i, turn in enumerate(own) if turn.copied]
      axes.plot(
        [own[i].env_frames for i in copies],
        [marked[i] for i in copies],
        'o',
        color=color,
        ms=4,
      )

  return _panels(['fitness', *turns[0].after], draw)


def _panels(
  keys: Sequence[str],
  draw: Callable[[Any, str], None],
  titles: bool = True,
  legend: bool = True,
) -> Any:
  """A figure with a panel per key, and one legend for all below them."""
  import matplotlib.pyplot as plt
  from matplotlib import ticker

  columns = min(len(keys), 2 if len(keys) <= 4 else 3 if len(keys) < 13 else 5)
  rows = math.ceil(len(keys) / columns)
  scale = 0.75 if columns == 5 else 1.4 if len(keys) == 1 else 1.0
  figure, grid = plt.subplots(
    rows,
    columns,
    figsize=(_PANEL[0] * columns * scale, _PANEL[1] * rows * scale + 0.3),
    squeeze=False,
    layout='constrained',
  )
  labels: dict[str, Any] = {}
  for axes, key in zip(grid.flat, keys, strict=False):
    axes.set_xlabel('environment frames')
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=''))
    draw(axes, key)
    _style(axes, key if titles else axes.get_title())
    handles, names = axes.get_legend_handles_labels()
    labels.update(zip(names, handles, strict=True))
  for axes in grid.flat[len(keys) :]:
    axes.set_visible(False)
  if legend and 1 < len(labels) <= _MAX_LEGEND:
    figure.legend(
      labels.values(),
      labels.keys(),
      loc='outside lower center',
      ncols=max(1, min(3, 110 // max(map(len, labels)))),
      frameon=False,
      fontsize=8,
    )
  return figure


def _style(axes, title: str) -> None:
  axes.set_title(title, fontsize=9)
  axes.grid(alpha=0.25, lw=0.6)
  axes.spines[['top', 'right']].set_visible(False)
  axes.tick_params(labelsize=8, which='both')
  axes.xaxis.label.set_size(8)
  axes.yaxis.label.set_size(8)


def _draw_band(axes, band: curves.Band, color, label: str) -> None:
  marker = 'o' if len(band.frames) == 1 else ''
  axes.plot(
    band.frames, band.mean, color=color, lw=1.8, marker=marker, label=label
  )
  if np.any(band.high > band.low):
    axes.fill_between(
      band.frames, band.low, band.high, color=color, alpha=0.18, lw=0
    )


def _mark_human(axes, level: str) -> None:
  """Random play and the human as dotted lines, where the picture shows them."""
  known = published.reference(level)
  if known is None:
    return
  low, high = axes.get_ylim()
  for name, value in (('random', known.random), ('human', known.human)):
    if low - 0.1 * (high - low) <= value <= high + 0.5 * (high - low):
      axes.axhline(value, color='gray', ls=':', lw=1)
      axes.annotate(
        name,
        (1, value),
        xycoords=('axes fraction', 'data'),
        ha='right',
        va='bottom',
        fontsize=7,
        color='gray',
      )


def _counted(found: curves.Group, level: str) -> str:
  count = sum(level in run.curves for run in found.members)
  return found.label if count == 1 else f'{found.label} ({count} seeds)'


def _group_colors(groups: Sequence[curves.Group]) -> list[str]:
  """One per group; groups with one label, on different levels, share it."""
  labels = list(dict.fromkeys(found.label for found in groups))
  return [_color(labels.index(found.label)) for found in groups]


def _color(index: int) -> str:
  return _COLORS[index % len(_COLORS)]
