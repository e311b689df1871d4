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
"""Tests that both Atari environments play one and the same game."""

import functools
import itertools

import numpy as np
import pytest
from ale_py import vector_env

from scalable_agent import config
from scalable_agent.atari import environment, resize, settings, vector
from scalable_agent.envs import batches


def protocol(**task):
  task.setdefault('noop_max', 0)
  return settings.from_task(config.TaskConfig(**task))


def both(game, num_envs=2, base_seed=3, **task):
  """The vector environment, and plain ones of the same seeds."""
  chosen = protocol(**task)
  names = [f'atari/{game}'] * num_envs
  factory = functools.partial(make_plain, game=game, chosen=chosen)
  return (
    vector.make(
      [game] * num_envs, chosen, level_names=names, base_seed=base_seed
    ),
    batches.SerialEnvironments(
      [factory] * num_envs, names, base_seed=base_seed
    ),
  )


def make_plain(seed, game, chosen):
  return environment.Atari(game, seed, chosen)


def compare(game, num_steps, num_envs=2, **task):
  """Plays both alike; returns how many games, lives and time limits ended."""
  fast, plain = both(game, num_envs, **task)
  assert fast.spec == plain.spec
  random = np.random.default_rng(0)
  ends = np.zeros(3, int)
  slots = [(fast.initial(), plain.initial())]
  for _ in range(num_steps):
    actions = random.integers(fast.spec.action.num_values, size=num_envs)
    actions = actions.astype(np.int32)
    slots.append((fast.step(actions), plain.step(actions)))
    first, second = slots[-1]
    np.testing.assert_equal(first, second)
    if first.truncated.any():
      rows = first.truncated
      np.testing.assert_array_equal(
        fast.final_observation()[rows], plain.final_observation()[rows]
      )
    ends += [
      (first.first & ~first.truncated).sum(),
      (first.done & ~first.first).sum(),
      first.truncated.sum(),
    ]
  fast.close()
  plain.close()
  return ends


@pytest.mark.parametrize(
  ('game', 'num_steps'),
  [('breakout', 200), ('asterix', 200), ('qbert', 340), ('seaquest', 370)],
)
def test_same_frames_rewards_and_ends(game, num_steps):
  """The paper's protocol, over lost lives and the end of games."""
  games, lives, _ = compare(game, num_steps)
  assert games
  assert lives


@pytest.mark.parametrize(
  'task',
  [
    {'sticky_actions': 0.25},
    {'grayscale': False},
    {'max_pool': False, 'num_action_repeats': 3},
    {'num_action_repeats': 2, 'height': 210, 'width': 160},
    {'fire_on_reset': True, 'full_action_set': True},
    {'height': 105, 'width': 80},
    {'height': 70, 'width': 40, 'grayscale': False},
    {'height': 72, 'width': 96},
    {'life_loss_ends_episode': False},
  ],
  ids=lambda task: ' '.join(task),
)
def test_same_under_every_setting(task):
  steps = 240 // task.get('num_action_repeats', 4)
  _, lives, limits = compare(
    'breakout', steps + 5, num_envs=1, max_episode_frames=120, **task
  )
  assert limits
  assert bool(lives) == task.get('life_loss_ends_episode', True)


def test_life_after_which_none_is_left_is_lost_too():
  """Bank Heist goes on with no life left, for more than a moment."""
  fast, _ = both('bank_heist', num_envs=1, height=10, width=10)
  plain = make_plain(fast._seeds[0], 'bank_heist', protocol())
  plain.reset()
  fast.initial()
  random = np.random.default_rng(0)
  lives = [plain.lives()]
  done = []
  while lives[-1]:
    action = random.integers(18, size=1)
    done.append(fast.step(action).done[0])
    assert plain.step(action[0]).discount == 1 - done[-1]
    lives.append(plain.lives())
  np.testing.assert_array_equal(done, np.diff(lives) < 0)
  for _ in range(20):
    assert not fast.step(np.zeros(1, int)).first[0]


