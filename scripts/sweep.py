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
r"""Trains many agents: the paper's random search, a grid, a population.

    python scripts/sweep.py --level_name=catch --logdir=/tmp/sweep \
      --total_environment_frames=100000 --num_samples=24

    python scripts/sweep.py --level_name=catch --logdir=/tmp/grid \
      --grid=learning_rate=0.001,0.01 --grid=seed=1,2,3

Without --draw and --grid, learning rate, entropy cost and epsilon are drawn as
in the paper's Table D.1. All flags of scripts/train.py are those of each trial.
The same command again resumes a sweep. Each trial is an ordinary run directory
in --logdir. Needs `pip install '.[ray]'`.
"""

import dataclasses
import os
import sys

import config_flags
from absl import flags

from scalable_agent import config as config_lib
from scalable_agent.runtime import ray_settings
from scalable_agent.tuning import pbt, population, space, sweep

_FILE = os.path.abspath(__file__)
_RULE = pbt.Rule()

flags.DEFINE_multi_string(
  'draw',
  [],
  'A setting that is drawn at random: NAME=log_uniform:LOW:HIGH or '
  'NAME=choice:VALUE:VALUE. May be given several times.',
)
flags.DEFINE_multi_string(
  'grid',
  [],
  'A setting that takes each of some values: NAME=VALUE,VALUE. May be given '
  'several times: all combinations are run.',
)
flags.DEFINE_integer(
  'num_samples',
  space.NUM_SAMPLES,
  'How many combinations are drawn. Unit: trials.',
  lower_bound=1,
)
flags.DEFINE_integer('sweep_seed', 1, 'Decides what is drawn.')
flags.DEFINE_float(
  'cpus_per_trial', 1.0, 'What a trial takes. Unit: CPUs.', lower_bound=0
)
flags.DEFINE_float(
  'gpus_per_trial',
  0.0,
  'What a trial takes; 0.5 lets two share one. Unit: GPUs.',
  lower_bound=0,
)
flags.DEFINE_integer(
  'max_concurrent',
  None,
  'Trials at once. Default: none, as many as there is room for.',
  lower_bound=1,
)
flags.DEFINE_string(
  'sweep_address',
  '',
  'Address of a Ray cluster whose machines share --logdir. Default: this '
  'machine alone.',
)
flags.DEFINE_boolean(
  'pbt',
  False,
  'Population based training: trials copy better ones and change settings.',
)
flags.DEFINE_integer(
  'pbt_burn_in_frames',
  _RULE.burn_in_frames,
  'Frames of a trial before its first turn. Unit: frames.',
  lower_bound=0,
)
flags.DEFINE_integer(
  'pbt_episodes',
  _RULE.episodes,
  'Episodes of a trial from one turn to the next. Unit: episodes.',
  lower_bound=1,
)
flags.DEFINE_float(
  'pbt_margin',
  _RULE.margin,
  'By how much more fitness another trial must have to be copied. Unit: '
  'percent of humans; where no human played, that of the return.',
  lower_bound=0,
)
flags.DEFINE_list(
  'pbt_mutated',
  list(_RULE.mutated),
  'Settings, separated by commas, that change by a factor of 1.2 or 1 / 1.2.',
)
flags.DEFINE_integer(
  'window',
  100,
  'Episodes per level that a return in the table, or a fitness, is a mean of. '
  'Unit: episodes.',
  lower_bound=1,
)
config_flags.define()


def main(settings: config_lib.Config) -> int:
  """Trains all; returns 1 if a trial is not done."""
  values, folder = flags.FLAGS, settings.run.logdir
  base = _base_flags(settings)
  try:
    combinations = _combinations()
    for combination in combinations:
      config_flags.check([*base, *config_flags.words(combination)])
    _check_population(combinations)
    ray_tune = _import_ray_tune()
    paths = sweep.prepare(folder, base, combinations)
  except ValueError as error:
    config_flags.fail(str(error))
  plan = ray_tune.Plan(
    paths,
    [sys.executable, os.path.join(os.path.dirname(_FILE), 'train.py')],
    values.window,
    values.cpus_per_trial,
    values.gpus_per_trial,
    values.max_concurrent,
    values.sweep_address,
  )
  total = settings.learner.total_environment_frames
  members = None
  if values.pbt:
    members = population.Population(
      folder, paths, base, _rule(), values.window, total, values.sweep_seed
    )
  try:
    errors = ray_tune.run(plan, members)
  except ray_tune.NoClusterError as error:
    config_flags.fail(str(error))
  found = sweep.rows(paths, errors, total, values.window)
  print('\n'.join(sweep.lines(found)))
  print(f'Wrote {sweep.write_table(folder, found)}.')
  if all(row.status == 'done' for row in found):
    return 0
  print('Not all trials are done; the same command goes on with them.')
  return 1


def _import_ray_tune():
  address = flags.FLAGS.sweep_address
  ray_settings.prepare(config_lib.DistributedConfig(ray_address=address))
  if address and address != 'auto':
    ray_settings.check_address(address, 'sweep_address')
  try:
    from scalable_agent.tuning import ray_tune
  except ImportError as error:
    raise ValueError(
      f"Ray Tune is not installed ({error}); pip install '.[ray]' does it."
    ) from error
  return ray_tune


def _base_flags(settings: config_lib.Config) -> list[str]:
  """Flags of all trials, each of which has a directory of its own."""
  run = dataclasses.replace(settings.run, logdir=config_lib.RunConfig().logdir)
  return config_flags.as_flags(dataclasses.replace(settings, run=run))


def _combinations() -> list[dict[str, str]]:
  values = flags.FLAGS
  draws = values.draw or ([] if values.grid else space.TABLE_D1)
  return space.combinations(
    dict(map(space.parse_draw, draws)),
    dict(map(space.parse_grid, values.grid)),
    values.num_samples,
    values.sweep_seed,
  )


def _rule() -> pbt.Rule:
  values = flags.FLAGS
  return _RULE._replace(
    burn_in_frames=values.pbt_burn_in_frames,
    episodes=values.pbt_episodes,
    margin=values.pbt_margin,
    mutated=tuple(values.pbt_mutated),
  )


def _check_population(combinations) -> None:
  """Raises ValueError where population based training cannot be."""
  if not flags.FLAGS.pbt:
    return
  if len(combinations) < 2:
    raise ValueError('pbt needs two trials at least; raise --num_samples.')
  missing = set(flags.FLAGS.pbt_mutated) - set(combinations[0])
  if missing:
    raise ValueError(
      f'pbt_mutated names {missing.pop()}, which no --draw and no --grid gives '
      'a value to begin with.'
    )


if __name__ == '__main__':
  config_flags.run(main)
