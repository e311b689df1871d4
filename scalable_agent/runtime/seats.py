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
"""The place of one worker: filled again whenever it falls empty.

Nothing here knows of Ray: a worker is whatever keeps `RemoteWorker`.
"""

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from absl import logging

from scalable_agent import config, structs, tasks, timing
from scalable_agent.runtime import (
  actor_groups,
  replacements,
  rollout_worker,
  worker_table,
)

_POLL_SECS = 0.5
_BEAT_SECS = 30.0

MakeTask = Callable[[config.Config], tasks.Task]


class LostError(Exception):
  """A worker is gone or does not answer: its process, machine or network."""


class RemoteWorker(Protocol):
  """A worker in another process. Calls return at once, with a handle."""

  def introduce(self) -> Any:
    """Asks for the address of its machine and its process id."""

  def set_up(self, order: rollout_worker.Order) -> Any:
    """Gets it ready to play."""

  def unroll(self) -> Any:
    """Asks for an unroll with the newest weights, and a report."""

  def done(self, call: Any, timeout_secs: float, here: bool) -> bool:
    """Waits so long at most; whether `call` has ended, one way or another.

    Args:
      call: under way.
      timeout_secs: how long to wait.
      here: not before its result has travelled to this machine.
    """

  def result(self, call: Any) -> Any:
    """What `call` gave.

    Raises:
      LostError: the worker is gone.
      Exception: the worker's own.
    """

  def beat(self, timeout_secs: float) -> tuple[str, float]:
    """Its present stage and how old that is; raises `LostError`."""

  def close(self) -> Any:
    """Asks it to end its environments."""

  def kill(self) -> None:
    """Ends its process, and with it what that has started."""


