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
"""Where the time of a thread goes: seconds by stage."""

import collections
import contextlib
import time
from collections.abc import Iterator


class Timers:
  """Sums wall-clock seconds by stage name.

  One thread adds, others may read `secs` at any time. `last_beat` is the
  monotonic time of the last stage that began or ended: a thread whose beat is
  old hangs in `current`.
  """

  def __init__(self):
    """Starts with no time in any stage."""
    self.secs: dict[str, float] = collections.defaultdict(float)
    self.current = ''
    self.last_beat = time.monotonic()

  @contextlib.contextmanager
  def __call__(self, stage: str) -> Iterator[None]:
    """Adds the time of the `with` block to `stage`."""
    start = self.last_beat = time.monotonic()
    self.current = stage
    try:
      yield
    finally:
      self.last_beat = time.monotonic()
      self.current = ''
      self.secs[stage] += self.last_beat - start
