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
"""Settings of runs on many machines. See `config`."""

import dataclasses

from scalable_agent import options

ENCODINGS = ('raw', 'lz4', 'jpeg')

option = options.option


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistributedConfig(options.Validated):
  """Where workers run under `--runtime=ray`, and what happens when one is lost.

  A worker is a process with the environments and the network of one actor.
  """

  ray_address: str = option(
    '',
    'Ray: cluster to run on. auto: the one that this machine is part of, or '
    'host:port of its head. Empty: start one here, for this run alone.',
  )
  worker_cpus: float = option(
    1.0,
    'Ray: CPUs that a worker takes on its machine. TensorFlow gets as many '
    'threads there.',
    unit='CPUs',
  )
  worker_memory_gib: float | None = option(
    None,
    'Ray: memory that a worker takes on its machine. None: it is not counted.',
    unit='GiB',
  )
  worker_resources: str = option(
    '',
    'Ray: further resources that a worker takes, as name=amount, separated by '
    'commas; machines offer them with `ray start --resources`.',
  )
  unrolls_in_flight: int = option(
    1,
    'Ray: unrolls of a worker that are being made, travel, or wait for the '
    'learner. 1: the freshest data. 2: a worker plays on while its last unroll '
    'travels and waits.',
    unit='unrolls',
  )
  num_learner_hosts: int = option(
    1,
    'Ray: learners on as many machines, each with workers and a batch of its '
    'own, as if started by hand with TF_CONFIG.',
  )
  unroll_encoding: str = option(
    'raw',
    'Ray: how unrolls travel. Raw: as they are, best on one machine. LZ4: '
    'compressed. JPEG: images lose details, so the learner sees other pixels '
    'than the actor did.',
    choices=ENCODINGS,
  )
  jpeg_quality: int = option(
    90, 'Ray: of images that travel as JPEG, 1 to 100.'
  )
  max_worker_losses: int = option(
    10,
    'Ray: how often a worker may be lost within an hour, because its process '
    'or its machine dies, before the next loss ends the run.',
  )

  def _check(self):
    self._at_least(0, 'worker_cpus', 'max_worker_losses')
    self._at_least(1, 'unrolls_in_flight', 'jpeg_quality')
    self._at_least(1, 'num_learner_hosts')
    if self.num_learner_hosts > 1 and not self.ray_address:
      raise ValueError(
        f'num_learner_hosts is {self.num_learner_hosts}, for which there must '
        'be a cluster; give --runtime=ray and --ray_address, or leave it at 1.'
      )
    if self.jpeg_quality > 100:
      raise ValueError(
        f'jpeg_quality is {self.jpeg_quality}; it must be 1 to 100.'
      )
    if self.unrolls_in_flight > 2:
      raise ValueError(
        f'unrolls_in_flight is {self.unrolls_in_flight}; it must be 1 or 2.'
      )
    if self.worker_memory_gib is not None and self.worker_memory_gib <= 0:
      raise ValueError(
        f'worker_memory_gib is {self.worker_memory_gib}; it must be above 0, '
        'or None.'
      )
    if self.ray_address.startswith('ray://'):
      raise ValueError(
        f'ray_address is {self.ray_address!r}, a Ray Client, through which '
        'unrolls would be copied twice; run the command on a machine of the '
        'cluster, with auto.'
      )
    self.resources()

  def resources(self) -> dict[str, float]:
    """`worker_resources` as a mapping from names to amounts."""
    resources = {}
    for item in filter(None, self.worker_resources.split(',')):
      name, _, amount = (part.strip() for part in item.partition('='))
      try:
        resources[name] = float(amount)
      except ValueError:
        resources[name] = 0.0
      if not name or not 0 < resources[name] < float('inf'):
        raise ValueError(
          f'worker_resources has {item!r}; write name=amount with a number '
          'above 0, such as simulator=1.'
        )
    return resources