def test_life_loss_is_off_in_evaluation():
  """B36."""
  task = config.TaskConfig(noop_max=0)
  chosen = settings.from_task(task, evaluation=True)
  assert settings.from_task(task).life_loss_ends_episode
  environments = vector.make(['breakout'], chosen, level_names=['atari/x'])
  environments.initial()
  random = np.random.default_rng(0)
  ends = 0
  for _ in range(200):
    slot = environments.step(random.integers(4, size=1))
    np.testing.assert_array_equal(slot.done, slot.first)
    ends += slot.first.sum()
  assert ends


def test_return_and_length_go_on_over_a_lost_life():
  """B36: one episode per game, however many lives."""
  fast, _ = both('breakout', num_envs=1)
  fast.initial()
  random = np.random.default_rng(0)
  total = steps = lives = 0
  for _ in range(400):
    slot = fast.step(random.integers(4, size=1))
    total += slot.reward[0]
    steps += 1
    assert slot.info.episode_return[0] == total
    assert slot.info.episode_step[0] == steps
    lives += slot.done[0]
    if slot.first[0]:
      break
  assert slot.first[0]
  assert lives == 5
  assert total > 0


def test_time_limit_counts_frames():
  """B37, A10.7: 108,000 frames are 27,000 steps of the agent."""
  assert protocol().max_episode_steps == 27_000
  assert protocol(num_action_repeats=1).max_episode_steps == 108_000
  assert protocol(max_episode_frames=42).max_episode_steps == 11
  for environments in both('pong', max_episode_frames=40):
    environments.initial()
    slots = [environments.step(np.zeros(2, np.int32)) for _ in range(21)]
    limits = [i + 1 for i, slot in enumerate(slots) if slot.truncated.all()]
    assert limits == [10, 20]
    assert all(slot.first.all() == slot.truncated.all() for slot in slots)
    assert [int(s.info.episode_step[0]) for s in slots[8:11]] == [9, 10, 1]
    assert environments.spec.frames_per_step == 4


def test_time_limit_of_the_simulator_itself_is_not_used():
  """Its final observation is a mixture of old frames, ours the last ones."""
  task = {'max_episode_frames': 40, 'height': 210, 'width': 160}
  fast, plain = both('seaquest', num_envs=1, **task)
  env = vector_env.AtariVectorEnv(
    'seaquest',
    1,
    noop_max=0,
    stack_num=1,
    max_num_frames_per_episode=40,
    autoreset_mode='SameStep',
    img_height=210,
    img_width=160,
    use_fire_reset=False,
  )
  env.reset(seed=fast._seeds)
  fast.initial()
  plain.initial()
  action = np.array([3])
  for _ in range(10):
    *_, truncated, infos = env.step(action)
    assert fast.step(action).truncated[0] == truncated[0]
    plain.step(action)
  final = fast.final_observation()[0]
  np.testing.assert_array_equal(final, plain.final_observation()[0])
  assert not np.array_equal(infos['final_obs'][0, 0], final)


@pytest.mark.parametrize(
  ('fire', 'noop_max', 'expected'),
  # The press of FIRE takes the place of a no-op, but is always there.
  [(False, 30, range(31)), (True, 3, range(1, 4))],
)
def test_games_start_after_some_noops(fire, noop_max, expected):
  task = {'noop_max': noop_max, 'fire_on_reset': fire}
  plain = make_plain(1, 'breakout', protocol(**task))
  frames = []
  for _ in range(150):
    plain.reset()
    frames.append(plain._ale.getEpisodeFrameNumber())
  fast, _ = both('breakout', **task)
  numbers = [fast._env.reset()[1]['episode_frame_number'] for _ in range(75)]
  for found in (frames, np.ravel(numbers).tolist()):
    # A rare number may be missing, but none of the ends.
    assert set(found) <= set(expected)
    assert {min(found), max(found)} == {min(expected), max(expected)}
  assert abs(np.mean(frames) - np.mean(numbers)) < 0.1 * noop_max


