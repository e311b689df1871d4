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
"""Threads among which operations are divided, `devices.set_threads`."""

import pytest
import tensorflow as tf

from scalable_agent import config, cores
from scalable_agent.runtime import devices


def settings_of(actor=None, ray_address='', **run):
  return config.Config(
    actor=config.ActorConfig(**(actor or {})),
    run=config.RunConfig(**run),
    distributed=config.DistributedConfig(ray_address=ray_address),
  )


@pytest.fixture
def chosen(monkeypatch):
  """What TensorFlow is told, on a machine of four cores."""
  numbers = []
  threading = tf.config.threading
  monkeypatch.setattr(
    threading, 'set_intra_op_parallelism_threads', numbers.append
  )
  monkeypatch.setattr(cores, 'num_cores', lambda: 4)
  monkeypatch.delenv('TF_NUM_INTRAOP_THREADS', raising=False)
  return numbers


WIDE = {'num_actors': 4, 'envs_per_actor': 8}


@pytest.mark.parametrize(
  ('actor', 'run', 'expected'),
  [
    (WIDE, {}, [1]),
    (WIDE | {'num_actors': 3}, {}, []),
    # Actors that share one network do not keep four cores busy.
    (WIDE | {'inference': 'batched'}, {}, []),
    (WIDE | {'envs_per_actor': 1}, {}, []),
    # Here the learner has the cores to itself.
    (WIDE, {'runtime': 'sync'}, []),
    (WIDE, {'runtime': 'ray', 'ray_address': 'auto'}, []),
    (WIDE, {'runtime': 'ray'}, [1]),
    (WIDE, {'threads_per_operation': 3}, [3]),
    ({}, {'threads_per_operation': 1}, [1]),
  ],
)
def test_one_thread_where_actors_fill_the_cores(chosen, actor, run, expected):
  devices.set_threads(settings_of(actor, **run))

  assert chosen == expected


def test_the_environment_variable_has_the_say(chosen, monkeypatch):
  monkeypatch.setenv('TF_NUM_INTRAOP_THREADS', '2')

  devices.set_threads(settings_of(WIDE))

  assert chosen == []


def test_a_number_that_comes_too_late_is_refused():
  tf.constant(0.0) + 1.0

  with pytest.raises(ValueError, match=r'is 7, but .* start a new process'):
    devices.set_threads(settings_of(threads_per_operation=7))


def test_a_choice_that_comes_too_late_is_none():
  tf.constant(0.0) + 1.0
  before = tf.config.threading.get_intra_op_parallelism_threads()

  devices.set_threads(settings_of({'num_actors': 999, 'envs_per_actor': 8}))

  assert tf.config.threading.get_intra_op_parallelism_threads() == before
