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
"""Where the numbers of a run go: CSV, TensorBoard, or several places at once.

Metrics are keyed by environment frames. A number is a scalar; an array is a
histogram, which only TensorBoard shows. Names, as far as others read them:

*   `<level>/episode_return`, the original's name, one per level;
*   `frames_per_sec`, `policy_lag_mean`.

TensorFlow is not imported here.
"""

import contextlib
import csv
import io
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from scalable_agent import files

# A float, or an array of any shape: a histogram.
Metrics = Mapping[str, Any]


class MetricWriter(Protocol):
  """Takes the numbers of a run. Used by one thread at a time."""

  def write(self, env_frames: int, metrics: Metrics) -> None:
    """Notes `metrics` as of `env_frames` environment frames."""

  def close(self) -> None:
    """Writes what is left. May be called twice."""


class NullWriter:
  """Forgets everything."""

  def write(self, env_frames: int, metrics: Metrics) -> None:
    """Does nothing."""

  def close(self) -> None:
    """Does nothing."""


class MultiWriter:
  """Passes everything on to several writers."""

  def __init__(self, writers: Sequence[MetricWriter]):
    """Makes a writer in front of `writers`, and their owner."""
    self._writers = tuple(writers)

  def write(self, env_frames: int, metrics: Metrics) -> None:
    """Writes to all."""
    for writer in self._writers:
      writer.write(env_frames, metrics)

  def close(self) -> None:
    """Closes all, in order, even where one fails."""
    with contextlib.ExitStack() as stack:
      for writer in reversed(self._writers):
        stack.callback(writer.close)


def scalars(metrics: Metrics) -> dict[str, float]:
  """Those of `metrics` that are single numbers, as Python floats."""
  return {k: float(v) for k, v in metrics.items() if np.ndim(v) == 0}


class CsvWriter:
  """A table with one row per write; new metrics become new columns.

  Every row is on disk when `write` returns. Rows that cannot be written are
  lost with one warning; the table stays whole.
  """

  def __init__(self, path: str, resume_frames: int = 0):
    """Opens or continues the table `path`.

    Args:
      path: of the file; its folder is made if it is not there.
      resume_frames: frames at which the run continues; rows of later frames,
        written before the run broke off, are dropped.
    """
    self._path = path
    self._guard = files.WarnOnce(path)
    self._columns = ['env_frames']
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    if os.path.exists(path):
      columns, rows = read_table(path)
      self._columns = columns or self._columns
      kept = [row for row in rows if int(row['env_frames']) <= resume_frames]
      files.write_atomically(path, _table(self._columns, kept))

  def write(self, env_frames: int, metrics: Metrics) -> None:
    """Adds a row of the scalars."""
    row = {'env_frames': str(env_frames)}
    row.update({k: _cell(v) for k, v in scalars(metrics).items()})
    new_columns = [name for name in row if name not in self._columns]
    with self._guard:
      if new_columns or not os.path.exists(self._path):
        self._add_columns(new_columns)
      files.append(self._path, _lines(self._columns, [row]))

  def close(self) -> None:
    """Nothing is left to write."""

  def _add_columns(self, names: list[str]) -> None:
    rows: list[dict[str, str]] = []
    if os.path.exists(self._path):
      _, rows = read_table(self._path)
    columns = self._columns + names
    files.write_atomically(self._path, _table(columns, rows))
    self._columns = columns


def read_table(path: str) -> tuple[list[str], list[dict[str, str]]]:
  """Columns and rows of a table, without a last row that was cut short.

  Raises:
    ValueError: it is no table of metrics.
  """
  with open(path, encoding='utf-8', newline='') as file:
    text = file.read()
  reader = csv.DictReader(io.StringIO(text[: text.rfind('\n') + 1]))
  columns, rows = list(reader.fieldnames or ()), list(reader)
  if not all((row.get('env_frames') or '').isdigit() for row in rows):
    raise ValueError(
      f'{path} has a row without a number of env_frames, so it is no table of '
      'metrics; move it away or choose another folder for the run.'
    )
  return columns, rows


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
  return _lines(columns, [dict(zip(columns, columns, strict=True)), *rows])


def _lines(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
  text = io.StringIO()
  writer = csv.writer(text, lineterminator='\n')
  writer.writerows([row.get(name, '') for name in columns] for row in rows)
  return text.getvalue().encode()


def _cell(value: float) -> str:
  """Whole numbers in full, others as precisely as float32 needs."""
  return f'{value:.0f}' if value.is_integer() else f'{value:.9g}'


class TensorBoardWriter:
  """An event file for TensorBoard: scalars, and arrays as histograms.

  Written with TensorBoard's own classes. What cannot be written is lost with
  one warning; the file stays readable.
  """

  def __init__(self, logdir: str, resume_frames: int = 0):
    """Starts a new event file in `logdir`.

    Args:
      logdir: folder of the event files of the run's starts.
      resume_frames: frames at which the run continues; TensorBoard is told to
        forget what earlier files hold of later frames.
    """
    from tensorboard.compat.proto import event_pb2

    self._event = event_pb2.Event
    self._guard = files.WarnOnce(f'The TensorBoard file in {logdir}')
    os.makedirs(logdir, exist_ok=True)
    # TensorBoard reads files in the order of their names.
    name = f'events.out.tfevents.{time.time():.6f}.{os.getpid()}'
    self._path = os.path.join(logdir, name)
    session = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    with self._guard:
      self._append(
        [
          self._event(wall_time=time.time(), file_version='brain.Event:2'),
          self._event(
            wall_time=time.time(), step=resume_frames + 1, session_log=session
          ),
        ]
      )

  def write(self, env_frames: int, metrics: Metrics) -> None:
    """Adds one event per metric."""
    from tensorboard.plugins.histogram import summary_v2 as histogram
    from tensorboard.plugins.scalar import summary_v2 as scalar

    events = []
    for name, value in metrics.items():
      if np.ndim(value) == 0:
        summary = scalar.scalar_pb(name, float(value))
      else:
        array = np.asarray(value, np.float64)
        summary = histogram.histogram_pb(name, array[np.isfinite(array)])
      events.append(
        self._event(wall_time=time.time(), step=env_frames, summary=summary)
      )
    with self._guard:
      self._append(events)

  def close(self) -> None:
    """Nothing is left to write."""

  def _append(self, events: Iterable[Any]) -> None:
    from tensorboard.summary.writer import record_writer

    buffer = io.BytesIO()
    records = record_writer.RecordWriter(buffer)
    for event in events:
      records.write(event.SerializeToString())
    files.append(self._path, buffer.getvalue())
