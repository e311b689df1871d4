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
"""The actor threads of one machine: started, watched, restarted, ended."""

import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from absl import logging

from scalable_agent import actor, structs, tasks, timing
from scalable_agent.runtime import actor_groups, replacements


class ActorThreads:
  """`num_actors` threads, each an `Actor` with environments of its own."""

  def __init__(self, parts: actor_groups.Parts, policies: list[structs.Policy]):
    """Starts nothing yet.

    Args:
      parts: of the run.
      policies: one per actor.

    Raises:
      ValueError: there are fewer environments than levels.
    """
    self._settings = parts.settings
    self._task = parts.task
    self._levels = tasks.deal(
      self._task.level_names,
      self._settings.actor.num_actors,
      self._settings.actor.envs_per_actor,
      self._task.weights,
    )
    self._start = parts.start
    self._policies = policies
    self._queue = parts.queue
    self._threads = parts.workers
    self._device = parts.inference_device
    self._stop = threading.Event()
    self._lock = threading.Lock()
    self._live: dict[int, tuple[actor.Actor, structs.Environments]] = {}
    self._timers: list[timing.Timers] = []
    self._dropped_before = 0
    # Restarts of each actor, of its environments and as a whole: one budget.
    self._used = [0] * len(policies)

  def start(self) -> None:
    """Starts all threads."""
    for index in range(len(self._policies)):
      self._threads.start(f'actor {index}', self._thread(index))

  def stop(self) -> None:
    """Asks all threads to leave after their unroll; wakes none."""
    self._stop.set()

  def close_environments(self) -> None:
    """Closes what actors hold, so that a blocked one gets an error."""
    with self._lock:
      live = list(self._live.values())
    for _, environments in live:
      environments.close()

  def end(self) -> None:
    """Nothing is held once the threads have left."""

  def metrics(self) -> dict[str, Any]:
    """None besides those of the run."""
    return {}

  def timers(self) -> list[timing.Timers]:
    """Timers of all actors so far, replaced ones included."""
    with self._lock:
      return list(self._timers)

  @property
  def num_restarts(self) -> int:
    """Restarts so far, of single environments and of whole actors."""
    with self._lock:
      live = {i: e for i, (_, e) in self._live.items()}
      return sum(self._restarts(i, live.get(i)) for i in range(len(self._used)))

  @property
  def num_dropped_steps(self) -> int:
    """Agent steps of unrolls that were given up."""
    with self._lock:
      live = sum(a.num_dropped_steps for a, _ in self._live.values())
      return self._dropped_before + live

  def check(self) -> None:
    """Reports an actor whose environments have been silent for too long."""
    limit = self._settings.actor.env_timeout_secs
    with self._lock:
      live = list(self._live.items())
    for index, (one, environments) in live:
      age = time.monotonic() - one.timers.last_beat
      if one.timers.current == 'env' and age > limit:
        levels = ', '.join(sorted(set(environments.level_names)))
        error = TimeoutError(
          f'its environments ({levels}) have not answered for {age:.0f} s, '
          f'more than env_timeout_secs={limit:g}. Raise it, or use '
          '--env_backend=process --on_env_error=restart, which can replace a '
          'single environment.'
        )
        self._threads.fail(f'actor {index}', error)

  def _restarts(self, index, environments):
    """Of an actor, with those that its present environments have granted."""
    granted = environments.num_restarts if environments else 0
    return max(self._used[index], granted)

  def _thread(self, index: int) -> Callable[[], None]:
    return lambda: self._run(index)

  def _run(self, index):
    """One actor after another, until told to stop or out of restarts."""
    settings = self._settings.actor
    attempt = 0
    while not self._stop.is_set():
      try:
        self._run_once(index, attempt)
      except structs.Closed:
        return
      except Exception as error:
        if self._stop.is_set():
          return
        out_of_restarts = self._used[index] >= settings.max_restarts
        if settings.on_env_error == 'abort' or out_of_restarts:
          raise
        attempt += 1
        self._used[index] += 1
        logging.warning(
          'Actor %d failed and is restarted (%d of at most %d): %s\n%s',
          index,
          self._used[index],
          settings.max_restarts,
          error,
          traceback.format_exc(),
        )
        self._stop.wait(replacements.backoff_secs(attempt))

  def _run_once(self, index, attempt):
    seed = tasks.start_seed(self._settings.run.seed, self._start, attempt)
    environments = self._task.build(
      tasks.Request(self._levels[index], seed, index, self._used[index])
    )
    one = actor.Actor(
      environments,
      self._policies[index],
      self._settings.learner.unroll_length,
      [self._task.level_names.index(n) for n in environments.level_names],
    )
    with self._lock:
      self._live[index] = (one, environments)
      self._timers.append(one.timers)
    try:
      with tf.device(self._device):
        one.run(self._queue, self._stop.is_set)
    finally:
      with self._lock:
        del self._live[index]
        self._dropped_before += one.num_dropped_steps
        self._used[index] = self._restarts(index, environments)
      environments.close()
