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
"""Workers, learner and what is between them, event by event.

For sizes that no machine at hand can hold. A worker plays an unroll on cores,
its unroll travels, the learner's process takes it in, one at a time, and puts
it into the bounded queue; with enough of them the learner updates. The worker
begins anew, with the newest weights, once its unroll is in the queue.
"""

import collections
import heapq
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Times(NamedTuple):
  """What each stage takes, in seconds.

  play: processor time of an unroll in its worker.
  travel: from a worker to the learner and back, without processor time.
  take: processor time of the learner's process for an unroll that arrives.
  update: processor time of an update.
  spread: standard deviation of `play`, as a share of it.
  """

  play: float
  travel: float
  take: float
  update: float
  spread: float = 0.1


class Setup(NamedTuple):
  """What is simulated.

  num_workers: N.
  unrolls_per_update: of one batch.
  queue_capacity: unrolls.
  shared_cores: of the one machine that does everything; None: every worker has
    a core of its own, and so has each half of the learner.
  update_threads: cores that an update can use.
  """

  num_workers: int
  unrolls_per_update: int
  queue_capacity: int = 1
  shared_cores: int | None = None
  update_threads: int = 1


class Result(NamedTuple):
  """What came of it.

  unrolls_per_sec: trained.
  learner_share: of the time in which the learner updated.
  lag: mean number of updates between the start of an unroll and its use.
  """

  unrolls_per_sec: float
  learner_share: float
  lag: float


def simulate(
  setup: Setup, times: Times, num_rounds: int = 20, seed: int = 0
) -> Result:
  """Runs until all workers could have sent so many unrolls, and 300 updates.

  The first fifth does not count: it takes a while until all wait for room.
  """
  num_updates = num_rounds * setup.num_workers // setup.unrolls_per_update + 300
  return _Simulation(setup, times, seed).run(num_updates)


class _Clock:
  """What is due when."""

  def __init__(self):
    self.now = 0.0
    self._due: list = []
    self._order = itertools.count()

  def after(self, secs: float, action: Callable[[], None]):
    heapq.heappush(self._due, (self.now + secs, next(self._order), action))

  def step(self):
    self.now, _, action = heapq.heappop(self._due)
    action()


class _Cores:
  """Jobs that share cores evenly; each is on one core at most.

  Every job gets the same speed, so they end in the order of the virtual time
  at which they would: what has been done for any one job since the start.
  """

  def __init__(self, clock: _Clock, num_cores: int):
    self._clock, self._num_cores = clock, num_cores
    self._done = 0.0
    self._since = 0.0
    self._jobs: list = []
    self._order = itertools.count()
    self._plan = 0

  def run(self, secs: float, action: Callable[[], None]):
    """Calls `action` when `secs` of processor time have been given."""
    self._advance()
    heapq.heappush(self._jobs, (self._done + secs, next(self._order), action))
    self._replan()

  def _speed(self):
    return min(1.0, self._num_cores / len(self._jobs)) if self._jobs else 0.0

  def _advance(self):
    self._done += (self._clock.now - self._since) * self._speed()
    self._since = self._clock.now

  def _replan(self):
    self._plan += 1
    if self._jobs:
      left = max(self._jobs[0][0] - self._done, 0.0)
      plan = self._plan
      self._clock.after(left / self._speed(), lambda: self._finish(plan))

  def _finish(self, plan):
    if plan != self._plan:
      return
    self._advance()
    _, _, action = heapq.heappop(self._jobs)
    self._replan()
    action()


class _Simulation:
  def __init__(self, setup, times, seed):
    self._setup, self._times = setup, times
    self._random = np.random.default_rng(seed)
    self._clock = _Clock()
    if setup.shared_cores:
      self._worker_cores = _Cores(self._clock, setup.shared_cores)
      self._learner_cores = self._worker_cores
    else:
      self._worker_cores = _Cores(self._clock, setup.num_workers)
      self._learner_cores = _Cores(self._clock, 1 + setup.update_threads)
    self._arrived: collections.deque = collections.deque()
    self._taking = False
    self._queue: collections.deque = collections.deque()
    # A batch that is joined, and one that waits ahead.
    self._room = setup.queue_capacity + 2 * setup.unrolls_per_update
    self._version = 0
    self._updating = False
    self._update_secs = 0.0
    self._lags: list[float] = []

  def run(self, num_updates):
    for _ in range(self._setup.num_workers):
      # Workers do not begin in step.
      self._clock.after(
        self._random.uniform(0, self._times.play), lambda: self._play()
      )
    warm = num_updates // 5
    self._run_until(warm)
    start, self._update_secs, self._lags = self._clock.now, 0.0, []
    self._run_until(num_updates)
    secs = self._clock.now - start
    num_unrolls = (num_updates - warm) * self._setup.unrolls_per_update
    return Result(
      num_unrolls / secs, self._update_secs / secs, float(np.mean(self._lags))
    )

  def _run_until(self, version):
    while self._version < version:
      self._clock.step()

  def _play(self):
    version = self._version
    factor = 1 + self._times.spread * self._random.standard_normal()
    self._worker_cores.run(
      self._times.play * max(factor, 0.1), lambda: self._send(version)
    )

  def _send(self, version):
    self._travel(lambda: self._arrive(version))

  def _travel(self, action):
    """Half of the way there and back.

    On one machine it is Ray's processes that take the time, on its cores.
    """
    secs = self._times.travel / 2
    if self._setup.shared_cores:
      self._worker_cores.run(secs, action)
    else:
      self._clock.after(secs, action)

  def _arrive(self, version):
    self._arrived.append(version)
    self._take()

  def _take(self):
    """Takes in the next unroll, if there is one and there is room."""
    if self._taking or not self._arrived or len(self._queue) >= self._room:
      return
    self._taking = True
    self._learner_cores.run(self._times.take, self._taken)

  def _taken(self):
    self._taking = False
    self._queue.append(self._arrived.popleft())
    self._travel(self._play)
    self._update()
    self._take()

  def _update(self):
    if self._updating or len(self._queue) < self._setup.unrolls_per_update:
      return
    self._updating = True
    for _ in range(self._setup.unrolls_per_update):
      self._lags.append(self._version - self._queue.popleft())
    began, running = self._clock.now, [self._setup.update_threads]

    def part_done():
      running[0] -= 1
      if not running[0]:
        self._updated(began)

    share = self._times.update / self._setup.update_threads
    for _ in range(self._setup.update_threads):
      self._learner_cores.run(share, part_done)
    self._take()

  def _updated(self, began):
    self._update_secs += self._clock.now - began
    self._updating = False
    self._version += 1
    self._update()
    self._take()
