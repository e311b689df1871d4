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
"""Tests of single Gymnasium environments behind the adapter."""

import functools
import subprocess
import sys

import gym_counting
import gymnasium
import numpy as np
import pytest
from dm_env import specs
from gymnasium import spaces

from scalable_agent.envs import batches, gymnasium_adapter, gymnasium_spaces

GymnasiumEnvironment = gymnasium_adapter.GymnasiumEnvironment


def serial(*envs, **kwargs):
  return batches.SerialEnvironments(
    [lambda seed, env=env: GymnasiumEnvironment(env, seed) for env in envs],
    [f'gym/{i}' for i in range(len(envs))],
    **kwargs,
  )


@pytest.mark.parametrize(
  ('ends_by', 'discount'),
  [('terminated', 0.0), ('truncated', 1.0), ('both', 0.0)],
)
def test_terminated_and_truncated_stay_apart(ends_by, discount):
  """A1.9."""
  environment = GymnasiumEnvironment(gym_counting.Counting(ends_by=ends_by), 0)
  assert environment.reset().first()
  assert environment.step(0).mid()
  assert environment.step(0).mid()
  last = environment.step(0)
  assert last.last()
  assert last.discount == discount
  np.testing.assert_array_equal(last.observation, [0, 3])
  assert environment.step(0).first()


def test_time_limit_of_a_registered_environment_is_a_truncation():
  environments = batches.SerialEnvironments(
    [functools.partial(gymnasium_adapter.make, environment_id='Pendulum-v1')],
    ['gym/Pendulum-v1'],
  )
  environments.initial()
  for _ in range(200):
    slot = environments.step(np.zeros((1, 1), np.float32))
  assert slot.truncated[0]
  assert slot.info.episode_step[0] == 200
  final = environments.final_observation()[0]
  assert not np.array_equal(final, slot.observation[0])


def test_seed_is_given_once_and_decides_all():
  """B43: later episodes go on with the random numbers of the first."""
  env = gym_counting.Counting()
  environment = GymnasiumEnvironment(env, 17)
  environment.reset()
  environment.reset()
  assert env.seeds == [17, None]

  def first(seed):
    return gymnasium_adapter.make(seed, environment_id='CartPole-v1').reset()

  np.testing.assert_array_equal(first(3).observation, first(3).observation)
  assert not np.array_equal(first(3).observation, first(4).observation)


class Remembers(gymnasium.Env):
  """Keeps the last action."""

  def __init__(self, action_space, observation_space=None):
    self.action_space = action_space
    self.observation_space = observation_space or spaces.Box(0, 1, (1,))

  def reset(self, *, seed=None, options=None):
    return self.observation_space.sample(), {}

  def step(self, action):
    self.action = action
    assert self.action_space.contains(action), repr(action)
    return self.observation_space.sample(), np.array([2.5]), False, False, {}


@pytest.mark.parametrize(
  ('space', 'actions', 'expected'),
  [
    (spaces.Discrete(3), np.int32([2]), 2),
    (spaces.Discrete(3, start=-1), np.int32([0]), -1),
    (spaces.Discrete(3, start=5), np.int32([2]), 7),
    (spaces.MultiDiscrete([2, 5]), np.int32([[1, 4]]), [1, 4]),
    (spaces.MultiDiscrete([2, 5], start=[3, -1]), np.int32([[1, 4]]), [4, 3]),
    (spaces.Box(-1, 1, (2,)), np.float32([[0.5, -3]]), [0.5, -1]),
    (
      spaces.Box(-2, 2, (2, 2), np.float64),
      np.float32([[1, 2, 3, -4]]),
      [[1, 2], [2, -2]],
    ),
    (spaces.Box(0, 1, ()), np.float32([[0.25]]), 0.25),
  ],
  ids=str,
)
def test_actions_are_those_of_the_space(space, actions, expected):
  """A12.2."""
  env = Remembers(space)
  environments = serial(env)
  environments.initial()
  slot = environments.step(actions)
  np.testing.assert_array_equal(env.action, expected)
  assert slot.reward[0] == np.float32(2.5)  # A10.3: it came as `[2.5]`.


def test_action_specs_are_those_of_the_contract():
  discrete = gymnasium_spaces.action_spec(spaces.Discrete(4, start=2))
  assert isinstance(discrete, specs.DiscreteArray)
  assert discrete.num_values == 4
  several = gymnasium_spaces.action_spec(spaces.MultiDiscrete([2, 5]))
  assert several.shape == (2,)
  np.testing.assert_array_equal(several.maximum, [1, 4])
  assert several.dtype == np.int32
  box = gymnasium_spaces.action_spec(spaces.Box(-2, 3, (2, 2), np.float64))
  assert (box.shape, box.dtype) == ((4,), np.float32)
  np.testing.assert_array_equal(box.minimum, [-2] * 4)


