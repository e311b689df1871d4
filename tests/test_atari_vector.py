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
"""Tests of Atari batches of one and of several games, and of the Gym face."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from ale_py import vector_env
from gymnasium.utils import env_checker

from scalable_agent import config, structs
from scalable_agent.atari import gymnasium_env, settings, vector
from scalable_agent.envs import batches


def make(games, *, several_games=False, num_threads=None, **task):
  chosen = settings.from_task(
    config.TaskConfig(**task), several_games=several_games
  )
  return vector.make(
    games,
    chosen,
    level_names=[f'atari/{game}' for game in games],
    num_threads=num_threads,
  )


def test_one_game_is_one_vector_environment():
  environments = make(['pong'] * 3)
  assert isinstance(environments, vector.AtariEnvironments)
  assert isinstance(environments, structs.Environments)
  slot = environments.initial()
  assert slot.observation.shape == (3, 84, 84)
  assert slot.observation.dtype == np.uint8
  assert environments.level_names == ('atari/pong',) * 3


def test_colour_frames():
  slot = make(['pong'] * 2, grayscale=False, height=42).initial()
  assert slot.observation.shape == (2, 42, 84, 3)


def test_several_games_are_one_batch():
  games = ['pong', 'breakout', 'breakout', 'ms_pacman']
  environments = make(games, several_games=True, noop_max=0)
  assert isinstance(environments, batches.ConcatEnvironments)
  assert environments.spec.action.num_values == 18
  assert environments.level_names == tuple(f'atari/{game}' for game in games)
  frames = environments.initial().observation
  np.testing.assert_array_equal(frames[1], frames[2])
  assert not np.array_equal(frames[0], frames[1])
  slot = environments.step(np.full(4, 3))
  alone = make(['ms_pacman'], several_games=True, noop_max=0)
  alone.initial()
  np.testing.assert_array_equal(
    slot.observation[3], alone.step(np.full(1, 3)).observation[0]
  )
  environments.close()


def test_games_of_different_action_sets_are_refused():
  """B42: at the start, not hours later."""
  with pytest.raises(ValueError, match='atari/breakout shows and takes'):
    make(['pong', 'breakout'])


def test_environments_of_several_games_have_seeds_of_their_own():
  environments = make(['pong', 'breakout', 'pong'], several_games=True)
  parts = environments._parts
  seeds = np.concatenate([part._seeds for part in parts])
  assert len(set(seeds.tolist())) == 3


@pytest.mark.parametrize(
  ('games', 'num_threads', 'expected'),
  [
    (['pong'] * 4, 3, [3]),
    (['pong'] * 2, 8, [2]),
    (['pong', 'breakout'], 2, [1, 1]),
    (['pong', 'breakout', 'pong'], 2, [1, 1, 1]),
  ],
)
def test_threads_are_shared_out(monkeypatch, games, num_threads, expected):
  taken = []

  class Noted(vector.AtariEnvironments):
    def __init__(self, *args, num_threads, **kwargs):
      taken.append(num_threads)
      super().__init__(*args, num_threads=num_threads, **kwargs)

  monkeypatch.setattr(vector, 'AtariEnvironments', Noted)
  make(games, several_games=True, num_threads=num_threads).close()
  assert taken == expected


def test_closed_environments_say_so():
  environments = make(['pong'])
  environments.initial()
  environments.close()
  environments.close()
  with pytest.raises(structs.Closed):
    environments.step(np.zeros(1, int))
  with pytest.raises(structs.Closed):
    environments.initial()


def test_initial_again_goes_on_with_other_starts():
  environments = make(['seaquest'] * 2)
  first = np.array(environments.initial().observation)
  again = environments.initial()
  assert again.first.all()
  assert not again.info.episode_step.any()
  assert not np.array_equal(first, again.observation)


def test_unknown_games_are_refused():
  with pytest.raises(ValueError, match='Did you mean breakout'):
    make(['brakeout'])


def test_nothing_is_printed():
  program = (
    'from scalable_agent import config\n'
    'from scalable_agent.atari import environment, settings, vector\n'
    'p = settings.from_task(config.TaskConfig())\n'
    'environment.Atari("pong", 1, p).reset()\n'
    'vector.make(["pong"], p, level_names=["x"]).initial()\n'
    'import sys\n'
    'print([m for m in ("tensorflow", "keras") if m in sys.modules])'
  )
  result = subprocess.run(
    [sys.executable, '-c', program], capture_output=True, text=True, check=True
  )
  assert (result.stdout, result.stderr) == ('[]\n', '')


def test_gymnasium_face_passes_the_checker():
  env = gymnasium.make(
    'atari/breakout-v0',
    render_mode='rgb_array',
    frame_stack=2,
    grayscale=False,
  )
  env_checker.check_env(env.unwrapped)
  assert env.unwrapped.render().shape == (210, 160, 3)
  assert env.observation_space.shape == (2, 84, 84, 3)


def test_gymnasium_face_shows_what_the_vector_environment_stacks():
  """Over lost lives and the end of a game; seeds alike, no-op starts off."""
  env = gymnasium_env.AtariEnv('breakout', noop_max=0, sticky_actions=0.25)
  reference = vector_env.AtariVectorEnv(
    'breakout',
    1,
    noop_max=0,
    repeat_action_probability=0.25,
    use_fire_reset=False,
    reward_clipping=False,
    autoreset_mode='SameStep',
  )
  observation, info = env.reset(seed=11)
  expected, _ = reference.reset(seed=np.array([11]))
  np.testing.assert_array_equal(observation, expected[0])
  random = np.random.default_rng(0)
  ends, lost = 0, 0
  for _ in range(300):
    action = int(random.integers(4))
    observation, reward, terminated, truncated, info = env.step(action)
    expected, *outcome, infos = reference.step(np.array([action]))
    assert [[reward], [terminated], [truncated]] == [
      x.tolist() for x in outcome
    ]
    lost += info['life_lost']
    if terminated:
      ends += 1
      np.testing.assert_array_equal(observation, infos['final_obs'][0])
      observation, info = env.reset()
    np.testing.assert_array_equal(observation, expected[0])
    assert info['lives'] == infos['lives'][0]
  assert ends
  assert lost == 5 * ends + 5 - info['lives']


def test_gymnasium_face_can_be_played():
  env = gymnasium_env.AtariEnv('breakout')
  assert env.get_keys_to_action() == {
    (): 0,
    (' ',): 1,
    ('d',): 2,
    ('a',): 3,
  }
  assert env.frames_per_step == 4
