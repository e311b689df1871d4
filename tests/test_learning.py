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
"""Whole runs that learn: what unit tests cannot tell."""

import dm_env
import numpy as np
import pytest
from dm_env import specs

from scalable_agent import config, metrics, tasks
from scalable_agent.envs import batches
from scalable_agent.runtime import local

SMALL = {'num_actors': 1, 'envs_per_actor': 32}


class UntilReturn(metrics.NullWriter):
  """Ends a run once the mean of the last 100 episodes reaches a target."""

  def __init__(self, level, target):
    self._key, self._target = f'{level}/episode_return', target
    self.run = None
    self.best = -np.inf

  def write(self, env_frames, metrics):
    mean = metrics.get(self._key, -np.inf)
    # The first few episodes may be lucky ones.
    if env_frames > 20_000:
      self.best = max(self.best, mean)
    if self.best >= self._target:
      self.run.stop()


def best_return(tmp_path, target, *, made=None, secs=300, **sections):
  """Best mean return of 100 episodes until `target` or the end of the run."""
  settings = config.Config(
    task=config.TaskConfig(**sections.get('task', {})),
    actor=config.ActorConfig(**{**SMALL, **sections.get('actor', {})}),
    agent=config.AgentConfig(**sections.get('agent', {})),
    learner=config.LearnerConfig(
      **{
        'batch_size': 32,
        'entropy_cost': 0.01,
        'clip_gradient_norm': 40.0,
        **sections.get('learner', {}),
      }
    ),
    run=config.RunConfig(logdir=str(tmp_path)),
  )
  task = made or tasks.make_task(settings)
  watch = UntilReturn(task.level_names[0], target)
  watch.run = local.make_run(settings, task, task.spec())
  watch.run.run(metrics.NullWriter(), watch, stop_after_secs=secs)
  return watch.best


def test_catch_is_caught(tmp_path):
  best = best_return(
    tmp_path,
    0.9,
    task={'level_name': 'catch'},
    learner={
      'unroll_length': 10,
      'learning_rate': 0.002,
      'epsilon': 0.001,
      'total_environment_frames': 400_000,
    },
  )
  assert best >= 0.9


def test_cart_pole_is_balanced(tmp_path):
  best = best_return(
    tmp_path,
    400,
    task={'level_name': 'gym/CartPole-v1'},
    actor={'envs_per_actor': 16},
    learner={
      'batch_size': 16,
      'unroll_length': 20,
      'learning_rate': 0.001,
      'epsilon': 0.01,
      'reward_clipping': 'none',
      'total_environment_frames': 800_000,
    },
  )
  assert best >= 400


@pytest.mark.slow
def test_a_pendulum_is_swung_up(tmp_path):
  """Continuous actions; a random policy gets about -1200."""
  best = best_return(
    tmp_path,
    -300,
    secs=900,
    task={'level_name': 'gym/Pendulum-v1'},
    learner={
      'batch_size': 16,
      'unroll_length': 20,
      'learning_rate': 0.0005,
      'epsilon': 0.001,
      'entropy_cost': 0.05,
      'discounting': 0.9,
      # Rewards are from -16 to 0; only their order matters here.
      'reward_clipping': 'soft_asymmetric',
      'total_environment_frames': 1_500_000,
    },
  )
  assert best >= -300


class Cue(dm_env.Environment):
  """Shows a cue in the first observation only and asks for it at the end."""

  def __init__(self, seed, length=8):
    self._random = np.random.default_rng(seed)
    self._length = length

  def reset(self):
    self._cue, self._step = int(self._random.integers(2)), 0
    observation = np.zeros(2, np.float32)
    observation[self._cue] = 1
    return dm_env.restart(observation)

  def step(self, action):
    self._step += 1
    nothing = np.zeros(2, np.float32)
    if self._step < self._length:
      return dm_env.transition(0.0, nothing)
    return dm_env.termination(1.0 if action == self._cue else -1.0, nothing)

  def observation_spec(self):
    return specs.Array((2,), np.float32)

  def action_spec(self):
    return specs.DiscreteArray(2)


def cue_task():
  def build(request):
    names = request.level_names
    return batches.SerialEnvironments(
      [Cue] * len(names), names, base_seed=request.base_seed
    )

  return tasks.Task(('cue',), 1, build, factory=lambda _: Cue)


@pytest.mark.slow
@pytest.mark.parametrize(
  ('core', 'remembers'), [('lstm', True), ('none', False)]
)
def test_only_a_memory_answers_what_was_shown_at_the_start(
  tmp_path, core, remembers
):
  best = best_return(
    tmp_path,
    0.9,
    made=cue_task(),
    agent={'core': core},
    learner={
      'unroll_length': 20,
      'learning_rate': 0.001,
      'epsilon': 0.001,
      'total_environment_frames': 600_000,
    },
  )
  if remembers:
    assert best >= 0.9
  else:
    # Chance is 0; the best of many means of 100 games is above it.
    assert best < 0.5
