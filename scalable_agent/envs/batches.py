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
"""Environments stepped together: in a plain loop, or several batches as one."""

import abc
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import tree
from absl import logging

from scalable_agent import structs
from scalable_agent.envs import base, buffers, restarts

_CLOSE_SECS = 5.0
_BACKOFF_SECS = 0.1
_MAX_BACKOFF_SECS = 5.0

Failures = list[tuple[int, base.BrokenEnvironmentError]]


class Batch(abc.ABC):
  """What batches of single environments share: `structs.Environments`.

  A step is `send` and then `recv`, so that several batches can work at once.
  Subclasses move actions and results; this class counts episodes and replaces
  environments that fail.
  """

  def __init__(
    self,
    level_names: Sequence[str],
    spec: structs.EnvironmentSpec,
    restart_policy: restarts.Restarts,
    arrays: buffers.Buffers,
  ):
    """Begins no episode yet.

    Args:
      level_names: `[E]`, what each environment plays.
      spec: Of each environment.
      restart_policy: Decides when an environment fails.
      arrays: What the environments are played in.
    """
    self.level_names = tuple(level_names)
    self.num_envs = len(self.level_names)
    self.spec = spec
    self._restarts = restart_policy
    self._arrays = arrays
    self._accounting = base.EpisodeAccounting(self.num_envs)
    self._closing = threading.Event()

  @property
  def num_restarts(self) -> int:
    """How many environments were replaced so far."""
    return self._restarts.count

  def initial(self) -> structs.EnvOutput:
    """Resets all; see `structs.Environments`."""
    self._raise_if_closed()
    self._recover(self._reset_all())
    return self._accounting.begin(self._arrays.observation)

  def step(self, actions: np.ndarray) -> structs.EnvOutput:
    """Steps all; see `structs.Environments`."""
    self.send(actions)
    return self.recv()

  def send(self, actions: np.ndarray):
    """First half of `step`: hands out `actions` `[E, ...]`."""
    self._raise_if_closed()
    expected = (self.num_envs, *self.spec.action.shape)
    if np.shape(actions) != expected:
      raise ValueError(
        f'actions have shape {np.shape(actions)}; {self.num_envs} environments '
        f'take {expected}.'
      )
    np.copyto(self._arrays.actions, actions, casting='same_kind')
    self._send()

  def recv(self) -> structs.EnvOutput:
    """Second half of `step`: waits for the next slot."""
    self._recover(self._receive())
    return self._accounting.slot(
      self._arrays.rewards, self._arrays.outcomes, self._arrays.observation
    )

  def final_observation(self) -> structs.Nest:
    """Last observations of truncated rows; see `structs.Environments`."""
    return self._arrays.final_observation

  @abc.abstractmethod
  def close(self):
    """Ends all environments."""

  @abc.abstractmethod
  def _reset_all(self) -> Failures:
    """Resets each into its row of the observation."""

  @abc.abstractmethod
  def _send(self):
    """Starts a step with the actions in the arrays."""

  @abc.abstractmethod
  def _receive(self) -> Failures:
    """Ends a step: the arrays are filled but for the rows that failed."""

  @abc.abstractmethod
  def _replace(self, index: int, seed: int):
    """Makes and resets environment `index` anew; raises if that fails."""

  def _raise_if_closed(self):
    if self._closing.is_set():
      raise structs.Closed('these environments are closed.')

  def _recover(self, failures: Failures):
    for index, failure in failures:
      self._raise_if_closed()
      self._restart(index, failure)
      self._arrays.outcomes[index] = base.Outcome.RESTARTED

  def _restart(self, index: int, failure: base.BrokenEnvironmentError):
    backoff_secs = _BACKOFF_SECS
    while True:
      self._restarts.grant(index, failure)
      try:
        self._replace(index, self._restarts.seed(index))
        return
      except base.BrokenEnvironmentError as e:
        failure = e
      if self._closing.wait(backoff_secs):
        self._raise_if_closed()
      backoff_secs = min(2 * backoff_secs, _MAX_BACKOFF_SECS)

  def _broken(self, index: int, what: Any) -> base.BrokenEnvironmentError:
    """The failure `what` of environment `index`, by its full name."""
    if isinstance(what, Exception) and not isinstance(
      what, base.BrokenEnvironmentError
    ):
      what = f'{type(what).__name__}: {what}'
    name = self._restarts.name(index, self.level_names[index])
    return base.BrokenEnvironmentError(f'{name} failed: {what}')


def common_spec(
  environment_specs: Sequence[structs.EnvironmentSpec],
  level_names: Sequence[str],
) -> structs.EnvironmentSpec:
  """The one spec of all, or ValueError naming the first that differs."""
  first = environment_specs[0]
  for spec, level_name in zip(environment_specs, level_names, strict=True):
    if _essence(spec) != _essence(first):
      raise ValueError(
        f'{level_name} shows and takes {spec}, but {level_names[0]} {first}; '
        'one agent plays environments of one kind.'
      )
  return first


