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
"""The Ray runtime: throughput, bytes, weights, lag; larger sizes simulated.

    python scripts/benchmark.py distributed --workers=1,2,4 --train_secs=20

First what Ray takes to carry weights and unrolls. Then training, for each
number of workers: with actors in threads (local), and in processes (Ray), as
many of them and on the same cores, and the ratio of the two. Next to it stands
what a simulation of events says, given the times of the stages in the smallest
of these runs; `simulated_ratio` is simulated over measured. Last the same
simulation for clusters in which every worker has a core of its
own: `learner_share` near 1 means that the learner is saturated.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import flags

from benchmarks import _simulation, _stages, _training, _transport
from scalable_agent import cores
from scalable_agent.runtime import devices


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of training, and the sizes."""
  _stages.define_flags(flag_values)
  _training.define_flags(flag_values)
  for name, default, meaning in (
    (
      'workers',
      ['1', '2', '4'],
      'Numbers of workers, measured; in place of --num_actors.',
    ),
    (
      'simulated_workers',
      ['10', '100', '1000'],
      'Numbers of workers, simulated.',
    ),
  ):
    flags.DEFINE_list(name, default, meaning, flag_values=flag_values)
    flags.register_validator(
      name,
      _stages.are_positive_integers,
      'must be positive integers, separated by commas.',
      flag_values=flag_values,
    )
  flags.DEFINE_float(
    'network_gbit_per_sec',
    10.0,
    "Speed of the learner's network in the simulation of clusters. Unit: "
    'gigabits per second.',
    lower_bound=0.001,
    flag_values=flag_values,
  )
  flags.DEFINE_float(
    'round_trip_ms',
    0.5,
    'From worker to learner and back in the simulation of clusters. Unit: '
    'milliseconds.',
    lower_bound=0,
    flag_values=flag_values,
  )


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields transport, training and simulation."""
  stages = _stages.from_flags(flag_values)
  devices.set_threads(stages.settings)
  sizes = [int(n) for n in flag_values.workers]
  unroll_bytes = _unroll_bytes(stages)
  carried = list(_measure_transport(stages, sizes, unroll_bytes))
  yield from carried
  times = None
  for num_workers in sizes:
    one = _on_ray(stages.replace('actor', num_actors=num_workers))
    local, ray = (
      _training.train(x, flag_values.train_secs, flag_values.warm_up_secs)
      for x in (stages.replace('actor', num_actors=num_workers), one)
    )
    times = times or _times(one, ray, carried[-1])
    yield _compare(one, local, ray, times, unroll_bytes)
  for num_workers in map(int, flag_values.simulated_workers):
    yield _simulate_cluster(
      stages, num_workers, times, unroll_bytes, flag_values
    )


def _unroll_bytes(stages):
  import tree

  batch = stages.batch()
  share = (
    stages.settings.actor.envs_per_actor / stages.settings.learner.batch_size
  )
  return int(sum(np.asarray(x).nbytes for x in tree.flatten(batch)) * share)


def _measure_transport(stages, sizes, unroll_bytes):
  from scalable_agent.runtime import training

  weights = [v.numpy() for v in stages.make_agent().trainable_variables]
  settings = _on_ray(stages).settings
  cluster = training.runtime_for(settings).Cluster(settings)
  try:
    yield from _transport.measure(weights, unroll_bytes, sizes)
  finally:
    cluster.leave()


def _times(one, training, carried) -> _simulation.Times:
  """What each stage takes, from a run with few workers."""
  settings = one.settings
  num_workers = settings.actor.num_actors
  steps = settings.learner.unroll_length * settings.actor.envs_per_actor
  batch_steps = settings.learner.unroll_length * settings.learner.batch_size
  period = num_workers * steps / training.steps_per_sec
  put = training.steady.get('actor_put_share', 0.0)
  away = training.steady.get('actor_travel_share', 0.0)
  take = carried['driver_core_ms'] / 1e3
  core_secs = training.core_secs_per_step
  return _simulation.Times(
    play=period * (1 - put - away),
    travel=max(period * away - take, 0.0),
    take=take,
    update=core_secs * batch_steps - take * batch_steps / steps,
  )


def _on_ray(stages):
  return stages.replace('run', runtime='ray', summary_secs=1.0)


def _compare(one, local, ray, times, unroll_bytes):
  num_cores = cores.num_cores()
  settings = one.settings
  steps = settings.learner.unroll_length * settings.actor.envs_per_actor
  simulated = _simulation.simulate(
    _setup(settings, settings.actor.num_actors, num_cores, num_cores), times
  )
  simulated_steps = simulated.unrolls_per_sec * steps
  return _stages.line(
    'distributed',
    one,
    {
      'local_steps_per_sec': round(local.steps_per_sec, 1),
      'ray_steps_per_sec': round(ray.steps_per_sec, 1),
      'ray_over_local': round(ray.steps_per_sec / local.steps_per_sec, 3),
      'simulated_steps_per_sec': round(simulated_steps, 1),
      'simulated_ratio': round(simulated_steps / ray.steps_per_sec, 3),
      'mb_per_sec': round(ray.steps_per_sec / steps * unroll_bytes / 1e6, 2),
      'travel_share': round(ray.steady.get('actor_travel_share', 0.0), 3),
      'put_share': round(ray.steady.get('actor_put_share', 0.0), 3),
      'learner_wait_share': round(ray.steady['learner_wait_share'], 3),
      'local_lag': round(local.lag, 2),
      'ray_lag': round(ray.lag, 2),
      'simulated_lag': round(simulated.lag, 2),
    },
  )


def _setup(settings, num_workers, shared_cores, update_threads):
  learner = settings.learner
  return _simulation.Setup(
    num_workers,
    max(1, learner.batch_size // settings.actor.envs_per_actor),
    settings.actor.queue_capacity,
    shared_cores,
    update_threads,
  )


def _simulate_cluster(stages, num_workers, times, unroll_bytes, flag_values):
  """A core for each worker; the learner's machine is like this one."""
  settings = stages.settings
  num_cores = cores.num_cores()
  wire = 8 * unroll_bytes / (1e9 * flag_values.network_gbit_per_sec)
  # The learner's network takes in one unroll after another.
  there = times._replace(
    travel=flag_values.round_trip_ms / 1e3 + wire, take=max(times.take, wire)
  )
  result = _simulation.simulate(
    _setup(settings, num_workers, None, num_cores), there
  )
  steps = settings.learner.unroll_length * settings.actor.envs_per_actor
  return _stages.line(
    'distributed: simulated cluster',
    stages.replace('actor', num_actors=num_workers),
    {
      'steps_per_sec': round(result.unrolls_per_sec * steps, 1),
      'learner_share': round(result.learner_share, 3),
      'lag': round(result.lag, 2),
      'mb_per_sec': round(result.unrolls_per_sec * unroll_bytes / 1e6, 2),
      'play_ms': round(1e3 * times.play, 2),
      'take_ms': round(1e3 * there.take, 2),
      'update_ms': round(1e3 * times.update / num_cores, 2),
    },
  )
