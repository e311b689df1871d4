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
"""DeepMind Lab as Gymnasium environments, and Gymnasium's own ones of Lab."""

import os
import pathlib
import re
import tempfile
import warnings

import gymnasium
import numpy as np
import pytest
from fake_deepmind_lab import lab_double
from gymnasium import spaces
from gymnasium.utils import env_checker

from scalable_agent.dmlab30 import actions, adopted, gymnasium_env, levels

CORRIDOR = 'double/long_corridor'


@pytest.fixture(name='lab', autouse=True)
def fixture_lab(monkeypatch, tmp_path):
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  return lab_double.install(monkeypatch, episode_seconds=1)


def make(level, **kwargs):
  return gymnasium.make(
    f'dmlab30/{level}-v0', **({'width': 32, 'height': 24} | kwargs)
  )


# ---- Ours.


@pytest.mark.parametrize('level', levels.ALL_NAMES)
def test_every_level_is_registered_and_passes_the_checker(level):
  env = make(level, dataset_path='dummy')
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    env_checker.check_env(env.unwrapped, skip_render_check=True)
  assert env.action_space == spaces.Discrete(9)
  env.close()
  assert os.listdir(tempfile.gettempdir()) == []


@pytest.mark.parametrize(
  ('action_set', 'space'),
  [
    ('extended', spaces.Discrete(15)),
    (
      'raw',
      spaces.MultiDiscrete(
        [1025, 1025, 3, 3, 2, 2, 2], start=[-512, -512, -1, -1, 0, 0, 0]
      ),
    ),
  ],
)
def test_other_action_sets_and_rendering_pass_the_checker(action_set, space):
  env = make('rooms_watermaze', action_set=action_set, render_mode='rgb_array')
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    env_checker.check_env(env.unwrapped)
  assert env.action_space == space
  observation, _ = env.reset(seed=1)
  np.testing.assert_array_equal(env.render(), observation['RGB_INTERLEAVED'])
  env.close()


def test_raw_numbers_are_labs_own():
  env = gymnasium_env.LabEnv(CORRIDOR, action_set='raw')
  env.reset(seed=1)
  forward = np.array([0, 0, 0, 1, 0, 0, 0])
  total = sum(env.step(forward)[1] for _ in range(11))
  assert total == 103
  env.close()


def test_frame_and_instruction():
  env = make('language_select_located_object', width=96, height=72)
  observation, info = env.reset(seed=3)
  assert observation['RGB_INTERLEAVED'].shape == (72, 96, 3)
  assert observation['INSTR'].startswith('Pick the ')
  assert env.observation_space.contains(observation)
  assert info == {'level': 'language_select_located_object'}
  assert env.unwrapped.metadata['render_fps'] == 15
  env.close()


def first_frames(env, seed, number=3):
  frames = [env.reset(seed=seed)[0]['RGB_INTERLEAVED']]
  frames += [env.reset()[0]['RGB_INTERLEAVED'] for _ in range(number - 1)]
  return np.stack(frames)


def test_seed_starts_the_episodes_after_it_too():
  env = make('rooms_watermaze')
  one = first_frames(env, 1)
  np.testing.assert_array_equal(first_frames(env, 1), one)
  assert len({frame.tobytes() for frame in one}) == 3
  assert (first_frames(env, 2) != one).any()
  env.close()


def test_episode_ends_terminated_with_the_frame_before():
  env = make('rooms_watermaze')
  observation, _ = env.reset(seed=1)
  for step in range(15):
    before = observation
    observation, reward, terminated, truncated, _ = env.step(5)
    assert type(reward) is float
    assert (terminated, truncated) == (step == 14, False)
  np.testing.assert_array_equal(
    observation['RGB_INTERLEAVED'], before['RGB_INTERLEAVED']
  )
  with pytest.raises(RuntimeError, match='call reset'):
    env.unwrapped.step(0)
  env.close()


def test_step_before_reset_is_refused():
  env = gymnasium_env.LabEnv('rooms_watermaze')
  with pytest.raises(RuntimeError, match='call reset first'):
    env.step(0)
  env.close()


