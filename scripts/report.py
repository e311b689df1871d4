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
r"""Reports on runs: curves, scores beside the paper's, pictures, one page.

    python scripts/report.py /tmp/pong_1 /tmp/pong_2 --output=/tmp/report
    python scripts/report.py /tmp/sweep --output=/tmp/report

Runs that differ in their seed only are shown together. A directory that holds
runs stands for all of them. Needs `pip install '.[plots]'`.
"""

from collections.abc import Sequence

import config_flags
from absl import app, flags

flags.DEFINE_string(
  'output',
  'report',
  'Folder for report.html, which needs nothing else, and for its pictures '
  '(.png, .svg) and tables (.csv).',
)
flags.DEFINE_integer(
  'window',
  100,
  'Length of running means, and of what a final return is. Unit: episodes.',
  lower_bound=1,
)
flags.DEFINE_list(
  'targets',
  [],
  'Mean returns, separated by commas, whose times are told. Default: half of '
  'human and human, or 90 % of the way up where no human played.',
)
flags.DEFINE_list(
  'line_by',
  [],
  'Settings, separated by commas, by whose values the stability plot tells '
  'lines apart, such as correction. Default: none.',
)


def main(argv: Sequence[str]) -> None:
  """Reads, draws and saves."""
  if len(argv) < 2:
    config_flags.fail('no run is named; give the directories of runs.')
  from scalable_agent.reports import pictures, report

  try:
    targets = [float(target) for target in flags.FLAGS.targets]
    options = report.Options(flags.FLAGS.window, targets, flags.FLAGS.line_by)
    path = report.write(argv[1:], flags.FLAGS.output, options)
  except (ValueError, pictures.MissingError) as error:
    config_flags.fail(str(error))
  print(f'Wrote {path}.')


if __name__ == '__main__':
  app.run(main, flags_parser=config_flags.parse)
