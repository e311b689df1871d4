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
"""Learners on several hosts: who they are, read from `TF_CONFIG`."""

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

VARIABLE = 'TF_CONFIG'
# The order in which TensorFlow numbers them.
_JOBS = ('chief', 'worker')
_EXAMPLE = (
  '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
  '"task": {"type": "worker", "index": 0}}'
)


class PeerError(RuntimeError):
  """The run ends because of another host, whose own output says why."""


class Hosts(NamedTuple):
  """All learners of a run, and which of them this process is.

  addresses: `host:port` of each, the chief's first.
  index: of this process among them.
  """

  addresses: tuple[str, ...] = ('',)
  index: int = 0

  @property
  def several(self) -> bool:
    """Whether there are others."""
    return len(self.addresses) > 1

  @property
  def is_chief(self) -> bool:
    """Whether this process writes checkpoints, metrics and the console."""
    return self.index == 0

  def seed(self, seed: int) -> int:
    """Seed of this host's actors, who must not play what others play."""
    if self.is_chief:
      return seed
    return int(np.random.SeedSequence((seed, self.index)).generate_state(1)[0])

  def name(self, index: int) -> str:
    """For messages."""
    return f'learner {index} ({self.addresses[index]})'


def from_environment(environ: Mapping[str, str] | None = None) -> Hosts:
  """Reads `TF_CONFIG` as TensorFlow, Kubernetes operators and Ray set it.

  Args:
    environ: the process environment; None: that of this process.

  Returns:
    This host alone if the variable is not set or names a single task.

  Raises:
    ValueError: the variable is no JSON, or names no learners.
  """
  text = (os.environ if environ is None else environ).get(VARIABLE, '')
  if not text.strip():
    return Hosts()
  try:
    given = json.loads(text)
    cluster = given['cluster']
    job, task = given['task']['type'], int(given['task']['index'])
    known = {name: list(cluster.get(name, ())) for name in _JOBS}
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    raise ValueError(
      f'{VARIABLE} cannot be read ({type(error).__name__}: {error}); write '
      f'{_EXAMPLE}, or unset it to train on this host alone.'
    ) from error
  if set(cluster) - set(_JOBS) or not 0 <= task < len(known.get(job, ())):
    raise ValueError(
      f'{VARIABLE} names task {task} of {job!r} in a cluster of '
      f'{", ".join(map(str, cluster))}; all tasks are learners of type chief '
      'or worker, numbered from 0, and this one must be among them.'
    )
  addresses = tuple(map(str, known['chief'] + known['worker']))
  index = task if job == _JOBS[0] else len(known['chief']) + task
  return Hosts(addresses, index)
