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
"""The learner's thread: updates, publishes, reports and saves."""

import threading
import time
from collections.abc import Callable, Iterable

import numpy as np
from absl import logging

from scalable_agent import (
  config,
  episodes,
  interval_metrics,
  learner,
  metrics,
  params,
  structs,
  tasks,
  timing,
)
from scalable_agent.runtime import peers as peers_lib


class LearnerLoop:
  """Consumes batches until the frames are used up or the batches end.

  Everything that must agree with the weights happens on this thread, between
  two updates: publishing, metrics, checkpoints.
  """

  def __init__(
    self,
    settings: config.Config,
    own: learner.Learner,
    store: params.ParamStore,
    log: episodes.EpisodeLog,
    save: Callable[[], None],
    frames_per_step: int,
    peers: peers_lib.Peers,
    suite: tasks.Suite | None = None,
  ):
    """Makes a loop and publishes the weights as they are.

    Args:
      settings: of the run.
      own: the learner, this loop's own from now on.
      store: where weights are published.
      log: finished episodes.
      save: writes a checkpoint.
      frames_per_step: simulator frames behind an agent step.
      peers: learners on other hosts, who make each update together.
      suite: what is scored as a whole, if the levels are a whole suite.
    """
    self._settings = settings
    self._learner = own
    self._store = store
    self._log = log
    self.writer: metrics.MetricWriter = metrics.NullWriter()
    self._save = save
    self._frames_per_step = frames_per_step
    self._peers = peers
    self._suite_scores = suite and _SuiteScores(suite, log.num_episodes)
    self.timers = timing.Timers()
    self.done = threading.Event()
    self.last_lag = 0.0
    self._reported_frames = own.env_frames
    store.publish(own.num_updates, own.weights())

  @property
  def finished(self) -> bool:
    """Whether all frames have been trained on."""
    total = self._settings.learner.total_environment_frames
    return self._learner.env_frames >= total

  def run(
    self,
    batches: Iterable[structs.Unroll],
    intervals: interval_metrics.IntervalMetrics,
    extra_metrics: Callable[[], dict[str, float]],
  ) -> None:
    """Runs on the calling thread.

    Args:
      batches: from actors.
      intervals: collects the metrics.
      extra_metrics: more of them, asked for at each report.
    """
    iterator = iter(batches)
    run = self._settings.run
    reported = saved = time.monotonic()
    while not self.finished:
      with self.timers('wait'):
        batch = next(iterator, None)
      if not self._all_go_on(ready=batch is not None):
        return
      self._update(batch, intervals)
      now = time.monotonic()
      if now - reported >= run.summary_secs:
        reported = now
        self.report(intervals, extra_metrics())
      if now - saved >= run.checkpoint_secs:
        with self.timers('save'):
          self._save_and_go_on()
        saved = time.monotonic()

  def report(
    self,
    intervals: interval_metrics.IntervalMetrics,
    extra_metrics: dict[str, float],
  ) -> None:
    """Writes the metrics since the last report, if there was an update."""
    env_frames = self._learner.env_frames
    if env_frames == self._reported_frames:
      return
    self._reported_frames = env_frames
    values = intervals.take(env_frames)
    values.update(extra_metrics)
    new = self._log.take_new()
    values.update(_episode_metrics(self._log, new, self._frames_per_step))
    if self._suite_scores is not None:
      values.update(self._suite_scores.take(new))
    self.writer.write(env_frames, values)

  def _all_go_on(self, ready):
    if not self._peers.several:
      return ready
    with self.timers('peers'):
      return self._peers.go_on(ready)

  def _update(self, batch, intervals):
    version_used = self._learner.num_updates
    with self.timers('update'), self._peers.watched():
      values = self._learner.update(batch)
    with self.timers('publish'):
      self._store.publish(self._learner.num_updates, self._learner.weights())
    versions = np.asarray(batch.version)
    settings = self._settings.learner
    # With replay there is one replica, whose fresh columns come first.
    num_fresh = len(versions) * settings.num_fresh // settings.batch_size
    self.last_lag = float(version_used - versions[:num_fresh].mean())
    intervals.add_update(values, versions, version_used, num_fresh)

  def _save_and_go_on(self):
    """A full disk must not end a run that may yet find room."""
    try:
      self._save()
    except OSError as error:
      logging.error('No checkpoint was written: %s', error)


class _SuiteScores:
  """Figures of the suite, each time every level has finished an episode.

  As in the original, episodes count once: then all levels start over.
  """

  def __init__(self, suite: tasks.Suite, level_names: Iterable[str]):
    self._suite = suite
    self._returns: dict[str, list[float]] = {name: [] for name in level_names}

  def take(self, new: Iterable[episodes.Episode]) -> dict[str, float]:
    """Takes in episodes; returns the figures if they are due."""
    for episode in new:
      self._returns[episode.level].append(episode.episode_return)
    if not all(self._returns.values()):
      return {}
    scores = self._suite.scores(self._returns)
    self._returns = {name: [] for name in self._returns}
    name = self._suite.name
    return {f'{name}/training_{key}': value for key, value in scores.items()}


def _episode_metrics(
  log: episodes.EpisodeLog, new: Iterable[episodes.Episode], frames: int
) -> dict[str, float]:
  """Per level: means of the `new` episodes, and totals of the run.

  Args:
    log: with the totals.
    new: episodes since the last report.
    frames: of an agent step.
  """
  by_level: dict[str, list[episodes.Episode]] = {}
  for episode in new:
    by_level.setdefault(episode.level, []).append(episode)
  values: dict[str, float] = {}
  for level, ended in by_level.items():
    returns = [e.episode_return for e in ended]
    num_steps = float(np.mean([e.num_steps for e in ended]))
    values[f'{level}/episode_return'] = float(np.mean(returns))
    values[f'{level}/episode_steps'] = num_steps
    values[f'{level}/episode_frames'] = num_steps * frames
  for level, num_episodes in log.num_episodes.items():
    if num_episodes:
      values[f'{level}/num_episodes'] = float(num_episodes)
      values[f'{level}/num_steps'] = float(log.num_steps[level])
      values[f'{level}/num_frames'] = float(log.num_steps[level] * frames)
  return values
