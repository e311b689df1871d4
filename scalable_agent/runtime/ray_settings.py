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
"""What Ray is told: environment, cluster, resources. Does not import Ray."""

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from scalable_agent import config

_CONNECT_SECS = 5.0
_GIB = 2**30


def prepare(distributed: config.DistributedConfig) -> None:
  """Sets what Ray reads while it is imported.

  Nothing is reported about usage unless the user has asked for it; failures of
  workers are reported once, by us; GPUs are hidden by the workers themselves.

  A cluster of this run alone binds to the loopback address, thanks to the
  variable that forbids clusters on macOS and Windows, and its workers are no
  more patient with other processes than the threads of the local runtime (Ray
  starts them with a niceness of 15).
  """
  os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
  os.environ.setdefault('RAY_IGNORE_UNHANDLED_ERRORS', '1')
  os.environ.setdefault('RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO', '0')
  if distributed.ray_address:
    # Attempts of some seconds each to find the head, instead of 20.
    os.environ.setdefault('RAY_gcs_server_port_wait_time_s', '2')
  else:
    os.environ['RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER'] = '0'
    os.environ.setdefault('RAY_worker_niceness', '0')


def check_address(address: str, flag: str = 'ray_address') -> None:
  """Raises ValueError at once if nobody listens at `host:port`."""
  host, _, port = address.rpartition(':')
  if not host or not port.isdecimal():
    raise ValueError(
      f'{flag} is {address!r}; write auto, or host:port of the head.'
    )
  try:
    socket.create_connection((host, int(port)), _CONNECT_SECS).close()
  except OSError as error:
    raise ValueError(
      f'{flag} is {address!r}, where no Ray cluster answers ({error}); '
      'start one with `ray start --head`, or leave the flag out to use this '
      'machine alone.'
    ) from error


def own_cluster(settings: config.Config, folder: str) -> dict[str, Any]:
  """Arguments of `ray.init` for a cluster of this run alone.

  It has exactly what the workers take: they share this machine's cores with the
  learner, as the threads of the local runtime do.

  Args:
    settings: of the run.
    folder: for Ray's sockets and logs.
  """
  num_workers = settings.actor.num_actors
  arguments = {
    'num_cpus': max(1, round(num_workers * settings.distributed.worker_cpus)),
    'address': 'local',
    'num_gpus': 0,
    'resources': {
      name: num_workers * amount
      for name, amount in settings.distributed.resources().items()
    },
    'include_dashboard': False,
    '_node_ip_address': '127.0.0.1',
    '_temp_dir': folder,
  }
  if settings.distributed.worker_memory_gib is not None:
    memory = settings.distributed.worker_memory_gib * _GIB
    arguments['_memory'] = int(num_workers * memory)
  return arguments


def worker_options(distributed: config.DistributedConfig) -> dict[str, Any]:
  """Options of a worker's process. It is never restarted by Ray itself."""
  options: dict[str, Any] = {
    'num_cpus': distributed.worker_cpus,
    'resources': distributed.resources(),
    'scheduling_strategy': 'SPREAD',
    'max_restarts': 0,
    'max_task_retries': 0,
  }
  if distributed.worker_memory_gib is not None:
    options['memory'] = int(distributed.worker_memory_gib * _GIB)
  return options


def why_waiting(
  distributed: config.DistributedConfig,
  offered: Sequence[Mapping[str, float]],
) -> str:
  """A sentence: what a worker takes, and whether any machine has so much.

  Args:
    distributed: settings of the workers.
    offered: resources of each machine, free or not.
  """
  wanted = {'CPU': distributed.worker_cpus, **distributed.resources()}
  if distributed.worker_memory_gib is not None:
    wanted['memory'] = distributed.worker_memory_gib * _GIB
  fits = any(
    all(node.get(name, 0.0) >= amount for name, amount in wanted.items())
    for node in offered
  )
  listed = ', '.join(f'{name}={amount:g}' for name, amount in wanted.items())
  who = 'others take it' if fits else 'none of the cluster has so much'
  return f'each takes {listed}, and {who}.'