@pytest.mark.parametrize(
  ('level', 'kwargs', 'match'),
  [
    ('rooms_watermaze', {'width': 33}, 'width is 33'),
    ('psychlab_continuous_recognition', {}, 'dataset_path is empty'),
    ('rooms_watermaze', {'mode': 'play'}, 'train or test'),
  ],
)
def test_mistakes_are_said(level, kwargs, match):
  with pytest.raises(ValueError, match=match):
    make(level, **kwargs)


def test_mode_decides_between_train_and_test():
  frames = []
  for kwargs in ({}, {'mode': 'test'}):
    env = make('rooms_watermaze', **kwargs)
    frames.append(env.reset(seed=1)[0]['RGB_INTERLEAVED'])
    env.close()
  assert (frames[0] != frames[1]).any()
  env = make('rooms_collect_good_objects_train', mode='test')
  assert env.unwrapped.level == 'rooms_collect_good_objects_test'
  env.close()


# ---- Others'. Stand-ins with what dmlab-gym 0.2.0 and Shimmy 2.0.0 do.


class DmlabGymKind(gymnasium.Env):
  """One frame a step; INSTR, if asked for, in a space that does not fit it."""

  def __init__(self, lab, level, names=('RGB_INTERLEAVED',), max_steps=0):
    config = {'width': '32', 'height': '24', 'fps': '60'}
    self._lab = lab.Lab(level, list(names), config=config)
    self._names, self._max_steps = names, max_steps
    shown = {
      'RGB_INTERLEAVED': spaces.Box(0, 255, (24, 32, 3), np.uint8),
      'INSTR': spaces.Box(-np.inf, np.inf, (), np.float64),
    }
    self.observation_space = spaces.Dict({name: shown[name] for name in names})
    if len(names) == 1:
      self.observation_space = shown[names[0]]
    self.action_space = spaces.Box(
      np.array(actions.MINIMUM, np.intc),
      np.array(actions.MAXIMUM, np.intc),
      dtype=np.intc,
    )
    self.closed = False

  def _see(self):
    seen = self._lab.observations()
    self._seen = seen if len(self._names) > 1 else seen[self._names[0]]
    return self._seen

  def reset(self, *, seed=None, options=None):
    self._lab.reset(seed=-1 if seed is None else seed)
    self._steps = 0
    return self._see(), {}

  def step(self, action):
    assert self.action_space.contains(action)
    reward = self._lab.step(np.asarray(action, np.intc))
    self._steps += 1
    running = self._lab.is_running()
    truncated = running and self._steps == self._max_steps
    return (
      self._see() if running else self._seen,
      reward,
      not running,
      truncated,
      {},
    )

  def close(self):
    self.closed = self._lab.close()


class ShimmyKind(gymnasium.Env):
  """Actions by name; asks for observations after the end, which Lab refuses."""

  def __init__(self, lab):
    self._env = lab
    self._env.reset()
    self.observation_space = spaces.Dict(
      {
        name: spaces.Box(0, 255, value.shape, value.dtype)
        for name, value in self._env.observations().items()
      }
    )
    self.action_space = spaces.Dict(
      {a['name']: spaces.Box(a['min'], a['max']) for a in lab.action_spec()}
    )

  def reset(self, *, seed=None, options=None):
    self._env.reset(seed=seed)
    return self._env.observations(), {}

  def step(self, action):
    numbers = np.array([a[0] for a in action.values()], np.intc)
    reward = self._env.step(numbers)
    seen = self._env.observations()
    return seen, reward, not self._env.is_running(), False, {}

  def close(self):
    self._env.close()


def shimmy(lab, level):
  config = {'width': '32', 'height': '24'}
  return ShimmyKind(lab.Lab(level, ['RGB_INTERLEAVED'], config))


KINDS = {
  'dmlab-gym': DmlabGymKind,
  'dmlab-gym-dict': lambda lab, level: DmlabGymKind(
    lab, level, ('RGB_INTERLEAVED', 'INSTR')
  ),
  'shimmy': shimmy,
}


def returns_and_lengths(env, episodes=2, action=0):
  result, total, length = [], 0.0, 0
  while len(result) < episodes:
    timestep = env.step(action)
    total += timestep.reward or 0
    length += not timestep.first()
    if timestep.last():
      result.append((total, length, timestep.discount))
      total, length = 0.0, 0
  return result


