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
"""Fair evaluation: a fixed number of episodes per environment, raw returns."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scalable_agent import structs


class LevelResult(NamedTuple):
  """What was played on one level.

  level: its name.
  returns: raw return of each episode.
  num_steps: length of each episode in agent steps.
  """

  level: str
  returns: list[float]
  num_steps: list[int]


def quotas(num_episodes: int, num_envs: int) -> np.ndarray:
  """Episodes that each environment has to play, fixed beforehand.

  Taking the first `num_episodes` to finish, over all environments, would
  favour short episodes.
  """
  if num_episodes < 1:
    raise ValueError(f'num_episodes is {num_episodes}; it must be at least 1.')
  share, rest = divmod(num_episodes, num_envs)
  return share + (np.arange(num_envs) < rest)


def play(
  environments: structs.Environments,
  policy: structs.Policy,
  num_episodes: int,
  on_episode: Callable[[float, int], None] = lambda *_: None,
  on_slot: Callable[[structs.EnvOutput], None] = lambda _: None,
) -> LevelResult:
  """Plays `num_episodes` of one level with the newest weights.

  Args:
    environments: all of the same level; fresh.
    policy: for as many environments; the same code as in training.
    num_episodes: to play, shared out beforehand over the environments.
    on_episode: told of return and length as each counted episode ends.
    on_slot: told of every slot, the first included (for a video).

  Returns:
    The episodes, in order of environment, then of time.
  """
  quota = quotas(num_episodes, environments.num_envs)
  finished: list[list[tuple[float, int]]] = [[] for _ in quota]
  policy.begin_unroll()
  env_output = environments.initial()
  on_slot(env_output)
  actions = structs.no_actions(environments.spec.action, environments.num_envs)
  core_state = policy.initial_state()
  while any(len(f) < q for f, q in zip(finished, quota, strict=True)):
    output, core_state = policy.step(actions, env_output, core_state)
    actions = output.action
    env_output = environments.step(actions)
    on_slot(env_output)
    for i in np.flatnonzero(env_output.first):
      num_steps = int(env_output.info.episode_step[i])
      if num_steps and len(finished[i]) < quota[i]:
        episode = (float(env_output.info.episode_return[i]), num_steps)
        finished[i].append(episode)
        on_episode(*episode)
  episodes = [episode for one in finished for episode in one]
  return LevelResult(
    level=environments.level_names[0],
    returns=[episode_return for episode_return, _ in episodes],
    num_steps=[num_steps for _, num_steps in episodes],
  )
