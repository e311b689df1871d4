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
r"""Trains an agent, or tests one.

    python scripts/train.py --level_name=catch --logdir=/tmp/catch \
      --batch_size=16 --unroll_length=10 --total_environment_frames=300000

    python scripts/train.py --flagfile=scripts/presets/atari_deep.flags \
      --level_name=atari/breakout --logdir=/tmp/breakout

A run found in --logdir is continued. Ctrl-C saves and leaves. --mode=test
plays --test_num_episodes episodes of each level with the newest weights, as
scripts/evaluate.py does.
"""

import sys

import config_flags
import evaluate
from absl import flags

from scalable_agent import config
from scalable_agent.runtime import training

flags.DEFINE_enum('mode', 'train', ['train', 'test'], 'Train or test.')
flags.DEFINE_float(
  'stop_after_secs',
  None,
  'End the run after so long, however many frames are left; it can be '
  'continued. Unit: seconds. Default: none.',
  lower_bound=0,
)
config_flags.define()
flags.adopt_module_key_flags(evaluate)


def main(settings: config.Config) -> int:
  """Trains or tests; returns the exit code."""
  if flags.FLAGS.mode == 'test':
    return evaluate.test()
  try:
    return training.train(settings, sys.argv, flags.FLAGS.stop_after_secs)
  except training.SettingsError as error:
    config_flags.fail(str(error))


if __name__ == '__main__':
  config_flags.run(main)
