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
"""Writes the porting kit: what this project computes, stage by stage.

    python scripts/export_golden.py --output=/tmp/kit

Inputs, weights and outputs of V-trace, losses, networks, optimizer, a whole
update, some updates in a row and an actor's unrolls, as plain .npz and JSON,
for those who carry IMPALA to another framework. docs/porting.md describes the
files; scripts/verify_port.py compares another implementation's outputs with
them. The same seed gives the same numbers.
"""

import os
import platform
from collections.abc import Sequence

import config_flags
from absl import app, flags

from scalable_agent.runtime import devices


def define_flags() -> None:
  """Defines this script's flags; not on import, for others have the same."""
  flags.DEFINE_string(
    'output', None, 'Directory for the kit. Required.', required=True
  )
  flags.DEFINE_integer('seed', 1, 'Of all inputs and weights.', lower_bound=0)


def main(argv: Sequence[str]) -> None:
  """Computes all stages and writes them."""
  if len(argv) > 1:
    config_flags.fail(
      f'{argv[1]!r} is not a flag; flags look like --name=value.'
    )
  output = flags.FLAGS.output
  if os.path.isdir(output) and os.listdir(output):
    config_flags.fail(f'{output} is not empty; name a new directory.')
  devices.prepare()
  try:
    export(output, flags.FLAGS.seed)
  except OSError as error:
    config_flags.fail(f'{output} cannot be written: {error}.')


def export(directory: str, seed: int) -> None:
  """Writes a kit and says what it consists of."""
  # Only now: they load TensorFlow.
  import numpy as np
  import tensorflow as tf
  from porting import (
    heads_stage,
    kit,
    math_stages,
    network_stages,
    optimizer_stage,
    stream_stage,
    update_stages,
  )

  import scalable_agent

  stages = [
    math_stages.vtrace_stage(seed),
    math_stages.losses_stage(seed),
    heads_stage.heads_stage(seed),
    *network_stages.network_stages(seed),
    network_stages.instruction_stage(),
    network_stages.initial_weights_stage(seed),
    optimizer_stage.optimizer_stage(seed),
    *update_stages.stages(seed),
    stream_stage.stream_stage(),
  ]
  facts = {
    'seed': seed,
    'scalable_agent': scalable_agent.__version__,
    'python': platform.python_version(),
    'numpy': np.__version__,
    'tensorflow': tf.__version__,
  }
  kit.write(directory, stages, facts)
  _say(directory, stages)


def _say(directory, stages):
  """Prints how much there is of each stage."""
  for stage in stages:
    size = sum(array.nbytes for array in stage.arrays.values()) / 2**20
    print(
      f'{stage.name:30} {len(stage.cases):3} cases '
      f'{len(stage.arrays):4} arrays {size:6.1f} MiB'
    )
  print(f'Wrote {len(stages)} stages to {directory}.')


if __name__ == '__main__':
  define_flags()
  app.run(main, flags_parser=config_flags.parse)
