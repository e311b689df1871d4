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
"""Gymnasium environments that count; imported by name through `gym_import`."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Counting(gymnasium.Env):
  """Episodes of `length` steps; the observation is (episode, step).

  The reward is the step. `ends_by` is what is true at the end: 'terminated',
  'truncated' or 'both'.
  """

  def __init__(self, length=3, ends_by='truncated', dtype='float32'):
    self.observation_space = spaces.Box(-np.inf, np.inf, (2,), dtype)
    self.action_space = spaces.Discrete(2)
    self._length = length
    self._ends_by = ends_by
    self._episode = -1
    self.seeds = []

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self.seeds.append(seed)
    self._episode += 1
    self._step = 0
    return self._observe(), {}

  def step(self, action):
    if self._step >= self._length:
      raise RuntimeError('stepped after the end')
    self._step += 1
    end = self._step == self._length
    terminated = end and self._ends_by in ('terminated', 'both')
    truncated = end and self._ends_by in ('truncated', 'both')
    return self._observe(), float(self._step), terminated, truncated, {}

  def _observe(self):
    return np.array([self._episode, self._step], self.observation_space.dtype)


class CountingDict(Counting):
  """The same two numbers under two names."""

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.observation_space = spaces.Dict(
      episode=spaces.Discrete(1000),
      inner=spaces.Dict(step=spaces.Box(0, 1000, (), np.float32)),
    )

  def _observe(self):
    return {
      'episode': np.int64(self._episode),
      'inner': {'step': np.array(self._step, np.float32)},
    }


class Painted(Counting):
  """Has a picture."""

  metadata = {'render_modes': ['rgb_array']}  # noqa: RUF012

  def __init__(self, render_mode=None):
    super().__init__()
    self.render_mode = render_mode

  def render(self):
    return np.zeros((2, 3, 3), np.uint8)


class CountingVector(gymnasium.vector.VectorEnv):
  """`num_envs` copies that reset all or none: like some that are shipped."""

  def __init__(self, num_envs=1, mode=gymnasium.vector.AutoresetMode.NEXT_STEP):
    self.num_envs = num_envs
    self.metadata = {'autoreset_mode': mode}
    self._envs = [Counting(length=3 + i) for i in range(num_envs)]
    self.single_observation_space = self._envs[0].observation_space
    self.single_action_space = self._envs[0].action_space

  def reset(self, *, seed=None, options=None):
    return np.stack([env.reset()[0] for env in self._envs]), {}

  def step(self, actions):
    results = [
      env.step(action) for env, action in zip(self._envs, actions, strict=True)
    ]
    observations, rewards, terminated, truncated, _ = zip(*results, strict=True)
    return (
      np.stack(observations),
      np.array(rewards),
      np.array(terminated),
      np.array(truncated),
      {},
    )


gymnasium.register('Counting-v0', f'{__name__}:Counting')
gymnasium.register('Painted-v0', f'{__name__}:Painted')
