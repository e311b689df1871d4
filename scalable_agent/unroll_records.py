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
"""Columns of unrolls as records that can be kept: `tf.train.Example`s.

The features of a record, `NAME` being the path of an
array in `structs.Unroll`, such as `env_outputs/reward` or `core_state/0`:

    schema        int64, 1: the version of this layout
    level         bytes, name of the level
    version       int64, updates behind the weights that acted; -1: not known
    NAME          bytes, the array of one column, `[T + 1, ...]` (`core_state`:
                  without time), C order, little endian; strings: a list
    NAME/dtype    bytes, as NumPy writes it: `<f4`, `|u1`, `|b1`; `text`
    NAME/shape    int64 list

What does not fit is refused with a sentence. Nothing is unpickled.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from scalable_agent import structs

SCHEMA = 1
_TEXT = b'text'


class UnusableRecordError(ValueError):
  """A record that must not be learned from; `kind` says why in two words."""

  def __init__(self, kind: str, message: str):
    """`message` says what was found and what was expected."""
    super().__init__(message)
    self.kind = kind


def encode(
  unroll: structs.Unroll, column: int, level_names: Sequence[str]
) -> bytes:
  """One column of `unroll` as a record; see the module."""
  features = {
    'schema': _ints([SCHEMA]),
    'level': _bytes([level_names[unroll.level[column]].encode()]),
    'version': _ints([int(unroll.version[column])]),
  }
  for name, axis, array in _named_arrays(unroll):
    array = np.take(np.asarray(array), column, axis)
    features[f'{name}/shape'] = _ints(array.shape)
    if array.dtype.kind in 'OSU':
      features[name] = _bytes([tf.compat.as_bytes(x) for x in array.ravel()])
      features[f'{name}/dtype'] = _bytes([_TEXT])
    else:
      array = array.astype(array.dtype.newbyteorder('<'))
      features[name] = _bytes([array.tobytes()])
      features[f'{name}/dtype'] = _bytes([array.dtype.str.encode()])
  example = tf.train.Example(features=tf.train.Features(feature=features))
  return example.SerializeToString()


def decode(
  record: bytes,
  example: structs.Unroll,
  action_spec: Any,
  level_names: Sequence[str],
) -> structs.Unroll:
  """A column from a record.

  Args:
    record: as `encode` made it, here or elsewhere.
    example: an unroll of one column, with the shapes and dtypes to expect.
    action_spec: of the environments; it bounds discrete actions.
    level_names: of this run.

  Returns:
    An `Unroll` with arrays `[T + 1, 1, ...]`.

  Raises:
    UnusableRecordError: anything is not as expected, or not finite.
  """
  features = _parse(record)
  level = features['level'].bytes_list.value[0].decode(errors='replace')
  if level not in level_names:
    raise UnusableRecordError(
      'unknown level',
      f'its level is {level!r}, none of this run ({", ".join(level_names)}).',
    )
  leaves: dict[str, Any] = {}
  for name, axis, expected in _named_arrays(example):
    leaves[name] = np.expand_dims(
      _array(features, name, np.take(np.asarray(expected), 0, axis)), axis
    )
  rest = example._replace(level=(), version=())
  unroll = tree.unflatten_as(rest, list(leaves.values()))._replace(
    level=np.array([list(level_names).index(level)], np.int32),
    version=np.array(features['version'].int64_list.value, np.int64),
  )
  _check_flags(unroll.env_outputs)
  _check_actions(unroll.agent_outputs.action, action_spec)
  return unroll


def _named_arrays(unroll):
  """Name, axis of the columns and array, for each of an unroll's arrays."""
  rest = unroll._replace(level=(), version=())
  for path, array in tree.flatten_with_path(rest):
    axis = 0 if path[0] == 'core_state' else 1
    yield '/'.join(str(part) for part in path), axis, array


def _parse(record):
  example = tf.train.Example()
  try:
    example.ParseFromString(record)
  except Exception as error:  # protobuf's own class differs by version.
    raise UnusableRecordError(
      'foreign', 'it is no tf.train.Example.'
    ) from error
  features = example.features.feature
  schema = list(features['schema'].int64_list.value)
  if schema != [SCHEMA]:
    raise UnusableRecordError(
      'foreign', f'its schema is {schema or "missing"}; {SCHEMA} is read here.'
    )
  for name, kind in (('level', 'bytes_list'), ('version', 'int64_list')):
    if len(getattr(features[name], kind).value) != 1:
      raise UnusableRecordError('foreign', f'it has no {name}.')
  return features


def _array(features, name, expected):
  """The array called `name`, which must be like `expected`."""
  stored = features[name].bytes_list.value
  dtype = b''.join(features[f'{name}/dtype'].bytes_list.value)
  shape = tuple(features[f'{name}/shape'].int64_list.value)
  is_text = expected.dtype.kind in 'OSU'
  wanted = _TEXT if is_text else expected.dtype.newbyteorder('<').str.encode()
  if not stored:
    raise UnusableRecordError('other shape', f'{name} is missing.')
  if dtype != wanted or shape != expected.shape:
    raise UnusableRecordError(
      'other shape',
      f'{name} is {dtype.decode(errors="replace")} {list(shape)}; this run has '
      f'{wanted.decode()} {list(expected.shape)}.',
    )
  if is_text:
    return np.array(list(stored), object).reshape(shape)
  if len(stored[0]) != expected.nbytes:
    raise UnusableRecordError(
      'other shape', f'{name} has {len(stored[0])} bytes, not what it says.'
    )
  array = np.frombuffer(stored[0], dtype.decode()).reshape(shape)
  if array.dtype.kind == 'f' and not np.isfinite(array).all():
    raise UnusableRecordError('not finite', f'{name} holds NaN or infinity.')
  return array


def _check_flags(env):
  implied = (~env.truncated | env.first) & (~env.first | env.done)
  if not implied.all():
    raise UnusableRecordError(
      'wrong flags', 'truncated must imply first, and first must imply done.'
    )


def _check_actions(action, spec):
  if np.issubdtype(action.dtype, np.integer):
    if (action < 0).any() or (action > np.asarray(spec.maximum)).any():
      raise UnusableRecordError(
        'unknown action',
        f'it holds actions from {action.min()} to {action.max()}; the last one '
        f'is {np.asarray(spec.maximum)}.',
      )


def _bytes(values):
  return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _ints(values):
  return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
