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
"""Means and shares over an interval: learning, lag, queue, time."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from scalable_agent import queues, timing

# An interval's maximum is reported for these, the mean for all others.
_MAXIMA = ('rho_max', 'policy_lag_max', 'replay_age_max')


class Totals(NamedTuple):
  """Running totals of a run at one moment."""

  time_secs: float
  env_frames: int
  queue: queues.QueueStats
  actor_secs: Mapping[str, float]
  learner_secs: Mapping[str, float]


class IntervalMetrics:
  """Collects the learner's metrics and reports them for each interval.

  Used by the learner's thread only; queue and timers are read from others.
  """

  def __init__(
    self,
    queue: queues.UnrollQueue,
    actor_timers: Callable[[], Sequence[timing.Timers]],
    learner_timers: timing.Timers,
    env_frames: int,
  ):
    """Makes a collector.

    Args:
      queue: whose lengths and waits are reported.
      actor_timers: gives the timers of all actors, past ones too.
      learner_timers: of the learner's thread.
      env_frames: frames at the start.
    """
    self._queue = queue
    self._actor_timers = actor_timers
    self._learner_timers = learner_timers
    self._updates: list[dict[str, float]] = []
    self._log_rhos: list[np.ndarray] = []
    self._start = self._since = self._totals(env_frames)

  def add_update(
    self,
    metrics: Mapping[str, Any],
    versions: np.ndarray,
    version: int,
    num_fresh: int | None = None,
  ) -> None:
    """Takes in one update.

    Args:
      metrics: what `Learner.update` gave.
      versions: `[B]` version at the start of each column's unroll.
      version: the learner's version when it used them.
      num_fresh: columns in front that are not replayed; None: all.
    """
    lags, ages = np.split(version - versions, [num_fresh or len(versions)])
    values = {k: float(v) for k, v in metrics.items() if k != 'log_rhos'}
    values['policy_lag_mean'] = float(lags.mean())
    values['policy_lag_max'] = float(lags.max())
    if ages.size:
      values['replay_age_mean'] = float(ages.mean())
      values['replay_age_max'] = float(ages.max())
    self._updates.append(values)
    self._log_rhos.append(np.asarray(metrics['log_rhos']).ravel())

  def take(self, env_frames: int) -> dict[str, Any]:
    """Metrics since the last call; no update, no learner metrics."""
    metrics: dict[str, Any] = {}
    if self._updates:
      for name in self._updates[0]:
        values = [update[name] for update in self._updates]
        reduce = np.max if name in _MAXIMA else np.mean
        metrics[name] = float(reduce(values))
      metrics['log_rho'] = np.concatenate(self._log_rhos)
    self._updates, self._log_rhos = [], []
    now = self._totals(env_frames)
    metrics.update(_rates(self._since, now))
    self._since = now
    return metrics

  def whole_run(self, env_frames: int) -> dict[str, float]:
    """Rates and shares from the start until now."""
    return _rates(self._start, self._totals(env_frames))

  def _totals(self, env_frames):
    actor_secs: dict[str, float] = {}
    for timers in self._actor_timers():
      for stage, secs in list(timers.secs.items()):
        actor_secs[stage] = actor_secs.get(stage, 0.0) + secs
    return Totals(
      time.monotonic(),
      env_frames,
      self._queue.stats(),
      actor_secs,
      dict(self._learner_timers.secs),
    )


def _rates(start: Totals, end: Totals) -> dict[str, float]:
  secs = max(end.time_secs - start.time_secs, 1e-9)
  queue = queues.QueueStats(
    *[b - a for a, b in zip(start.queue, end.queue, strict=True)]
  )
  rates = {
    'frames_per_sec': (end.env_frames - start.env_frames) / secs,
    'queue_length': queue.length_secs / secs,
    'queue_arrivals_per_sec': queue.num_put / secs,
    'actor_bytes_per_sec': queue.num_bytes / secs,
  }
  if queue.num_put and queue.num_got:
    # Little's law, next to what was measured.
    rates['queue_wait_predicted_secs'] = queue.length_secs / queue.num_put
    rates['queue_wait_secs'] = queue.residence_secs / queue.num_got
  rates.update(_shares('actor', start.actor_secs, end.actor_secs, secs=None))
  rates.update(
    _shares('learner', start.learner_secs, end.learner_secs, secs=secs)
  )
  return rates


def _shares(who, start, end, secs):
  """Share of each stage in `secs`, or in the sum of all stages."""
  spent = {stage: end[stage] - start.get(stage, 0.0) for stage in end}
  total = secs or sum(spent.values())
  if not total:
    return {}
  return {
    f'{who}_{stage}_share': value / total for stage, value in spent.items()
  }


def bottleneck(rates: Mapping[str, float]) -> str:
  """One plain sentence: which side held the run back.

  Args:
    rates: of the whole run, as `IntervalMetrics.whole_run` gives them.
  """
  starved = rates.get('learner_wait_share', 0.0)
  blocked = rates.get('actor_put_share', 0.0)
  env = rates.get('actor_env_share', 0.0)
  inference = rates.get('actor_inference_share', 0.0)
  reading = rates.get('actor_read_share', 0.0)
  if starved >= 0.2 and reading >= blocked:
    return (
      'Reading recorded unrolls was the bottleneck: the learner waited for '
      f'data {starved:.0%} of the time.'
    )
  if starved >= 0.2 and starved >= blocked:
    return (
      f'Acting was the bottleneck: the learner waited for data {starved:.0%} '
      f'of the time; actors spent {env:.0%} in environments and '
      f'{inference:.0%} in inference.'
    )
  if blocked >= 0.2:
    return (
      f'Learning was the bottleneck: actors waited {blocked:.0%} of their '
      f'time for room in the queue, the learner waited {starved:.0%} for data.'
    )
  return (
    f'Acting and learning were balanced: actors waited {blocked:.0%} of their '
    f'time, the learner {starved:.0%}.'
  )
