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
"""Tests of Catch."""

import itertools

import dm_env
import numpy as np
from absl.testing import absltest
from dm_env import test_utils

from scalable_agent.envs import catch


class DmEnvContractTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
  """The contract of dm_env, by its own tests."""

  def make_object_under_test(self):
    return catch.Catch(0)

  def make_action_sequence(self):
    return itertools.islice(itertools.cycle([0, 1, 2, 2]), 40)


def columns(timestep):
  ball_row, ball = np.argwhere(timestep.observation)[0]
  paddle = np.flatnonzero(timestep.observation[-1])[-1]
  return int(ball_row), int(ball), int(paddle)


def play(environment, choose):
  """One episode; returns its time steps."""
  timesteps = [environment.reset()]
  while not timesteps[-1].last():
    timesteps.append(environment.step(choose(timesteps[-1])))
  return timesteps


def test_ball_falls_straight_and_ends_the_episode_at_the_bottom():
  timesteps = play(catch.Catch(3), lambda timestep: 1)
  assert len(timesteps) == 10
  places = [columns(timestep) for timestep in timesteps[:-1]]
  assert [row for row, _, _ in places] == list(range(9))
  assert len({ball for _, ball, _ in places}) == 1
  assert {paddle for _, _, paddle in places} == {2}
  assert [t.reward for t in timesteps[1:-1]] == [0] * 8
  assert timesteps[-1].discount == 0


def test_following_the_ball_catches_it_and_fleeing_does_not():
  def follow(timestep):
    _, ball, paddle = columns(timestep)
    return 1 + int(np.sign(ball - paddle))

  def flee(timestep):
    return 0 if columns(timestep)[1] > 1 else 2

  environment = catch.Catch(1)
  for _ in range(30):
    assert play(environment, follow)[-1].reward == 1
    assert play(environment, flee)[-1].reward == -1


def test_paddle_moves_one_column_and_stops_at_the_walls():
  environment = catch.Catch(0)
  environment.reset()
  seen = [columns(environment.step(action))[2] for action in (0, 0, 0, 2, 2)]
  assert seen == [1, 0, 0, 1, 2]
  seen = [columns(environment.step(2))[2] for _ in range(3)]
  assert seen == [3, 4, 4]


def test_balls_start_in_every_column():
  environment = catch.Catch(0)
  starts = [columns(environment.reset())[1] for _ in range(200)]
  assert set(starts) == set(range(5))


def test_random_play_is_poor():
  environment = catch.Catch(5)
  random = np.random.default_rng(0)
  rewards = [
    play(environment, lambda _: random.integers(3))[-1].reward
    for _ in range(2000)
  ]
  # A fifth is caught: 0.2 - 0.8.
  np.testing.assert_allclose(np.mean(rewards), -0.6, atol=0.06)


def test_other_sizes_and_pictures():
  environment = catch.Catch(0, rows=4, columns=7)
  timestep = environment.reset()
  assert timestep.observation.shape == (4, 7)
  assert len(play(environment, lambda _: 1)) == 4
  picture = environment.render()
  assert picture.shape == (4, 7, 3)
  assert picture.dtype == np.uint8
  assert isinstance(environment.reset(), dm_env.TimeStep)
