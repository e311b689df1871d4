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
"""The variables of the original's TensorFlow 1 checkpoints, by their names.

The original (`experiment.py`, Sonnet 1) has one network: the deep one with LSTM
and instruction, for DeepMind Lab. Its values need no conversion, only other
names: convolutions are HWIO in both, and our LSTM is TensorFlow 1's, with the
gates i, j, f, o side by side and a forget bias of 1 that is not stored.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

ENV_FRAMES = 'num_environment_frames'

# Suffix of a variable's name -> our slot of the same meaning.
_SLOTS = {'/RMSProp': 'mean_square', '/RMSProp_1': 'momentum'}


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
  """Everything in a TensorFlow 1 checkpoint, by the original's names.

  Args:
    path: prefix such as `.../model.ckpt-1000`, or a directory: its newest.
  """
  try:
    reader = tf.train.load_checkpoint(os.fspath(path))
    return {
      name: np.asarray(reader.get_tensor(name))
      for name in reader.get_variable_to_shape_map()
    }
  except (ValueError, tf.errors.OpError) as error:
    raise ValueError(
      f'{os.fspath(path)} is no TensorFlow checkpoint ({error}); give a prefix '
      'such as model.ckpt-1000, without .index, or the directory of one.'
    ) from error


def variables_by_original_name(
  variables: list[Any],
  slots: Callable[[Any], Mapping[str, Any]],
  env_frames: tf.Variable,
) -> dict[str, Any]:
  """All that a checkpoint of the original holds, as variables of ours.

  Args:
    variables: `trainable_variables` of an agent with the original's network.
    slots: `RMSProp.slots`: mean square and momentum of a variable.
    env_frames: scalar int64, for the frame counter.

  Returns:
    Variables by the original's names.
  """
  names = dict(_names())
  result = {ENV_FRAMES: env_frames}
  for variable in variables:
    if variable.path not in names:
      raise ValueError(
        f'The original has no variable like {variable.path}; use its network: '
        'deep torso, LSTM, instruction, last reward and last action.'
      )
    name = names[variable.path]
    result[name] = variable
    for suffix, slot in _SLOTS.items():
      result[name + suffix] = slots(variable)[slot]
  return result


def _names() -> Iterator[tuple[str, str]]:
  """Pairs of our path and the original's name, for every variable."""
  for ours, original in _layers():
    yield f'{ours}/kernel', f'{original}/w'
    yield f'{ours}/bias', f'{original}/b'
  yield (
    'agent/instruction_encoder/embeddings',
    'agent/batch_apply/embed/embeddings',
  )
  for ours, original in (
    ('agent/instruction_encoder/lstm', 'agent/batch_apply/rnn/language_lstm'),
    ('agent/core', 'agent/lstm_cell'),
  ):
    for kind in ('kernel', 'bias'):
      yield f'{ours}/{kind}', f'{original}/{kind}'


def _layers() -> Iterator[tuple[str, str]]:
  """Pairs of our path and the original's, for convolutions and linears."""
  torso, convnet = 'agent/image_torso_0', 'agent/batch_apply/convnet'
  for section in range(3):
    ours = f'{torso}/section_{section}'
    yield f'{ours}/conv', f'{convnet}/conv_2d{_nth(section)}'
    for block in range(2):
      for conv in range(2):
        yield (
          f'{ours}/block_{block}/conv_{conv}',
          f'{convnet}/residual_{section}_{block}/conv_2d{_nth(conv)}',
        )
  yield f'{torso}/linear', 'agent/batch_apply/linear'
  for head in ('policy_logits', 'baseline'):
    yield f'agent/{head}', f'agent/batch_apply_1/{head}'


def _nth(index: int) -> str:
  """What Sonnet appends to the name of the layer `index` of its kind."""
  return f'_{index}' if index else ''
