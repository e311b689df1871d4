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
"""Updates the network from one batch, again and again.

    python scripts/benchmark.py learner --torso=shallow --secs=10

Prints agent steps per second and processor milliseconds per step, the seconds
of the first update, which traces and compiles, and then, in turns with a
product of two matrices, the share of that product's speed (`share_of_peak`).

    python scripts/benchmark.py learner --device=gpu --torso=deep \
      --precisions=float32,mixed_bfloat16 --xla_modes=off,on --secs=20

measures a GPU, where one is there, in each of the precisions, with XLA and
without.
"""

import time
from collections.abc import Iterator
from typing import Any

from absl import flags

from benchmarks import _peak, _stages
from scalable_agent import config


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of the stages, and the precisions."""
  _stages.define_flags(flag_values)
  for name, default, choices, meaning in (
    (
      'precisions',
      'float32',
      config.PRECISIONS,
      'Precisions to measure, of those that --precision takes.',
    ),
    ('xla_modes', 'off', ('off', 'on'), 'Settings of --xla to measure.'),
  ):
    flags.DEFINE_list(name, [default], meaning, flag_values=flag_values)
    flags.register_validator(
      name,
      lambda given, choices=choices: bool(given) and set(given) <= set(choices),
      f'must be some of {", ".join(choices)}, separated by commas.',
      flag_values=flag_values,
    )


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields one measurement for each precision and way to compile."""
  stages = _stages.from_flags(flag_values)
  for precision in flag_values.precisions:
    for mode in flag_values.xla_modes:
      one = stages.replace('agent', precision=precision)
      yield measure_one(one.replace('learner', xla=mode == 'on'))


def measure_one(stages: _stages.Stages) -> dict[str, Any]:
  """The measurement of one network."""
  own = stages.make_learner()
  batch = stages.batch_on_device()
  start = time.perf_counter()
  own.update(batch)
  first_secs = time.perf_counter() - start
  settings = stages.settings.learner
  num_steps = settings.batch_size * settings.unroll_length
  cost = stages.measure(lambda: own.update(batch), num_steps)
  num_slots = settings.batch_size * (settings.unroll_length + 1)
  flops = num_slots * _peak.training_flops(own.agent, stages.spec)
  shares = _peak.compare(
    lambda: own.update(batch),
    flops,
    _peak.Gemm(stages.learner_device),
    stages.secs,
  )
  return _stages.line(
    'learner',
    stages,
    {
      **cost.rounded(),
      'first_update_secs': round(first_secs, 2),
      'gflop_per_update': round(1e-9 * flops, 2),
      **shares,
    },
  )
