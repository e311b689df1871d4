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
"""A few updates of real runs: every kind of observation and action."""

import gymnasium
import numpy as np
import pytest

from scalable_agent import config, metrics, tasks
from scalable_agent.runtime import local


class Dials(gymnasium.Env):
  """Two dials to turn, a picture and a number to look at."""

  observation_space = gymnasium.spaces.Dict(
    {
      'picture': gymnasium.spaces.Box(0, 255, (20, 20, 1), np.uint8),
      'number': gymnasium.spaces.Box(-1, 1, (), np.float64),
    }
  )
  action_space = gymnasium.spaces.MultiDiscrete([3, 2])

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return self.observation_space.sample(), {}

  def step(self, action):
    assert self.action_space.contains(np.asarray(action))
    self._steps += 1
    over = self._steps == 4
    return self.observation_space.sample(), float(action[0]), False, over, {}


gymnasium.register('test/Dials-v0', Dials)


@pytest.mark.parametrize(
  ('level', 'agent', 'backend'),
  [
    ('gym/Pendulum-v1', {'core': 'lstm'}, 'serial'),
    ('gym/test/Dials-v0', {'torso': 'shallow'}, 'serial'),
    ('gym/Acrobot-v1', {}, 'vector'),
    ('atari/pong', {'torso': 'shallow'}, 'auto'),
    ('atari/pong', {'torso': 'deep', 'core': 'lstm'}, 'serial'),
    (
      'atari/breakout,atari/pong',
      {'torso': 'shallow', 'standardize_images': True},
      'auto',
    ),
  ],
)
def test_a_few_updates(tmp_path, level, agent, backend):
  settings = config.Config(
    task=config.TaskConfig(level_name=level),
    actor=config.ActorConfig(
      num_actors=1, envs_per_actor=2, env_backend=backend
    ),
    agent=config.AgentConfig(**agent),
    learner=config.LearnerConfig(
      batch_size=2,
      unroll_length=6,
      total_environment_frames=3 * 2 * 6,
      reward_clipping='none',
    ),
    run=config.RunConfig(logdir=str(tmp_path)),
  )
  task = tasks.make_task(settings)
  run = local.make_run(settings, task, task.spec())
  before = [w.numpy() for w in run._learner.weights()]
  outcome = run.run(metrics.NullWriter())
  assert outcome.env_frames >= 36
  after = [w.numpy() for w in run._learner.weights()]
  assert all(np.isfinite(a).all() for a in after)
  assert any((a != b).any() for a, b in zip(after, before, strict=True))
