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
"""Shows on a small scale that the algorithm does what the paper says.

    python scripts/experiment.py PART [--flags]

`python scripts/experiment.py PART --help` says what is shown, and how.
"""

from collections.abc import Sequence
from types import ModuleType

import config_flags
import experiments
from absl import app, flags


def parse(argv: Sequence[str]) -> ModuleType:
  """The part that the command line names, its flags defined and parsed."""
  return config_flags.parse_part(argv, experiments, __doc__)


def main(part: ModuleType) -> None:
  """Prints each line as soon as it is there."""
  for line in part.run(flags.FLAGS):
    print(line, flush=True)


if __name__ == '__main__':
  app.run(main, flags_parser=parse)
