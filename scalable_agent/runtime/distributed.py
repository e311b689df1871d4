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
"""The runtime of many machines: actors are processes on a Ray cluster.

The same `Actor`, `Learner` and `UnrollQueue` as on one machine. For each of N
workers there is a thread in the learner's process (`seats.Seat`): it hands the
newest weights to the worker, which makes one unroll with them, and puts that
into the queue. Ray places processes, carries weights and unrolls, and notices
deaths. Workers hold nothing that matters, so a lost one is simply replaced.
"""

import functools
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ray
from absl import logging

from scalable_agent import (
  checkpoint,
  config,
  dataset,
  params,
  structs,
  tasks,
  timing,
  wire,
)
from scalable_agent.runtime import (
  actor_groups,
  ray_settings,
  rollout_worker,
  run,
  seats,
  worker_table,
)
from scalable_agent.runtime import hosts as hosts_lib

_CLOSE_SECS = 5.0
_PATIENCE_SECS = 20.0
_REMIND_SECS = 60.0


def make_run(
  settings: config.Config,
  task: tasks.Task,
  spec: structs.EnvironmentSpec,
  saved: checkpoint.Saved | None = None,
  make_task: seats.MakeTask = tasks.make_task,
  hosts: hosts_lib.Hosts | None = None,
) -> run.Run:
  """A run on a Ray cluster; see `run.Run`.

  Args:
    settings: of the run.
    task: what to play, as this process sees it.
    spec: of its environments.
    saved: checkpoint to continue from; None: a fresh run.
    make_task: makes the task on the workers' machines; a function of a module
      that they can import.
    hosts: the learners of the run, each with workers of its own.

  Raises:
    ValueError: there is no such cluster, or what the encoding of unrolls needs
      is not installed.
  """
  distributed = settings.distributed
  wire.make_encoder(distributed.unroll_encoding, distributed.jpeg_quality)
  cluster = Cluster(settings)
  make_actors = functools.partial(
    RemoteActors, make_task=make_task, spec=spec, cluster=cluster
  )
  try:
    return run.Run(settings, task, spec, make_actors, saved, hosts)
  except BaseException:
    cluster.leave()
    raise


class Cluster:
  """This process's connection to a cluster, which it may have started."""

  def __init__(self, settings: config.Config):
    """Connects, or starts a cluster for this run alone.

    A program that is connected already stays so, before and afterwards.

    Raises:
      ValueError: there is no such cluster.
    """
    self._folder: str | None = None
    self._connected = not ray.is_initialized()
    if not self._connected:
      return
    address = settings.distributed.ray_address
    arguments: dict[str, Any] = {'address': address}
    if not address:
      self._folder = tempfile.mkdtemp(prefix='ray-')
      arguments = ray_settings.own_cluster(settings, self._folder)
    elif address != 'auto':
      ray_settings.check_address(address)
    try:
      ray.init(log_to_driver=False, logging_level='ERROR', **arguments)
    except Exception as error:
      self.leave()
      raise ValueError(
        f'no Ray cluster could be {"joined" if address else "started"} with '
        f'ray_address={address!r}: {error}'
      ) from error

  def leave(self, keep_logs: bool = False) -> None:
    """Disconnects; ends the cluster if it is this run's own."""
    if self._connected:
      ray.shutdown()
    if self._folder is not None and keep_logs:
      logging.warning('The logs of Ray are left in %s.', self._folder)
    elif self._folder is not None:
      shutil.rmtree(self._folder, ignore_errors=True)
    self._connected, self._folder = False, None


@ray.remote(concurrency_groups={'watch': 2})
class _Process(rollout_worker.RolloutWorker):
  """A worker as Ray runs it: `beat` and `close` answer during an unroll."""

  def introduce(self):
    return ray.util.get_node_ip_address(), os.getpid()

  def set_up(self, order):
    rollout_worker.prepare_process(order)
    super().set_up(order)

  @ray.method(num_returns=2)
  def unroll(self, version, weights):
    return super().unroll(version, weights)

  @ray.method(concurrency_group='watch')
  def beat(self):
    return super().beat()

  @ray.method(concurrency_group='watch')
  def close(self):
    super().close()


class _Weights:
  """The newest weights as an object of the cluster, one per version."""

  def __init__(self, store: params.ParamStore):
    self._store = store
    self._lock = threading.Lock()
    self._version = -1
    self._reference: Any = None

  def newest(self) -> tuple[int, ray.ObjectRef]:
    """Version and reference; the object is made when first asked for."""
    with self._lock:
      pulled = self._store.pull(self._version)
      if pulled is not None:
        self._version, weights = pulled
        self._reference = ray.put([np.asarray(w) for w in weights])
      return self._version, self._reference


