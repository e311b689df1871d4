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
"""Versioned weights: the learner publishes, actors pull."""

import collections
import threading
from collections.abc import Sequence
from typing import Any

from scalable_agent import structs


class ParamStore:
  """Gives out the newest weights, or older ones. Version n saw n updates.

  The weights travel with their version under one lock, so that nobody can
  see the one without the other. They are shared, not copied: publish tensors
  or arrays that nobody writes to.
  """

  def __init__(self, lag: int = 0):
    """Makes a store without weights; `pull` gives None until `publish`.

    Args:
      lag: gives out the weights of so many updates ago instead of the newest;
        as long as there are none so old, the oldest.
    """
    self._changed = threading.Condition()
    self._lag = lag
    # Oldest first: what is given out, then what will be.
    self._kept: collections.deque[tuple[int, Sequence[Any]]] = (
      collections.deque()
    )
    self._closed = False

  def publish(self, version: int, weights: Sequence[Any]) -> None:
    """Brings newer weights. `version` must not be older than the last."""
    with self._changed:
      if version < self.version:
        raise ValueError(
          f'version {version} is older than the published {self.version}.'
        )
      self._kept.append((version, tuple(weights)))
      while len(self._kept) > 1 and self._kept[1][0] <= version - self._lag:
        self._kept.popleft()
      self._changed.notify_all()

  def pull(self, have_version: int) -> tuple[int, Sequence[Any]] | None:
    """`(version, weights)` to act with, or None if `have_version` is that."""
    with self._changed:
      if not self._kept or self._kept[0][0] <= have_version:
        return None
      return self._kept[0]

  def wait_for_newer(self, version: int) -> None:
    """Waits until something newer than `version` has been published.

    Raises `structs.Closed` once closed.
    """
    with self._changed:
      self._changed.wait_for(lambda: self._closed or self.version > version)
      if self._closed:
        raise structs.Closed('waiting for weights of a closed store')

  def close(self) -> None:
    """Ends every wait, now and later. Weights can still be pulled."""
    with self._changed:
      self._closed = True
      self._changed.notify_all()

  @property
  def version(self) -> int:
    """Version of the newest weights published; -1 before the first."""
    return self._kept[-1][0] if self._kept else -1
