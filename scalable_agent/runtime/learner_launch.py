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
"""Starts the other learners of a run on machines of a Ray cluster.

This process is learner 0, the chief. Each other one is a process that Ray
places, and runs what this one runs: the same command with the same settings.
They find one another as always, through `TF_CONFIG`.
"""

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import ray
from absl import logging

from scalable_agent import config, tasks
from scalable_agent.runtime import devices, distributed
from scalable_agent.runtime import hosts as hosts_lib

_REMIND_SECS = 20.0
_LEAVE_SECS = 30.0


@contextlib.contextmanager
def learners(
  settings: config.Config, stop_after_secs: float | None
) -> Iterator[hosts_lib.Hosts]:
  """The learners of a run, started here and elsewhere; ended on leaving.

  Args:
    settings: of the run; `num_learner_hosts` says how many there are.
    stop_after_secs: see `training.train`.

  Raises:
    ValueError: there is no such cluster, or another learner cannot begin.
  """
  cluster = distributed.Cluster(settings)
  others: list[Any] = []
  try:
    options = _options(settings)
    for _ in range(settings.distributed.num_learner_hosts - 1):
      others.append(_Learner.options(**options).remote())
    given = {
      'cluster': {'worker': [_address(), *_addresses(others, options)]},
      'task': {'type': 'worker', 'index': 0},
    }
    path = tuple(folder or os.getcwd() for folder in sys.path)
    _prepare(others, settings, path)
    running = []
    for index, other in enumerate(others, 1):
      theirs = json.dumps({**given, 'task': {'type': 'worker', 'index': index}})
      running.append(other.train.remote(settings, theirs, stop_after_secs))
    os.environ[hosts_lib.VARIABLE] = json.dumps(given)
    teller = threading.Thread(
      target=_say_what_failed, args=(running,), daemon=True
    )
    teller.start()
    yield hosts_lib.from_environment()
    teller.join(_LEAVE_SECS)
  finally:
    os.environ.pop(hosts_lib.VARIABLE, None)
    for other in others:
      ray.kill(other)
    cluster.leave()


@ray.remote(max_restarts=0, max_task_retries=0)
class _Learner:
  """A learner that is not the chief, as a process of Ray."""

  def address(self):
    return _address()

  def prepare(self, settings, import_path):
    sys.path += [p for p in import_path if p not in sys.path]
    tasks.make_task(settings).spec()
    devices.prepare()

  def train(self, settings, tf_config, stop_after_secs):
    os.environ[hosts_lib.VARIABLE] = tf_config
    from scalable_agent.runtime import training

    return training.train(settings, stop_after_secs=stop_after_secs)


def _address() -> str:
  """Where this process can listen, as others reach it."""
  with socket.create_server(('', 0)) as server:
    return f'{ray.util.get_node_ip_address()}:{server.getsockname()[1]}'


def _addresses(others, options) -> list[str]:
  """Those of the other learners, once they all have a machine."""
  calls = [other.address.remote() for other in others]
  while True:
    ready, missing = ray.wait(
      calls, num_returns=len(calls), timeout=_REMIND_SECS
    )
    if not missing:
      return ray.get(ready and calls)
    logging.warning(
      '%d of %d learners wait for a machine with %s.',
      len(missing),
      len(calls),
      ', '.join(f'{k}={v}' for k, v in options.items() if k.startswith('num')),
    )


def _prepare(others, settings, path) -> None:
  """Raises what would fail there early; while joining others would wait."""
  for index, other in enumerate(others, 1):
    try:
      ray.get(other.prepare.remote(settings, path))
    except ray.exceptions.RayError as error:
      raise ValueError(
        f'learner {index}, which Ray has started, cannot begin: '
        f'{getattr(error, "cause", error)}'
      ) from error


def _options(settings) -> dict[str, Any]:
  """What a learner takes: GPUs if there are any, unless told to do without."""
  device = settings.run.learner_device
  has_gpus = ray.cluster_resources().get('GPU', 0) > 0
  takes_gpus = device == 'gpu' or (device == 'auto' and has_gpus)
  return {
    'num_cpus': 1,
    'num_gpus': settings.run.num_learners if takes_gpus else 0,
    'scheduling_strategy': 'SPREAD',
    # There Ray imports TensorFlow, with this module, before anything is called.
    'runtime_env': {'env_vars': {'TF_ENABLE_ONEDNN_OPTS': '1'}},
  }


def _say_what_failed(running) -> None:
  """Tells of each other learner that fails, until all have ended."""
  while running:
    (ended, *_), running = ray.wait(running)
    try:
      ray.get(ended)
    except Exception as error:
      logging.warning('A learner has failed: %s', error)
