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
"""What a run knows of its actors, and what they are given."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from scalable_agent import config, params, queues, tasks, timing, unroll_files
from scalable_agent.nets import agent as agent_lib
from scalable_agent.runtime import hosts as hosts_lib
from scalable_agent.runtime import workers


class Parts(NamedTuple):
  """What a run hands to those who make its actors.

  settings: of the run.
  task: makes the environments.
  make_agent: makes one more network, with fresh weights.
  store: where the learner publishes its weights.
  queue: where unrolls go.
  workers: where threads run and report failures.
  inference_device: for `tf.device`, where policies compute.
  start: how often the run has been started before; for seeds.
  logdir: where live figures may be written; None: nowhere.
  reader: of recorded unrolls, if the settings name any.
  """

  settings: config.Config
  task: tasks.Task
  make_agent: Callable[[], agent_lib.Agent]
  store: params.ParamStore
  queue: queues.UnrollQueue
  workers: workers.Workers
  inference_device: str
  start: int
  logdir: str | None = None
  reader: unroll_files.UnrollReader | None = None


def own_settings(
  settings: config.Config, hosts: hosts_lib.Hosts
) -> config.Config:
  """The settings with a seed of this host's own."""
  own = dataclasses.replace(settings.run, seed=hosts.seed(settings.run.seed))
  return dataclasses.replace(settings, run=own)


class ActorGroup(Protocol):
  """All actors of a run."""

  def start(self) -> None:
    """Starts all; they put unrolls into the queue from now on."""

  def stop(self) -> None:
    """Asks all to leave after their unroll; waits for none."""

  def close_environments(self) -> None:
    """Ends what those hold who have not left, so that they get an error."""

  def end(self) -> None:
    """After the run: releases what is still held. May be called twice."""

  def check(self) -> None:
    """Reports those that have been silent for too long. Once a second."""

  def timers(self) -> list[timing.Timers]:
    """Timers of all actors so far, replaced ones included."""

  def metrics(self) -> dict[str, Any]:
    """More figures of this group, since the last call; at each report."""

  @property
  def num_restarts(self) -> int:
    """Restarts so far after failures, of environments and of actors."""

  @property
  def num_dropped_steps(self) -> int:
    """Agent steps of unrolls that were given up."""