def test_no_noop_starts_are_alike():
  fast, _ = both('breakout')
  frames = fast.initial().observation
  assert (frames == frames[0]).all()


def test_seeds_differ_between_environments_and_come_again():
  """B43, with sticky actions as the only thing left to chance."""

  def play(**kwargs):
    fast, _ = both('breakout', sticky_actions=0.5, **kwargs)
    fast.initial()
    actions = itertools.cycle([2, 3, 1, 0, 2, 1])
    return np.stack(
      [
        np.array(fast.step(np.full(2, next(actions))).observation)
        for _ in range(40)
      ]
    )

  once, again, other = play(), play(), play(base_seed=4)
  np.testing.assert_array_equal(once, again)
  assert not np.array_equal(once[:, 0], once[:, 1])
  assert not np.array_equal(once, other)


@pytest.mark.parametrize('probability', [0.0, 0.25])
def test_sticky_probability_is_the_flag(probability):
  """B37."""
  plain = make_plain(1, 'pong', protocol(sticky_actions=probability))
  assert plain._ale.getFloat('repeat_action_probability') == probability


def test_action_sets():
  """All 18 for several games, else those that the game uses."""
  task = config.TaskConfig()
  assert not settings.from_task(task).full_action_set
  assert settings.from_task(task, several_games=True).full_action_set
  for full, num_actions in ((None, 6), (True, 18)):
    for environments in both('pong', full_action_set=full):
      assert environments.spec.action.num_values == num_actions


def test_frames_larger_than_the_screen_are_refused():
  with pytest.raises(ValueError, match='only ever shrunk'):
    protocol(height=211)


def test_actions_out_of_range_are_refused():
  fast, _ = both('pong')
  fast.initial()
  with pytest.raises(ValueError, match='atari/pong takes 0 to 5'):
    fast.step(np.array([0, 6]))
  with pytest.raises(ValueError, match='actions have shape'):
    fast.step(np.array([0]))


def test_reseeding_is_as_new():
  old = make_plain(1, 'breakout', protocol(noop_max=30, sticky_actions=0.3))
  old.reset()
  for action in (1, 2, 3) * 5:
    old.step(action)
  old.reseed(9)
  new = make_plain(9, 'breakout', protocol(noop_max=30, sticky_actions=0.3))
  first = old.reset(), new.reset()
  np.testing.assert_equal(*first)
  for action in (1, 2, 3) * 5:
    np.testing.assert_equal(old.step(action), new.step(action))


@pytest.mark.parametrize(
  ('source', 'target'), [((4, 4), (2, 2)), ((6, 4), (2, 2)), ((5, 4), (2, 3))]
)
def test_resizing_averages_what_a_pixel_covers(source, target):
  """Against the definition; ties and last bits are ALE's to decide."""
  frame = np.random.default_rng(0).integers(0, 256, source).astype(np.uint8)
  fine = np.kron(frame.astype(float), np.ones(target))
  rows, columns = source
  blocks = fine.reshape(target[0], rows, target[1], columns)
  expected = blocks.mean(axis=(1, 3))
  actual = resize.AreaResizer(source, target)(frame)
  assert actual.dtype == np.uint8
  np.testing.assert_allclose(actual, expected, atol=0.5 + 1e-6)


def test_resizing_rounds_in_float32():
  """Twelve pixels of sum 1518: `cv::resize` gives 126; in double it is 127."""
  frame = np.full((3, 4), 126, np.uint8)
  frame[0] = 126, 127, 128, 129
  assert frame.sum() == 1518
  assert resize.AreaResizer((3, 4), (1, 1))(frame) == 126


def test_resizing_to_the_same_size_copies():
  frame = np.zeros((4, 4), np.uint8)
  same = resize.AreaResizer((4, 4), (4, 4))(frame)
  same[0] = 1
  assert not frame.any()
