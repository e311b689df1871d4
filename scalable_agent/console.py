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
"""How a run looks while it goes on: one line that is drawn over and over.

      6% ━━━━━━━━━━━━━ 12.3M/200M frames  5,512/s  return -18.4  9h 27m left

Where there is no terminal: the same without the bar, now and then.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import rich.console
import rich.live
import rich.progress_bar
import rich.table
import rich.text
from absl import logging

from scalable_agent import files
from scalable_agent import metrics as metrics_lib

_RETURN = '/episode_return'
_MIN_BAR_WIDTH = 8
_REDRAW_SECS = 0.2


class ConsoleWriter:
  """Shows frames, frames per second, mean return, policy lag and time left.

  Metrics that a write does not mention keep their last value. Writes may come
  at any rate, from any thread: a terminal is redrawn at most five times a
  second, a file gets at most one line every `line_secs`.
  """

  def __init__(
    self,
    total_frames: int,
    *,
    line_secs: float = 10.0,
    console: rich.console.Console | None = None,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts the display.

    Args:
      total_frames: environment frames at which the run ends.
      line_secs: seconds between lines where there is no terminal.
      console: where to show; None: stdout.
      clock: gives the time in seconds.
    """
    self._total_frames = total_frames
    self._line_secs = line_secs
    # FORCE_COLOR and its like ask for colour, not for a line that moves.
    self._console = console or rich.console.Console(
      force_terminal=sys.stdout.isatty()
    )
    self._clock = clock
    self._guard = files.WarnOnce('Progress')
    self._lock = threading.Lock()
    self._known: dict[str, float] = {}
    self._start: tuple[int, float] | None = None
    self._now = (0, 0.0)
    self._shown: tuple[int, float] | None = None
    self._live: rich.live.Live | None = None
    if self._console.is_terminal and not self._console.is_dumb_terminal:
      self._start_live()

  def write(self, env_frames: int, metrics: metrics_lib.Metrics) -> None:
    """Shows `metrics` as of `env_frames` environment frames."""
    with self._lock:
      self._known.update(metrics_lib.scalars(metrics))
      self._now = (env_frames, self._clock())
      self._start = self._start or self._now
      pause = _REDRAW_SECS if self._live else self._line_secs
      if self._shown is None or self._now[1] - self._shown[1] >= pause:
        self._show()

  def close(self) -> None:
    """Shows the last state and leaves the terminal as it was."""
    with self._lock:
      if self._start and self._shown != self._now:
        self._show()
      if self._live:
        with self._guard:
          self._live.stop()
        self._live = None
        logging.get_absl_handler().python_handler.setStream(self._log_stream)

  def _start_live(self):
    handler = logging.get_absl_handler().python_handler
    self._log_stream = handler.stream
    self._live = rich.live.Live(console=self._console, auto_refresh=False)
    stderr = sys.stderr
    self._live.start()
    if handler.stream is stderr:
      # From now on `sys.stderr` prints above the line; absl would print into
      # it, because it still holds the old one.
      handler.setStream(sys.stderr)

  def _show(self):
    self._shown = self._now
    with self._guard:
      if self._live:
        self._live.update(self._line(self._console.width), refresh=True)
      else:
        # Not through rich, which ends the program when a pipe breaks.
        text = f'{self._percent()}  {self._text(None)}'
        print(text, file=self._console.file, flush=True)

  def _line(self, width: int) -> rich.table.Table:
    percent = self._percent()
    text = self._text(width - len(percent) - 1)
    # As `Text`, because a level's name is no markup.
    cells: list[Any] = [percent, rich.text.Text(text)]
    bar_width = width - len(percent) - len(text) - 3
    if bar_width >= _MIN_BAR_WIDTH:
      bar = rich.progress_bar.ProgressBar(
        total=self._total_frames, completed=self._now[0], width=bar_width
      )
      cells.insert(1, bar)
    line = rich.table.Table.grid(padding=(0, 1))
    for _ in cells:
      line.add_column(no_wrap=True)
    line.add_row(*cells)
    return line

  def _percent(self) -> str:
    return f'{min(100 * self._now[0] // self._total_frames, 100):3d}%'

  def _text(self, width: int | None) -> str:
    """Pieces of the line; the least important give way to `width`."""
    parts = {
      'frames': f'{_short(self._now[0])}/{_short(self._total_frames)} frames',
      'speed': '',
      'return': self._returns(),
      'lag': '',
      'time': self._time(),
    }
    if 'frames_per_sec' in self._known:
      parts['speed'] = f'{self._known["frames_per_sec"]:,.0f}/s'
    if 'policy_lag_mean' in self._known:
      parts['lag'] = f'lag {self._known["policy_lag_mean"]:.1f}'
    for name, shorter in (
      ('return', min(parts['return'], self._mean_return(), key=len)),
      ('lag', ''),
      ('time', ''),
      ('speed', ''),
      ('return', ''),
    ):
      if width is not None and len(_joined(parts.values())) > width:
        parts[name] = shorter
    return _joined(parts.values())

  def _returns(self) -> str:
    """Two or three levels by name, more or fewer as their mean."""
    returns = self._level_returns()
    if len(returns) not in (2, 3):
      return self._mean_return()
    return ', '.join(
      f'{level.rsplit("/", 1)[-1]} {_number(value)}'
      for level, value in returns.items()
    )

  def _mean_return(self) -> str:
    returns = self._level_returns().values()
    if not returns:
      return ''
    mean = f'return {_number(sum(returns) / len(returns))}'
    return mean if len(returns) == 1 else f'{mean} ({len(returns)} levels)'

  def _level_returns(self) -> dict[str, float]:
    return {
      name.removesuffix(_RETURN): value
      for name, value in self._known.items()
      if name.endswith(_RETURN)
    }

  def _time(self) -> str:
    """Time left at the mean speed so far; at the end, the time it took."""
    frames, time_secs = self._now
    start_frames, start_secs = self._start or self._now
    if frames >= self._total_frames:
      return f'in {_duration(time_secs - start_secs)}'
    if frames <= start_frames or time_secs <= start_secs:
      return ''
    speed = (frames - start_frames) / (time_secs - start_secs)
    return f'{_duration((self._total_frames - frames) / speed)} left'


def _short(count: int) -> str:
  """Three digits and a letter: 950, 12.3k, 200M, 1.5B."""
  for size, letter in ((10**9, 'B'), (10**6, 'M'), (10**3, 'k')):
    if count >= size:
      unit = size // (
        100 if count < 10 * size else 10 if count < 100 * size else 1
      )
      # Cut, not rounded: 999.9M must not become 1000M.
      return f'{count // unit * unit / size:g}{letter}'
  return str(count)


def _number(value: float) -> str:
  return f'{value:,.0f}' if abs(value) >= 1000 else f'{value:.1f}'


def _duration(secs: float) -> str:
  minutes, seconds = divmod(round(secs), 60)
  hours, minutes = divmod(minutes, 60)
  days, hours = divmod(hours, 24)
  if days:
    return f'{days}d {hours:02d}h'
  if hours:
    return f'{hours}h {minutes:02d}m'
  return f'{minutes}m {seconds:02d}s' if minutes else f'{seconds}s'


def _joined(parts: Iterable[str]) -> str:
  return '  '.join(part for part in parts if part)