@pytest.mark.parametrize(
  'space',
  [
    spaces.MultiBinary(3),
    spaces.MultiDiscrete([[2, 2], [2, 2]]),
    spaces.Box(0, 3, (2,), np.int32),
    spaces.Tuple([spaces.Discrete(2)]),
    spaces.Dict(a=spaces.Discrete(2)),
  ],
  ids=str,
)
def test_other_action_spaces_are_refused(space):
  with pytest.raises(ValueError, match='the action space is'):
    GymnasiumEnvironment(Remembers(space), 0)


@pytest.mark.parametrize(
  'space',
  [
    spaces.MultiBinary(3),
    spaces.Text(5),
    spaces.Tuple([spaces.Discrete(2)]),
    spaces.Dict(a=spaces.Dict(b=spaces.MultiDiscrete([2, 2]))),
  ],
  ids=str,
)
def test_other_observation_spaces_are_refused(space):
  with pytest.raises(ValueError, match='the observation space') as error:
    GymnasiumEnvironment(Remembers(spaces.Discrete(2), space), 0)
  assert 'wrapper' in str(error.value)
  if isinstance(space, spaces.Dict):
    assert 'observation/a/b' in str(error.value)


@pytest.mark.parametrize(
  'space',
  [
    spaces.Box(-1, 1, (3,), np.float64),
    spaces.Box(0, 255, (4, 4, 3), np.uint8),
    spaces.Discrete(7),
    spaces.Discrete(7, start=-3),
    spaces.Dict(
      image=spaces.Box(0, 255, (2, 2), np.uint8),
      inner=spaces.Dict(number=spaces.Discrete(3), x=spaces.Box(0, 1, ())),
    ),
  ],
  ids=str,
)
def test_observations_of_these_spaces_arrive(space):
  """B33: whatever they sample is what was declared."""
  space.seed(0)
  environments = serial(Remembers(spaces.Discrete(2), space))
  environments.initial()
  for _ in range(5):
    environments.step(np.int32([0]))


def test_action_repeats_sum_rewards_and_stop_at_the_end():
  environment = GymnasiumEnvironment(gym_counting.Counting(length=3), 0, 2)
  assert environment.frames_per_step == 2
  environment.reset()
  assert environment.step(0).reward == 1 + 2
  last = environment.step(0)
  assert last.last()
  assert last.reward == 3


def test_repeats_on_top_of_repeats_are_refused():
  """B37, A10.10."""
  env = gym_counting.Counting()
  env.spec = gymnasium.envs.registration.EnvSpec(
    'Skips-v0', kwargs={'frameskip': 4}
  )
  with pytest.raises(
    ValueError, match=r'Skips-v0.* already repeats each action 4'
  ):
    GymnasiumEnvironment(env, 0, 4)
  assert GymnasiumEnvironment(env, 0, 1).frames_per_step == 4
  env.spec.kwargs['frameskip'] = (2, 5)
  with pytest.raises(ValueError, match='already repeats'):
    GymnasiumEnvironment(env, 0, 2)


def test_own_environments_are_imported_and_made():
  environment = gymnasium_adapter.make(
    1, environment_id='Counting-v0', gym_import='gym_counting'
  )
  assert environment.reset().first()
  environment.close()


def test_pictures_are_given_where_there_are_any():
  """An environment that knows no `render_mode` can be made all the same."""

  def make(environment_id):
    environment = gymnasium_adapter.make(
      1,
      environment_id=environment_id,
      gym_import='gym_counting',
      render_mode='rgb_array',
    )
    environment.reset()
    return environment

  assert make('Painted-v0').render().shape == (2, 3, 3)
  with pytest.raises(ValueError, match=r'Counting-v0.* gives no pictures'):
    make('Counting-v0').render()


@pytest.mark.parametrize(
  ('environment_id', 'gym_import', 'text'),
  [
    ('Nowhere-v0', '', 'with --gym_import'),
    (
      'Nowhere-v0',
      'gym_counting',
      'gym_counting, which was imported, does not',
    ),
    ('Counting-v0', 'no_such_module', '--gym_import=no_such_module cannot be'),
    ('Counting-v9', 'gym_counting', 'Counting-v9 cannot be made'),
  ],
)
def test_what_cannot_be_made_says_what_to_do(environment_id, gym_import, text):
  """A10.13."""
  with pytest.raises(ValueError, match=text):
    gymnasium_adapter.make(
      1, environment_id=environment_id, gym_import=gym_import
    )


def test_unregistered_atari_says_what_to_do():
  """A10.13, in a process where nobody imported `ale_py`."""
  program = (
    'from scalable_agent.envs import gymnasium_adapter as a\n'
    'try: a.make(1, environment_id="ALE/Pong-v5")\n'
    'except ValueError as e: print(e)'
  )
  result = subprocess.run(
    [sys.executable, '-c', program], capture_output=True, text=True, check=True
  )
  assert '--gym_import=ale_py, or play atari/<game>' in result.stdout
