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
"""Worker threads whose first exception reaches the main thread."""

import sys
import threading
import time
import traceback
from collections.abc import Callable

from scalable_agent import structs


class WorkerFailedError(RuntimeError):
  """A worker ended with an exception, which is the `__cause__`."""


class Workers:
  """Named threads. The first failure is kept and wakes whoever waits.

  A worker that leaves with `structs.Closed` has been told to stop: no failure.
  Threads are daemons, so that one which hangs in a simulator cannot keep the
  process alive.
  """

  def __init__(self):
    """Starts without workers."""
    self._threads: list[threading.Thread] = []
    self._failure: tuple[str, BaseException] | None = None
    self._lock = threading.Lock()
    self._woken = threading.Event()

  def start(self, name: str, function: Callable[[], None]) -> threading.Thread:
    """Runs `function` in a new thread called `name`."""
    thread = threading.Thread(
      target=self._run, args=(name, function), name=name, daemon=True
    )
    self._threads.append(thread)
    thread.start()
    return thread

  def fail(self, name: str, error: BaseException) -> None:
    """Reports a failure of `name`. Only the first one counts."""
    with self._lock:
      if self._failure is None:
        self._failure = (name, error)
    self._woken.set()

  def wake(self) -> None:
    """Ends the current or the next `wait` early."""
    self._woken.set()

  def wait(self, timeout_secs: float) -> None:
    """Sleeps until `timeout_secs` have passed, a failure, or `wake`."""
    self._woken.wait(timeout_secs)
    self._woken.clear()

  @property
  def failed(self) -> bool:
    """Whether a worker has failed."""
    return self._failure is not None

  def raise_failure(self) -> None:
    """Raises the first failure with its own traceback, if there is one."""
    if self._failure is not None:
      name, error = self._failure
      raise WorkerFailedError(
        f'{name} failed: {type(error).__name__}: {error}'
      ) from error

  def join(self, timeout_secs: float) -> list[str]:
    """Waits for all threads; returns the names of those that still run."""
    deadline = time.monotonic() + timeout_secs
    for thread in self._threads:
      thread.join(max(0.0, deadline - time.monotonic()))
    return [t.name for t in self._threads if t.is_alive()]

  def stacks(self) -> str:
    """Where each thread that still runs is, for a log."""
    frames = sys._current_frames()
    return '\n'.join(
      f'{thread.name}:\n' + ''.join(traceback.format_stack(frame))
      for thread in self._threads
      if (frame := frames.get(thread.ident)) is not None
    )

  def _run(self, name, function):
    try:
      function()
    except structs.Closed:
      pass
    except BaseException as error:
      self.fail(name, error)
