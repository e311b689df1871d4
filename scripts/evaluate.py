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
r"""Tests the agent of a run: raw returns of whole episodes, and a film.

    python scripts/evaluate.py --logdir=/tmp/catch --test_num_episodes=100
    python scripts/evaluate.py --logdir=/tmp/pong --video=/tmp/pong.gif

Settings are those that the run was started with; flags that are given win. The
number of episodes of each environment is fixed beforehand, so short episodes
are not favoured. Results are added to `test.csv` in --logdir; levels that are
there, of the same weights and settings, are not played again.
"""

import config_flags
from absl import flags

from scalable_agent import config, run_record
from scalable_agent.runtime import testing

flags.DEFINE_integer(
  'test_num_episodes',
  10,
  'When testing: episodes per level. Unit: episodes.',
  lower_bound=1,
)
flags.DEFINE_boolean(
  'greedy',
  False,
  'When testing: take the most likely action instead of a sample.',
)
flags.DEFINE_boolean(
  'test_afresh',
  False,
  'When testing: play levels again that test.csv has already.',
)
flags.DEFINE_string(
  'video',
  None,
  'When testing: film one more episode of the first level into this .gif or '
  '.mp4. Default: none.',
)
if __name__ == '__main__':
  config_flags.define()


def test() -> int:
  """Tests the run in --logdir; returns the exit code."""
  try:
    saved = run_record.load_config(flags.FLAGS.logdir)
    settings = config_flags.build(base=saved)
    testing.run_test(
      settings,
      flags.FLAGS.test_num_episodes,
      flags.FLAGS.greedy,
      flags.FLAGS.video,
      flags.FLAGS.test_afresh,
    )
  except ValueError as error:
    config_flags.fail(str(error))
  return 0


def main(_: config.Config) -> int:
  """The settings of the command line alone are not those of the run."""
  return test()


if __name__ == '__main__':
  config_flags.run(main)
