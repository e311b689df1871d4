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
"""What runs in a worker process: one actor on CPUs, and how it is doing.

Nothing here knows of Ray. TensorFlow is imported late, after the process has
been prepared for it.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from scalable_agent import actor, config, params, structs, tasks, wire
from scalable_agent.envs import batches
from scalable_agent.runtime import devices


class Order(NamedTuple):
  """What a worker is to do.

  settings: of the run.
  make_task: makes the task from the settings, on the worker's machine.
  spec: of the environments, as the learner knows them.
  request: which environments, with which seed.
  policy_seed: of the sampled actions.
  import_path: folders where the learner's process finds modules.
  """

  settings: config.Config
  make_task: Callable[[config.Config], tasks.Task]
  spec: structs.EnvironmentSpec
  request: tasks.Request
  policy_seed: int
  import_path: tuple[str, ...]


class Report(NamedTuple):
  """How a worker is doing: totals since it was set up, told with each unroll.

  secs: time in each stage: `env`, `inference`, and `idle` between two unrolls.
  num_restarts: restarts of its environments that count so far, those of
    earlier workers included.
  num_dropped_steps: agent steps of unrolls that it gave up.
  """

  secs: dict[str, float]
  num_restarts: int
  num_dropped_steps: int


def prepare_process(order: Order) -> None:
  """Before anything else: module path, no GPU, as many threads as CPUs.

  Folders of the learner's machine count where they are on this one, too.
  """
  sys.path += [p for p in order.import_path if p not in sys.path]
  os.environ['CUDA_VISIBLE_DEVICES'] = ''
  devices.prepare()
  import tensorflow as tf

  num_threads = max(1, int(order.settings.distributed.worker_cpus))
  tf.config.threading.set_intra_op_parallelism_threads(num_threads)
  tf.config.threading.set_inter_op_parallelism_threads(1)


class RolloutWorker:
  """One `Actor` with a network of its own, asked for one unroll at a time."""

  def __init__(self):
    """Does nothing yet: `set_up` does, and can fail like any other call."""
    self._making_since: float | None = None
    self._environments: structs.Environments | None = None
    self._actor: actor.Actor | None = None
    self._store = params.ParamStore()
    self._encode: Callable[[structs.Unroll], Any] = lambda unroll: unroll
    self._finished_at = 0.0
    self._idle_secs = 0.0

  def set_up(self, order: Order) -> None:
    """Makes environments, network and actor.

    Raises:
      ValueError: the environments are not those that the learner knows, or
        what the encoding needs is not installed here.
    """
    distributed = order.settings.distributed
    if distributed.unroll_encoding != 'raw':
      self._encode = wire.make_encoder(
        distributed.unroll_encoding, distributed.jpeg_quality
      )
    task = order.make_task(order.settings)
    self._making_since = time.monotonic()
    environments = self._environments = task.build(order.request)
    self._making_since = None
    batches.common_spec(
      [order.spec, environments.spec],
      ['the learner', environments.level_names[0]],
    )
    # TensorFlow, which takes seconds, only for environments that there are.
    from scalable_agent import inference
    from scalable_agent.nets import agent as agent_lib

    policy = inference.DirectPolicy(
      agent_lib.Agent(
        order.spec, order.settings.agent, frame_stack=task.frame_stack
      ),
      self._store,
      environments.num_envs,
      order.policy_seed,
    )
    self._actor = actor.Actor(
      environments,
      policy,
      order.settings.learner.unroll_length,
      [task.level_names.index(n) for n in environments.level_names],
    )
    self._finished_at = time.monotonic()

  def unroll(self, version: int, weights: Sequence[Any]) -> tuple[Report, Any]:
    """The next unroll, all of it with the given weights, and encoded."""
    if self._actor is None or self._environments is None:
      raise RuntimeError('a worker is set up before it makes unrolls.')
    self._idle_secs += time.monotonic() - self._finished_at
    self._store.publish(version, weights)
    unroll = self._actor.unroll()
    report = Report(
      {**self._actor.timers.secs, 'idle': self._idle_secs},
      self._environments.num_restarts,
      self._actor.num_dropped_steps,
    )
    self._finished_at = time.monotonic()
    return report, self._encode(unroll)

  def beat(self) -> tuple[str, float]:
    """The present stage and its age in seconds; from any thread.

    The stage is `env` while environments are made, reset and stepped.
    """
    now = time.monotonic()
    if self._actor is None:
      since = self._making_since
      return ('', 0.0) if since is None else ('env', now - since)
    timers = self._actor.timers
    return timers.current, now - timers.last_beat

  def close(self) -> None:
    """Ends the environments; from any thread."""
    if self._environments is not None:
      self._environments.close()
