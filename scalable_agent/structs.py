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
"""What flows through the system, and the four seams between its parts.

**The time convention**, kept from the original's `environments.py`:

*   Slot `t` holds the observation `x_t` and what *caused* it: the action that
    led to it, with the logits and the baseline which went with that action,
    and the reward and the flags of that transition.
*   `done[t]` says that `x_t` is the first observation of a new episode. The
    reward, the return and the length in slot `t` belong to the old episode.
*   The first slot of all has reward 0, done true, and action 0.
*   An unroll has `T + 1` slots. Slot 0 of the next unroll is slot `T` of this
    one, and its core state is the one *before* slot 0 is consumed.
*   The core is reset by `done[t]` before `x_t` is consumed.

A network that consumes slot `t` therefore computes the action of slot `t + 1`
and the baseline of `x_t`. Only `losses` and `learner` ever shift time.

Axes: `E` environments of one actor, `B` columns of a learner batch, `T` steps.
This module imports NumPy and dm_env only, so environment processes stay small.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from dm_env import specs

# An array, or a dict / tuple of nests: `tree.map_structure` walks it.
Nest = Any


class Closed(Exception):  # noqa: N818 - control flow, not an error.
  """Raised out of a wait when what was waited on has been closed."""


class EpisodeInfo(NamedTuple):
  """Progress of the episode that a slot's transition belongs to.

  episode_return: `[E]` float32, sum of the raw rewards so far.
  episode_step: `[E]` int32, number of agent steps so far.
  """

  episode_return: np.ndarray
  episode_step: np.ndarray


class EnvOutput(NamedTuple):
  """What the environments say in one slot. See the module's convention.

  reward: `[E]` float32, the raw reward of the transition into this slot.
  info: `EpisodeInfo` of the transition's episode.
  done: `[E]` bool, `x_t` starts an episode *for the learner*: the core is
    reset and nothing is bootstrapped across.
  first: `[E]` bool, `x_t` is the first observation after a real reset. Implies
    `done`. A lost life may set `done` alone: the game goes on, and neither the
    return nor a stack of frames starts anew.
  truncated: `[E]` bool, the old episode was cut by a time limit. Implies
    `first`; its last observation is in `Environments.final_observation()`.
  observation: nest of `[E, ...]`.
  """

  reward: np.ndarray
  info: EpisodeInfo
  done: np.ndarray
  first: np.ndarray
  truncated: np.ndarray
  observation: Nest


class AgentOutput(NamedTuple):
  """What the acting policy said when it chose the action of a slot.

  action: `[E]` int32 for a discrete action, `[E, K]` int32 for several,
    `[E, D]` float32 for a continuous one.
  policy_logits: `[E, P]` float32, parameters of the behaviour policy mu.
  baseline: `[E]` float32, the value estimate of the observation acted upon.
  """

  action: Any
  policy_logits: Any
  baseline: Any


class Unroll(NamedTuple):
  """`T + 1` consecutive slots of `E` environments (a batch: of `B` columns).

  level: `[E]` int32, index of the level that each column plays.
  version: `[E]` int64, version of the weights at the start of the unroll.
  core_state: nest of `[E, ...]`, before slot 0 is consumed.
  env_outputs: `EnvOutput` of `[T + 1, E, ...]`.
  agent_outputs: `AgentOutput` of `[T + 1, E, ...]`.
  truncation_values: `[T + 1, E]` float32, where `truncated` is true the acting
    policy's value of the final observation, elsewhere 0.
  """

  level: Any
  version: Any
  core_state: Nest
  env_outputs: EnvOutput
  agent_outputs: AgentOutput
  truncation_values: Any


class EnvironmentSpec(NamedTuple):
  """What one environment shows and takes.

  observation: nest of `dm_env.specs.Array` without a batch axis.
  action: `specs.DiscreteArray` for `Discrete`; an integer
    `specs.BoundedArray` of shape `[K]`, from 0 to `n - 1`, for
    `MultiDiscrete`; a float `specs.BoundedArray` of shape `[D]` for `Box`.
  frames_per_step: simulator frames behind one agent step.
  """

  observation: Nest
  action: specs.Array
  frames_per_step: int = 1


def no_actions(action_spec: specs.Array, num_envs: int) -> np.ndarray:
  """The actions of the first slot: zeros `[E, ...]`, int32 or float32."""
  is_discrete = np.issubdtype(action_spec.dtype, np.integer)
  dtype = np.int32 if is_discrete else np.float32
  return np.zeros((num_envs, *action_spec.shape), dtype)


@runtime_checkable
class Environments(Protocol):
  """`E` environments of one actor, stepped together. One thread's own.

  Finished environments reset themselves within the step that ends them, as
  the time convention says. Arrays may be reused by the next call: whoever
  keeps one copies it.
  """

  num_envs: int
  spec: EnvironmentSpec
  level_names: Sequence[str]  # Of each environment, length `num_envs`.
  num_restarts: int  # Grows when an environment is replaced.

  def initial(self) -> EnvOutput:
    """Resets all and returns the first slot: reward 0, done and first true."""

  def step(self, actions: np.ndarray) -> EnvOutput:
    """Steps all with `actions` `[E, ...]` and returns the next slot."""

  def final_observation(self) -> Nest:
    """Nest of `[E, ...]`; rows truncated by the last step hold the truth."""

  def close(self) -> None:
    """Ends all environments. May be called twice, and from another thread."""


class Policy(Protocol):
  """Chooses the actions of `E` environments."""

  def initial_state(self) -> Nest:
    """Core state of `E` fresh episodes, nest of `[E, ...]`."""

  def begin_unroll(self) -> int:
    """Pulls the newest weights if due; returns the version acted with."""

  def step(
    self, actions: np.ndarray, env_output: EnvOutput, core_state: Nest
  ) -> tuple[AgentOutput, Nest]:
    """Consumes one slot; returns the next action and the next core state.

    `actions` are those that led to `env_output`. The result is NumPy.
    """

  def value(
    self, actions: np.ndarray, env_output: EnvOutput, core_state: Nest
  ) -> np.ndarray:
    """`[E]` float32 baseline of a slot, without acting or moving the state."""


class UnrollSink(Protocol):
  """Takes unrolls away from actors."""

  def put(self, unroll: Unroll) -> None:
    """Blocks while there is no room. Raises `Closed` once closed."""


class ParamSource(Protocol):
  """Gives out versioned weights."""

  def pull(self, have_version: int) -> tuple[int, Sequence[Any]] | None:
    """Newest `(version, weights)`, or None if `have_version` is newest."""
