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
"""Atari games, alone, several, or all 57."""

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from scalable_agent import config
from scalable_agent.atari import environment, games, vector
from scalable_agent.atari import settings as settings_lib
from scalable_agent.suites import base

PREFIX = 'atari/'
SUITE = 'atari57'
ALL_NAMES = tuple(PREFIX + game for game in games.GAMES)


def make_task(
  settings: config.Config, names: tuple[str, ...], mode: str
) -> base.Task:
  """The task of these games; `atari57` alone stands for all of them.

  Args:
    settings: of the run.
    names: levels, each `atari/<game>`.
    mode: `train` or `test`. In tests a lost life ends nothing.

  Raises:
    ValueError: a game is unknown, or the settings do not fit.
  """
  if names == (SUITE,):
    names = ALL_NAMES
  protocol = settings_lib.from_task(
    settings.task, several_games=len(names) > 1, evaluation=mode == 'test'
  )

  def factory(name):
    return functools.partial(_make, name.removeprefix(PREFIX), protocol)

  def build(request):
    return vector.make(
      [name.removeprefix(PREFIX) for name in request.level_names],
      protocol,
      level_names=request.level_names,
      base_seed=request.base_seed,
      actor=request.actor,
      num_threads=settings.actor.env_threads,
    )

  if settings.actor.env_backend in ('auto', 'vector'):
    task = base.Task(names, settings.task.frame_stack, build, factory)
  else:
    task = base.single_task(settings, names, factory)
  return task._replace(
    frame_stack=settings.task.frame_stack,
    human_normalized=_percent,
    suite=base.Suite(SUITE, _scores) if names == ALL_NAMES else None,
    alike=protocol.full_action_set,
  )


def _percent(level: str, mean_return: float) -> float | None:
  game = level.removeprefix(PREFIX)
  if game not in games.SCORES:
    return None
  return games.human_normalized(game, mean_return)


def _scores(level_returns: Mapping[str, Sequence[float]]) -> dict[str, float]:
  """Mean and median over games, as the paper's Table 4."""
  percents = [
    games.human_normalized(name.removeprefix(PREFIX), float(np.mean(returns)))
    for name, returns in level_returns.items()
  ]
  return {
    'mean': float(np.mean(percents)),
    'median': float(np.median(percents)),
  }


def _make(game, protocol, seed):
  return environment.Atari(game, seed, protocol)
