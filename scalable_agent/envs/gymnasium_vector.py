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
"""A Gymnasium vector environment as a batch of environments."""

import threading
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import tree
from absl import logging
from gymnasium.vector import (
  AsyncVectorEnv,
  AutoresetMode,
  SyncVectorEnv,
  VectorEnv,
)

from scalable_agent import structs
from scalable_agent.envs import (
  base,
  gymnasium_adapter,
  gymnasium_spaces,
  observations,
  seeds,
)

_CLOSE_SECS = 5.0


class GymnasiumVectorEnvironments:
  """Any `gymnasium.vector.VectorEnv`; a `structs.Environments`.

  Vector environments begin the next episode in one of three ways, all of which
  end here in the same stream:

  *   `SAME_STEP`: as `structs` wants it. The last observation of an episode is
      in `infos['final_obs']`.
  *   `NEXT_STEP`: the step after the end would ignore its action and only
      reset. That transition is nobody's experience, so it is not waited for:
      what ended is reset at once, through `reset` with a `reset_mask`.
  *   `DISABLED`: the same.

  An environment that does not know `reset_mask` resets everybody; this is
  noticed and refused. Failures end the run: its parts cannot be replaced.
  """

  def __init__(
    self,
    env: VectorEnv,
    level_names: Sequence[str],
    *,
    base_seed: int = 0,
    actor: int = 0,
  ):
    """Adapts.

    Args:
      env: The vector environment.
      level_names: `[E]`, what each of its environments plays.
      base_seed: Seed of the run.
      actor: Index of the actor.
    """
    self._env = env
    self._mode = _autoreset_mode(env)
    self.num_envs = env.num_envs
    self.level_names = tuple(level_names)
    if len(self.level_names) != self.num_envs:
      raise ValueError(
        f'{len(self.level_names)} level names are given for the '
        f'{self.num_envs} environments of {_name(env)}; name each.'
      )
    self.num_restarts = 0
    declared = gymnasium_spaces.observation_spec(env.single_observation_space)
    self._receiver = observations.Receiver(declared)
    self.spec = structs.EnvironmentSpec(
      observation=observations.received_spec(declared),
      action=gymnasium_spaces.action_spec(env.single_action_space),
      frames_per_step=gymnasium_adapter.frame_skip(env),
    )
    self._to_action = gymnasium_spaces.action_converter(env.single_action_space)
    numbers = [
      seeds.environment_seed(base_seed, actor, i) for i in range(self.num_envs)
    ]
    takes_list = isinstance(env.unwrapped, (AsyncVectorEnv, SyncVectorEnv))
    # The interface of vector environments has one seed for all.
    self._seed: Any = numbers if takes_list else numbers[0]
    self._accounting = base.EpisodeAccounting(self.num_envs)
    self._final_observation = observations.allocate(
      self.spec.observation, self.num_envs
    )
    self._busy = threading.Lock()
    self._closed = False

  def initial(self) -> structs.EnvOutput:
    """Resets all; see `structs.Environments`."""
    with self._busy:
      self._raise_if_closed()
      observation, _ = self._env.reset(seed=self._seed)
    # Another call goes on with the random numbers that the seed began.
    self._seed = None
    return self._accounting.begin(self._received(observation))

  def step(self, actions: np.ndarray) -> structs.EnvOutput:
    """Steps all; see `structs.Environments`."""
    with self._busy:
      self._raise_if_closed()
      return self._step(actions)

  def final_observation(self) -> structs.Nest:
    """Last observations of truncated rows; see `structs.Environments`."""
    return self._final_observation

  def close(self):
    """Closes the vector environment, once a step in another thread is over."""
    if self._closed:
      return
    self._closed = True
    if not self._busy.acquire(timeout=_CLOSE_SECS):
      logging.warning('%s is stuck and was left unclosed.', _name(self._env))
      return
    try:
      self._env.close()
    finally:
      self._busy.release()

  def _step(self, actions):
    observation, rewards, terminated, truncated, infos = self._env.step(
      self._to_action(actions)
    )
    observation = self._received(observation)
    rewards = self._checked_rewards(rewards)
    terminated = np.asarray(terminated, bool)
    truncated = np.asarray(truncated, bool) & ~terminated
    if self._mode is AutoresetMode.SAME_STEP:
      if truncated.any():
        self._keep_final_of(infos, truncated)
    elif terminated.any() or truncated.any():
      self._keep(observation, truncated)
      observation = self._reset(terminated | truncated, observation)
    outcomes = np.zeros(self.num_envs, np.uint8)
    outcomes[terminated] = base.Outcome.TERMINATED
    outcomes[truncated] = base.Outcome.TRUNCATED
    return self._accounting.slot(rewards, outcomes, observation)

  def _raise_if_closed(self):
    if self._closed:
      raise structs.Closed('these environments are closed.')

  def _received(self, observation):
    try:
      return self._receiver.batch(observation, self.num_envs)
    except ValueError as e:
      raise self._broken(e) from e

  def _checked_rewards(self, rewards):
    rewards = np.asarray(rewards, np.float64).reshape(self.num_envs)
    bad = np.flatnonzero(~(np.abs(rewards) <= base.FLOAT32_MAX))
    if bad.size:
      raise self._broken(
        f'the reward is {rewards[bad[0]]}; it must be a finite float32.', bad[0]
      )
    return rewards

  def _broken(self, what, index=0):
    return base.BrokenEnvironmentError(
      f'environment {index} of {_name(self._env)} ({self.level_names[index]}) '
      f'failed: {what}'
    )

  def _keep(self, observation, rows):
    tree.map_structure(
      lambda final, leaf: final.__setitem__(rows, leaf[rows]),
      self._final_observation,
      observation,
    )

  def _keep_final_of(self, infos, truncated):
    finals = infos.get('final_obs')
    if finals is None:
      raise self._broken(
        'it is in mode SAME_STEP but gives no final_obs with a time limit.',
        np.flatnonzero(truncated)[0],
      )
    if not (isinstance(finals, np.ndarray) and finals.dtype == object):
      self._keep(self._received(finals), truncated)
      return
    for row in np.flatnonzero(truncated):
      one = tree.map_structure(lambda leaf: np.asarray(leaf)[None], finals[row])
      one = self._receiver.batch(one, 1)
      tree.map_structure(
        lambda final, leaf, row=row: final.__setitem__(row, leaf[0]),
        self._final_observation,
        one,
      )

  def _reset(self, ended, before):
    observation, _ = self._env.reset(options={'reset_mask': ended.copy()})
    observation = self._received(observation)
    untouched = tree.map_structure(
      lambda old, new: np.array_equal(old[~ended], new[~ended]),
      before,
      observation,
    )
    if not all(tree.flatten(untouched)):
      raise ValueError(
        f'{_name(self._env)} resets all its environments when asked for some '
        f'(it ignores reset_mask), and its autoreset mode is {self._mode.name};'
        ' use one in mode SAME_STEP, or single environments.'
      )
    return observation


