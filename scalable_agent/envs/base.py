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
"""One environment: everything it says is checked, copied and counted.

The time convention is that of `structs`; here is where it is made.
"""

import enum
from collections.abc import Callable
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from scalable_agent import structs
from scalable_agent.envs import buffers, observations

# Makes an environment from a seed, which is an int in [0, 2**31 - 1).
Factory = Callable[[int], dm_env.Environment]

FLOAT32_MAX = float(np.finfo(np.float32).max)


class BrokenEnvironmentError(RuntimeError):
  """An environment raised, died, fell silent or said what cannot be."""


class Outcome(enum.IntEnum):
  """How the step into a slot ended. From `TERMINATED` on, `x_t` is `first`."""

  MID = 0
  LIFE_LOST = 1
  TERMINATED = 2
  TRUNCATED = 3
  RESTARTED = 4


class EpisodeAccounting:
  """Turns rewards and outcomes of `E` environments into `EnvOutput` rows.

  One call per batch, whatever `E` is. A restarted row is as the first slot of
  all: reward 0, done, return 0 and step 0. Its broken episode is lost, so a row
  that is `first` with `episode_step` 0 holds no episode to report.
  """

  def __init__(self, num_envs: int):
    self._returns = np.zeros(num_envs, np.float64)
    self._steps = np.zeros(num_envs, np.int32)
    self._first = np.ones(num_envs, bool)

  def begin(self, observation: structs.Nest) -> structs.EnvOutput:
    """The first slot, after a reset of all. `observation`: `[E, ...]`."""
    num_envs = len(self._first)
    return self.slot(
      np.zeros(num_envs, np.float32),
      np.full(num_envs, Outcome.RESTARTED, np.uint8),
      observation,
    )

  def slot(
    self, rewards: np.ndarray, outcomes: np.ndarray, observation: structs.Nest
  ) -> structs.EnvOutput:
    """The next slot.

    Args:
      rewards: `[E]` raw rewards of the step into this slot.
      outcomes: `[E]` uint8, an `Outcome` each.
      observation: Nest of `[E, ...]`, after any reset.

    Returns:
      The slot. All its arrays but the observation are new ones.
    """
    self._returns[self._first] = 0
    self._steps[self._first] = 0
    self._returns += rewards
    self._steps += 1
    self._first = outcomes >= Outcome.TERMINATED
    rewards = rewards.astype(np.float32)
    restarted = outcomes == Outcome.RESTARTED
    if restarted.any():
      rewards[restarted] = 0
      self._returns[restarted] = 0
      self._steps[restarted] = 0
    return structs.EnvOutput(
      reward=rewards,
      info=structs.EpisodeInfo(
        self._returns.astype(np.float32), self._steps.copy()
      ),
      done=outcomes >= Outcome.LIFE_LOST,
      first=self._first.copy(),
      truncated=outcomes == Outcome.TRUNCATED,
      observation=observation,
    )


class CheckedEnvironment:
  """One environment, played episode after episode into rows of arrays.

  It resets itself within the step that ends an episode.
  """

  def __init__(self, factory: Factory, seed: int):
    """Makes the environment.

    Args:
      factory: Makes an environment from a seed.
      seed: Its seed.
    """
    self._environment = factory(seed)
    declared = self._environment.observation_spec()
    self._receiver = observations.Receiver(declared)
    action = self._environment.action_spec()
    self._is_discrete = isinstance(action, specs.DiscreteArray)
    self.spec = structs.EnvironmentSpec(
      observation=observations.received_spec(declared),
      action=action,
      frames_per_step=getattr(self._environment, 'frames_per_step', 1),
    )

  def reset(self, arrays: buffers.Buffers, row: int):
    """Starts an episode; writes its first observation into `row`."""
    timestep = self._environment.reset()
    if not timestep.first():
      raise BrokenEnvironmentError(
        f'reset() returned a {timestep.step_type!r} time step; it must be '
        'StepType.FIRST.'
      )
    self._receiver.write(timestep.observation, arrays.observation_leaves, row)

  def step(self, arrays: buffers.Buffers, row: int):
    """Plays one step, and resets if that ended the episode.

    Args:
      arrays: Their `actions[row]` is played. The row receives the reward, how
        the step ended, the next observation, and, if a time limit struck, the
        final one.
      row: This environment's.
    """
    action = arrays.actions[row]
    timestep = self._environment.step(
      int(action) if self._is_discrete else action.copy()
    )
    if timestep.first():
      raise BrokenEnvironmentError(
        'step() returned a StepType.FIRST time step in the middle of an '
        'episode; only reset() may.'
      )
    if timestep.discount is None:
      raise BrokenEnvironmentError(
        'step() returned the discount None; give 1, or 0 for an end.'
      )
    arrays.rewards[row] = _checked_reward(timestep.reward)
    if not timestep.last():
      self._receiver.write(timestep.observation, arrays.observation_leaves, row)
      lost = timestep.discount == 0
      arrays.outcomes[row] = Outcome.LIFE_LOST if lost else Outcome.MID
      return
    arrays.outcomes[row] = Outcome.TERMINATED
    if timestep.discount > 0:
      arrays.outcomes[row] = Outcome.TRUNCATED
      self._receiver.write(timestep.observation, arrays.final_leaves, row)
    self.reset(arrays, row)

  def close(self):
    """Closes the environment."""
    self._environment.close()


def _checked_reward(reward: Any) -> float:
  try:
    number = float(reward)
  except (TypeError, ValueError) as e:
    raise BrokenEnvironmentError(
      f'the reward is {reward!r}; it must be a number.'
    ) from e
  # Also false for NaN.
  if not abs(number) <= FLOAT32_MAX:
    raise BrokenEnvironmentError(
      f'the reward is {number}; it must be a finite float32.'
    )
  return number
