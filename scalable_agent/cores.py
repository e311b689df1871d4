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
"""How many CPU cores this process may use."""

import os


def num_cores() -> int:
  """Those that the scheduler grants this process; all, where it cannot say."""
  try:
    return len(os.sched_getaffinity(0))
  except AttributeError:  # macOS, Windows
    return os.cpu_count() or 1
