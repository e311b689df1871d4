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
"""Tests of Gymnasium's vector environments in all their autoreset modes."""

import threading

import gym_counting
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from scalable_agent import structs
from scalable_agent.envs import base, gymnasium_vector, seeds

ACTIONS = np.zeros(2, np.int32)


def adapt(env, **kwargs):
  return gymnasium_vector.GymnasiumVectorEnvironments(
    env, [f'gym/{i}' for i in range(env.num_envs)], **kwargs
  )


def counting(mode, lengths=(3, 4), env_class=gym_counting.Counting, **kwargs):
  env_fns = [
    lambda length=length: env_class(length=length, **kwargs)
    for length in lengths
  ]
  return adapt(SyncVectorEnv(env_fns, autoreset_mode=mode))


@pytest.mark.parametrize('ends_by', ['terminated', 'truncated', 'both'])
@pytest.mark.parametrize('mode', AutoresetMode)
def test_nine_calls_are_three_episodes_of_three(mode, ends_by):
  """B34, B35: whatever the mode, no step is lost and none is invented."""
  environments = counting(mode, ends_by=ends_by)
  assert isinstance(environments, structs.Environments)
  slot = environments.initial()
  assert slot.first.all()
  assert not slot.reward.any()
  lengths, returns = [], []
  for step in range(1, 10):
    slot = environments.step(ACTIONS)
    expected = (step - 1) % 3 + 1
    assert slot.info.episode_step[0] == expected
    assert slot.reward[0] == expected
    assert slot.first[0] == slot.done[0] == (expected == 3)
    assert slot.truncated[0] == (expected == 3 and ends_by == 'truncated')
    # The reset observation: episode and step.
    episode = step // 3
    np.testing.assert_array_equal(slot.observation[0], [episode, step % 3])
    np.testing.assert_array_equal(slot.observation[1], [step // 4, step % 4])
    if slot.truncated[0]:
      final = environments.final_observation()[0]
      np.testing.assert_array_equal(final, [episode - 1, 3])
    if slot.first[0]:
      lengths.append(int(slot.info.episode_step[0]))
      returns.append(float(slot.info.episode_return[0]))
  assert lengths == [3, 3, 3]
  assert returns == [6, 6, 6]


@pytest.mark.parametrize('mode', AutoresetMode)
def test_nested_observations_in_every_mode(mode):
  environments = counting(mode, env_class=gym_counting.CountingDict)
  environments.initial()
  for _ in range(3):
    slot = environments.step(ACTIONS)
  np.testing.assert_array_equal(slot.observation['episode'], [1, 0])
  np.testing.assert_array_equal(slot.observation['inner']['step'], [0, 3])
  final = environments.final_observation()
  assert final['episode'][0] == 0
  assert final['inner']['step'][0] == 3


@pytest.mark.parametrize('mode', AutoresetMode)
def test_asynchronous_environments_in_every_mode(mode):
  """A10.4."""
  env = AsyncVectorEnv(
    [gym_counting.Counting] * 2, autoreset_mode=mode, context='spawn'
  )
  environments = adapt(env)
  try:
    environments.initial()
    for step in range(1, 8):
      slot = environments.step(ACTIONS)
      assert slot.info.episode_step[0] == (step - 1) % 3 + 1
      np.testing.assert_array_equal(slot.observation[0], [step // 3, step % 3])
    np.testing.assert_array_equal(environments.final_observation()[0], [1, 3])
  finally:
    environments.close()


@pytest.mark.parametrize('mode', [None, 'Sometimes'])
def test_unknown_modes_are_refused_by_name(mode):
  """A10.1."""
  with pytest.raises(ValueError, match=f'autoreset mode {mode!r}') as error:
    adapt(gym_counting.CountingVector(2, mode))
  assert 'CountingVector' in str(error.value)


@pytest.mark.parametrize(
  'mode', [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED]
)
def test_who_ignores_reset_masks_is_refused(mode):
  environments = adapt(gym_counting.CountingVector(2, mode))
  environments.initial()
  environments.step(ACTIONS)
  environments.step(ACTIONS)
  with pytest.raises(ValueError, match='ignores reset_mask') as error:
    environments.step(ACTIONS)
  assert f'mode is {mode.name}' in str(error.value)


def test_same_step_without_final_observations_is_refused():
  environments = adapt(gym_counting.CountingVector(2, AutoresetMode.SAME_STEP))
  environments.initial()
  environments.step(ACTIONS)
  environments.step(ACTIONS)
  with pytest.raises(base.BrokenEnvironmentError, match='gives no final_obs'):
    environments.step(ACTIONS)


def test_float64_becomes_float32():
  environments = counting(AutoresetMode.SAME_STEP, dtype='float64')
  assert environments.spec.observation.dtype == np.float32
  environments.initial()
  for _ in range(3):
    slot = environments.step(ACTIONS)
    assert slot.observation.dtype == np.float32
  assert environments.final_observation().dtype == np.float32


class SaysNonsense(gym_counting.CountingVector):
  """Says `nonsense` in its first step."""

  def __init__(self, nonsense):
    super().__init__(2)
    self._nonsense = nonsense

  def step(self, actions):
    observation, reward, *rest = super().step(actions)
    if self._nonsense == 'nan':
      reward = np.array([0, np.nan])
    elif self._nonsense == 'shape':
      observation = observation[:, :1]
    elif self._nonsense == 'dtype':
      observation = observation.astype(np.uint8)
    elif self._nonsense == 'column':
      reward = reward[:, None]
    return observation, reward, *rest


@pytest.mark.parametrize(
  ('nonsense', 'text'),
  [
    (
      'nan',
      r'environment 1 of SaysNonsense \(gym/1\) failed: the reward is nan',
    ),
    ('shape', r'has shape \(2, 1\), declared is \(2, 2\)'),
    ('dtype', 'is of type uint8, declared is float32'),
  ],
)
def test_nonsense_is_noticed(nonsense, text):
  environments = adapt(SaysNonsense(nonsense))
  environments.initial()
  with pytest.raises(base.BrokenEnvironmentError, match=text):
    environments.step(ACTIONS)


def test_rewards_may_come_as_a_column():
  """A10.3."""
  environments = adapt(SaysNonsense('column'))
  environments.initial()
  np.testing.assert_array_equal(environments.step(ACTIONS).reward, [1, 1])


def test_seeds_are_those_of_the_run():
  """B43."""
  env = SyncVectorEnv([gym_counting.Counting] * 2)
  environments = adapt(env, base_seed=5, actor=2)
  environments.initial()
  environments.initial()
  expected = [seeds.environment_seed(5, 2, i) for i in range(2)]
  assert [one.seeds for one in env.envs] == [[seed, None] for seed in expected]


class Remembers(gym_counting.CountingVector):
  """Keeps the last actions."""

  def __init__(self, action_space):
    super().__init__(2)
    self.single_action_space = action_space

  def step(self, actions):
    self.actions = actions
    return super().step(actions)


@pytest.mark.parametrize(
  ('space', 'actions', 'expected'),
  [
    (spaces.Discrete(3, start=5), np.int32([0, 2]), [5, 7]),
    (
      spaces.MultiDiscrete([2, 5], start=[3, 0]),
      np.int32([[1, 4], [0, 0]]),
      [[4, 4], [3, 0]],
    ),
    (
      spaces.Box(-1, 1, (2, 1)),
      np.float32([[0.5, 2], [-9, 0]]),
      [[[0.5], [1]], [[-1], [0]]],
    ),
  ],
  ids=str,
)
def test_actions_are_those_of_the_space(space, actions, expected):
  env = Remembers(space)
  environments = adapt(env)
  environments.initial()
  environments.step(actions)
  np.testing.assert_array_equal(env.actions, expected)


def test_registered_environments_are_made():
  environments = gymnasium_vector.make(
    'Counting-v0', ['gym/Counting-v0'] * 3, gym_import='gym_counting'
  )
  environments.initial()
  for _ in range(3):
    slot = environments.step(np.zeros(3, np.int32))
  assert slot.truncated.all()
  np.testing.assert_array_equal(environments.final_observation(), [[0, 3]] * 3)
  environments.close()
  environments.close()
  with pytest.raises(structs.Closed):
    environments.step(np.zeros(3, np.int32))


def test_close_waits_for_a_step_in_another_thread():
  entered, leave = threading.Event(), threading.Event()
  order = []

  class Slow(gym_counting.CountingVector):
    def step(self, actions):
      entered.set()
      leave.wait()
      order.append('stepped')
      return super().step(actions)

    def close(self):
      order.append('closed')

  environments = adapt(Slow(2))
  environments.initial()
  stepping = threading.Thread(target=environments.step, args=[ACTIONS])
  closing = threading.Thread(target=environments.close)
  stepping.start()
  entered.wait()
  closing.start()
  leave.set()
  stepping.join()
  closing.join()
  assert order == ['stepped', 'closed']


def test_shipped_environment_that_resets_everybody_is_refused():
  """CartPole's own vector environment, which knows no `reset_mask`."""
  environments = gymnasium_vector.make('CartPole-v1', ['gym/CartPole-v1'] * 2)
  assert environments.spec.observation.shape == (4,)
  environments.initial()

  def play():
    for _ in range(200):
      environments.step(np.int32([0, 1]))

  with pytest.raises(ValueError, match='CartPole-v1 resets all'):
    play()
  environments.close()


def test_unknown_ids_say_what_to_do():
  with pytest.raises(ValueError, match='with --gym_import'):
    gymnasium_vector.make('Nowhere-v0', ['gym/Nowhere-v0'])


def test_repeats_are_refused():
  with pytest.raises(ValueError, match='num_action_repeats is 4, but a vector'):
    gymnasium_vector.make('Counting-v0', ['x'], num_action_repeats=4)


def test_every_environment_has_a_level():
  with pytest.raises(ValueError, match='1 level names are given for the 2'):
    gymnasium_vector.GymnasiumVectorEnvironments(
      gym_counting.CountingVector(2), ['one']
    )
