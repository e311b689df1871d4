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
"""Stacks of frames: against the simulator's own, and against a plain loop."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from ale_py import vector_env

from scalable_agent.nets import frame_stack

NUM_ENVS = 2


@functools.cache
def play(noop_max, num_steps):
  """Stacks of 4 and single frames of the same games, and where they begin.

  Both environments reset in the step after the one that ends a game.
  """
  settings = {
    'num_envs': NUM_ENVS,
    'noop_max': noop_max,
    'max_num_frames_per_episode': 60,
    'img_height': 20,
    'img_width': 24,
    'use_fire_reset': False,
  }
  stacking, single = (
    vector_env.AtariVectorEnv('breakout', stack_num=n, **settings)
    for n in (4, 1)
  )
  actions = np.random.RandomState(0)
  stacks = [stacking.reset(seed=1)[0].copy()]
  frames = [single.reset(seed=1)[0].copy()]
  first = [np.ones(NUM_ENVS, bool)]
  ended = np.zeros(NUM_ENVS, bool)
  for _ in range(num_steps - 1):
    action = actions.randint(4, size=NUM_ENVS)
    stacked, _, terminated, truncated, _ = stacking.step(action)
    stacks.append(stacked.copy())
    frames.append(single.step(action)[0].copy())
    first.append(ended)
    ended = terminated | truncated
  stacking.close()
  single.close()
  return np.stack(stacks), np.stack(frames)[:, :, 0], np.stack(first)


@pytest.mark.parametrize('noop_max', [0, 10])
@pytest.mark.parametrize('chunk', [1, 5, 45], ids='by {}'.format)
def test_stacks_equal_those_of_the_simulator(noop_max, chunk):
  stacks, frames, first = play(noop_max, num_steps=45)
  assert first[1:].sum() >= 4  # Several resets were seen.
  history = frame_stack.initial_history(NUM_ENVS, (20, 24), 4)
  built = []
  for start in range(0, len(frames), chunk):
    end = start + chunk
    stack, history = frame_stack.stack(
      tf.constant(frames[start:end]), tf.constant(first[start:end]), history
    )
    built.append(stack)
  # The simulator puts the stack before height and width; the network after.
  np.testing.assert_array_equal(
    np.moveaxis(np.concatenate(built), -1, 2), stacks
  )


def by_plain_loop(frames, first, history):
  """Newest frame last; zeros for what was not seen in this episode."""
  past = [list(column) for column in history]
  stacks = []
  for t in range(len(frames)):
    for b, column in enumerate(past):
      if first[t, b]:
        column[:] = [np.zeros_like(frame) for frame in column]
      column.append(frames[t, b])
    stacks.append([np.stack(column, axis=-1) for column in past])
    past = [column[1:] for column in past]
  stacks = np.array(stacks)
  if frames.ndim == 5:  # `[..., C, S]` to `[..., S * C]`.
    stacks = np.moveaxis(stacks, -1, -2)
    stacks = stacks.reshape(*stacks.shape[:-2], -1)
  return stacks, np.array(past)


@pytest.mark.parametrize('size', [2, 3, 4, 8], ids='{} frames'.format)
@pytest.mark.parametrize('channels', [(), (3,)], ids=['gray', 'colour'])
@pytest.mark.parametrize('num_slots', [1, 2, 7], ids='T={}'.format)
def test_stacks_equal_the_plain_loop(size, channels, num_slots):
  random = np.random.RandomState(size)
  shape = (3, 4, *channels)
  frames = random.randint(1, 256, (num_slots, 5, *shape)).astype(np.uint8)
  first = random.uniform(size=(num_slots, 5)) < 0.3
  history = random.randint(0, 256, (5, size - 1, *shape)).astype(np.uint8)
  expected_stacks, expected_history = by_plain_loop(frames, first, history)
  stacks, following = frame_stack.stack(
    tf.constant(frames), tf.constant(first), tf.constant(history)
  )
  assert stacks.dtype == following.dtype == tf.uint8
  np.testing.assert_array_equal(stacks, expected_stacks)
  np.testing.assert_array_equal(following, expected_history)


@pytest.mark.parametrize('dtype', ['float32', 'float16', 'bfloat16'])
def test_decoded_stacks_are_the_plain_loop_over_255(dtype):
  frames = np.arange(256, dtype=np.uint8).reshape(2, 2, 8, 8)
  first = np.array([[False, True], [False, False]])
  history = frames[::-1].reshape(2, 2, 8, 8)[:, :1].repeat(3, axis=1)
  expected, expected_history = by_plain_loop(frames, first, history)
  stacks, following = frame_stack.stack_decoded(
    tf.constant(frames), tf.constant(first), tf.constant(history), dtype
  )
  # Rounded once, from float32 to `dtype`.
  expected = tf.cast(np.float32(expected / 255), dtype)
  assert stacks.dtype == dtype
  np.testing.assert_allclose(
    tf.cast(stacks, tf.float32), tf.cast(expected, tf.float32), rtol=1e-6
  )
  np.testing.assert_array_equal(following, expected_history)


def test_shapes_are_static_where_inputs_are():
  @tf.function
  def stack(frames, first, history):
    stacks, following = frame_stack.stack(frames, first, history)
    assert stacks.shape[2:] == (6, 5, 4)
    assert following.shape[1:] == (3, 6, 5)
    return stacks

  stack(
    tf.zeros([2, 3, 6, 5], tf.uint8),
    tf.zeros([2, 3], tf.bool),
    frame_stack.initial_history(3, (6, 5), 4),
  )
