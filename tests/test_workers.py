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
"""Tests for runtime.workers and runtime.signals."""

import os
import signal
import threading
import time
import traceback

import pytest

from scalable_agent import structs
from scalable_agent.runtime import signals, workers


def raise_error(error):
  raise error


def test_the_first_failure_is_raised_with_its_own_traceback():
  pool = workers.Workers()
  pool.start('actor 3', lambda: raise_error(KeyError('lost')))
  pool.join(5)
  pool.fail('actor 4', ValueError('later'))
  with pytest.raises(
    workers.WorkerFailedError, match="actor 3 failed: KeyError: 'lost'"
  ) as caught:
    pool.raise_failure()
  cause = caught.value.__cause__
  assert 'raise_error' in ''.join(traceback.format_tb(cause.__traceback__))


def test_a_failure_wakes_the_waiting_thread_at_once():
  pool = workers.Workers()
  gate = threading.Event()
  pool.start('late', lambda: gate.wait() and raise_error(RuntimeError('now')))
  threading.Timer(0.05, gate.set).start()
  start = time.monotonic()
  pool.wait(30)
  assert time.monotonic() - start < 10
  assert pool.failed


def test_leaving_on_closed_is_no_failure():
  pool = workers.Workers()
  pool.start('actor', lambda: raise_error(structs.Closed('told to')))
  assert pool.join(5) == []
  assert not pool.failed
  pool.raise_failure()


def test_join_names_those_that_hang():
  pool = workers.Workers()
  gate = threading.Event()
  pool.start('stuck', gate.wait)
  assert pool.join(0.05) == ['stuck']
  gate.set()
  assert pool.join(5) == []


@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_collected_and_the_next_one_is_as_before(signum):
  before = signal.getsignal(signum)
  woken = []
  with signals.asking_to_stop(lambda: woken.append(True)) as received:
    os.kill(os.getpid(), signum)
    deadline = time.monotonic() + 5
    while not received and time.monotonic() < deadline:
      time.sleep(0.01)
    assert received == [signum]
    assert woken
    assert signal.getsignal(signum) is before
  assert signal.getsignal(signum) is before


def test_stacks_show_where_a_thread_hangs():
  pool = workers.Workers()
  gate = threading.Event()
  pool.start('stuck', gate.wait)
  time.sleep(0.05)
  assert 'stuck:' in pool.stacks()
  assert 'in wait' in pool.stacks()
  gate.set()
