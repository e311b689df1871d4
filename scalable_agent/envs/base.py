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
from collections.abc import Callable, Sequence
from typing import Any

import dm_env
import numpy as np
import tree
from dm_env import specs

from scalable_agent import structs

# Makes an environment from a seed, which is an int in [0, 2**31 - 1).
Factory = Callable[[int], dm_env.Environment]

# Text travels as NumPy bytes of this fixed size: arrays of `object` can neither
# be shared between processes nor preallocated.
MAX_TEXT_BYTES = 1024

_FLOAT32_MAX = float(np.finfo(np.float32).max)


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


def received_spec(declared: structs.Nest) -> structs.Nest:
  """The specs under which declared observations reach the agent.

  float64 becomes float32, text becomes fixed-size bytes (`MAX_TEXT_BYTES`),
  all else stays as it is.
  """
  return tree.map_structure(_received_leaf, declared)


def _received_leaf(spec: specs.Array) -> specs.Array:
  if isinstance(spec, specs.StringArray):
    return specs.Array(spec.shape, f'S{MAX_TEXT_BYTES}', spec.name)
  if spec.dtype.kind not in 'buifS':
    raise ValueError(
      f'observation {spec.name!r} is declared as {spec.dtype}; observations '
      'are numbers, booleans or text (`dm_env.specs.StringArray`).'
    )
  if spec.dtype != np.float64:
    return spec
  if isinstance(spec, specs.BoundedArray):
    with np.errstate(over='ignore'):
      return spec.replace(
        dtype=np.float32,
        minimum=spec.minimum.astype(np.float32),
        maximum=spec.maximum.astype(np.float32),
      )
  return spec.replace(dtype=np.float32)


def allocate(spec: structs.Nest, num_envs: int) -> structs.Nest:
  """Zeros for `num_envs` observations of `spec`: nest of `[E, ...]`."""
  return tree.map_structure(
    lambda leaf: np.zeros((num_envs, *leaf.shape), leaf.dtype), spec
  )


def _text(value: Any) -> np.ndarray:
  encoded = np.vectorize(
    lambda text: text.encode() if isinstance(text, str) else bytes(text),
    otypes=[object],
  )(np.asarray(value, object))
  longest = max(map(len, encoded.flat), default=0)
  if longest > MAX_TEXT_BYTES:
    raise ValueError(
      f'text of {longest} bytes; at most {MAX_TEXT_BYTES} are carried.'
    )
  return encoded.astype(f'S{MAX_TEXT_BYTES}')


def _checked(spec: specs.Array, value: Any) -> np.ndarray:
  """`value` as an array that is what `spec` declares, or ValueError."""
  if isinstance(spec, specs.StringArray):
    value = _text(value)
  elif isinstance(value, (bool, int, float)):
    value = _from_python(spec, value)
  elif not isinstance(value, (np.ndarray, np.generic)):
    raise ValueError(
      f'observation {spec.name!r} is a {type(value).__name__}; give a NumPy '
      f'array of shape {spec.shape} and type {spec.dtype}.'
    )
  elif value.dtype != spec.dtype:
    raise ValueError(
      f'observation {spec.name!r} is of type {value.dtype}, declared is '
      f'{spec.dtype}; declare what is given.'
    )
  if value.shape != spec.shape:
    raise ValueError(
      f'observation {spec.name!r} has shape {value.shape}, declared is '
      f'{spec.shape}; declare what is given.'
    )
  if value.dtype.kind == 'f' and not np.isfinite(value).all():
    raise ValueError(f'observation {spec.name!r} holds NaN or infinity.')
  return value


def _from_python(spec: specs.Array, value: bool | int | float) -> np.ndarray:
  # A Python number has no type of its own: it takes the declared one, as long
  # as that can hold its value.
  with np.errstate(all='ignore'):
    array = np.array(value).astype(spec.dtype)
  if spec.dtype.kind != 'f' and array != value:
    raise ValueError(
      f'observation {spec.name!r} is {value}, which the declared type '
      f'{spec.dtype} cannot hold.'
    )
  return array


class CheckedEnvironment:
  """One environment, played episode after episode into rows of arrays.

  It resets itself within the step that ends an episode. Whatever goes wrong
  inside is raised as `BrokenEnvironmentError` with the cause attached.
  """

  def __init__(self, factory: Factory, seed: int):
    """Makes the environment.

    Args:
      factory: Makes an environment from a seed.
      seed: Its seed.
    """
    self._environment = factory(seed)
    self._declared = self._environment.observation_spec()
    action = self._environment.action_spec()
    self._is_discrete = isinstance(action, specs.DiscreteArray)
    self.spec = structs.EnvironmentSpec(
      observation=received_spec(self._declared),
      action=action,
      frames_per_step=getattr(self._environment, 'frames_per_step', 1),
    )

  def reset(self, observations: Sequence[np.ndarray], row: int):
    """Starts an episode; writes its first observation.

    Args:
      observations: Flat leaves `[E, ...]` of the observation nest.
      row: Which of the `E` rows to write.
    """
    timestep = self._environment.reset()
    if not timestep.first():
      raise BrokenEnvironmentError(
        f'reset() returned a {timestep.step_type!r} time step; it must be '
        'StepType.FIRST.'
      )
    self._write(timestep.observation, observations, row)

  def step(
    self,
    action: np.ndarray,
    observations: Sequence[np.ndarray],
    finals: Sequence[np.ndarray],
    row: int,
  ) -> tuple[float, Outcome]:
    """Plays one step, and resets if that ended the episode.

    Args:
      action: Of the shape that the action spec declares.
      observations: As in `reset`: receives the next observation.
      finals: Alike: receives the last observation of a truncated episode.
      row: Which of the `E` rows to write.

    Returns:
      The raw reward, and how the step ended.
    """
    timestep = self._environment.step(
      int(action) if self._is_discrete else np.array(action)
    )
    if timestep.first():
      raise BrokenEnvironmentError(
        'step() returned a StepType.FIRST time step in the middle of an '
        'episode; only reset() may.'
      )
    reward = _checked_reward(timestep.reward)
    if timestep.discount is None:
      raise BrokenEnvironmentError(
        'step() returned the discount None; give 1, or 0 for an end.'
      )
    if not timestep.last():
      self._write(timestep.observation, observations, row)
      lost = timestep.discount == 0
      return reward, Outcome.LIFE_LOST if lost else Outcome.MID
    outcome = Outcome.TERMINATED
    if timestep.discount > 0:
      outcome = Outcome.TRUNCATED
      self._write(timestep.observation, finals, row)
    self.reset(observations, row)
    return reward, outcome

  def close(self):
    """Closes the environment."""
    self._environment.close()

  def _write(self, observation, leaves, row):
    try:
      values = tree.flatten_up_to(self._declared, observation)
    except (TypeError, ValueError) as e:
      raise BrokenEnvironmentError(
        f'the observation is not structured as the observation spec is: {e}'
      ) from e
    declared = tree.flatten(self._declared)
    try:
      for leaf, spec, value in zip(leaves, declared, values, strict=True):
        leaf[row] = _checked(spec, value)
    except ValueError as e:
      raise BrokenEnvironmentError(str(e)) from e


def _checked_reward(reward: Any) -> float:
  try:
    number = float(reward)
  except (TypeError, ValueError) as e:
    raise BrokenEnvironmentError(
      f'the reward is {reward!r}; it must be a number.'
    ) from e
  # Also false for NaN.
  if not abs(number) <= _FLOAT32_MAX:
    raise BrokenEnvironmentError(
      f'the reward is {number}; it must be a finite float32.'
    )
  return number
