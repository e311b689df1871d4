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
"""Many Atari games at once, stepped by C++ threads: what training uses."""

import itertools
import threading
from collections.abc import Sequence

import numpy as np
from ale_py import vector_env
from dm_env import specs

from scalable_agent import cores, structs
from scalable_agent.atari import settings, simulator
from scalable_agent.envs import base, batches, observations, seeds

_NO_LIMIT = 2**30


class AtariEnvironments:
  """`E` copies of one game; a `structs.Environments`.

  `ale_py.vector_env.AtariVectorEnv` emulates, repeats actions, pools, resizes
  and resets after a game over. Three things are done here instead:

  *   The time limit. The simulator's own breaks off its last step before it
      has looked at the screen, so that its final observation is a mixture of
      old frames. (Resetting some of the environments, which this takes, hangs
      before ale-py 0.12.1.)
  *   Lost lives, told from their number. They end nothing but the learner's
      episode. (The simulator's own report leaves out the life after which none
      is left, though Bank Heist and Atlantis are still played then.)
  *   The stack of frames: observations are single frames, see `nets`.
  """

  def __init__(
    self,
    game: str,
    num_envs: int,
    protocol: settings.Settings,
    *,
    level_name: str,
    base_seed: int = 0,
    actor: int = 0,
    first_environment: int = 0,
    num_threads: int | None = None,
  ):
    """Starts the simulators.

    Args:
      game: Name of its ROM.
      num_envs: `E`.
      protocol: How it is played and shown.
      level_name: What `E` times stands in `level_names`.
      base_seed: Seed of the run.
      actor: Index of the actor.
      first_environment: Index, within the actor, of the first environment.
      num_threads: C++ threads. None: one per core, but at most `num_envs`.
    """
    simulator.rom_path(game)
    self._env = vector_env.AtariVectorEnv(
      game,
      num_envs,
      num_threads=num_threads or 0,
      max_num_frames_per_episode=_NO_LIMIT,
      repeat_action_probability=protocol.sticky_actions,
      full_action_space=protocol.full_action_set,
      autoreset_mode='SameStep',
      img_height=protocol.height,
      img_width=protocol.width,
      grayscale=protocol.grayscale,
      stack_num=1,
      frameskip=protocol.num_action_repeats,
      maxpool=protocol.max_pool,
      # It draws from [0, noop_max).
      noop_max=protocol.noop_max + 1,
      life_loss_info=False,
      reward_clipping=False,
      use_fire_reset=protocol.fire_on_reset,
    )
    self.num_envs = num_envs
    # A game cannot fail by itself, only all of them together.
    self.num_restarts = 0
    self.level_names = (level_name,) * num_envs
    self.spec = structs.EnvironmentSpec(
      observation=specs.BoundedArray(
        protocol.frame_shape, np.uint8, 0, 255, 'frame'
      ),
      action=specs.DiscreteArray(
        int(self._env.single_action_space.n), name='action'
      ),
      frames_per_step=protocol.num_action_repeats,
    )
    self._protocol = protocol
    self._seeds = np.array(
      [
        seeds.environment_seed(base_seed, actor, first_environment + i)
        for i in range(num_envs)
      ]
    )
    self._accounting = base.EpisodeAccounting(num_envs)
    self._steps = np.zeros(num_envs, np.int64)
    self._lives = np.zeros(num_envs, np.int64)
    self._final_observation = observations.allocate(
      self.spec.observation, num_envs
    )
    self._busy = threading.Lock()
    self._closed = False

  def initial(self) -> structs.EnvOutput:
    """Resets all; see `structs.Environments`."""
    with self._busy:
      self._raise_if_closed()
      observation, info = self._env.reset(seed=self._seeds)
    # Another call goes on with the random numbers that the seeds began.
    self._seeds = None
    self._steps[:] = 0
    self._lives = info['lives']
    return self._accounting.begin(observation[:, 0])

  def step(self, actions: np.ndarray) -> structs.EnvOutput:
    """Steps all; see `structs.Environments`."""
    self.send(actions)
    return self.recv()

  def send(self, actions: np.ndarray):
    """First half of `step`: the threads begin to work on `[E]` actions."""
    actions = np.asarray(actions)
    if actions.shape != (self.num_envs,):
      raise ValueError(
        f'actions have shape {actions.shape}; {self.num_envs} games take '
        f'({self.num_envs},).'
      )
    num_actions = self.spec.action.num_values
    if not ((actions >= 0) & (actions < num_actions)).all():
      raise ValueError(
        f'actions are {actions.tolist()}; {self.level_names[0]} takes 0 to '
        f'{num_actions - 1}.'
      )
    with self._busy:
      self._raise_if_closed()
      self._env.send(actions.astype(np.int64))

  def recv(self) -> structs.EnvOutput:
    """Second half of `step`: waits for the next slot."""
    with self._busy:
      self._raise_if_closed()
      observation, rewards, terminated, _, info = self._env.recv()
      self._steps += 1
      truncated = self._steps >= self._protocol.max_episode_steps
      truncated &= ~terminated
      lives = info['lives']
      outcomes = np.zeros(self.num_envs, np.uint8)
      if self._protocol.life_loss_ends_episode:
        outcomes[lives < self._lives] = base.Outcome.LIFE_LOST
      outcomes[terminated] = base.Outcome.TERMINATED
      if truncated.any():
        outcomes[truncated] = base.Outcome.TRUNCATED
        self._final_observation[truncated] = observation[truncated, 0]
        observation, info = self._env.reset(options={'reset_mask': truncated})
        lives = info['lives']
    self._lives = lives
    self._steps[terminated | truncated] = 0
    return self._accounting.slot(rewards, outcomes, observation[:, 0])

  def final_observation(self) -> np.ndarray:
    """Last frames of truncated rows; see `structs.Environments`."""
    return self._final_observation

  def close(self):
    """Ends the simulators and their threads."""
    with self._busy:
      self._closed = True
      self._env = None

  def _raise_if_closed(self):
    if self._closed:
      raise structs.Closed('these environments are closed.')


def make(
  games: Sequence[str],
  protocol: settings.Settings,
  *,
  level_names: Sequence[str],
  base_seed: int = 0,
  actor: int = 0,
  num_threads: int | None = None,
) -> structs.Environments:
  """The Atari environments of one actor.

  Args:
    games: `[E]`, the game of each environment. Neighbours of one game share a
      vector environment.
    protocol: How they are played and shown.
    level_names: `[E]`, what each is called.
    base_seed: Seed of the run.
    actor: Index of the actor.
    num_threads: C++ threads of the actor. None: one per core.

  Returns:
    One batch of `E` environments. Games of different action sets are refused:
    give the protocol the full set.
  """
  available = num_threads or cores.num_cores()
  groups = [
    (game, [index for index, _ in members])
    for game, members in itertools.groupby(
      enumerate(games), key=lambda member: member[1]
    )
  ]
  parts = [
    AtariEnvironments(
      game,
      len(indices),
      protocol,
      level_name=level_names[indices[0]],
      base_seed=base_seed,
      actor=actor,
      first_environment=indices[0],
      num_threads=max(1, min(len(indices), available // len(groups))),
    )
    for game, indices in groups
  ]
  return parts[0] if len(parts) == 1 else batches.ConcatEnvironments(parts)
