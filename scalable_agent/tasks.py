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
"""What `--level_name` means: which levels, and who makes their environments."""

import difflib
from collections.abc import Mapping, Sequence

import numpy as np

from scalable_agent import config
from scalable_agent.dmlab30 import levels
from scalable_agent.envs import catch
from scalable_agent.suites import atari, base, dmlab, gym

MODES = levels.MODES
Request = base.Request
Suite = base.Suite
Task = base.Task

_CATCH = 'catch'


def make_task(settings: config.Config, mode: str = 'train') -> Task:
  """The task that the settings name. Starts no environment.

  Args:
    settings: of the run.
    mode: `train`, or `test` for levels as they are evaluated.

  Raises:
    ValueError: the level is unknown, or the settings do not fit it.
  """
  if mode not in MODES:
    raise ValueError(f'mode is {mode!r}; choose train or test.')
  task = _make_task(settings, mode)
  if mode == 'train':
    task = task._replace(weights=_parse_weights(settings.task.level_weights))
    actor = settings.actor
    deal(task.level_names, actor.num_actors, actor.envs_per_actor, task.weights)
  return task


def deal(
  level_names: Sequence[str],
  num_actors: int,
  envs_per_actor: int,
  weights: Mapping[str, int] | None = None,
) -> list[list[str]]:
  """Deals levels round robin over all environments of all actors.

  Args:
    level_names: of the task.
    num_actors: of the run.
    envs_per_actor: of each.
    weights: how many environments play a level, relative to others; 1 for
      those that are not named.

  Returns:
    For each actor the level of each of its environments.

  Raises:
    ValueError: there are fewer environments than levels, or a weight is wrong.
  """
  num_envs = num_actors * envs_per_actor
  if num_envs < len(level_names):
    raise ValueError(
      f'num_actors={num_actors} with envs_per_actor={envs_per_actor} make '
      f'{num_envs} environments, fewer than the {len(level_names)} levels; '
      'every level needs one. Raise either, or name fewer levels.'
    )
  dealt = levels.deal(level_names, num_envs, weights)
  return [
    dealt[a * envs_per_actor : (a + 1) * envs_per_actor]
    for a in range(num_actors)
  ]


def start_seed(seed: int, start: int, attempt: int = 0) -> int:
  """Base seed of one start of a run, or of one attempt after a failure.

  A resumed run goes on with new episodes instead of those it began with.
  """
  entropy = np.random.SeedSequence((seed, start, attempt))
  return int(entropy.generate_state(1)[0])


def _make_task(settings, mode):
  names = tuple(n.strip() for n in settings.task.level_name.split(','))
  if names == (_CATCH,):
    return base.single_task(settings, names, lambda _: catch.Catch)
  if all(name.startswith(gym.PREFIX) for name in names):
    return gym.make_task(settings, names)
  if names == (atari.SUITE,) or all(n.startswith(atari.PREFIX) for n in names):
    return atari.make_task(settings, names, mode)
  others = (gym.PREFIX, atari.PREFIX)
  if all(
    dmlab.is_level(name, settings) and not name.startswith(others)
    for name in names
  ):
    return dmlab.make_task(settings, names, mode)
  raise ValueError(
    f'level_name is {settings.task.level_name!r}, which is no level;'
    f'{_nearest(names)} choose a DMLab-30 level, '
    '`dmlab30`, `atari/<game>`, `atari57`, `gym/<id>` or `catch`, or several '
    'of one kind separated by commas.'
  )


def _nearest(names: Sequence[str]) -> str:
  """A question about the first name that nobody knows."""
  known = [_CATCH, atari.SUITE, *atari.ALL_NAMES]
  known += [levels.SUITE, *levels.ALL_NAMES, *levels.OTHER_LEVELS]
  for name in names:
    if name not in known:
      near = difflib.get_close_matches(name, known, n=3)
      return f' did you mean {" or ".join(near)}? Or' if near else ''
  return ''


def _parse_weights(text: str) -> dict[str, int]:
  """`level=2,other=3` as a mapping."""
  weights = {}
  for item in filter(None, text.split(',')):
    name, _, weight = item.strip().rpartition('=')
    if not name or not weight.isdecimal():
      raise ValueError(
        f'level_weights has {item!r}; write level=weight with a whole number, '
        'such as rooms_watermaze=2.'
      )
    weights[name] = int(weight)
  return weights
