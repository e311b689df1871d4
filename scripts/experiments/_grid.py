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
"""Runs a grid of settings on `catch`, several seeds each, and tables the end.

Every cell and seed is an ordinary run directory, made by the library's own
`training.train`; what is there and finished is not run again. Runs are
synchronous (`--runtime=sync`), so that the policy lag of a cell is exactly the
one that it asks for.
"""

import csv
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from scalable_agent import config

# 32 environments of 10 steps are an update of 320 frames; 250 updates in all.
NUM_ENVS = 32
FRAMES_PER_UPDATE = 10 * NUM_ENVS
LEARNING_RATE = 0.005
_BASE = config.Config(
  task=config.TaskConfig(level_name='catch'),
  actor=config.ActorConfig(num_actors=1, envs_per_actor=NUM_ENVS),
  learner=config.LearnerConfig(
    batch_size=NUM_ENVS,
    unroll_length=10,
    total_environment_frames=80_000,
    entropy_cost=0.01,
    learning_rate=LEARNING_RATE,
    epsilon=0.001,
    on_nonfinite='skip',
  ),
  run=config.RunConfig(runtime='sync', checkpoint_secs=1e9, summary_secs=1.0),
)
# The end of a run: its last episodes, nine steps each; 5,000 frames.
_LAST_EPISODES = 500


class Cell(NamedTuple):
  """A point of the grid.

  name: of its run directories, without the seed.
  actor: settings of actors besides those of all cells.
  learner: settings of the learner besides those of all cells.
  run: settings of the run besides those of all cells.
  """

  name: str
  actor: Mapping[str, Any] = {}
  learner: Mapping[str, Any] = {}
  run: Mapping[str, Any] = {}


def define_flags(flag_values: flags.FlagValues) -> None:
  """Where runs go, and how many there are."""
  flags.DEFINE_string(
    'output',
    '/tmp/experiment',
    'Folder for run directories, tables (.csv) and pictures (.png).',
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'num_seeds',
    5,
    'Runs of each cell, with seeds 1, 2, ...',
    lower_bound=1,
    flag_values=flag_values,
  )


def run(
  cells: Sequence[Cell], output: str, num_seeds: int
) -> Iterator[tuple[Cell, int, float]]:
  """Trains what is not finished; yields `(cell, seed, final return)`.

  All cells of one seed come before the next seed, so that a grid that is cut
  short has whole seeds.
  """
  for seed in range(1, num_seeds + 1):
    for cell in cells:
      folder = logdir(output, cell, seed)
      train(cell, seed, folder)
      yield cell, seed, final_return(folder)


def logdir(output: str, cell: Cell, seed: int) -> str:
  """The run directory of a cell and a seed."""
  return os.path.join(output, f'{cell.name}_seed{seed}')


def final_return(folder: str) -> float:
  """Mean return of the last episodes of a run on `catch`."""
  from scalable_agent.reports import curves, runs

  return curves.final_return(runs.read(folder), 'catch', _LAST_EPISODES)


def write_table(
  path: str, header: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
  """A CSV file."""
  with open(path, 'w', encoding='utf-8', newline='') as file:
    writer = csv.writer(file)
    writer.writerow(header)
    writer.writerows(rows)


def spread(values: Sequence[float]) -> str:
  """Mean, and standard error where there are several."""
  mean = np.mean(values)
  if len(values) < 2:
    return f'{mean:.2f}'
  return f'{mean:.2f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.2f}'


def draw_curves(folders: Mapping[str, Sequence[str]], path: str) -> None:
  """A picture with a curve per run, one colour per label."""
  import matplotlib

  matplotlib.use('Agg')
  from matplotlib import pyplot

  from scalable_agent.reports import curves, runs

  figure, axes = pyplot.subplots(figsize=(6, 4), layout='constrained')
  for i, (label, group) in enumerate(folders.items()):
    for j, folder in enumerate(group):
      curve = runs.read(folder).curves['catch']
      axes.plot(
        curve.frames,
        curves.running_mean(curve, 1000),
        color=f'C{i}',
        alpha=0.7,
        label=label if j == 0 else None,
      )
  axes.set_xlabel('frames')
  axes.set_ylabel('mean return of the last 1,000 episodes')
  axes.grid(alpha=0.3)
  axes.legend()
  figure.savefig(path, dpi=120)


def train(cell: Cell, seed: int, folder: str) -> config.Config:
  """Trains a cell in `folder`, unless that is finished; its settings."""
  from scalable_agent.runtime import training

  settings = dataclasses.replace(
    _BASE,
    actor=dataclasses.replace(_BASE.actor, **cell.actor),
    learner=dataclasses.replace(_BASE.learner, **cell.learner),
    run=dataclasses.replace(_BASE.run, logdir=folder, seed=seed, **cell.run),
  )
  code = training.train(settings)
  if code:
    raise SystemExit(code)
  return settings
