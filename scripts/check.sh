#!/usr/bin/env bash
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
#
# Every check of the project: format, lint, types, tests. Makes its own virtual
# environment, needs nothing but Python 3.10 to 3.13. Arguments go to pytest:
#
#   bash scripts/check.sh
#   bash scripts/check.sh -m slow
#
# All checks run, whichever fails; the last line is pytest's summary, and the
# exit code is that of the first failure.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/venv.sh

prepare_venv .venv-check dev
bin=.venv-check/bin

first_failure=0
failed=()
check() {
  local name=$1 code=0
  shift
  echo "== $name"
  "$@" || code=$?
  if ((code != 0)); then
    failed+=("$name")
    if ((first_failure == 0)); then
      first_failure=$code
    fi
  fi
}

check format "$bin/ruff" format --check .
check lint "$bin/ruff" check .
check types "$bin/mypy"
if ((${#failed[@]} > 0)); then
  echo "== FAILED before the tests: ${failed[*]}"
fi
check tests "$bin/python" -m pytest "$@"
exit "$first_failure"
