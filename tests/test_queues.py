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
"""Tests for queues: order, back-pressure, closing, figures."""

import threading
import time

import numpy as np
import pytest

from scalable_agent import queues, structs


def item(value):
  return (np.full(10, value, np.float32),)


def in_thread(function):
  result = []

  def run():
    try:
      result.append(function())
    except structs.Closed as error:
      result.append(error)

  thread = threading.Thread(target=run, daemon=True)
  thread.start()
  return thread, result


def test_unrolls_leave_in_the_order_they_came():
  queue = queues.UnrollQueue(3)
  for i in range(3):
    queue.put(item(i))
  assert [queue.get()[0][0] for _ in range(3)] == [0, 1, 2]


def test_put_waits_for_room_and_get_for_an_unroll():
  queue = queues.UnrollQueue(1)
  queue.put(item(0))
  thread, result = in_thread(lambda: queue.put(item(1)))
  thread.join(0.1)
  assert thread.is_alive()
  assert queue.get()[0][0] == 0
  thread.join(5)
  assert result == [None]
  assert queue.get()[0][0] == 1
  thread, result = in_thread(queue.get)
  thread.join(0.1)
  assert thread.is_alive()
  queue.put(item(2))
  thread.join(5)
  assert result[0][0][0] == 2


def test_close_wakes_both_sides_and_may_be_called_twice():
  full, empty = queues.UnrollQueue(1), queues.UnrollQueue(1)
  full.put(item(0))
  waiting = [in_thread(lambda: full.put(item(1))), in_thread(empty.get)]
  time.sleep(0.05)
  for queue in (full, empty):
    queue.close()
    queue.close()
  for thread, result in waiting:
    thread.join(5)
    assert isinstance(result[0], structs.Closed)
  with pytest.raises(structs.Closed):
    full.get()
  assert full.num_left == 1


def test_many_producers_and_one_slow_consumer_lose_nothing():
  queue = queues.UnrollQueue(2)
  producers = [
    in_thread(lambda p=p: [queue.put(item(100 * p + i)) for i in range(50)])
    for p in range(4)
  ]
  got = [int(queue.get()[0][0]) for _ in range(200)]
  for thread, _ in producers:
    thread.join(5)
  assert sorted(got) == [100 * p + i for p in range(4) for i in range(50)]
  for p in range(4):
    own = [g for g in got if g // 100 == p]
    assert own == sorted(own)


def test_figures_agree_with_each_other():
  queue = queues.UnrollQueue(2)
  queue.put(item(0))
  time.sleep(0.05)
  queue.put(item(1))
  time.sleep(0.05)
  queue.get()
  queue.get()
  stats = queue.stats()
  assert (stats.num_put, stats.num_got, stats.num_bytes) == (2, 2, 80)
  # Little: the integral of the length is the time spent inside, summed.
  assert stats.length_secs == pytest.approx(stats.residence_secs, abs=5e-3)
  assert stats.residence_secs >= 0.15


def test_capacity_must_be_positive():
  with pytest.raises(ValueError, match='capacity is 0; it must be at least 1'):
    queues.UnrollQueue(0)


def test_producers_take_turns():
  queue = queues.UnrollQueue(1)
  queue.put(item(-1))
  waiting = []
  for i in range(6):
    waiting.append(in_thread(lambda i=i: queue.put(item(i))))
    # The next one comes when this one stands in line.
    while len(queue._turns) <= i:
      time.sleep(0.001)
  assert [int(queue.get()[0][0]) for _ in range(7)] == [-1, *range(6)]
