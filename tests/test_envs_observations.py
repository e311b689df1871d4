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
"""Tests of what observations may be, and of what becomes of them (B33)."""

import functools

import numpy as np
import pytest
import tree
from dm_env import specs
from scripted_environment import Showing

from scalable_agent.envs import base, batches, observations


def shown(spec, observation):
  """First observation of a batch of one, without its batch axis."""
  factory = functools.partial(Showing, spec=spec, observation=observation)
  environments = batches.SerialEnvironments([factory], ['shown'])
  nest = environments.initial().observation
  for declared, leaf in zip(
    tree.flatten(environments.spec.observation), tree.flatten(nest), strict=True
  ):
    assert leaf.dtype == declared.dtype
    assert leaf.shape == (1, *declared.shape)
  return tree.map_structure(lambda leaf: leaf[0], nest)


IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 20
VECTOR = np.array([-0.03, 0.5, -1e6, 1e-6], np.float32)


@pytest.mark.parametrize(
  ('declared', 'given', 'expected'),
  [
    (specs.Array((4,), np.float32), VECTOR, VECTOR),
    (specs.Array((2, 2, 3), np.uint8), IMAGE, IMAGE),
    (
      specs.Array((2,), np.float64),
      np.array([0.1, -0.2]),
      np.array([0.1, -0.2], np.float32),
    ),
    (specs.Array((), np.int64), 7, np.int64(7)),
    (specs.Array((), np.int32), np.int32(-7), np.int32(-7)),
    (specs.DiscreteArray(5, np.int64), np.array(4), np.int64(4)),
    (specs.Array((), np.float32), 0.5, np.float32(0.5)),
    (specs.Array((), bool), True, np.True_),
    (specs.Array((1,), np.int8), np.array([-3], np.int8), [-3]),
    (specs.StringArray(()), 'go to the bläck ball', 'go to the bläck ball'),
    (specs.StringArray(()), b'', ''),
    (specs.StringArray((2,)), np.array(['a', 'bc'], object), ['a', 'bc']),
  ],
  ids=[
    'float32',
    'uint8 image',
    'float64',
    'Python int',
    'NumPy int',
    'discrete',
    'Python float',
    'bool',
    'vector of one',
    'text',
    'empty bytes',
    'two texts',
  ],
)
def test_values_arrive_unchanged(declared, given, expected):
  actual = shown(declared, given)
  if isinstance(declared, specs.StringArray):
    actual = np.char.decode(actual, 'utf-8')
  np.testing.assert_array_equal(actual, expected)


def test_nested_dicts_arrive_whatever_the_order_of_their_keys():
  spec = {
    'b': specs.Array((4,), np.float32),
    'a': {
      'y': specs.Array((2, 2, 3), np.uint8),
      'x': specs.Array((), np.int64),
    },
  }
  actual = shown(spec, {'a': {'x': 3, 'y': IMAGE}, 'b': VECTOR})
  np.testing.assert_array_equal(actual['a']['y'], IMAGE)
  np.testing.assert_array_equal(actual['b'], VECTOR)
  assert actual['a']['x'] == 3


def test_bounds_become_float32_too():
  spec = specs.BoundedArray((2,), np.float64, -1e300, [0.1, np.inf])
  received = observations.received_spec(spec)
  assert received.dtype == np.float32
  np.testing.assert_array_equal(received.minimum, np.float32(-np.inf))
  np.testing.assert_array_equal(received.maximum, np.float32([0.1, np.inf]))


@pytest.mark.parametrize(
  ('declared', 'given', 'text'),
  [
    ((4,), np.zeros(4), 'is of type float64, declared is float32'),
    ((4,), np.zeros(4, np.uint8), 'is of type uint8'),
    ((4,), np.zeros(3, np.float32), r'has shape \(3,\), declared is \(4,\)'),
    ((4,), np.zeros((1, 4), np.float32), 'has shape'),
    ((), np.zeros(1, np.float32), 'has shape'),
    ((2,), [0.0, 1.0], 'is a list; give a NumPy array'),
    ((), None, 'is a NoneType'),
    ((2,), {'a': VECTOR}, 'is a dict'),
    ((2,), np.float32([0, np.nan]), 'NaN or infinity'),
    ((), np.float32(np.inf), 'NaN or infinity'),
    ((), float('nan'), 'NaN or infinity'),
  ],
)
def test_what_is_not_as_declared_is_refused(declared, given, text):
  with pytest.raises(base.BrokenEnvironmentError, match=text) as error:
    shown(specs.Array(declared, np.float32, 'seen'), given)
  assert 'environment 0 of actor 0 (shown, seed ' in str(error.value)


@pytest.mark.parametrize(
  ('dtype', 'given'), [(np.uint8, 256), (np.int32, 0.5), (np.uint8, -1)]
)
def test_python_numbers_must_fit(dtype, given):
  with pytest.raises(base.BrokenEnvironmentError, match='cannot hold'):
    shown(specs.Array((), dtype), given)


@pytest.mark.parametrize(
  'given', [{'a': VECTOR}, VECTOR, {'a': VECTOR, 'b': VECTOR, 'c': VECTOR}]
)
def test_other_nests_are_refused(given):
  leaf = specs.Array((4,), np.float32)
  with pytest.raises(base.BrokenEnvironmentError, match='not nested as'):
    shown({'a': leaf, 'b': leaf}, given)


def test_too_long_a_text_is_refused_and_the_longest_arrives():
  longest = 'x' * observations.MAX_TEXT_BYTES
  assert shown(specs.StringArray(()), longest) == longest.encode()
  with pytest.raises(base.BrokenEnvironmentError, match='1025 bytes'):
    shown(specs.StringArray(()), longest + 'x')


def test_objects_are_refused():
  with pytest.raises(ValueError, match='declared as object'):
    shown(specs.Array((), object), None)


def test_reused_buffers_are_copied():
  buffer = np.zeros(2, np.float32)
  factory = functools.partial(
    Showing, spec=specs.Array((2,), np.float32), observation=buffer
  )
  environments = batches.SerialEnvironments([factory], ['shown'])
  first = environments.initial().observation
  buffer[:] = 5
  np.testing.assert_array_equal(first, [[0, 0]])


def test_read_only_arrays_are_taken():
  """B52."""
  frozen = VECTOR.copy()
  frozen.flags.writeable = False
  np.testing.assert_array_equal(
    shown(specs.Array((4,), np.float32), frozen), VECTOR
  )
