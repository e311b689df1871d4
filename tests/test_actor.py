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
"""Tests for actor: the time convention, slot by slot."""

import itertools

import numpy as np
import pytest
import tree
from doubles import CountingPolicy, ScriptedEnvironments, play

from scalable_agent import actor, episodes


def make(unroll_length, num_envs=1, **kwargs):
  environments = ScriptedEnvironments(num_envs=num_envs, **kwargs)
  policy = CountingPolicy(num_envs)
  return actor.Actor(environments, policy, unroll_length), environments, policy


def test_a_slot_pairs_each_action_with_the_reward_it_led_to():
  one, _, _ = make(unroll_length=5)
  # The environment pays back the action as its reward.
  unroll, _ = play(one, 2)
  rewards = unroll.env_outputs.reward[1:, 0]
  # Action 1 went on the question for the shapes of the first slot.
  np.testing.assert_array_equal(rewards, [2, 3, 4, 5, 6])
  np.testing.assert_array_equal(unroll.agent_outputs.action[1:, 0], rewards)


def test_done_brings_the_first_observation_of_the_next_episode():
  one, _, _ = make(unroll_length=5)
  unroll = one.unroll()
  np.testing.assert_array_equal(
    unroll.env_outputs.observation[:, 0],
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]],
  )
  np.testing.assert_array_equal(
    unroll.env_outputs.done[:, 0], [True, False, False, True, False, False]
  )


def test_the_first_slot_ever_is_reward_0_done_action_0():
  one, _, _ = make(unroll_length=2)
  unroll = one.unroll()
  assert unroll.env_outputs.reward[0, 0] == 0
  assert unroll.env_outputs.done[0, 0]
  assert unroll.agent_outputs.action[0, 0] == 0
  assert not unroll.agent_outputs.policy_logits[0].any()


@pytest.mark.parametrize('unroll_length', [1, 2, 3, 4, 7])
@pytest.mark.parametrize('episode_length', [1, 3, 4])
def test_unrolls_join_to_the_environments_own_stream(
  unroll_length, episode_length
):
  one, _, _ = make(unroll_length, num_envs=2, episode_length=episode_length)
  unrolls = play(one, 5)
  whole = make(5 * unroll_length, num_envs=2, episode_length=episode_length)
  (stream,) = play(whole[0], 1)
  for part in ('env_outputs', 'agent_outputs', 'truncation_values'):
    joined = tree.map_structure(
      lambda *xs: np.concatenate([xs[0], *[x[1:] for x in xs[1:]]]),
      *[getattr(u, part) for u in unrolls],
    )
    tree.map_structure(
      np.testing.assert_array_equal, joined, getattr(stream, part)
    )
  for before, after in itertools.pairwise(unrolls):
    tree.map_structure(
      lambda a, b: np.testing.assert_array_equal(a[-1], b[0]),
      (before.env_outputs, before.agent_outputs),
      (after.env_outputs, after.agent_outputs),
    )


def test_no_reward_is_lost_or_doubled_where_unrolls_meet():
  one, _, _ = make(
    unroll_length=4, episode_length=4, reward=lambda _, steps: steps == 4
  )
  unrolls = play(one, 5)
  assert sum(u.env_outputs.reward[1:].sum() for u in unrolls) == 5


def test_the_stored_state_is_the_one_before_slot_0():
  # The policy adds (step of the observation + 1) to its state, and one long
  # episode goes 0, 1, 2, ...: after consuming slots 0 and 1 it is 1 + 2 = 3.
  one, _, _ = make(unroll_length=2, episode_length=100)
  first, second = play(one, 2)
  assert first.core_state[0] == 0
  assert second.core_state[0] == 3
  # Unrolling again from the stored state gives the actor's own baselines.
  steps = second.env_outputs.observation[:, 0, 1]
  again = second.core_state[0] + np.cumsum(steps[:-1] + 1)
  np.testing.assert_array_equal(second.agent_outputs.baseline[1:, 0], again)


def test_the_core_is_reset_before_the_first_observation_is_consumed():
  one, _, _ = make(unroll_length=7, episode_length=3)
  unroll = one.unroll()
  np.testing.assert_array_equal(
    unroll.agent_outputs.baseline[1:, 0], [1, 3, 6, 1, 3, 6, 1]
  )


def test_a_time_limit_carries_the_value_of_the_final_observation():
  one, _, _ = make(unroll_length=4, episode_length=3, ends_by='truncation')
  unroll = one.unroll()
  np.testing.assert_array_equal(
    unroll.env_outputs.truncated[:, 0], [False, False, False, True, False]
  )
  # State after the three observations 0, 1, 2 is 6; the final one adds 3 + 1.
  np.testing.assert_array_equal(
    unroll.truncation_values[:, 0], [0, 0, 0, 10, 0]
  )


def test_a_time_limit_where_unrolls_meet_carries_its_value_in_both():
  one, _, _ = make(unroll_length=3, episode_length=3, ends_by='truncation')
  first, second = play(one, 2)
  assert first.truncation_values[-1, 0] == 10
  assert second.truncation_values[0, 0] == 10


def test_a_termination_carries_no_value():
  one, _, _ = make(unroll_length=4, episode_length=3)
  assert not one.unroll().truncation_values.any()


@pytest.mark.parametrize(
  ('unroll_length', 'expected'),
  [(2, [[], [6.0], [6.0]]), (3, [[6.0], [6.0], [6.0]])],
)
def test_episodes_are_logged_once_across_unrolls(unroll_length, expected):
  one, _, _ = make(unroll_length, reward=lambda _, steps: steps)
  logged = [
    [e.episode_return for e in episodes.finished_episodes(u, ['scripted'])]
    for u in play(one, 3)
  ]
  assert logged == expected


def test_lengths_of_logged_episodes_are_in_steps():
  one, _, _ = make(unroll_length=6)
  log = episodes.EpisodeLog(['scripted'])
  log.observe(one.unroll())
  assert [e.num_steps for e in log.take_new()] == [3, 3]
  assert log.take_new() == []
  assert log.num_steps == {'scripted': 6}


def test_one_step_episodes_are_whole_episodes():
  one, _, _ = make(unroll_length=4, episode_length=1, reward=lambda *_: 1)
  unroll = one.unroll()
  ended = list(episodes.finished_episodes(unroll, ['scripted']))
  assert [(e.episode_return, e.num_steps) for e in ended] == [(1.0, 1)] * 4
  assert unroll.env_outputs.done.all()
  # The state never holds more than the one observation of its episode.
  np.testing.assert_array_equal(unroll.agent_outputs.baseline[1:], 1)


def test_nothing_finished_gives_no_return():
  one, _, _ = make(unroll_length=2, episode_length=100)
  log = episodes.EpisodeLog(['scripted'])
  log.observe(one.unroll())
  assert log.recent_mean_returns() == {}


def test_an_unroll_in_which_an_environment_broke_is_given_up():
  one, environments, _ = make(unroll_length=2, num_envs=3, episode_length=100)
  one.unroll()
  taken = []

  def break_once():
    taken.append(1)
    if len(taken) == 2:
      environments.num_restarts += 1

  environments._delay = break_once
  unroll = one.unroll()
  assert one.num_dropped_steps == 6
  # It starts where the broken one ended: steps 4, 5, 6 of the episode.
  np.testing.assert_array_equal(
    unroll.env_outputs.observation[:, 0, 1], [4, 5, 6]
  )


def test_the_version_is_that_of_the_start_of_the_unroll():
  one, _, policy = make(unroll_length=2)
  one.unroll()
  policy.version = 7
  assert one.unroll().version.tolist() == [7]
