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

import threading
from collections.abc import Sequence
from typing import Any


class ParamStore:
  """Holds the newest weights only. Version n has seen n updates.

  The weights travel with their version under one lock, so that nobody can
  see the one without the other. They are shared, not copied: publish tensors
  or arrays that nobody writes to.
  """

  def __init__(self):
    """Makes a store without weights; `pull` gives None until `publish`."""
    self._lock = threading.Lock()
    self._version = -1
    self._weights: Sequence[Any] = ()

  def publish(self, version: int, weights: Sequence[Any]) -> None:
    """Replaces the weights. `version` must not be older than the last."""
    with self._lock:
      if version < self._version:
        raise ValueError(
          f'version {version} is older than the published {self._version}.'
        )
      self._version, self._weights = version, tuple(weights)

  def pull(self, have_version: int) -> tuple[int, Sequence[Any]] | None:
    """Newest `(version, weights)`, or None if `have_version` is newest."""
    with self._lock:
      if self._version <= have_version:
        return None
      return self._version, self._weights

  @property
  def version(self) -> int:
    """Version of the newest weights; -1 before the first."""
    return self._version
