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
"""Moves unrolls from actors to a learner that does not learn.

    python scripts/benchmark.py pipeline --envs_per_actor=64

Actors step environments that do nothing, with a policy that computes nothing;
unrolls go through the queue and `tf.data`. Prints agent steps and bytes of
observations per second: what moving alone allows.
"""

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import flags

from benchmarks import _stages
from scalable_agent import structs

define_flags = _stages.define_flags


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields the one measurement."""
  yield measure_one(_stages.from_flags(flag_values))


def measure_one(stages: _stages.Stages) -> dict[str, Any]:
  """The measurement."""
  steps_per_sec, cpu_secs = _run(stages)
  frame_bytes = sum(
    int(np.prod(spec.shape)) * spec.dtype.itemsize
    for spec in _leaves(stages.spec.observation)
  )
  return _stages.line(
    'pipeline',
    stages,
    {
      'steps_per_sec': round(steps_per_sec, 1),
      'core_ms_per_step': round(1e3 * cpu_secs, 4),
      'observation_mb_per_sec': round(steps_per_sec * frame_bytes / 1e6, 1),
    },
  )


def _leaves(observation):
  import tree

  return tree.flatten(observation)


class _Still:
  """Environments in which nothing happens, and which nothing costs."""

  def __init__(self, env_output: structs.EnvOutput, spec):
    self.num_envs = len(env_output.reward)
    self.spec = spec
    self.level_names = ['still'] * self.num_envs
    self.num_restarts = 0
    self._first = env_output
    no = np.zeros(self.num_envs, bool)
    self._next = env_output._replace(done=no, first=no, truncated=no)

  def initial(self):
    return self._first

  def step(self, actions):
    del actions
    return self._next

  def close(self):
    pass


class _Idle:
  """A policy that always says the same."""

  def __init__(self, output, state):
    self._output, self._state = output, state

  def initial_state(self):
    return self._state

  def begin_unroll(self):
    return 0

  def step(self, actions, env_output, core_state):
    del actions, env_output
    return self._output, core_state


def _run(stages):
  """Steps per second, and processor seconds per step."""
  import tree

  from scalable_agent import actor, dataset, queues

  example = stages.batch()
  settings = stages.settings
  num_envs = settings.actor.envs_per_actor
  slot = tree.map_structure(
    lambda x: np.repeat(x[0, :1], num_envs, axis=0),
    (example.env_outputs, example.agent_outputs),
  )
  state = tree.map_structure(
    lambda x: np.repeat(np.asarray(x)[:1], num_envs, axis=0),
    example.core_state,
  )
  queue = queues.UnrollQueue(settings.actor.queue_capacity)

  def act():
    one = actor.Actor(
      _Still(slot[0], stages.spec),
      _Idle(slot[1], state),
      settings.learner.unroll_length,
    )
    try:
      one.run(queue, lambda: False)
    except structs.Closed:
      pass

  batch_size = settings.learner.batch_size
  one_column = dataset.slice_columns(example, 0, 1)
  batches = iter(
    dataset.make_dataset(queue, batch_size, lambda _: None, one_column)
  )
  threads = [
    threading.Thread(target=act, daemon=True)
    for _ in range(settings.actor.num_actors)
  ]
  for thread in threads:
    thread.start()
  for _ in range(3):
    next(batches)
  num_batches = 0
  start, start_cpu = time.perf_counter(), time.process_time()
  while time.perf_counter() - start < stages.secs:
    next(batches)
    num_batches += 1
  secs = time.perf_counter() - start
  cpu_secs = time.process_time() - start_cpu
  queue.close()
  num_steps = num_batches * batch_size * settings.learner.unroll_length
  return num_steps / secs, cpu_secs / num_steps
