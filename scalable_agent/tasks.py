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
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from scalable_agent import config, structs
from scalable_agent.atari import games as atari_games
from scalable_agent.atari import settings as atari_settings
from scalable_agent.atari import vector as atari_vector
from scalable_agent.envs import batches, catch

_ATARI = 'atari/'
_ATARI_57 = 'atari57'
_CATCH = 'catch'
MODES = ('train', 'test')


class Request(NamedTuple):
  """Environments that are asked for.

  level_names: `[E]`, what each of them plays.
  base_seed: of the start of the run.
  actor: index of the actor, for seeds and messages.
  """

  level_names: Sequence[str]
  base_seed: int
  actor: int


class Task(NamedTuple):
  """What a run plays.

  level_names: all levels, in the suite's order.
  frame_stack: how many of the newest frames the agent sees.
  build: makes environments.
  """

  level_names: tuple[str, ...]
  frame_stack: int
  build: Callable[[Request], structs.Environments]

  def spec(self) -> structs.EnvironmentSpec:
    """What the agent sees and does; makes an environment to find out."""
    environments = self.build(Request(self.level_names[:1], 0, 0))
    try:
      return environments.spec
    finally:
      environments.close()


def make_task(settings: config.Config, mode: str = 'train') -> Task:
  """The task that the settings name.

  Args:
    settings: of the run.
    mode: `train`, or `test` for levels as they are evaluated.

  Raises:
    ValueError: the level is unknown, or the settings do not fit it.
  """
  names = [n.strip() for n in settings.task.level_name.split(',')]
  if names == [_CATCH]:
    return _catch_task(settings)
  if names == [_ATARI_57] or all(n.startswith(_ATARI) for n in names):
    return _atari_task(settings, names, mode)
  raise ValueError(
    f'level_name is {settings.task.level_name!r}, which is no level;'
    f'{_nearest(settings.task.level_name)} choose a DMLab-30 level, '
    '`dmlab30`, `atari/<game>`, `atari57`, `gym/<id>` or `catch`, or several '
    'of one kind separated by commas.'
  )


def deal(
  level_names: Sequence[str], num_actors: int, envs_per_actor: int
) -> list[list[str]]:
  """Deals levels round robin over all environments of all actors.

  Returns:
    For each actor the level of each of its environments.

  Raises:
    ValueError: there are fewer environments than levels.
  """
  num_envs = num_actors * envs_per_actor
  if num_envs < len(level_names):
    raise ValueError(
      f'num_actors={num_actors} with envs_per_actor={envs_per_actor} make '
      f'{num_envs} environments, fewer than the {len(level_names)} levels; '
      'every level needs one. Raise either, or name fewer levels.'
    )
  dealt = [level_names[i % len(level_names)] for i in range(num_envs)]
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


def _catch_task(settings):
  def build(request):
    return batches.SerialEnvironments(
      [catch.Catch] * len(request.level_names),
      request.level_names,
      base_seed=request.base_seed,
      actor=request.actor,
      on_error=settings.actor.on_env_error,
      max_restarts=settings.actor.max_restarts,
    )

  return Task((_CATCH,), 1, build)


def _atari_task(settings, names, mode):
  if names == [_ATARI_57]:
    names = [_ATARI + game for game in atari_games.GAMES]
  games = [name.removeprefix(_ATARI) for name in names]
  protocol = atari_settings.from_task(
    settings.task, several_games=len(games) > 1, evaluation=mode == 'test'
  )

  def build(request):
    return atari_vector.make(
      [name.removeprefix(_ATARI) for name in request.level_names],
      protocol,
      level_names=request.level_names,
      base_seed=request.base_seed,
      actor=request.actor,
      num_threads=settings.actor.env_threads,
    )

  return Task(tuple(names), settings.task.frame_stack, build)


def _nearest(name: str) -> str:
  known = [_CATCH, _ATARI_57, *(_ATARI + g for g in atari_games.GAMES)]
  near = difflib.get_close_matches(name, known, n=3)
  return f' did you mean {" or ".join(near)}? Or' if near else ''
