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
"""The runtime without environments: unrolls come from files alone.

A run of logged experience: policies of another day acted, with their logits
kept, and V-trace corrects for what has changed since.
"""

import dataclasses
import threading
from typing import Any

from scalable_agent import checkpoint, config, structs, tasks, timing
from scalable_agent.runtime import actor_groups, run
from scalable_agent.runtime import hosts as hosts_lib


def make_run(
  settings: config.Config,
  task: tasks.Task,
  spec: structs.EnvironmentSpec,
  saved: checkpoint.Saved | None = None,
  hosts: hosts_lib.Hosts | None = None,
) -> run.Run:
  """A run on recorded unrolls; see `run.Run`."""
  # A file's unroll is a single column.
  actor = dataclasses.replace(settings.actor, envs_per_actor=1)
  settings = dataclasses.replace(settings, actor=actor)
  return run.Run(settings, task, spec, RecordedActors, saved, hosts)


class RecordedActors:
  """A thread that reads in place of actors; see `actor_groups.ActorGroup`."""

  num_restarts = 0
  num_dropped_steps = 0

  def __init__(self, parts: actor_groups.Parts):
    """Starts nothing yet."""
    self._reader = parts.reader
    self._queue = parts.queue
    self._workers = parts.workers
    self._timers = timing.Timers()
    self._stop = threading.Event()

  def start(self) -> None:
    """Starts the thread."""
    self._workers.start('reader of unrolls', self._read)

  def stop(self) -> None:
    """Asks it to leave; closing the queue ends its wait."""
    self._stop.set()

  def close_environments(self) -> None:
    """There are none."""

  def end(self) -> None:
    """Nothing is held."""

  def metrics(self) -> dict[str, Any]:
    """What was skipped is counted by the run."""
    return {}

  def check(self) -> None:
    """A reader that fails says so itself."""

  def timers(self) -> list[timing.Timers]:
    """One: time spent reading, and waiting for room in the queue."""
    return [self._timers]

  def _read(self):
    columns = iter(self._reader)
    while not self._stop.is_set():
      with self._timers('read'):
        column = next(columns)
      with self._timers('put'):
        self._queue.put(column)
