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
"""Who may be replaced after a failure, how often, and how soon."""

import collections
import time
from collections.abc import Callable

_FIRST_BACKOFF_SECS = 0.5
_LONGEST_BACKOFF_SECS = 30.0
_LOSS_WINDOW_SECS = 3600.0


def backoff_secs(num_failures: int) -> float:
  """How long to wait after so many failures: doubled each time, to 30 s."""
  doublings = min(num_failures - 1, 10)
  return min(_FIRST_BACKOFF_SECS * 2**doublings, _LONGEST_BACKOFF_SECS)


class TooManyFailuresError(RuntimeError):
  """A worker may not be replaced once more; the first failure is the cause."""


class Replacements:
  """Decides over the failures of one worker and those that replace it.

  A worker *fails* when its environments raise or hang: `on_env_error` and
  `max_restarts` are about that, over the whole run and together with restarts
  of single environments. It is *lost* when its process or machine dies, which
  says nothing about the environments and is expected now and then: as many
  losses are granted within an hour.
  """

  def __init__(
    self,
    on_env_error: str,
    max_restarts: int,
    max_losses: int,
    now: Callable[[], float] = time.monotonic,
  ):
    """Starts with no failure.

    Args:
      on_env_error: 'abort' or 'restart'.
      max_restarts: failures and restarts of environments, in all.
      max_losses: losses within an hour.
      now: the clock, in seconds.
    """
    self._on_env_error = on_env_error
    self._max_restarts = max_restarts
    self._max_losses = max_losses
    self._now = now
    self._losses: collections.deque[float] = collections.deque()
    self._first: Exception | None = None
    self.num_restarts = 0
    self.num_losses = 0

  @property
  def attempt(self) -> int:
    """How many workers there were before the present one; for seeds."""
    return self.num_restarts + self.num_losses

  def after_failure(self, error: Exception) -> float:
    """Seconds to wait before the next worker; raises if there is to be none."""
    self._first = self._first or error
    if self._on_env_error == 'abort':
      raise error
    if self.num_restarts >= self._max_restarts:
      self._give_up(error, f'max_restarts={self._max_restarts}')
    self.num_restarts += 1
    return backoff_secs(self.num_restarts)

  def after_loss(self, error: Exception) -> float:
    """Seconds to wait before the next worker; raises if there is to be none."""
    self._first = self._first or error
    now = self._now()
    while self._losses and now - self._losses[0] > _LOSS_WINDOW_SECS:
      self._losses.popleft()
    if len(self._losses) >= self._max_losses:
      self._give_up(error, f'max_worker_losses={self._max_losses} in an hour')
    self._losses.append(now)
    self.num_losses += 1
    return backoff_secs(len(self._losses))

  def count_restarts(self, num_restarts: int) -> None:
    """Takes in what the worker's environments have used up of the restarts."""
    self.num_restarts = max(self.num_restarts, num_restarts)

  def _give_up(self, error, limit):
    raise TooManyFailuresError(
      f'this is one failure more than {limit} allows: {error} The first was: '
      f'{type(self._first).__name__}: {self._first}'
    ) from self._first