class _Worker:
  """A `seats.RemoteWorker`; its calls are lists of references."""

  def __init__(self, weights: _Weights, options: dict[str, Any]):
    self._weights = weights
    self._handle = _Process.options(**options).remote()

  def introduce(self):
    return [self._handle.introduce.remote()]

  def set_up(self, order):
    return [self._handle.set_up.remote(order)]

  def unroll(self):
    return self._handle.unroll.remote(*self._weights.newest())

  def done(self, call, timeout_secs, here):
    ready, _ = ray.wait(
      call, num_returns=len(call), timeout=timeout_secs, fetch_local=here
    )
    return len(ready) == len(call)

  def result(self, call):
    """Arrays lie in the object store, and stay there as long as they live."""
    try:
      values = ray.get(call)
    except ray.exceptions.RayTaskError as error:
      # Its own exception, from one whose text is its traceback.
      raise error.cause from error
    except ray.exceptions.RayError as error:
      raise seats.LostError(str(error)) from error
    return values[0] if len(values) == 1 else values

  def beat(self, timeout_secs):
    try:
      return ray.get(self._handle.beat.remote(), timeout=timeout_secs)
    except ray.exceptions.RayError as error:
      raise seats.LostError(f'it does not answer: {error}') from error

  def close(self):
    return self._handle.close.remote()

  def kill(self):
    ray.kill(self._handle)


class RemoteActors:
  """`num_actors` workers on a cluster: an `actor_groups.ActorGroup`."""

  def __init__(
    self,
    parts: actor_groups.Parts,
    make_task: seats.MakeTask,
    spec: structs.EnvironmentSpec,
    cluster: Cluster,
  ):
    """Starts nothing yet.

    Args:
      parts: of the run.
      make_task: makes the task on the workers' machines.
      spec: of the environments.
      cluster: to run on; left at the end.
    """
    settings = parts.settings
    self._distributed = settings.distributed
    self._cluster = cluster
    self._threads = parts.workers
    self._stop = threading.Event()
    self._table = worker_table.WorkerTable(
      parts.logdir,
      settings.actor.num_actors,
      settings.learner.unroll_length
      * settings.actor.envs_per_actor
      * spec.frames_per_step,
    )
    self._seats = self._make_seats(parts, make_task, spec)
    self._remind_at = 0.0

  def _make_seats(self, parts, make_task, spec):
    """One for each worker."""
    actor = parts.settings.actor
    hire = functools.partial(
      _Worker,
      _Weights(parts.store),
      ray_settings.worker_options(self._distributed),
    )
    levels = tasks.deal(
      parts.task.level_names,
      actor.num_actors,
      actor.envs_per_actor,
      parts.task.weights,
    )
    decode = _decoder(parts, spec)
    return [
      seats.Seat(
        parts,
        self._table.rows[index],
        self._stop,
        hire,
        seats.order_maker(parts, make_task, spec, index, level_names),
        decode,
      )
      for index, level_names in enumerate(levels)
    ]

  def start(self) -> None:
    """Starts a thread for each worker, which starts the worker."""
    self._remind_at = time.monotonic() + _PATIENCE_SECS
    for index, seat in enumerate(self._seats):
      self._threads.start(f'actor {index}', seat.run)

  def stop(self) -> None:
    """Asks all threads to leave; they need not wait for their workers."""
    self._stop.set()

  def close_environments(self) -> None:
    """Does nothing: no thread of this process waits for environments."""

  def end(self) -> None:
    """Ends all workers with their environments, and leaves the cluster."""
    closing = [call for seat in self._seats if (call := seat.close())]
    if closing:
      ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_SECS)
    for seat in self._seats:
      seat.kill()
    self._cluster.leave(keep_logs=self._threads.failed)

  def check(self) -> None:
    """Says which workers still wait for a machine, once a minute."""
    now = time.monotonic()
    num_waiting = self._table.count(worker_table.WAITING)
    if not num_waiting:
      self._remind_at = now + _PATIENCE_SECS
    elif now >= self._remind_at:
      self._remind_at = now + _REMIND_SECS
      offered = [node['Resources'] for node in ray.nodes() if node['Alive']]
      logging.warning(
        '%d of %d workers wait for a machine: %s They begin as soon as they '
        'fit somewhere.',
        num_waiting,
        len(self._seats),
        ray_settings.why_waiting(self._distributed, offered),
      )

  def timers(self) -> list[timing.Timers]:
    """Timers of all workers, replaced ones included."""
    return [seat.timers for seat in self._seats]

  def metrics(self) -> dict[str, Any]:
    """Live figures of the workers, which go to their file as well."""
    return self._table.metrics()

  @property
  def num_restarts(self) -> int:
    """Workers and environments that were replaced so far."""
    return sum(row.restarts + row.losses for row in self._table.rows)

  @property
  def num_dropped_steps(self) -> int:
    """Agent steps of unrolls that were given up, at most."""
    return sum(seat.num_dropped_steps for seat in self._seats)


def _decoder(parts, spec) -> Callable[[Any], structs.Unroll]:
  """Gives the unrolls that workers have encoded."""
  if parts.settings.distributed.unroll_encoding == 'raw':
    return lambda unroll: unroll
  example = dataset.example_unroll(
    parts.make_agent(), spec, parts.settings.learner.unroll_length
  )
  return lambda data: wire.decode(data, example)
