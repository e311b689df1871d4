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
"""Plays Catch with an exported policy; needs TensorFlow and nothing else.

    python scripts/examples/play_policy.py /tmp/policy --num_episodes=100

Imports nothing of this project: copy the file wherever the policy goes. The
game is the project's `catch`, written anew in twenty lines; for another one,
replace `Catch`. See docs/porting.md for the signatures.
"""

import argparse

import numpy as np
import tensorflow as tf


class Catch:
  """A ball falls through 10 rows of 5 columns; the paddle must be there."""

  def __init__(self, seed):
    self._random = np.random.default_rng(seed)

  def reset(self):
    """Drops a new ball; returns the observation."""
    self._ball = [0, int(self._random.integers(5))]
    self._paddle = 2
    return self._board()

  def step(self, action):
    """Moves left, not, or right; returns observation, reward, and the end."""
    self._paddle = min(max(self._paddle + int(action) - 1, 0), 4)
    self._ball[0] += 1
    if self._ball[0] < 9:
      return self._board(), 0.0, False
    caught = self._paddle == self._ball[1]
    return self._board(), 1.0 if caught else -1.0, True

  def _board(self):
    board = np.zeros((10, 5), np.float32)
    board[self._ball[0], self._ball[1]] = board[9, self._paddle] = 1
    return board


def play(policy, env, num_episodes, greedy, seed):
  """Returns of so many episodes, one after the other."""
  step = policy.signatures['step']
  state = policy.signatures['initial_state'](batch_size=tf.constant(1))
  observation, action, reward, done = env.reset(), tf.constant([0]), 0.0, True
  returns, num_steps = [0.0], 0
  while True:
    output = step(
      observation=tf.constant(observation[np.newaxis]),
      action=action,
      reward=tf.constant([reward], tf.float32),
      done=tf.constant([done]),
      first=tf.constant([done]),
      seed=tf.constant([seed, num_steps]),
      **state,
    )
    num_steps += 1
    state = {name: output[name] for name in state}
    action = output['greedy_action' if greedy else 'action']
    observation, reward, done = env.step(action[0])
    returns[-1] += reward
    if done and len(returns) == num_episodes:
      return returns
    if done:
      # The policy sees the new episode's first observation together with the
      # old one's last reward; `done` tells it to forget.
      observation = env.reset()
      returns.append(0.0)


def main():
  """Reads the command line, plays, prints."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('policy', help='Directory of the SavedModel.')
  parser.add_argument('--num_episodes', type=int, default=100)
  parser.add_argument('--seed', type=int, default=1)
  parser.add_argument(
    '--greedy', action='store_true', help='Take the most likely action.'
  )
  arguments = parser.parse_args()
  policy = tf.saved_model.load(arguments.policy)
  returns = play(
    policy,
    Catch(arguments.seed),
    arguments.num_episodes,
    arguments.greedy,
    arguments.seed,
  )
  print(
    f'{len(returns)} episodes, mean return {np.mean(returns):.2f}, last '
    f'{returns[-1]:g}'
  )


if __name__ == '__main__':
  main()
