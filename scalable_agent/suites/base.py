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
"""What a run plays, whatever it is, and environments made one by one."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from scalable_agent import config, structs
from scalable_agent.envs import base, batches, process


class Request(NamedTuple):
  """Environments that are asked for.

  level_names: `[E]`, what each of them plays.
  base_seed: of this start of the run.
  actor: index of the actor, for seeds and messages.
  restarts_used: of the actor's restarts, how many earlier environments took.
  """

  level_names: Sequence[str]
  base_seed: int
  actor: int
  restarts_used: int = 0


class Suite(NamedTuple):
  """Levels that are measured together.

  name: of the suite.
  scores: figures of the whole suite, in percent of humans, by name, from the
    episode returns of all of its levels.
  """

  name: str
  scores: Callable[[Mapping[str, Sequence[float]]], dict[str, float]]


class Task(NamedTuple):
  """What a run plays.

  level_names: all levels, in the suite's order.
  frame_stack: how many of the newest frames the agent sees.
  build: makes the environments of an actor.
  factory: of single environments of a level, to look at: they can `render`.
  human_normalized: percent of (level, mean return); None where no human
    played.
  suite: what the levels make up, if they are a whole suite.
  weights: how many environments play a level, relative to others; default 1.
  alike: all levels are known to show and take the same.
  known_spec: spec of all environments, if it is known without making one.
  """

  level_names: tuple[str, ...]
  frame_stack: int
  build: Callable[[Request], structs.Environments]
  factory: Callable[[str], base.Factory]
  human_normalized: Callable[[str, float], float | None] = lambda *_: None
  suite: Suite | None = None
  weights: Mapping[str, int] = {}
  alike: bool = False
  known_spec: structs.EnvironmentSpec | None = None

  def spec(self) -> structs.EnvironmentSpec:
    """What the agent sees and does; may make environments to find out.

    Raises:
      ValueError: the levels differ in that; no agent plays them all.
    """
    if self.known_spec is not None:
      return self.known_spec
    names = self.level_names[:1] if self.alike else self.level_names
    environments = self.build(Request(names, 0, 0))
    try:
      return environments.spec
    finally:
      environments.close()


def single_task(
  settings: config.Config,
  names: tuple[str, ...],
  factory: Callable[[str], base.Factory],
  auto_backend: str = 'serial',
) -> Task:
  """A task whose environments are made one by one.

  Args:
    settings: of the run.
    names: levels.
    factory: of the environments of a level.
    auto_backend: what `env_backend` auto means here.

  Raises:
    ValueError: vector environments are asked for.
  """
  backend = settings.actor.env_backend
  if backend == 'vector':
    raise ValueError(
      f'env_backend is vector, but {names[0]} has no vector environment; '
      'choose auto, process or serial.'
    )
  if backend == 'auto':
    backend = auto_backend

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
      restarts_used=request.restarts_used,
      **more,
    )

  return Task(names, 1, build, factory)
