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
"""What happens when an environment fails: the run ends, or it is replaced."""

import collections

from absl import logging

from scalable_agent.envs import base, seeds


class Restarts:
  """Decides over the failures of one actor's environments.

  count: Restarts used so far.
  """

  def __init__(
    self,
    on_error: str,
    max_restarts: int,
    base_seed: int,
    actor: int,
    used: int = 0,
  ):
    """Starts with no failure.

    Args:
      on_error: 'abort' or 'restart'.
      max_restarts: Restarts of the actor's environments together, after which
        the next failure aborts after all.
      base_seed: Seed of the run.
      actor: Index of the actor.
      used: Restarts that count already.
    """
    if on_error not in ('abort', 'restart'):
      raise ValueError(
        f'on_error is {on_error!r}; it must be abort or restart.'
      )
    self._on_error = on_error
    self._max_restarts = max_restarts
    self._base_seed = base_seed
    self._actor = actor
    self._first_failure: Exception | None = None
    self._per_environment = collections.Counter()
    self.count = used

  def seed(self, environment: int) -> int:
    """Seed for the next life of an environment of this actor."""
    return seeds.environment_seed(
      self._base_seed,
      self._actor,
      environment,
      self._per_environment[environment],
    )

  def name(self, environment: int, level_name: str) -> str:
    """How messages call an environment: with all that it takes to repeat it."""
    return (
      f'environment {environment} of actor {self._actor} ({level_name}, seed '
      f'{self.seed(environment)})'
    )

  def grant(self, environment: int, failure: base.BrokenEnvironmentError):
    """Returns if the environment may be replaced, else raises.

    Args:
      environment: Index of the one that failed.
      failure: What happened, in words that name the environment.
    """
    if self._first_failure is None:
      self._first_failure = failure
    if self._on_error == 'abort':
      raise failure
    if self.count >= self._max_restarts:
      raise base.BrokenEnvironmentError(
        f'{failure} This is one failure more than max_restarts='
        f'{self._max_restarts} allows; the first was: {self._first_failure}'
      ) from self._first_failure
    self.count += 1
    self._per_environment[environment] += 1
    logging.warning(
      'Restart %d of %d: %s', self.count, self._max_restarts, failure
    )
