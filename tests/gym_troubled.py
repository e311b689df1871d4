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
"""A small game for Gymnasium that gets into trouble once, as a file says.

The folder of that file is in the environment variable `TROUBLE_DIR`. Whoever
finds a file there takes it away and does what its name says.
"""

import os
import pathlib
import time

import gymnasium
import numpy as np


class Troubled(gymnasium.Env):
  """Pays 1 per step; episodes take 5 steps."""

  observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
  action_space = gymnasium.spaces.Discrete(2)

  def __init__(self):
    self._look_for('raise_when_made')

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return self._observation(), {}

  def step(self, action):
    self._look_for('hang')
    self._look_for('raise')
    self._steps += 1
    return self._observation(), 1.0, self._steps == 5, False, {}

  def _observation(self):
    return self.np_random.uniform(-1, 1, 3).astype(np.float32)

  def _look_for(self, trouble):
    folder = os.environ.get('TROUBLE_DIR')
    if folder is None:
      return
    try:
      (pathlib.Path(folder) / trouble).unlink()
    except FileNotFoundError:
      return
    if trouble == 'hang':
      time.sleep(3600)
    raise OSError(f'the simulator is in trouble: {trouble}')


gymnasium.register('Troubled-v0', Troubled)
