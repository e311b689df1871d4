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
"""What learners on several hosts tell one another between updates."""

import contextlib
import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from scalable_agent import config, learner
from scalable_agent.runtime import hosts as hosts_lib

# What a host says before each update. Positive: number of a signal.
_GO_ON = 0
_STOPPED = -1
_FAILED = -2

# What TensorFlow raises when a sum over hosts breaks off.
_BROKEN_OFF = (
  tf.errors.AbortedError,
  tf.errors.CancelledError,
  tf.errors.DeadlineExceededError,
  tf.errors.FailedPreconditionError,
  tf.errors.UnavailableError,
)
_TASK = re.compile(r'/job:(\w+)/(?:replica:\d+/)?task:(\d+)')


class Peers:
  """The learners of a run. All must make the same calls in the same order.

  An update is synchronous, so nobody may begin one that another will not
  join: before each all say whether they go on, by a sum over all hosts like
  that of the gradients. A host that vanishes is found by TensorFlow, whose
  coordination service breaks off everybody's sum within about ten seconds.

  Alone, a host agrees with itself and nothing is computed.
  """

  def __init__(self, hosts: hosts_lib.Hosts, strategy: tf.distribute.Strategy):
    """Makes the peers of this host; calls nobody yet.

    Args:
      hosts: all learners.
      strategy: of this host's learner.
    """
    self._hosts = hosts
    self._strategy = strategy
    self._replicas_per_host = strategy.num_replicas_in_sync // len(
      hosts.addresses
    )
    self._reason = _STOPPED
    self._said: Sequence[int] = ()
    self._sum = tf.function(self._summed, autograph=False)

  @property
  def several(self) -> bool:
    """Whether there is anybody to agree with."""
    return self._hosts.several

  def leave(self, signum: int | None, failed: bool) -> None:
    """Notes why this host will not go on; said at the next `go_on`.

    Args:
      signum: signal that it was given, if any.
      failed: whether something failed here.
    """
    self._reason = _FAILED if failed else signum or _STOPPED

  def go_on(self, ready: bool) -> bool:
    """Whether all hosts are ready for one more update. Waits for all.

    Args:
      ready: whether this one is.

    Raises:
      hosts.PeerError: another host has failed or vanished.
    """
    if not self._hosts.several:
      return ready
    self._said = self._exchange(_GO_ON if ready else self._reason)
    for index, said in enumerate(self._said):
      if said == _FAILED and index != self._hosts.index:
        raise hosts_lib.PeerError(
          f'{self._hosts.name(index)} failed and ended the run; its own output '
          'says why. Start all learners again to continue.'
        )
    return not any(self._said)

  @property
  def signum(self) -> int | None:
    """The signal that ended the run on some host, if one did."""
    return next((said for said in self._said if said > 0), None)

  def describe_end(self) -> str | None:
    """A sentence on who ended the run, if it was another host."""
    for index, said in enumerate(self._said):
      if said and index != self._hosts.index:
        why = f'got signal {said}' if said > 0 else 'was asked to stop'
        return f'{self._hosts.name(index)} {why}, so all learners have stopped.'
    return None

  def check_settings(self, settings: config.Config) -> None:
    """Raises `ValueError` unless all hosts learn the same in the same way."""
    if not self._hosts.several:
      return
    sections = (settings.task, settings.agent, settings.learner)
    marks = [zlib.crc32(repr(section).encode()) for section in sections]
    for section, mark in zip(sections, marks, strict=True):
      told = self._exchange(mark)
      if len(set(told)) > 1:
        others = [i for i, other in enumerate(told) if other != told[0]]
        raise ValueError(
          f'The {type(section).__name__} of {self._hosts.name(others[0])} is '
          f'not that of {self._hosts.name(0)}; start all learners with the '
          'same flags.'
        )

  def take_over(self, own: learner.Learner, start: int) -> int:
    """Goes on where the chief does, whose checkpoint may be out of reach.

    Args:
      own: this host's learner; it gets the chief's state.
      start: how often the run has been started before, as far as known here.

    Returns:
      How often it has.
    """
    if not self._hosts.several:
      return start
    arrays, counters = own.state()
    numbers = np.array([*counters.values(), start])
    *values, numbers = self.from_chief([*arrays.values(), numbers])
    *counts, start = numbers.tolist()
    own.load_state(
      dict(zip(arrays, values, strict=True)),
      dict(zip(counters, counts, strict=True)),
    )
    return start

  def from_chief(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The chief's values of `arrays`, on every host.

    Args:
      arrays: numbers, of the same shapes and dtypes on every host.
    """
    if not self._hosts.several:
      return list(arrays)
    mine = [np.asarray(array) for array in arrays]
    if not self._hosts.is_chief:
      mine = [np.zeros_like(array) for array in mine]
    with self.watched():
      return [total.numpy() for total in self._sum(mine)]

  @contextlib.contextmanager
  def watched(self) -> Iterator[None]:
    """Turns the errors of sums that broke off into a `hosts.PeerError`."""
    if not self._hosts.several:
      yield
      return
    try:
      yield
    except _BROKEN_OFF as error:
      found = _TASK.search(error.message)
      who = f'{found[1]} {found[2]}' if found else 'another learner'
      raise hosts_lib.PeerError(
        f'Lost {who} of {", ".join(self._hosts.addresses)}, so this learner '
        'ends too. Start all learners again to continue from the newest '
        'checkpoint.'
      ) from error

  def _exchange(self, value: int) -> list[int]:
    """What each host gave, by its index."""
    row = np.zeros(len(self._hosts.addresses), np.int64)
    row[self._hosts.index] = value
    with self.watched():
      (total,) = self._sum([row])
      return total.numpy().tolist()

  def _summed(self, values):
    """Sums over hosts; of a host's replicas only the first counts."""

    def replica_sum():
      context = tf.distribute.get_replica_context()
      mine = context.replica_id_in_sync_group % self._replicas_per_host == 0
      own = [tf.where(mine, v, tf.zeros_like(v)) for v in values]
      # One by one: TensorFlow packs only what is of one dtype.
      return [context.all_reduce(tf.distribute.ReduceOp.SUM, v) for v in own]

    totals = self._strategy.run(replica_sum)
    return [self._strategy.experimental_local_results(v)[0] for v in totals]