class Seat:
  """One worker after another, each with a new seed.

  A thread of its own hands a worker its order, then waits for unroll after
  unroll and puts them into the queue.
  """

  def __init__(
    self,
    parts: actor_groups.Parts,
    row: worker_table.Row,
    stop: threading.Event,
    hire: Callable[[], RemoteWorker],
    make_order: Callable[[int, int], rollout_worker.Order],
    decode: Callable[[Any], structs.Unroll] = lambda unroll: unroll,
  ):
    """Starts nothing yet.

    Args:
      parts: of the run.
      row: for the figures of this seat.
      stop: set when the run ends.
      hire: gets one more worker.
      make_order: from the numbers of replacements, and of restarts, so far.
      decode: gives the unroll that a worker has encoded.
    """
    self.timers = timing.Timers()
    self.num_dropped_steps = 0
    self._queue = parts.queue
    self._store = parts.store
    self._row = row
    self._stop = stop
    self._hire = hire
    self._make_order = make_order
    self._decode = decode
    settings = parts.settings
    self._in_flight = settings.distributed.unrolls_in_flight
    self._timeout_secs = settings.actor.env_timeout_secs
    self._unroll_steps = (
      settings.learner.unroll_length * settings.actor.envs_per_actor
    )
    self._replacements = replacements.Replacements(
      settings.actor.on_env_error,
      settings.actor.max_restarts,
      settings.distributed.max_worker_losses,
    )
    self._worker: RemoteWorker | None = None
    self._num_under_way = 0
    self._reported = rollout_worker.Report({}, 0, 0)
    self._put_secs = 0.0

  def run(self) -> None:
    """Until told to stop or out of replacements."""
    while not self._stop.is_set():
      self._row.state = worker_table.WAITING
      self._num_under_way = 0
      self._reported = rollout_worker.Report({}, 0, 0)
      worker = self._worker = self._hire()
      try:
        self._play(worker)
      except structs.Closed:
        return
      except Exception as error:
        if self._stop.is_set():
          return
        self._stop.wait(self._replace(error))

  def close(self) -> Any:
    """Asks the worker to end its environments; None if it has none."""
    playing = (worker_table.STARTING, worker_table.PLAYING)
    if self._worker is None or self._row.state not in playing:
      return None
    return self._worker.close()

  def kill(self) -> None:
    """Ends the worker."""
    if self._worker is not None:
      self._worker.kill()
      self._worker = None

  def _play(self, worker):
    """Unroll after unroll of one worker, until it fails."""
    self._row.node, self._row.pid = self._ask(worker, worker.introduce())
    self._row.state = worker_table.STARTING
    order = self._make_order(
      self._replacements.attempt, self._replacements.num_restarts
    )
    self._row.levels = ' '.join(sorted(set(order.request.level_names)))
    self._ask(worker, worker.set_up(order), time.monotonic())
    self._row.state = worker_table.PLAYING
    call, began = self._begin(worker)
    while True:
      self._wait(worker, call, began)
      done, call = call, None
      if self._in_flight > 1:
        call, began = self._begin(worker)
      self._wait(worker, done, here=True)
      self._deliver(*worker.result(done))
      if call is None:
        call, began = self._begin(worker)

  def _begin(self, worker):
    """Has the worker begin an unroll."""
    self._num_under_way += 1
    return worker.unroll(), time.monotonic()

  def _ask(self, worker, call, began=None):
    self._wait(worker, call, began)
    return worker.result(call)

  def _wait(self, worker, call, began=None, here=False):
    """Until `call` has ended; raises if nothing comes for too long.

    Args:
      worker: that was called.
      call: under way.
      began: when it was made; None: it may take for ever.
      here: until its result is on this machine.
    """
    look_at = (began or 0.0) + self._timeout_secs
    while not worker.done(call, _POLL_SECS, here):
      if self._stop.is_set():
        raise structs.Closed('the run ends.')
      if began is not None and time.monotonic() >= look_at:
        look_at = time.monotonic() + self._silence_left(worker)

  def _silence_left(self, worker) -> float:
    """How long the worker may still be silent; raises if it is too long."""
    limit = self._timeout_secs
    stage, age = worker.beat(_BEAT_SECS)
    if stage == 'env' and age > limit:
      raise TimeoutError(
        f'its environments ({self._row.levels}) have not answered for '
        f'{age:.0f} s, more than env_timeout_secs={limit:g}.'
      )
    return max(limit - age, 1.0)

  def _deliver(self, report, encoded):
    """Takes in a report; puts the unroll into the queue."""
    self._note(report)
    unroll = self._decode(encoded)
    self._num_under_way -= 1
    self._row.policy_lag = self._store.version - int(unroll.version[0])
    start = time.monotonic()
    self._queue.put(unroll)
    self._put_secs = time.monotonic() - start
    self._row.unrolls += 1

  def _note(self, report):
    """Takes in what the worker says of itself."""
    before, self._reported = self._reported, report
    spent = {
      stage: secs - before.secs.get(stage, 0.0)
      for stage, secs in report.secs.items()
    }
    # The worker was idle while its last unroll travelled and waited for room
    # in the queue, and while the newest weights came.
    idle = spent.pop('idle')
    put = min(idle, self._put_secs)
    for stage, secs in {**spent, 'put': put, 'travel': idle - put}.items():
      self.timers.secs[stage] += secs
    self.num_dropped_steps += (
      report.num_dropped_steps - before.num_dropped_steps
    )
    self._replacements.count_restarts(report.num_restarts)
    self._row.restarts = self._replacements.num_restarts

  def _replace(self, error: Exception) -> float:
    """Takes leave of the worker; returns how long to wait for the next one."""
    self._row.state = worker_table.LOST
    self.num_dropped_steps += self._num_under_way * self._unroll_steps
    self.kill()
    if isinstance(error, LostError):
      pause = self._replacements.after_loss(error)
    else:
      pause = self._replacements.after_failure(error)
    self._row.restarts = self._replacements.num_restarts
    self._row.losses = self._replacements.num_losses
    self._row.last_error = f'{type(error).__name__}: {error}'.splitlines()[0]
    logging.warning(
      'Worker %d, process %d on %s, is replaced in %.1f s (restarts: %d, '
      'losses: %d): %s\n%s',
      self._row.worker,
      self._row.pid,
      self._row.node or 'no machine yet',
      pause,
      self._row.restarts,
      self._row.losses,
      self._row.last_error,
      # The text of what Ray raised is the traceback over there.
      error.__cause__ or '',
    )
    return pause


def order_maker(
  parts: actor_groups.Parts,
  make_task: MakeTask,
  spec: structs.EnvironmentSpec,
  index: int,
  level_names: list[str],
) -> Callable[[int, int], rollout_worker.Order]:
  """For `Seat`: what the workers of the seat `index` are to do."""
  return functools.partial(
    _make_order, parts, make_task, spec, index, level_names
  )


def _make_order(
  parts, make_task, spec, index, level_names, attempt, num_restarts
):
  settings = parts.settings
  seed = (settings.run.seed, parts.start)
  # The first worker has the seeds of the local runtime.
  entropy = np.random.SeedSequence((*seed, 1, *((attempt,) if attempt else ())))
  policy_seeds = entropy.generate_state(settings.actor.num_actors)
  base_seed = tasks.start_seed(*seed, attempt)
  return rollout_worker.Order(
    settings,
    make_task,
    spec,
    tasks.Request(level_names, base_seed, index, num_restarts),
    int(policy_seeds.astype(np.int32)[index]),
    tuple(folder or os.getcwd() for folder in sys.path),
  )
