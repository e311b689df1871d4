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
"""A training run: a group of actors, a learner thread, a main thread watching.

Who acts is the only thing that tells the runtimes apart: threads of this
process (`local`), the same waiting for every update (`synchronous`), or
processes on many machines (`distributed`).

A run ends in one order, whatever the reason: stop flag, queue closed, actors
leave, environments closed, threads joined, last checkpoint, first failure
raised in the main thread.
"""

import collections
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from absl import logging

from scalable_agent import (
  checkpoint,
  config,
  dataset,
  episodes,
  interval_metrics,
  learner,
  metrics,
  params,
  queues,
  structs,
  tasks,
)
from scalable_agent.nets import agent as agent_lib
from scalable_agent.runtime import (
  actor_groups,
  devices,
  experience,
  learner_loop,
  signals,
  workers,
)
from scalable_agent.runtime import hosts as hosts_lib
from scalable_agent.runtime import peers as peers_lib

_WATCH_SECS = 1.0
_JOIN_SECS = 2.0
# What has been learned is worth waiting for.
_SAVE_JOIN_SECS = 60.0


class Outcome(NamedTuple):
  """How a run ended.

  signum: the signal that ended it, or None.
  env_frames: frames trained on, those of earlier starts included.
  rates: of this start, see `interval_metrics`.
  mean_returns: of each level's last 100 episodes.
  ended_by: a sentence, if another host has ended the run.
  """

  signum: int | None
  env_frames: int
  rates: dict[str, float]
  mean_returns: dict[str, float]
  ended_by: str | None


