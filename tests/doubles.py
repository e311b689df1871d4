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
"""Small exact environments and policies that make alignment visible."""

import numpy as np
from dm_env import specs

from scalable_agent import structs


class ScriptedEnvironments:
  """E environments whose episodes last `episode_length` steps.

  The observation is (episode, step), the reward is what `reward(actions,
  steps)` says; `ends_by` chooses how episodes end.
  """

  def __init__(
    self,
    episode_length=3,
    num_envs=1,
    reward=lambda actions, steps: actions,
    ends_by='termination',
    level='scripted',
    delay=None,
  ):
    self.num_envs = num_envs
    self.level_names = [level] * num_envs
    self.num_restarts = 0
    self.num_resets = 0
    self.closed = False
    self.spec = structs.EnvironmentSpec(
      observation=specs.Array((2,), np.float32),
      action=specs.DiscreteArray(100),
      frames_per_step=4,
    )
    self._episode_length = episode_length
    self._reward = reward
    self._ends_by = ends_by
    self._delay = delay
    self._final = np.zeros((num_envs, 2), np.float32)
    # Reused by every step, as a simulator would.
    self._observation = np.zeros((num_envs, 2), np.float32)

  def initial(self):
    n = self.num_envs
    self.num_resets += 1
    self._episode = np.zeros(n, np.int32)
    self._steps = np.zeros(n, np.int32)
    self._return = np.zeros(n, np.float32)
    yes = np.ones(n, bool)
    zeros = np.zeros(n, np.float32)
    return self._output(zeros, yes, ~yes, zeros, np.zeros(n, np.int32))

  def step(self, actions):
    if self._delay:
      self._delay()
    self._steps += 1
    reward = np.asarray(self._reward(actions, self._steps), np.float32)
    reward = np.broadcast_to(reward, (self.num_envs,))
    self._return = self._return + reward
    ended = self._steps >= self._episode_length
    info = self._return, self._steps.copy()
    self._final[:, 0], self._final[:, 1] = self._episode, self._steps
    self._episode = self._episode + ended
    self._steps = np.where(ended, 0, self._steps)
    self._return = np.where(ended, 0, self._return).astype(np.float32)
    truncated = ended & (self._ends_by == 'truncation')
    return self._output(reward, ended, truncated, *info)

  def final_observation(self):
    return self._final

  def close(self):
    self.closed = True

  def _output(self, reward, first, truncated, episode_return, episode_step):
    self._observation[:, 0] = self._episode
    self._observation[:, 1] = self._steps
    return structs.EnvOutput(
      reward=reward,
      info=structs.EpisodeInfo(
        np.asarray(episode_return, np.float32), episode_step
      ),
      done=first,
      first=first,
      truncated=truncated,
      observation=self._observation,
    )


class CountingPolicy:
  """Acts 1, 2, 3, ...; its core state sums the steps of the observations.

  Logits are the version, the baseline is the state after consumption.
  """

  def __init__(self, num_envs=1):
    self._num_envs = num_envs
    self._action = 0
    self.version = 0

  def initial_state(self):
    return (np.zeros(self._num_envs, np.float32),)

  def begin_unroll(self):
    return self.version

  def _consume(self, env_output, core_state):
    state = np.where(env_output.done, 0, core_state[0])
    return state + env_output.observation[:, 1] + 1

  def step(self, actions, env_output, core_state):
    del actions
    state = self._consume(env_output, core_state)
    self._action += 1
    output = structs.AgentOutput(
      action=np.full(self._num_envs, self._action, np.int32),
      policy_logits=np.full((self._num_envs, 1), self.version, np.float32),
      baseline=state.astype(np.float32),
    )
    return output, (state.astype(np.float32),)

  def value(self, actions, env_output, core_state):
    del actions
    return self._consume(env_output, core_state).astype(np.float32)


def play(actor, num_unrolls):
  """That many unrolls in a row."""
  return [actor.unroll() for _ in range(num_unrolls)]
