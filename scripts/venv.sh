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
# Sourced by the scripts that bring their own virtual environment:
#
#   source scripts/venv.sh
#   prepare_venv .venv dev     # folder, extra of setup.cfg
#   .venv/bin/python ...
#
# Run from the repository's root. Set PYTHON to choose the interpreter.

# Prints the first Python that TensorFlow has wheels for.
find_python() {
  local candidate
  local candidates=(
    python3 python3.13 python3.12 python3.11 python3.10 python
  )
  if [[ -n "${PYTHON:-}" ]]; then
    candidates=("$PYTHON")
  fi
  for candidate in "${candidates[@]}"; do
    if "$candidate" -c '
import ensurepip, sys, venv
sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))
' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  {
    echo "No suitable Python among: ${candidates[*]}. Install Python 3.10 to"
    echo "3.13 with its venv module, or set PYTHON to the path of one."
  } >&2
  return 1
}

# Makes the virtual environment $1 with this project and its extra $2, unless
# it is there already, made by the same Python from the same requirements.
prepare_venv() {
  local folder=$1 extra=$2 python stamp
  python=$(find_python)
  stamp="$(pwd) [$extra] $("$python" -VV) $(cat setup.cfg pyproject.toml)"
  if [[ -x "$folder/bin/python" && -f "$folder/made_from" ]] &&
    [[ "$(cat "$folder/made_from")" == "$stamp" ]]; then
    return
  fi
  if [[ -e "$folder" && ! -f "$folder/made_from" ]]; then
    echo "$folder was not made by this script; move it away." >&2
    return 1
  fi
  echo "Making the virtual environment $folder with $python; this takes a few"
  echo "minutes and about 3 GB the first time."
  rm -rf "$folder"
  mkdir -p "$folder"
  : >"$folder/made_from" # Empty: not finished.
  "$python" -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
    --editable ".[$extra]"
  printf '%s' "$stamp" >"$folder/made_from"
}