def _essence(spec: structs.EnvironmentSpec) -> Any:
  # Bounds of observations may differ: the agent never looks at them.
  leaves = tree.flatten_with_path(spec.observation)
  observation = [(path, leaf.shape, leaf.dtype) for path, leaf in leaves]
  action = spec.action
  bounds = [
    np.asarray(getattr(action, name, 0)).tolist()
    for name in ('minimum', 'maximum')
  ]
  kind = (action.shape, action.dtype.kind, bounds)
  return observation, kind, spec.frames_per_step


class SerialEnvironments(Batch):
  """Environments in a plain loop in the caller's thread.

  For cheap environments and for tests. One that hangs hangs its caller: use
  `process.ProcessEnvironments` for simulators that may.
  """

  def __init__(
    self,
    factories: Sequence[base.Factory],
    level_names: Sequence[str],
    *,
    base_seed: int = 0,
    actor: int = 0,
    on_error: str = 'abort',
    max_restarts: int = 10,
    restarts_used: int = 0,
  ):
    """Makes the environments.

    Args:
      factories: `[E]`, each makes an environment from a seed.
      level_names: `[E]`, what each plays.
      base_seed: Seed of the run.
      actor: Index of the actor, for seeds and messages.
      on_error: 'abort' or 'restart' when an environment fails.
      max_restarts: Most restarts, over all `E`.
      restarts_used: How many of them are used up already.
    """
    policy = restarts.Restarts(
      on_error, max_restarts, base_seed, actor, restarts_used
    )
    self._factories = tuple(factories)
    self._environments = [
      base.CheckedEnvironment(factory, policy.seed(i))
      for i, factory in enumerate(self._factories)
    ]
    spec = common_spec([e.spec for e in self._environments], level_names)
    layout = buffers.Layout(spec, len(self._factories))
    arrays = layout.buffers(bytearray(layout.num_bytes))
    super().__init__(level_names, spec, policy, arrays)
    self._busy = threading.Lock()

  def close(self):
    """Closes all; waits a little for a step in another thread."""
    if self._closing.is_set():
      return
    self._closing.set()
    if not self._busy.acquire(timeout=_CLOSE_SECS):
      logging.warning(
        'Environments of %s are stuck in a step and were left unclosed.',
        self.level_names[0],
      )
      return
    try:
      for index in range(self.num_envs):
        self._close_one(index)
    finally:
      self._busy.release()

  def _reset_all(self) -> Failures:
    return self._for_each(base.CheckedEnvironment.reset)

  def _send(self):
    pass

  def _receive(self) -> Failures:
    return self._for_each(base.CheckedEnvironment.step)

  def _for_each(self, method) -> Failures:
    failures = []
    with self._busy:
      for index in range(self.num_envs):
        self._raise_if_closed()
        try:
          method(self._environments[index], self._arrays, index)
        except Exception as e:
          failure = self._broken(index, e)
          failure.__cause__ = e
          failures.append((index, failure))
    return failures

  def _replace(self, index: int, seed: int):
    with self._busy:
      self._raise_if_closed()
      self._close_one(index)
      try:
        self._environments[index] = base.CheckedEnvironment(
          self._factories[index], seed
        )
        common_spec([self.spec, self._environments[index].spec], ['', ''])
        self._environments[index].reset(self._arrays, index)
      except Exception as e:
        raise self._broken(index, e) from e

  def _close_one(self, index: int):
    try:
      self._environments[index].close()
    except Exception as e:
      # What is broken may well fail to close, and must not keep the others
      # from being closed.
      logging.warning('%s', self._broken(index, e))


class ConcatEnvironments:
  """Several batches as one: joined along `E`, stepped at the same time.

  For example one Atari vector environment per game.
  """

  def __init__(self, parts: Sequence[structs.Environments]):
    """Joins.

    Args:
      parts: Batches of one spec. Those with `send` and `recv` work at once.
    """
    self._parts = tuple(parts)
    self.level_names = tuple(
      name for part in self._parts for name in part.level_names
    )
    self.num_envs = len(self.level_names)
    self.spec = common_spec(
      [part.spec for part in self._parts],
      [part.level_names[0] for part in self._parts],
    )
    sizes = [part.num_envs for part in self._parts]
    self._starts = np.cumsum(sizes)[:-1]

  @property
  def num_restarts(self) -> int:
    """How many environments were replaced so far."""
    return sum(part.num_restarts for part in self._parts)

  def initial(self) -> structs.EnvOutput:
    """Resets all; see `structs.Environments`."""
    return _concat([part.initial() for part in self._parts])

  def step(self, actions: np.ndarray) -> structs.EnvOutput:
    """Steps all; see `structs.Environments`."""
    shares = np.split(np.asarray(actions), self._starts)
    for part, share in zip(self._parts, shares, strict=True):
      if hasattr(part, 'send'):
        part.send(share)
    return _concat(
      [
        part.recv() if hasattr(part, 'recv') else part.step(share)
        for part, share in zip(self._parts, shares, strict=True)
      ]
    )

  def final_observation(self) -> structs.Nest:
    """Last observations of truncated rows; see `structs.Environments`."""
    return _concat([part.final_observation() for part in self._parts])

  def close(self):
    """Closes all parts."""
    for part in self._parts:
      part.close()


def _concat(nests: Sequence[Any]) -> Any:
  return tree.map_structure(lambda *leaves: np.concatenate(leaves), *nests)
