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
"""SIGINT and SIGTERM ask a run to end; a second one insists."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def asking_to_stop(wake: Callable[[], None]) -> Iterator[list[int]]:
  """Collects SIGINT and SIGTERM within the `with` block.

  The first signal is appended to the list and `wake` is called; from then on
  signals do again what they did before. Outside the main thread, where Python
  allows no handlers, the list stays empty.

  Args:
    wake: called from the signal handler.

  Yields:
    The list of received signal numbers.
  """
  received: list[int] = []
  if threading.current_thread() is not threading.main_thread():
    yield received
    return
  signums = (signal.SIGINT, signal.SIGTERM)
  previous = {signum: signal.getsignal(signum) for signum in signums}

  def restore():
    for signum, handler in previous.items():
      signal.signal(signum, handler)

  def receive(signum, _):
    received.append(signum)
    restore()
    wake()

  for signum in signums:
    signal.signal(signum, receive)
  try:
    yield received
  finally:
    restore()
