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
"""Measures a part of the system and prints one JSON object a line.

    python scripts/benchmark.py PART [--flags] [--json=new.json]
    python scripts/benchmark.py PART [--flags] --compare=old.json

`python scripts/benchmark.py PART --help` says what is measured, and how. With
--compare, and for the part `all`, a table of everything follows.
"""

import json
from collections.abc import Sequence
from types import ModuleType

import benchmarks
import config_flags
from absl import app, flags
from benchmarks import _report

from scalable_agent.runtime import devices


def parts() -> list[str]:
  """Names of what can be measured: the modules of `benchmarks`."""
  return config_flags.parts(benchmarks)


def parse(argv: Sequence[str]) -> ModuleType:
  """The part that the command line names, its flags defined and parsed."""
  _define_flags(flags.FLAGS)
  return config_flags.parse_part(argv, benchmarks, __doc__)


def _define_flags(flag_values: flags.FlagValues) -> None:
  """Flags of every part."""
  flags.DEFINE_string(
    'json',
    None,
    'File to which measurements go. Default: none.',
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'compare',
    None,
    'File that --json wrote, to which measurements are compared. Default: '
    'none.',
    flag_values=flag_values,
  )


def main(part: ModuleType) -> None:
  """Prints each measurement as soon as it is there."""
  old = None
  if flags.FLAGS.compare is not None:
    try:
      old = _report.read(flags.FLAGS.compare)
    except ValueError as error:
      config_flags.fail(f'--compare: {error}')
  devices.prepare()
  measurements = []
  for measurement in part.measure(flags.FLAGS):
    print(json.dumps(measurement), flush=True)
    measurements.append(measurement)
    if flags.FLAGS.json is not None:
      _report.write(flags.FLAGS.json, measurements)
  if old is not None or part.__name__ == 'benchmarks.all':
    _report.show(measurements, old)


if __name__ == '__main__':
  app.run(main, flags_parser=parse)