def make(
  environment_id: str,
  level_names: Sequence[str],
  *,
  gym_import: str = '',
  num_action_repeats: int = 1,
  base_seed: int = 0,
  actor: int = 0,
) -> GymnasiumVectorEnvironments:
  """Makes a registered environment `E` times as one vector environment.

  Args:
    environment_id: As in `gymnasium.make_vec`. Its own vector entry point is
      used if it has one, else `SyncVectorEnv`.
    level_names: `[E]`, what each plays.
    gym_import: Module to import first, which registers your own environments.
    num_action_repeats: Must be 1: some would end between repeats, some not.
    base_seed: Seed of the run.
    actor: Index of the actor.

  Returns:
    The environments.
  """
  if num_action_repeats != 1:
    raise ValueError(
      f'num_action_repeats is {num_action_repeats}, but a vector environment '
      'cannot repeat actions; choose 1, or another env_backend for '
      f'{environment_id}.'
    )
  gymnasium_adapter.import_module(gym_import)
  spec = gymnasium.registry.get(environment_id)
  kwargs: dict[str, Any] = {}
  if spec is not None and spec.vector_entry_point is None:
    kwargs['vectorization_mode'] = 'sync'
    kwargs['vector_kwargs'] = {'autoreset_mode': AutoresetMode.SAME_STEP}
  env = gymnasium_adapter.registered(
    gymnasium.make_vec,
    environment_id,
    gym_import,
    num_envs=len(level_names),
    **kwargs,
  )
  return GymnasiumVectorEnvironments(
    env, level_names, base_seed=base_seed, actor=actor
  )


def _autoreset_mode(env: VectorEnv) -> AutoresetMode:
  mode = env.metadata.get('autoreset_mode')
  try:
    return AutoresetMode(mode)
  except ValueError:
    raise ValueError(
      f'{_name(env)} has the autoreset mode {mode!r} in its metadata; this '
      f'agent knows {", ".join(m.name for m in AutoresetMode)}.'
    ) from None


def _name(env: VectorEnv) -> str:
  return env.spec.id if env.spec else type(env.unwrapped).__name__
