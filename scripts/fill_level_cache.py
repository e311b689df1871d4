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
r"""Compiles the maps of DMLab-30 levels ahead of training, in parallel.

    python scripts/fill_level_cache.py --level_name=dmlab30 \
      --level_cache_dir=/data/lab_maps --num_level_seeds=1000 --num_workers=16

Then train with the same flags. It may be interrupted and started again. Levels
that compile no maps are passed over. `--mode=test` fills for the suite's test.
"""

import os

import config_flags
from absl import flags

from scalable_agent import config
from scalable_agent.dmlab30 import cache_filler, levels, settings
from scalable_agent.suites import dmlab

config_flags.define()
MODE = flags.DEFINE_enum(
  'mode', 'train', levels.MODES, 'Maps of training, or of the test levels.'
)
NUM_WORKERS = flags.DEFINE_integer(
  'num_workers', os.cpu_count() or 1, 'Processes, one Lab in each.', 1
)


def main(chosen: config.Config) -> int:
  """Fills the cache and says how it went; returns the exit code."""
  try:
    lab_settings = dmlab.lab_settings(chosen, MODE.value)
    resolved = levels.resolve(
      chosen.task.level_name, MODE.value, lab_settings.level_directory
    )
    names = cache_filler.with_maps(resolved)
    settings.check_settings(names, lab_settings, MODE.value)
    progress = cache_filler.fill(names, lab_settings, NUM_WORKERS.value, report)
  except ValueError as error:
    config_flags.fail(str(error))
  for failure in progress.failures:
    print(failure)
  return 1 if progress.failed else 0


def report(progress: cache_filler.Progress, seconds: float) -> None:
  """One line: how far, how fast, how much longer."""
  rate = progress.done / max(seconds, 1e-9)
  left = (progress.total - progress.done) / rate if rate else float('inf')
  print(
    f'{progress.done}/{progress.total} maps: {progress.compiled} compiled, '
    f'{progress.present} there before, {progress.failed} failed; '
    f'{rate:.2f} maps/s, {left / 60:.1f} minutes left',
    flush=True,
  )


if __name__ == '__main__':
  config_flags.run(main)
