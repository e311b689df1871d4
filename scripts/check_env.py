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
"""Checks that an environment can be learned from.

    python scripts/check_env.py --level_name=gym/CartPole-v1
    python scripts/check_env.py --level_name=gym/Mine-v0 --gym_import=my_module

Plays some episodes with random actions, in this process and in one of its own,
and prints what was looked at. Exit code 1 if the environment breaks the
contract, which docs/environments.md describes.
"""

import config_flags
from absl import flags

from scalable_agent import config, tasks
from scalable_agent.envs import conformance

config_flags.define()
EPISODES = flags.DEFINE_integer(
  'check_episodes', 3, 'Episodes to play.', lower_bound=1
)
STEPS = flags.DEFINE_integer(
  'check_steps',
  10_000,
  'Steps after which no end of an episode is waited for any longer.',
  lower_bound=1,
)


def main(settings: config.Config) -> int:
  """Checks every level that is named; returns the exit code."""
  try:
    task = tasks.make_task(settings, mode='test')
    failures = sum(_check(level, task, settings) for level in task.level_names)
  except ValueError as error:
    config_flags.fail(str(error))
  return 1 if failures else 0


def _check(level, task, settings):
  """Prints what is found; returns how many failures."""
  print(f'{level}:')
  failures = 0
  for verdict, text in conformance.check(
    task.factory(level),
    level,
    seed=settings.run.seed,
    num_episodes=EPISODES.value,
    max_steps=STEPS.value,
  ):
    failures += verdict == 'FAIL'
    print(f'  {verdict:4}  {text}', flush=True)
  if failures:
    print(f'{level} breaks the contract; see docs/environments.md.')
  else:
    print(f'{level} keeps the contract.')
  return failures


if __name__ == '__main__':
  config_flags.run(main)
