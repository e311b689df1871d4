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
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from scalable_agent import config, structs
from scalable_agent.atari import environment as atari_environment
from scalable_agent.atari import games as atari_games
from scalable_agent.atari import settings as atari_settings
from scalable_agent.atari import vector as atari_vector
from scalable_agent.envs import (
  base,
  batches,
  catch,
  gymnasium_adapter,
  gymnasium_vector,
  process,
)

MODES = ('train', 'test')

_ATARI = 'atari/'
_ATARI_57 = 'atari57'
_CATCH = 'catch'
_GYM = 'gym/'


class Request(NamedTuple):
  """Environments that are asked for.

  level_names: `[E]`, what each of them plays.
  base_seed: of this start of the run.
  actor: index of the actor, for seeds and messages.
  """

  level_names: Sequence[str]
  base_seed: int
  actor: int


class Task(NamedTuple):
  """What a run plays.

  level_names: all levels, in the suite's order.
  frame_stack: how many of the newest frames the agent sees.
  build: makes the environments of an actor.
  factory: of single environments of a level, to look at: they can `render`.
  human_normalized: percent of (level, mean return); None where no human
    played.
  """

  level_names: tuple[str, ...]
  frame_stack: int
  build: Callable[[Request], structs.Environments]
  factory: Callable[[str], base.Factory]
  human_normalized: Callable[[str, float], float | None] = lambda *_: None

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
  if mode not in MODES:
    raise ValueError(f'mode is {mode!r}; choose train or test.')
  names = tuple(n.strip() for n in settings.task.level_name.split(','))
  if mode == 'train':
    deal(names, settings.actor.num_actors, settings.actor.envs_per_actor)
  if names == (_CATCH,):
    return _single_task(settings, names, lambda _: catch.Catch)
  if all(name.startswith(_GYM) for name in names):
    return _gym_task(settings, names)
  if names == (_ATARI_57,):
    names = tuple(_ATARI + game for game in atari_games.GAMES)
  if all(name.startswith(_ATARI) for name in names):
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


def _single_task(settings, names, factory):
  """Levels whose environments are made one by one."""
  backend = settings.actor.env_backend
  if backend == 'vector':
    raise ValueError(
      f'env_backend is vector, but {names[0]} has no vector environment; '
      'choose auto, process or serial.'
    )

  def build(request):
    kind, more = batches.SerialEnvironments, {}
    if backend == 'process':
      kind = process.ProcessEnvironments
      more = {'timeout_secs': settings.actor.env_timeout_secs}
    return kind(
      [factory(name) for name in request.level_names],
      request.level_names,
      base_seed=request.base_seed,
      actor=request.actor,
      on_error=settings.actor.on_env_error,
      max_restarts=settings.actor.max_restarts,
      **more,
    )

  return Task(names, 1, build, factory)


def _gym_task(settings, names):
  def factory(name, render_mode=None):
    return functools.partial(
      gymnasium_adapter.make,
      environment_id=name.removeprefix(_GYM),
      gym_import=settings.task.gym_import,
      num_action_repeats=settings.task.num_action_repeats or 1,
      render_mode=render_mode,
    )

  filmed = functools.partial(factory, render_mode='rgb_array')
  if settings.actor.env_backend != 'vector':
    return _single_task(settings, names, factory)._replace(factory=filmed)
  if len(names) > 1:
    raise ValueError(
      'env_backend is vector, which plays one gym level at a time; choose '
      'serial or process for several.'
    )

  def build(request):
    return gymnasium_vector.make(
      names[0].removeprefix(_GYM),
      request.level_names,
      gym_import=settings.task.gym_import,
      base_seed=request.base_seed,
      actor=request.actor,
    )

  return Task(names, 1, build, filmed)


def _atari_task(settings, names, mode):
  protocol = atari_settings.from_task(
    settings.task, several_games=len(names) > 1, evaluation=mode == 'test'
  )

  def factory(name):
    return functools.partial(_atari_game, name.removeprefix(_ATARI), protocol)

  if settings.actor.env_backend not in ('auto', 'vector'):
    task = _single_task(settings, names, factory)
    return task._replace(
      frame_stack=settings.task.frame_stack, human_normalized=_atari_percent
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

  return Task(names, settings.task.frame_stack, build, factory, _atari_percent)


def _atari_percent(level, mean_return):
  game = level.removeprefix(_ATARI)
  if game not in atari_games.SCORES:
    return None
  return atari_games.human_normalized(game, mean_return)


def _atari_game(game, protocol, seed):
  return atari_environment.Atari(game, seed, protocol)


def _nearest(name: str) -> str:
  known = [_CATCH, _ATARI_57, *(_ATARI + g for g in atari_games.GAMES)]
  near = difflib.get_close_matches(name, known, n=3)
  return f' did you mean {" or ".join(near)}? Or' if near else ''
