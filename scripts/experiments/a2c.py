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
"""Learning of IMPALA beside batched A2C's on `catch`, frame by frame.

    python scripts/experiment.py a2c --output=/tmp/a2c

Agent, losses, environments, batches and frames are the same; IMPALA's actors
go on while the learner learns, those of A2C wait. Writes a2c.csv (a row
per run) and a2c.png, and prints a table. On speed: scripts/benchmark.py sync.
"""

import os
from collections.abc import Iterator
from typing import Any

from absl import flags

from experiments import _grid

define_flags = _grid.define_flags

_ACTOR = {'num_actors': 4, 'envs_per_actor': _grid.NUM_ENVS // 4}
CELLS = {
  'IMPALA': _grid.Cell('impala', actor=_ACTOR, run={'runtime': 'local'}),
  'A2C, each step': _grid.Cell('a2c_step', actor=_ACTOR),
  'A2C, each trajectory': _grid.Cell(
    'a2c_trajectory', actor=_ACTOR, run={'sync_every': 'trajectory'}
  ),
}


def run(flag_values: flags.FlagValues) -> Iterator[str]:
  """Trains all cells, then tells."""
  output = flag_values.output
  names = {cell.name: name for name, cell in CELLS.items()}
  found: dict[str, list[float]] = {name: [] for name in CELLS}
  folders: dict[str, list[str]] = {name: [] for name in CELLS}
  rows: list[list[Any]] = []
  cells = list(CELLS.values())
  for cell, seed, value in _grid.run(cells, output, flag_values.num_seeds):
    name = names[cell.name]
    found[name].append(value)
    folders[name].append(_grid.logdir(output, cell, seed))
    rows.append([name, seed, round(value, 4)])
    _grid.write_table(
      os.path.join(output, 'a2c.csv'), ['runtime', 'seed', 'final_return'], rows
    )
  yield '| runtime | mean return of the last 500 episodes |'
  yield '|---|--:|'
  for name, values in found.items():
    yield f'| {name} | {_grid.spread(values)} |'
  path = os.path.join(output, 'a2c.png')
  _grid.draw_curves(folders, path)
  yield f'Wrote {path}.'
