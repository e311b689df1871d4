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
"""An environment that does as it is told, also in another process."""

import dataclasses
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dm_env
import numpy as np
from dm_env import specs


@dataclasses.dataclass(frozen=True)
class Scripted:
  """A factory. Episodes are alike; the observation is (seed, episode, step).

  rewards: of the steps of an episode, whose length they give.
  ends_by: 'termination' or 'truncation'.
  life_losses: steps (from 1) at which a life is lost.
  faults: for the seed of an environment, or None for all seeds, what goes
    wrong in which step of the first episode; step 0 is the first reset, step
    -1 the making.
  """

  rewards: Sequence[float] = (1.0, 2.0, 3.0)
  ends_by: str = 'termination'
  life_losses: Sequence[int] = ()
  faults: Mapping[int | None, Mapping[int, str]] = dataclasses.field(
    default_factory=dict
  )

  def __call__(self, seed):
    return ScriptedEnvironment(self, seed)


class ScriptedEnvironment(dm_env.Environment):
  frames_per_step = 2

  def __init__(self, script, seed):
    self._script = script
    self._faults = script.faults.get(seed, script.faults.get(None, {}))
    self._episode = -1
    self._step = 0
    self.closed = False
    # Reused by every step, as simulators do.
    self._observation = np.array([seed % 1000, 0, 0], np.float32)
    self._fail(-1)

  def reset(self):
    self._episode += 1
    self._step = 0
    self._fail(0)
    return dm_env.restart(self._observe())

  def step(self, action):
    self._step += 1
    self._fail(self._step)
    reward = self._script.rewards[self._step - 1]
    if self._fault() in ('nan', 'inf'):
      reward = float(self._fault())
    if self._step == len(self._script.rewards):
      end = getattr(dm_env, self._script.ends_by)
      return end(reward, self._observe())
    lost = self._step in self._script.life_losses
    return dm_env.transition(reward, self._observe(), 0.0 if lost else 1.0)

  def observation_spec(self):
    return specs.Array((3,), np.float32, 'place')

  def action_spec(self):
    return specs.DiscreteArray(4)

  def close(self):
    self.closed = True
    if 'close' in self._faults.values():
      raise OSError('cannot close')

  def _fault(self):
    return self._faults.get(self._step) if self._episode < 1 else None

  def _fail(self, step):
    fault = self._faults.get(step) if self._episode < 1 else None
    if fault == 'raise':
      raise KeyError('broken simulator')
    if fault == 'exit':
      os._exit(3)
    if fault == 'kill':
      os.kill(os.getpid(), signal.SIGKILL)
    if fault == 'sleep':
      time.sleep(3600)
    if fault == 'spin':
      while True:
        pass

  def _observe(self):
    self._observation[1:] = self._episode, self._step
    fault = self._fault()
    if fault == 'shape':
      return self._observation[:2]
    if fault == 'dtype':
      return self._observation.astype(np.float64)
    if fault == 'nan observation':
      return np.full(3, np.nan, np.float32)
    if fault == 'nested':
      return {'place': self._observation}
    return self._observation


class ProcessFacts(dm_env.Environment):
  """Tells what its process is like: see `FACTS`."""

  FACTS = ('pid', 'tensorflow', 'threads', 'group')

  def __init__(self, seed):
    del seed

  def reset(self):
    return dm_env.restart(self._facts())

  def step(self, action):
    return dm_env.transition(0.0, self._facts())

  def observation_spec(self):
    return {name: specs.Array((), np.int64, name) for name in self.FACTS}

  def action_spec(self):
    return specs.DiscreteArray(2)

  def _facts(self) -> dict[str, Any]:
    return {
      'pid': os.getpid(),
      'tensorflow': int('tensorflow' in sys.modules or 'keras' in sys.modules),
      'threads': int(os.environ.get('OMP_NUM_THREADS', 0)),
      'group': os.getpgrp(),
    }


class Showing(dm_env.Environment):
  """Shows `observation` under `spec` for ever, then leaves it to be changed."""

  def __init__(self, seed, spec, observation):
    del seed
    self._spec = spec
    self._observation = observation

  def reset(self):
    return dm_env.restart(self._observation)

  def step(self, action):
    return dm_env.transition(0.0, self._observation)

  def observation_spec(self):
    return self._spec

  def action_spec(self):
    return specs.DiscreteArray(2)
