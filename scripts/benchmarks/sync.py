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
"""Trains with IMPALA and with batched A2C, as the paper's first experiment.

    python scripts/benchmark.py sync --train_secs=20

The same agent, losses and environments under `--runtime=local` and under
`--runtime=sync`, which waits every step or every trajectory. On `catch` a step
is made to take time, as a simulator's would: the same each time (equal), or
exponentially distributed with the same mean (uneven). Environments of one actor
step at the same time, so that the slowest counts. Other levels take the time
that they take. One line each, with the mean return that was reached.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import flags

from benchmarks import _stages, _training
from scalable_agent import tasks

_DEFAULTS = {
  'level_name': 'catch',
  'torso': 'auto',
  'num_actors': 8,
  'envs_per_actor': 1,
  'inference': 'direct',
  'batch_size': 8,
  'learning_rate': 0.002,
  'epsilon': 0.001,
  'entropy_cost': 0.01,
}
RUNTIMES = {
  'local': {'runtime': 'local'},
  'sync step': {'runtime': 'sync', 'sync_every': 'step'},
  'sync trajectory': {'runtime': 'sync', 'sync_every': 'trajectory'},
}


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of training, and how long a step of `catch` takes."""
  _stages.define_flags(flag_values)
  _training.define_flags(flag_values)
  for name, value in _DEFAULTS.items():
    flag_values.set_default(name, value)
  flags.DEFINE_float(
    'step_ms',
    10.0,
    'Mean time that a step of `catch` takes. Unit: milliseconds.',
    lower_bound=0,
    flag_values=flag_values,
  )


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields a measurement per kind of step time and runtime."""
  stages = _stages.from_flags(flag_values)
  kinds = ('equal', 'uneven') if flag_values.level_name == 'catch' else ('own',)
  task = stages.task
  for kind in kinds:
    for name, settings in RUNTIMES.items():
      one = stages.replace('run', **settings)
      one.task = task
      if kind != 'own':
        one.task = slowed(task, flag_values.step_ms / 1e3, kind == 'uneven')
      training = _training.train(
        one, flag_values.train_secs, flag_values.warm_up_secs
      )
      values = _training.values(training, one.spec.frames_per_step)
      (mean_return,) = training.mean_returns.values() or (float('nan'),)
      values['mean_return'] = round(mean_return, 2)
      yield _stages.line('sync', one, {'steps': kind, 'runtime': name} | values)


def slowed(task: tasks.Task, mean_secs: float, uneven: bool) -> tasks.Task:
  """The task with environments that take their time for a step."""

  def build(request):
    environments = task.build(request)
    random = np.random.default_rng((request.base_seed, request.actor))
    step = environments.step

    def slow_step(actions):
      secs = np.full(environments.num_envs, mean_secs)
      if uneven:
        secs = random.exponential(mean_secs, environments.num_envs)
      time.sleep(secs.max())
      return step(actions)

    environments.step = slow_step
    return environments

  return task._replace(build=build)
