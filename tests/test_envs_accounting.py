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
"""Tests of the stream that environments become: slots, episodes, ends."""

import numpy as np
import pytest
import scripted_environment

from scalable_agent import structs
from scalable_agent.envs import base, batches

Scripted = scripted_environment.Scripted


def play(environments, num_steps):
  """The first slot and `num_steps` more, copied, stacked along time."""
  actions = np.zeros(environments.num_envs, np.int32)

  def copied(slot):
    return [
      np.array(x)
      for x in (
        slot.reward,
        slot.done,
        slot.first,
        slot.truncated,
        slot.info.episode_return,
        slot.info.episode_step,
        slot.observation,
      )
    ]

  slots = [copied(environments.initial())]
  slots += [copied(environments.step(actions)) for _ in range(num_steps)]
  names = 'reward done first truncated returns steps observation'.split()
  return dict(zip(names, map(np.stack, zip(*slots, strict=True)), strict=True))


def serial(*scripts, **kwargs):
  names = [f'level {i}' for i in range(len(scripts))]
  return batches.SerialEnvironments(scripts, names, **kwargs)


def test_is_the_protocol():
  assert isinstance(serial(Scripted()), structs.Environments)
  assert isinstance(
    batches.ConcatEnvironments([serial(Scripted())]), structs.Environments
  )


def test_done_slot_shows_the_next_episode_and_tells_of_the_old():
  """B26, B31: three steps, rewards 1, 2, 3."""
  stream = play(serial(Scripted()), 7)
  np.testing.assert_array_equal(
    stream['reward'][:, 0], [0, 1, 2, 3, 1, 2, 3, 1]
  )
  np.testing.assert_array_equal(
    stream['done'][:, 0], [True, 0, 0, True, 0, 0, True, 0]
  )
  np.testing.assert_array_equal(stream['first'], stream['done'])
  assert not stream['truncated'].any()
  np.testing.assert_array_equal(
    stream['returns'][:, 0], [0, 1, 3, 6, 1, 3, 6, 1]
  )
  np.testing.assert_array_equal(stream['steps'][:, 0], [0, 1, 2, 3, 1, 2, 3, 1])
  np.testing.assert_array_equal(
    stream['observation'][:, 0, 1:],
    [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)],
  )


def test_reward_of_the_last_step_is_there_once():
  """B25: 1 on the last of four steps; five episodes."""
  stream = play(serial(Scripted(rewards=(0, 0, 0, 1))), 20)
  assert stream['reward'].sum() == 5
  assert stream['first'].sum() == 6
  np.testing.assert_array_equal(
    stream['returns'][stream['first'] & (stream['steps'] > 0)], np.ones(5)
  )


def test_episodes_of_one_step():
  """B27."""
  stream = play(serial(Scripted(rewards=(1,))), 4)
  assert stream['done'].all()
  np.testing.assert_array_equal(stream['returns'][:, 0], [0, 1, 1, 1, 1])
  np.testing.assert_array_equal(stream['steps'][:, 0], [0, 1, 1, 1, 1])
  np.testing.assert_array_equal(stream['observation'][:, 0, 1], [0, 1, 2, 3, 4])


def test_lost_life_is_an_end_for_the_learner_only():
  """B36: rewards 1, 1 (life lost), 1, 1 (game over)."""
  stream = play(serial(Scripted(rewards=(1,) * 4, life_losses=(2,))), 5)
  np.testing.assert_array_equal(
    stream['done'][:, 0], [True, 0, True, 0, True, 0]
  )
  np.testing.assert_array_equal(stream['first'][:, 0], [True, 0, 0, 0, True, 0])
  np.testing.assert_array_equal(stream['returns'][:, 0], [0, 1, 2, 3, 4, 1])
  np.testing.assert_array_equal(stream['steps'][:, 0], [0, 1, 2, 3, 4, 1])
  np.testing.assert_array_equal(
    stream['observation'][:, 0, 1], [0, 0, 0, 0, 1, 1]
  )


def test_time_limit_keeps_the_final_observation():
  environments = serial(Scripted(ends_by='truncation'), Scripted())
  stream = play(environments, 3)
  np.testing.assert_array_equal(stream['truncated'][3], [True, False])
  np.testing.assert_array_equal(stream['first'][3], [True, True])
  np.testing.assert_array_equal(stream['observation'][3, 0, 1:], [1, 0])
  final = environments.final_observation()
  assert final.shape == (2, 3)
  np.testing.assert_array_equal(final[0, 1:], [0, 3])


def test_slots_do_not_share_what_is_counted():
  environments = serial(Scripted())
  slots = [environments.initial()]
  slots += [environments.step(np.zeros(1, np.int32)) for _ in range(3)]
  assert [int(slot.info.episode_step[0]) for slot in slots] == [0, 1, 2, 3]
  assert [float(slot.info.episode_return[0]) for slot in slots] == [0, 1, 3, 6]
  assert [bool(slot.first[0]) for slot in slots] == [True, False, False, True]


