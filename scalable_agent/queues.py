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
"""The queue between actors and learner: bounded, closable, measured."""

import collections
import threading
import time
from typing import NamedTuple

import numpy as np
import tree

from scalable_agent import structs


class QueueStats(NamedTuple):
  """Running totals since the queue was made. Differences give rates.

  num_put, num_got: unrolls that went in and out.
  num_bytes: bytes of the unrolls that went in.
  put_wait_secs: time that producers were blocked, summed over them.
  get_wait_secs: time that the consumer was blocked.
  residence_secs: time that unrolls spent in the queue, summed over them.
  length_secs: integral of the queue length over time; divided by a duration
    it is the mean length Q of Little's law.
  """

  num_put: int = 0
  num_got: int = 0
  num_bytes: int = 0
  put_wait_secs: float = 0.0
  get_wait_secs: float = 0.0
  residence_secs: float = 0.0
  length_secs: float = 0.0


class UnrollQueue:
  """First in, first out; `put` blocks while full: the only back-pressure.

  Nothing is ever dropped while the queue is open. `close` wakes every waiting
  thread, which then gets `structs.Closed`; unrolls still inside are counted
  in `num_left`.
  """

  def __init__(self, capacity: int):
    """Makes a queue of at most `capacity` unrolls."""
    if capacity < 1:
      raise ValueError(f'capacity is {capacity}; it must be at least 1.')
    self._capacity = capacity
    self._items: collections.deque = collections.deque()
    # Producers get their turn in the order they came: a thread that others
    # overtake again and again would bring ever older data.
    self._turns: collections.deque = collections.deque()
    self._closed = False
    self._changed = threading.Condition()
    self._stats = QueueStats()
    self._counted_at = time.monotonic()

  def put(self, unroll: structs.Unroll) -> None:
    """Appends `unroll`; blocks while full; raises `Closed` once closed."""
    num_bytes = sum(np.asarray(x).nbytes for x in tree.flatten(unroll))
    start = time.monotonic()
    turn = object()
    with self._changed:
      self._turns.append(turn)
      self._changed.wait_for(lambda: self._closed or self._may_put(turn))
      self._turns.remove(turn)
      self._count(
        num_bytes=num_bytes, put_wait_secs=time.monotonic() - start, num_put=1
      )
      if self._closed:
        raise structs.Closed('put on a closed queue')
      self._items.append((time.monotonic(), unroll))
      self._changed.notify_all()

  def get(self) -> structs.Unroll:
    """Takes the oldest unroll; blocks while empty; raises `Closed`."""
    start = time.monotonic()
    with self._changed:
      self._changed.wait_for(lambda: self._closed or self._items)
      now = time.monotonic()
      self._count(get_wait_secs=now - start)
      if self._closed:
        raise structs.Closed('get on a closed queue')
      put_at, unroll = self._items.popleft()
      self._count(num_got=1, residence_secs=now - put_at)
      self._changed.notify_all()
      return unroll

  def close(self) -> None:
    """Ends every wait. May be called twice, and from any thread."""
    with self._changed:
      self._closed = True
      self._changed.notify_all()

  def stats(self) -> QueueStats:
    """The running totals up to now."""
    with self._changed:
      self._count()
      return self._stats

  @property
  def closed(self) -> bool:
    """Whether the queue has been closed."""
    return self._closed

  @property
  def num_left(self) -> int:
    """Unrolls inside: waiting, or given up by `close`."""
    return len(self._items)

  def _may_put(self, turn):
    return self._turns[0] is turn and len(self._items) < self._capacity

  def _count(self, **increments):
    """Adds to the totals; called before each change of the length."""
    now = time.monotonic()
    increments['length_secs'] = len(self._items) * (now - self._counted_at)
    self._counted_at = now
    self._stats = self._stats._replace(
      **{k: getattr(self._stats, k) + v for k, v in increments.items()}
    )
