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
"""Both ways to solve a recurrence, and the choice between them."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from scalable_agent import recurrence


def solve_by_hand(decays, deltas):
  solution = np.zeros((len(deltas) + 1, *deltas.shape[1:]))
  for t in reversed(range(len(deltas))):
    solution[t] = deltas[t] + decays[t] * solution[t + 1]
  return solution[:-1]


@pytest.mark.parametrize('num_steps', [0, 1, 2, 3, 4, 5, 31, 100])
@pytest.mark.parametrize('method', recurrence.METHODS)
def test_solution(method, num_steps):
  rng = np.random.RandomState(num_steps)
  decays = rng.uniform(-1, 1, (num_steps, 2, 3)).astype(np.float32)
  deltas = rng.standard_normal((num_steps, 2, 3)).astype(np.float32)

  actual = recurrence.solve_backwards(
    tf.constant(decays), tf.constant(deltas), method
  )

  np.testing.assert_allclose(
    actual, solve_by_hand(decays, deltas), rtol=1e-5, atol=1e-5
  )


@pytest.mark.parametrize('method', recurrence.METHODS)
def test_growth_is_bounded_and_zero_still_cuts_it(method):
  decays = np.full((60, 1), 1e6, np.float32)
  decays[10] = 0
  deltas = np.ones((60, 1), np.float32)

  solution = recurrence.solve_backwards(
    tf.constant(decays), tf.constant(deltas), method
  ).numpy()

  # A few times 1e15, since the associative rounds add bounded terms.
  assert 1e15 <= solution[11] <= 1e16
  assert 1e15 <= solution[0] <= 1e16
  assert solution[10] == 1


@pytest.mark.parametrize('method', recurrence.METHODS)
def test_growth_of_nothing_is_nothing(method):
  decays = tf.fill([60, 1], 1e6)  # Whose product is infinite.

  solution = recurrence.solve_backwards(decays, tf.zeros([60, 1]), method)

  np.testing.assert_array_equal(solution, np.zeros((60, 1)))


def uses_a_loop(shape=(8, 2), device=None, method='auto'):
  """Whether the graph of a solution contains a loop, as 'sequential' does."""
  with tf.Graph().as_default() as graph, tf.device(device):
    decays, deltas = (
      tf.compat.v1.placeholder(tf.float32, shape) + 0.0 for _ in range(2)
    )
    recurrence.solve_backwards(decays, deltas, method)
  return any('While' in op.type for op in graph.get_operations())


@pytest.mark.parametrize(
  ('device', 'visible', 'loop'),
  [
    ('/cpu:0', ['CPU', 'GPU'], True),
    ('/gpu:0', ['CPU'], False),
    ('/job:worker/task:1/device:TPU:3', ['CPU'], False),
    (None, ['CPU'], True),
    (None, ['CPU', 'GPU'], False),
    (None, ['CPU', 'TPU'], False),
    ('/job:worker', ['CPU'], True),
  ],
)
def test_auto_goes_by_the_device(monkeypatch, device, visible, loop):
  devices = [SimpleNamespace(device_type=x) for x in visible]
  monkeypatch.setattr(tf.config, 'get_visible_devices', lambda: devices)

  assert uses_a_loop(device=device) == loop


@pytest.mark.parametrize('shape', [None, (None, 2)], ids=['rank', 'time'])
def test_of_unknown_length(shape):
  assert uses_a_loop(shape, device='/gpu:0')
  with pytest.raises(ValueError, match='needs the number of steps T'):
    uses_a_loop(shape, method='associative')


def test_unknown_method():
  with pytest.raises(ValueError, match="'parallel'; choose one of auto, seq"):
    recurrence.solve_backwards(tf.zeros([2, 1]), tf.zeros([2, 1]), 'parallel')
