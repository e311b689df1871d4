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
"""Live figures of every worker: a file, and their spread as metrics."""

import csv
import dataclasses
import io
import os
import threading
import time
from typing import Any

import numpy as np

from scalable_agent import files

FILE = 'workers.csv'
WAITING, STARTING, PLAYING, LOST = 'waiting', 'starting', 'playing', 'lost'


@dataclasses.dataclass
class Row:
  """One worker, as its thread sees it.

  node: address of its machine, and `pid` its process there.
  state: `waiting` for a machine, `starting`, `playing`, or `lost` and about to
    be replaced.
  levels: that it plays.
  unrolls, frames: that arrived from it, and from those that it replaced.
  policy_lag: updates that the learner made while its last unroll was made and
    travelled.
  restarts, losses: how often it was replaced, or its environments were.
  last_error: the last line of what befell it last.
  """

  worker: int
  node: str = ''
  pid: int = 0
  state: str = WAITING
  levels: str = ''
  unrolls: int = 0
  frames: int = 0
  frames_per_sec: float = 0.0
  policy_lag: int = 0
  restarts: int = 0
  losses: int = 0
  last_error: str = ''


class WorkerTable:
  """Rows that their threads write to and the learner's thread reads."""

  def __init__(self, folder: str | None, num_workers: int, unroll_frames: int):
    """Makes rows of workers that wait.

    Args:
      folder: where the file goes; None: there is none.
      num_workers: N.
      unroll_frames: frames of an unroll.
    """
    self._unroll_frames = unroll_frames
    self.rows = [Row(index) for index in range(num_workers)]
    self._path = folder and os.path.join(folder, FILE)
    self._guard = files.WarnOnce(self._path or FILE)
    self._lock = threading.Lock()
    self._since = time.monotonic()

  def count(self, state: str) -> int:
    """How many workers are in that state."""
    return sum(row.state == state for row in self.rows)

  def metrics(self) -> dict[str, Any]:
    """Figures since the last call; writes them to the file as well."""
    with self._lock:
      now = time.monotonic()
      secs = max(now - self._since, 1e-9)
      for row in self.rows:
        frames = row.unrolls * self._unroll_frames
        row.frames_per_sec = (frames - row.frames) / secs
        row.frames = frames
      self._since = now
      if self._path is not None:
        with self._guard:
          files.write_atomically(self._path, self._text())
    playing = [row for row in self.rows if row.state == PLAYING]
    metrics: dict[str, Any] = {
      'workers_playing': float(len(playing)),
      'workers_waiting': float(self.count(WAITING)),
      'worker_losses': float(sum(row.losses for row in self.rows)),
      'worker_nodes': float(len({row.node for row in playing})),
    }
    if playing:
      rates = np.array([row.frames_per_sec for row in playing])
      lags = np.array([row.policy_lag for row in playing], float)
      metrics.update(
        worker_frames_per_sec_min=float(rates.min()),
        worker_frames_per_sec_max=float(rates.max()),
        worker_lag_max=float(lags.max()),
        worker_frames_per_sec=rates,
        worker_lag=lags,
      )
    return metrics

  def _text(self):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    names = [field.name for field in dataclasses.fields(Row)]
    writer.writerow(names)
    for row in self.rows:
      cells = dataclasses.asdict(row)
      cells['frames_per_sec'] = round(row.frames_per_sec, 1)
      writer.writerow(cells[name] for name in names)
    return text.getvalue().encode()
