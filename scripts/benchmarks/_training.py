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
"""Trains for a while and watches speed, processor time and memory."""

import pathlib
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from benchmarks import _stages
from scalable_agent import metrics


class Note(NamedTuple):
  """The state of a run at one moment."""

  time_secs: float
  env_frames: int
  cpu_secs: float
  peak_mb: float


class Training(NamedTuple):
  """What a run reached after its warm-up.

  steps_per_sec: agent steps trained per second of wall clock.
  core_secs_per_step: processor time per step, over all threads.
  num_cores_used: processor time over wall clock.
  peak_mb: most memory that the process ever held: at the end of the run.
  growth_mb: by how much that rose after the warm-up.
  lag: mean policy lag, in updates.
  rates: of the whole run, see `interval_metrics`.
  steady: all metrics, as means over the reports after the warm-up; empty if
    there were none.
  mean_returns: of each level's last 100 episodes.
  """

  steps_per_sec: float
  core_secs_per_step: float
  num_cores_used: float
  peak_mb: float
  growth_mb: float
  lag: float
  rates: dict[str, float]
  steady: dict[str, float]
  mean_returns: dict[str, float]


def define_flags(flag_values: flags.FlagValues) -> None:
  """How long to train."""
  flags.DEFINE_float(
    'train_secs',
    60.0,
    'How long training is measured. Unit: seconds.',
    lower_bound=2,
    flag_values=flag_values,
  )
  flags.DEFINE_float(
    'warm_up_secs',
    10.0,
    'How long training runs after its first update before it is measured. '
    'Unit: seconds.',
    lower_bound=0,
    flag_values=flag_values,
  )


class _Watch(metrics.NullWriter):
  """Takes notes about once a second after the warm-up, and ends the run."""

  def __init__(self, warm_up_secs: float, train_secs: float):
    self.notes: list[Note] = []
    self.lags: list[float] = []
    self.end_run: Callable[[], None]
    self._warm_up_secs = warm_up_secs
    self._train_secs = train_secs
    self._start: float | None = None

  def write(self, env_frames: int, metrics: metrics.Metrics) -> None:
    """Called about once a second."""
    now = time.monotonic()
    if env_frames and self._start is None:
      self._start = now
    if self._start is not None and now - self._start >= self._warm_up_secs:
      note = Note(now, env_frames, time.process_time(), _peak_mb())
      self.notes.append(note)
      self.lags.append(metrics['policy_lag_mean'])
      if now - self.notes[0].time_secs >= self._train_secs:
        self.end_run()


class _Reports(metrics.NullWriter):
  """Keeps what is reported while `watch` takes notes."""

  def __init__(self, watch: _Watch):
    self._watch = watch
    self._rows: list[dict[str, float]] = []

  def write(self, env_frames: int, metrics_: metrics.Metrics) -> None:
    """Called every `summary_secs`."""
    if self._watch.notes:
      self._rows.append(metrics.scalars(metrics_))

  def means(self) -> dict[str, float]:
    """Without the first report, which began before."""
    rows = self._rows[1:]
    names = set.intersection(*map(set, rows)) if rows else ()
    return {n: float(np.mean([row[n] for row in rows])) for n in names}


def train(
  stages: _stages.Stages, train_secs: float, warm_up_secs: float
) -> Training:
  """Trains with the settings of `stages`."""
  from scalable_agent.runtime import training

  watch = _Watch(warm_up_secs, train_secs)
  with tempfile.TemporaryDirectory() as logdir:
    settings = stages.replace(
      'run', logdir=logdir, checkpoint_secs=1e9
    ).settings
    runtime = training.runtime_for(settings)
    run = runtime.make_run(settings, stages.task, stages.spec)
    watch.end_run = run.stop
    reports = _Reports(watch)
    outcome = run.run(reports, watch)
  if len(watch.notes) < 2 or watch.notes[0].env_frames == outcome.env_frames:
    raise ValueError(
      'training was too short to be measured; raise --train_secs or '
      '--total_environment_frames.'
    )
  first, last = watch.notes[0], watch.notes[-1]
  secs, num_frames, cpu_secs, growth_mb = (
    b - a for a, b in zip(first, last, strict=True)
  )
  num_steps = max(num_frames, 1) / stages.spec.frames_per_step
  return Training(
    steps_per_sec=num_steps / secs,
    core_secs_per_step=cpu_secs / num_steps,
    num_cores_used=cpu_secs / secs,
    peak_mb=last.peak_mb,
    growth_mb=growth_mb,
    lag=float(np.mean(watch.lags)),
    rates=outcome.rates,
    steady=reports.means(),
    mean_returns=outcome.mean_returns,
  )


def values(training: Training, frames_per_step: int) -> dict[str, Any]:
  """For a line of JSON."""
  rates = training.rates
  return {
    'steps_per_sec': round(training.steps_per_sec, 1),
    'frames_per_sec': round(training.steps_per_sec * frames_per_step, 1),
    'core_ms_per_step': round(1e3 * training.core_secs_per_step, 4),
    'num_cores_used': round(training.num_cores_used, 3),
    'peak_mb': round(training.peak_mb, 1),
    'growth_mb': round(training.growth_mb, 1),
    'learner_wait_share': round(rates.get('learner_wait_share', 0.0), 3),
    'actor_put_share': round(rates.get('actor_put_share', 0.0), 3),
  }


def _peak_mb():
  """Most memory that this process ever held."""
  try:
    status = pathlib.Path('/proc/self/status').read_text()
  except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kilobytes, but bytes on macOS.
    return peak / (1e6 if sys.platform == 'darwin' else 1e3)
  # Linux: the other figure has what the starting process held, too.
  return int(re.search(r'VmHWM:\s+(\d+) kB', status)[1]) / 1e3