@pytest.mark.parametrize('kind', KINDS)
def test_adopted_environment_plays_as_our_own(lab, kind):
  other = KINDS[kind](lab, CORRIDOR)
  env = adopted.AdoptedEnvironment(other, seed=1)
  # 40 frames to the goal, worth 100 and 3 pebbles, and 12 frames after it.
  assert returns_and_lengths(env) == [(103, 13, 0), (103, 13, 0)]
  assert env.frames_per_step == 4
  assert env.observation_spec()['RGB_INTERLEAVED'].shape == (24, 32, 3)
  observation = env.reset().observation
  assert set(observation) == {'RGB_INTERLEAVED', 'INSTR'}
  assert observation['INSTR'] == ''
  env.close()
  env.close()


@pytest.mark.parametrize('kind', KINDS)
def test_adopted_episodes_are_seeded(lab, kind):
  def frames(seed):
    other = KINDS[kind](lab, 'contributed/dmlab30/rooms_watermaze')
    env = adopted.AdoptedEnvironment(other, seed=seed)
    result = [
      env.reset().observation['RGB_INTERLEAVED'].tobytes() for _ in range(3)
    ]
    env.close()
    return result

  assert frames(1) == frames(1)
  assert len(set(frames(1))) == 3
  assert not set(frames(1)) & set(frames(2))


def test_adopted_instruction_is_kept(lab):
  other = KINDS['dmlab-gym-dict'](lab, 'double/turn_as_told')
  env = adopted.AdoptedEnvironment(other, seed=1)
  assert env.reset().observation['INSTR'] in ('turn left', 'turn right')
  env.close()
  assert other.closed


def test_a_limit_of_the_adopted_environment_is_a_time_limit(lab):
  other = DmlabGymKind(lab, 'contributed/dmlab30/rooms_watermaze', max_steps=18)
  env = adopted.AdoptedEnvironment(other, seed=1)
  # Lab itself would go on for 60 frames.
  assert [e[1:] for e in returns_and_lengths(env)] == [(5, 1), (5, 1)]
  assert other._steps == 18  # Nobody steps on after an end.
  env.close()


def test_wrappers_of_gymnasium_are_seen_through(lab):
  wrapped = gymnasium.wrappers.TimeLimit(DmlabGymKind(lab, CORRIDOR), 12)
  env = adopted.AdoptedEnvironment(wrapped, seed=1)
  assert [e[1:] for e in returns_and_lengths(env)] == [(3, 1), (3, 1)]
  env.close()
  wrapped = gymnasium.wrappers.OrderEnforcing(shimmy(lab, CORRIDOR))
  env = adopted.AdoptedEnvironment(wrapped, seed=1)
  assert returns_and_lengths(env, 1) == [(103, 13, 0)]
  env.close()


@pytest.mark.parametrize(
  ('change', 'match'),
  [
    ({'action_space': spaces.Discrete(9)}, 'seven numbers'),
    ({'observation_space': spaces.Box(0, 1, (4,))}, 'RGB_INTERLEAVED'),
    (
      {'observation_space': spaces.Dict({'RGB': spaces.Box(0, 1, (3, 8, 8))})},
      'RGB_INTERLEAVED',
    ),
  ],
  ids=['actions', 'no-picture', 'another-picture'],
)
def test_what_cannot_be_adopted_is_refused(lab, change, match):
  other = DmlabGymKind(lab, CORRIDOR)
  for name, space in change.items():
    setattr(other, name, space)
  with pytest.raises(ValueError, match=match):
    adopted.AdoptedEnvironment(other, seed=1)
  other.close()


def test_examples_of_the_page_run():
  page = pathlib.Path(__file__).parents[1] / 'docs' / 'dmlab30.md'
  blocks = re.findall(r'^```python\n(.*?)^```', page.read_text(), re.S | re.M)
  assert len(blocks) == 3
  names = {}
  for block in blocks:
    exec(block, names)
  names['env'].close()
  setting = names['schedule'](names['make'].progress)
  assert setting == {'difficulty': '0.5'}
