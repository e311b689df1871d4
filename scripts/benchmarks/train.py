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
"""Trains for a while and compares with what the stages alone would allow.

    python scripts/benchmark.py train --torso=shallow --train_secs=60

Before and after, environments, inference and learner are measured alone, as the
parts of these names do; their means count. `ideal_steps_per_sec` is the number
of cores divided by the sum of their processor time per step; `share_of_ideal`
is what training reached of it, after its first seconds. One line per stage,
then one for training; all with the threads of a training run, see
--threads_per_operation.

Where others use the machine too, compare `core_ms_per_step`: `cost_share` is
the sum of the stages' over training's.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import flags

from benchmarks import _stages, _training
from scalable_agent import cores
from scalable_agent.runtime import devices


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of the stages, and how long to train."""
  _stages.define_flags(flag_values)
  _training.define_flags(flag_values)


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields the stages, then training."""
  stages = _stages.from_flags(flag_values)
  devices.set_threads(stages.settings)
  before = _alone(stages)
  training = _training.train(
    stages, flag_values.train_secs, flag_values.warm_up_secs
  )
  cost = 0.0
  for name, after in _alone(stages).items():
    stage = _stages.Cost(*np.mean([before[name], after], axis=0).tolist())
    cost += stage.core_secs_per_step
    yield _stages.line(f'train: {name} alone', stages, stage.rounded())
  num_cores = cores.num_cores()
  yield _stages.line(
    'train',
    stages,
    {
      'num_cores': num_cores,
      **_training.values(training, stages.spec.frames_per_step),
      'ideal_steps_per_sec': round(num_cores / cost, 1),
      'share_of_ideal': round(training.steps_per_sec * cost / num_cores, 3),
      'cost_share': round(cost / training.core_secs_per_step, 3),
    },
  )


def _alone(stages) -> dict[str, _stages.Cost]:
  """Each stage, alone."""
  names = ('env', 'inference', 'learner')
  return {name: getattr(stages, name)() for name in names}