class Run:
  """A training run whose actors are made by `make_actors`."""

  def __init__(
    self,
    settings: config.Config,
    task: tasks.Task,
    spec: structs.EnvironmentSpec,
    make_actors: Callable[[actor_groups.Parts], actor_groups.ActorGroup],
    saved: checkpoint.Saved | None = None,
    hosts: hosts_lib.Hosts | None = None,
  ):
    """Builds everything and starts nothing.

    Args:
      settings: of the run.
      task: what to play.
      spec: of its environments.
      make_actors: makes the group of actors from what they need.
      saved: checkpoint to continue from; None: a fresh run.
      hosts: the learners of the run, each with a run like this one, of which
        the chief's alone writes into the log directory; None: only this one.
    """
    self._hosts = hosts or hosts_lib.Hosts()
    self._settings = settings
    self._task = task
    self._spec = spec
    self._start = 0
    self._checkpointer = checkpoint.Checkpointer(
      settings.run.logdir, keep=settings.run.checkpoints_kept
    )
    self._placement = devices.place(
      settings.run.learner_device,
      settings.run.inference_device,
      settings.run.num_learners,
      self._hosts,
    )
    self._peers = peers_lib.Peers(self._hosts, self._placement.strategy)
    self._peers.check_settings(settings)
    with self._placement.strategy.scope():
      self._learner = learner.Learner(
        self._make_agent(),
        settings.learner,
        self._spec.frames_per_step,
        self._placement.strategy,
      )
    self._episodes = episodes.EpisodeLog(task.level_names)
    if saved is not None:
      self._learner.load_state(saved.arrays, saved.counters['learner'])
      self._episodes.load_state(saved.counters['episodes'])
      self._start = saved.counters['num_starts']
    self._start = self._peers.take_over(self._learner, self._start)
    self._saved_updates = None if saved is None else self._learner.num_updates
    self.experience = experience.Experience(
      settings,
      self._example_unroll,
      spec,
      task.level_names,
      self._start,
      len(self._placement.learner_devices),
    )
    store = params.ParamStore(settings.actor.policy_lag)
    self._queue = queues.UnrollQueue(settings.actor.queue_capacity)
    self._workers = workers.Workers()
    self._asked_to_stop = threading.Event()
    self._loop = learner_loop.LearnerLoop(
      settings,
      self._learner,
      store,
      self._episodes,
      self._save,
      self._spec.frames_per_step,
      self._peers,
      task.suite,
    )
    self._actors = make_actors(
      actor_groups.Parts(
        settings=actor_groups.own_settings(settings, self._hosts),
        task=task,
        make_agent=self._make_agent,
        store=store,
        queue=self._queue,
        workers=self._workers,
        inference_device=self._placement.inference_device,
        start=self._start,
        logdir=settings.run.logdir if self._hosts.is_chief else None,
        reader=self.experience.reader,
      )
    )
    self._intervals = interval_metrics.IntervalMetrics(
      self._queue,
      self._actors.timers,
      self._loop.timers,
      self._learner.env_frames,
    )

  def run(
    self,
    writer: metrics.MetricWriter,
    progress: metrics.MetricWriter | None = None,
    stop_after_secs: float | None = None,
  ) -> Outcome:
    """Trains until the frames are used up or something ends the run.

    Args:
      writer: where metrics go.
      progress: told every second how far the run is; None: nobody is.
      stop_after_secs: end, as if asked to, after so long; None: never.

    Returns:
      How it ended. A failure of any thread is raised instead, as
      `workers.WorkerFailedError` from the first exception.
    """
    self._loop.writer = writer
    with signals.asking_to_stop(self._workers.wake) as received:
      try:
        self._actors.start()
        self._workers.start('learner', self._learn)
        self._watch(received, progress, stop_after_secs)
      finally:
        signum = received[0] if received else None
        self._peers.leave(signum, self._workers.failed)
        try:
          self._shut_down()
        finally:
          self._actors.end()
      self._workers.raise_failure()
    return Outcome(
      signum=signum or self._peers.signum,
      env_frames=self._learner.env_frames,
      rates=self._intervals.whole_run(self._learner.env_frames),
      mean_returns=self._episodes.recent_mean_returns(),
      ended_by=self._peers.describe_end(),
    )

  def stop(self) -> None:
    """Asks the run to end as a signal would; from any thread."""
    self._asked_to_stop.set()
    self._workers.wake()

  def _make_agent(self):
    return agent_lib.Agent(
      self._spec,
      self._settings.agent,
      frame_stack=self._task.frame_stack,
      seed=self._settings.run.seed,
    )

  def _example_unroll(self):
    return dataset.example_unroll(
      self._learner.agent, self._spec, self._settings.learner.unroll_length
    )

  def _observe(self, unroll):
    """Told of every unroll that leaves the queue."""
    # What was recorded elsewhere says nothing about the policy that learns.
    if not self._settings.learner.only_recorded:
      self._episodes.observe(unroll)
    self.experience.record(unroll)

  def _learn(self):
    """The learner's thread."""
    try:
      batches = [
        dataset.make_dataset(
          self._queue,
          self._settings.learner.batch_size,
          self._observe,
          self._example_unroll(),
          device,
          self._settings.learner.num_fresh,
          self.experience.complete,
        )
        for device in self._placement.learner_devices
      ]
      self._loop.run(
        dataset.join_replicas(batches, self._placement.strategy),
        self._intervals,
        self._frame_counts,
      )
    finally:
      self._loop.done.set()
      self._workers.wake()

  def _watch(self, received, progress, stop_after_secs):
    """The main thread, until there is a reason to end."""
    speed = _Speed(self._learner.env_frames)
    start = time.monotonic()
    reasons = (self._loop.done.is_set, self._asked_to_stop.is_set)
    while not (self._workers.failed or received or any(r() for r in reasons)):
      if stop_after_secs is not None:
        if time.monotonic() - start >= stop_after_secs:
          return
      self._workers.wait(_WATCH_SECS)
      self._actors.check()
      if progress is not None:
        env_frames = self._learner.env_frames
        values = {
          f'{level}/episode_return': mean
          for level, mean in self._episodes.recent_mean_returns().items()
        }
        values['frames_per_sec'] = speed.measure(env_frames)
        values['policy_lag_mean'] = self._loop.last_lag
        progress.write(env_frames, values)

  def _shut_down(self):
    """Ends all threads, then writes what is left to write."""
    self._actors.stop()
    self._queue.close()
    if self._workers.join(_JOIN_SECS):
      self._actors.close_environments()
      hanging = self._workers.join(_JOIN_SECS)
      if not self._loop.done.wait(_SAVE_JOIN_SECS):
        logging.error('The learner hangs; its last updates are not saved.')
      if hanging:
        logging.warning(
          'Left behind, still running: %s\n%s',
          ', '.join(hanging),
          self._workers.stacks(),
        )
      if not self._loop.done.is_set():
        return
    self.experience.close()
    self._loop.report(self._intervals, self._frame_counts())
    if self._saved_updates != self._learner.num_updates:
      self._save()

  def _save(self):
    if not self._hosts.is_chief:
      return
    arrays, counters = self._learner.state()
    self._checkpointer.save(
      arrays,
      {
        'learner': counters,
        'episodes': self._episodes.state(),
        'num_starts': self._start + 1,
      },
    )
    self._saved_updates = self._learner.num_updates

  def _frame_counts(self) -> dict[str, Any]:
    """Frames made, trained on and given up, and restarts, in this start.

    With what else the actors have to tell.
    """
    stats = self._queue.stats()
    per_step = self._spec.frames_per_step
    per_unroll = (
      self._settings.learner.unroll_length
      * self._settings.actor.envs_per_actor
      * per_step
    )
    left = self._queue.num_left if self._queue.closed else 0
    dropped = self._actors.num_dropped_steps * per_step + left * per_unroll
    return {
      'frames_produced': float(stats.num_put * per_unroll),
      'frames_trained': float(self._learner.env_frames),
      'frames_dropped': float(dropped),
      'actor_restarts': float(self._actors.num_restarts),
      'updates': float(self._learner.num_updates),
      'updates_skipped': float(self._learner.num_skipped),
      **self._actors.metrics(),
      **self.experience.metrics(),
    }


class _Speed:
  """Frames per second over the last seconds, by the wall clock."""

  def __init__(self, env_frames: int):
    self._seen = collections.deque([(time.monotonic(), env_frames)], 10)

  def measure(self, env_frames: int) -> float:
    """Mean speed since the oldest of the last ten measurements."""
    now = time.monotonic()
    then, frames_then = self._seen[0]
    self._seen.append((now, env_frames))
    return (env_frames - frames_then) / max(now - then, 1e-9)
