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

Then train with the same `--level_cache_dir` and `--num_level_seeds`. It may be
interrupted and started again. `--mode=test` fills for the suite's test.
"""

import os

import config_flags
from absl import app, flags

from scalable_agent.dmlab30 import cache_filler, levels, settings

FLAGS = flags.FLAGS

flags.DEFINE_string(
  'level_name',
  levels.SUITE,
  'Levels, separated by commas; levels that compile no maps are passed over.',
)
flags.DEFINE_enum(
  'mode', 'train', levels.MODES, 'Maps of training, or of the test levels.'
)
flags.DEFINE_string(
  'level_cache_dir', None, 'Folder of compiled maps.', required=True
)
flags.DEFINE_float(
  'level_cache_gib', 20.0, 'Most that the folder may hold (GiB).'
)
flags.DEFINE_integer(
  'num_level_seeds', 1000, 'Maps per level, of the seeds from 0 on.', 1
)
flags.DEFINE_integer(
  'num_workers', os.cpu_count() or 1, 'Processes, one Lab in each.', 1
)
flags.DEFINE_string('dataset_path', '', 'See scripts/train.py.')
flags.DEFINE_string('level_directory', '', 'Folder of your level scripts.')
flags.DEFINE_multi_string(
  'lab_setting', [], 'A further Lab setting, name=value; may be repeated.'
)


def main(argv: list[str]) -> None:
  """Fills the cache and says how it went."""
  if argv[1:]:
    config_flags.fail(f'{argv[1]!r} is not a flag.')
  try:
    lab_settings = settings.LabSettings(
      dataset_path=FLAGS.dataset_path,
      level_directory=FLAGS.level_directory,
      level_cache_dir=FLAGS.level_cache_dir,
      level_cache_gib=FLAGS.level_cache_gib,
      num_level_seeds=FLAGS.num_level_seeds,
      config=settings.parse_config(FLAGS.lab_setting),
    )
    if FLAGS.mode == 'test':
      lab_settings = lab_settings.for_test()
    names = cache_filler.with_maps(
      levels.resolve(FLAGS.level_name, FLAGS.mode, FLAGS.level_directory)
    )
    settings.check_settings(names, lab_settings, FLAGS.mode)
  except ValueError as error:
    config_flags.fail(str(error))
  progress = cache_filler.fill(names, lab_settings, FLAGS.num_workers, report)
  for failure in progress.failures:
    print(failure)
  if progress.failed:
    raise SystemExit(1)


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
  app.run(main)
