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
# From nothing to an agent that plays Pong: makes a virtual environment, trains
# for a few minutes, tests the agent, and films it.
#
#   bash scripts/quickstart.sh                    # 30 minutes of training
#   bash scripts/quickstart.sh --minutes=5 --level=atari/space_invaders
#   bash scripts/quickstart.sh --logdir=runs/pong # Given again: goes on.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/venv.sh

minutes=30
level=atari/pong
logdir=
for argument in "$@"; do
  case "$argument" in
    --minutes=*) minutes=${argument#*=} ;;
    --level=*) level=${argument#*=} ;;
    --logdir=*) logdir=${argument#*=} ;;
    *)
      {
        echo "quickstart.sh: $argument is unknown; give --minutes=30 (how long"
        echo "to train), --level=atari/pong or --logdir=quickstart/atari/pong."
      } >&2
      exit 2
      ;;
  esac
done
if ! [[ "$minutes" =~ ^[0-9]+([.][0-9]+)?$ ]]; then
  echo "quickstart.sh: --minutes=$minutes is no number of minutes." >&2
  exit 2
fi
logdir=${logdir:-quickstart/$level}
secs=$(awk "BEGIN { print 60 * $minutes }")

prepare_venv .venv plots
python=.venv/bin/python

echo "Training $level for $minutes minutes; Ctrl-C ends it early and saves."
code=0
"$python" scripts/train.py --flagfile=scripts/presets/atari_laptop.flags \
  --level_name="$level" --logdir="$logdir" --stop_after_secs="$secs" || code=$?
if ((code != 0 && code != 130)); then
  exit "$code"
fi

echo
"$python" scripts/evaluate.py --logdir="$logdir" --video="$logdir/episode.gif"

cat <<END

Where things are:
  a film of the agent  $logdir/episode.gif
  the checkpoint       $(ls "$logdir"/checkpoint-*.npz | tail -1)
  figures              $logdir/metrics.csv
  scores of this test  $logdir/test.csv
How to go on:
  train longer         $python scripts/train.py \\
                         --flagfile=scripts/presets/atari_laptop.flags \\
                         --level_name=$level --logdir=$logdir \\
                         --total_environment_frames=20000000
  curves               .venv/bin/tensorboard --logdir=$logdir
  test it again        $python scripts/evaluate.py --logdir=$logdir \\
                         --test_num_episodes=100
  another game         bash scripts/quickstart.sh --level=atari/space_invaders
END
