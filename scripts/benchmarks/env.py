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
"""Steps one actor's environments with random actions.

    python scripts/benchmark.py env --envs_per_actor=32 --secs=10

Prints agent steps per second and processor milliseconds per step.
"""

from collections.abc import Iterator
from typing import Any

from absl import flags

from benchmarks import _stages

define_flags = _stages.define_flags


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields the one measurement."""
  stages = _stages.from_flags(flag_values)
  yield _stages.line('env', stages, stages.env().rounded())