def test_types_are_those_of_the_contract():
  slot = serial(Scripted()).initial()
  assert slot.reward.dtype == np.float32
  assert slot.info.episode_return.dtype == np.float32
  assert slot.info.episode_step.dtype == np.int32
  assert {slot.done.dtype, slot.first.dtype, slot.truncated.dtype} == {
    np.dtype(bool)
  }


def test_initial_again_starts_all_anew():
  environments = serial(Scripted())
  play(environments, 2)
  stream = play(environments, 3)
  np.testing.assert_array_equal(stream['reward'][:, 0], [0, 1, 2, 3])
  np.testing.assert_array_equal(stream['returns'][:, 0], [0, 1, 3, 6])


def test_long_sums_do_not_drift():
  """Ones on top of 2**24: a sum in float32 would never move."""
  accounting = base.EpisodeAccounting(1)
  accounting.begin(None)
  outcomes = np.zeros(1, np.uint8)
  accounting.slot(np.array([2.0**24]), outcomes, None)
  for _ in range(100):
    slot = accounting.slot(np.array([1.0]), outcomes, None)
  assert slot.info.episode_return == [2**24 + 100]


def test_spec_tells_frames_per_step():
  assert serial(Scripted()).spec.frames_per_step == 2


def test_joined_batches_are_one_batch():
  a = Scripted(rewards=(1, 2))
  b = Scripted(rewards=(5, 6, 7), ends_by='truncation')
  whole = serial(a, a, b)
  joined = batches.ConcatEnvironments([serial(a, a), serial(b)])
  assert joined.num_envs == 3
  assert joined.level_names == ('level 0', 'level 1', 'level 0')
  expected, actual = play(whole, 6), play(joined, 6)
  for name, values in expected.items():
    if name != 'observation':
      np.testing.assert_array_equal(actual[name], values, err_msg=name)
  np.testing.assert_array_equal(
    actual['observation'][..., 1:], expected['observation'][..., 1:]
  )
  np.testing.assert_array_equal(
    joined.final_observation()[2, 1:], whole.final_observation()[2, 1:]
  )
  joined.close()
  with pytest.raises(structs.Closed):
    joined.step(np.zeros(3, np.int32))


class PaysAction(scripted_environment.ScriptedEnvironment):
  """The reward is the action."""

  def step(self, action):
    return super().step(action)._replace(reward=float(action))


def test_joined_batches_get_their_own_actions():
  def factory(seed):
    return PaysAction(Scripted(), seed)

  joined = batches.ConcatEnvironments(
    [serial(factory), serial(factory, factory), serial(factory)]
  )
  joined.initial()
  actions = np.array([3, 1, 0, 2], np.int32)
  np.testing.assert_array_equal(joined.step(actions).reward, actions)


class TellsOrder:
  """Wraps a batch and writes down the calls of the two halves of a step."""

  def __init__(self, environments, calls):
    self._environments = environments
    self._calls = calls

  def __getattr__(self, name):
    if name in ('send', 'recv'):
      self._calls.append(name)
    return getattr(self._environments, name)


def test_joined_batches_work_at_the_same_time():
  calls = []
  joined = batches.ConcatEnvironments(
    [TellsOrder(serial(Scripted()), calls) for _ in range(2)]
  )
  joined.initial()
  calls.clear()
  joined.step(np.zeros(2, np.int32))
  sends = [i for i, call in enumerate(calls) if call == 'send']
  receipts = [i for i, call in enumerate(calls) if call == 'recv']
  assert max(sends) < min(receipts)


@pytest.mark.parametrize(
  'actions',
  [np.zeros(3, np.int32), np.zeros((2, 1), np.int32), np.int32(0)],
  ids=['three', 'column', 'scalar'],
)
def test_actions_of_another_shape_are_refused(actions):
  environments = serial(Scripted(), Scripted())
  environments.initial()
  with pytest.raises(ValueError, match='actions have shape'):
    environments.step(actions)


def test_actions_of_another_kind_are_refused():
  environments = serial(Scripted())
  environments.initial()
  with pytest.raises(TypeError, match='float32'):
    environments.step(np.zeros(1, np.float32))


def test_closed_environments_say_so():
  environments = serial(Scripted())
  environments.initial()
  environments.close()
  environments.close()
  with pytest.raises(structs.Closed):
    environments.step(np.zeros(1, np.int32))
  with pytest.raises(structs.Closed):
    environments.initial()


def test_seeds_differ_between_actors_and_come_again():
  """B43; the first number that is observed is the seed, modulo 1000."""

  def shown(actor):
    environments = serial(*[Scripted()] * 4, base_seed=1, actor=actor)
    return environments.initial().observation[:, 0].tolist()

  assert shown(0) == shown(0)
  assert len(set(shown(0) + shown(1))) == 8
