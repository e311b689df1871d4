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
"""Return on `catch` with and without replay, with V-trace and without.

    python scripts/experiment.py replay --output=/tmp/replay

With replay half of each batch of 64 is drawn from a buffer of 2,000 unrolls,
a fifth of the fresh ones of a run; without it the batch is the 32 fresh ones.
The frames are the same. Writes replay.csv (a row per run) and replay.png, and
prints a table.
"""

import os
from collections.abc import Iterator
from typing import Any

from absl import flags

from experiments import _grid

define_flags = _grid.define_flags

CORRECTIONS = ('vtrace', 'none')
WITHOUT, WITH = 'without replay', 'with replay'
_REPLAY = {
  'batch_size': 2 * _grid.NUM_ENVS,
  'replay_fraction': 0.5,
  'replay_capacity': 2_000,
}


def run(flag_values: flags.FlagValues) -> Iterator[str]:
  """Trains all cells, then tells."""
  cells = [
    _grid.Cell(
      f'{correction}_{kind.replace(" ", "_")}',
      learner={'correction': correction, **more},
    )
    for correction in CORRECTIONS
    for kind, more in ((WITHOUT, {}), (WITH, _REPLAY))
  ]
  found: dict[tuple[str, str], list[float]] = {}
  logdirs: dict[str, list[str]] = {}
  rows: list[list[Any]] = []
  output = flag_values.output
  for cell, seed, value in _grid.run(cells, output, flag_values.num_seeds):
    kind = WITH if 'replay_fraction' in cell.learner else WITHOUT
    key = cell.learner['correction'], kind
    found.setdefault(key, []).append(value)
    logdirs.setdefault(', '.join(key), []).append(
      _grid.logdir(output, cell, seed)
    )
    rows.append([*key, seed, round(value, 4)])
    _grid.write_table(
      os.path.join(output, 'replay.csv'),
      ['correction', 'replay', 'seed', 'final_return'],
      rows,
    )
  yield f'| correction | {WITHOUT} | {WITH} |'
  yield '|---|--:|--:|'
  for correction in CORRECTIONS:
    cells = [_grid.spread(found[correction, k]) for k in (WITHOUT, WITH)]
    yield f'| {correction} | ' + ' | '.join(cells) + ' |'
  path = os.path.join(output, 'replay.png')
  _grid.draw_curves(logdirs, path)
  yield f'Wrote {path}.'
