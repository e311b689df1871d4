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
"""Stage `optimizer`: first updates of RMSProp, and the learning rate."""

import numpy as np
import tensorflow as tf

from porting import kit
from scalable_agent import optimizers

NUM_UPDATES = 3

_ORIGINAL = {
  'learning_rate': 4.8e-4,
  'decay': 0.99,
  'momentum': 0.0,
  'epsilon': 0.1,
  'clip_gradient_norm': None,
}
# The rate is large, so that a variable's change is not lost in its rounding.
_CASES = {
  'plain': {'learning_rate': 0.1},
  'momentum': {'learning_rate': 0.1, 'momentum': 0.9, 'epsilon': 0.01},
  'clipping': {'learning_rate': 0.1, 'clip_gradient_norm': 1.0},
  'sparse': {'learning_rate': 0.1, 'momentum': 0.9},
}
_SHAPES = {'kernel': (3, 4), 'bias': (4,)}


def optimizer_stage(seed: int) -> kit.Stage:
  """Variables and slots after each of the first updates."""
  stage = kit.Stage(
    'optimizer',
    """RMSProp as TensorFlow 1 computes it: the mean square starts at one,
    epsilon is inside the square root. With clip_gradient_norm all gradients
    are scaled down together. Rows of an embedding that an update did not read
    keep their slots and their values (case sparse). The learning rate is
    linear in environment frames.""",
    tolerance=1e-5,
  )
  for index, (case, changed) in enumerate(_CASES.items()):
    settings = {**_ORIGINAL, **changed}
    stage.add_case(case, num_updates=NUM_UPDATES, **settings)
    random = np.random.default_rng((seed, 2000 + index))
    if case == 'sparse':
      _add_sparse(stage, case, settings, random)
    else:
      _add_dense(stage, case, settings, random)
  _add_learning_rate(stage)
  return stage


def _add_dense(stage, case, settings, random):
  initial = {n: _normal(random, *shape) for n, shape in _SHAPES.items()}
  gradients = {
    n: 2 * _normal(random, NUM_UPDATES, *shape) for n, shape in _SHAPES.items()
  }
  stage.add(case, 'weight', initial, 'before the first update')
  stage.add(
    case,
    'input',
    {f'gradients/{n}': g for n, g in gradients.items()},
    'of each update, [K, ...]',
  )
  given = [[tf.constant(g[k]) for g in gradients.values()] for k in range(3)]
  _add_updates(stage, case, settings, initial, given)


def _add_sparse(stage, case, settings, random):
  """An embedding of which each update reads a few rows."""
  initial = {'embeddings': _normal(random, 6, 2)}
  rows = np.array([[0, 3], [3, 5], [0, 1]], np.int32)
  values = _normal(random, NUM_UPDATES, 2, 2)
  stage.add(case, 'weight', initial, 'before the first update, [6, 2]')
  stage.add(
    case,
    'input',
    {'rows': rows, 'row_gradients': values},
    {
      'rows': 'that the update reads, [K, 2]',
      'row_gradients': 'gradients of these rows, [K, 2, 2]',
    },
  )
  given = [
    [tf.IndexedSlices(tf.constant(values[k]), rows[k], (6, 2))]
    for k in range(NUM_UPDATES)
  ]
  _add_updates(stage, case, settings, initial, given)


def _add_updates(stage, case, settings, initial, gradients):
  variables = [tf.Variable(value, name=n) for n, value in initial.items()]
  optimizer = optimizers.RMSProp(**settings)
  optimizer.build(variables)
  records: dict[str, list[np.ndarray]] = {'gradient_norm': []}
  for given in gradients:
    norm = optimizer.update(given, variables, settings['learning_rate'])
    records['gradient_norm'].append(norm.numpy())
    for name, variable in zip(initial, variables, strict=True):
      slots = optimizer.slots(variable)
      for kind, value in {'variables': variable, **slots}.items():
        records.setdefault(f'{kind}/{name}', []).append(value.numpy())
  meanings = {
    'gradient_norm': 'global norm of all gradients before clipping, [K]',
    'variables': 'after each update, [K, ...]',
    'mean_square': 'slot after each update, [K, ...]',
    'momentum': 'slot after each update, [K, ...]',
  }
  for name, values in records.items():
    meaning = meanings[name.partition('/')[0]]
    stage.add(case, 'output', {name: np.stack(values)}, meaning)


def _add_learning_rate(stage):
  settings = {'initial': 4.8e-4, 'total_environment_frames': 1010}
  frames_per_update = {'unroll_length': 5, 'batch_size': 2, 'action_repeats': 4}
  stage.add_case('learning_rate', **settings, **frames_per_update)
  updates = np.array([0, 1, 10, 24, 25, 26, 27])
  stage.add(
    'learning_rate', 'input', {'updates': updates}, 'made before this one, [7]'
  )
  env_frames = updates * np.prod(list(frames_per_update.values()))
  rates = [optimizers.learning_rate_at(int(n), **settings) for n in env_frames]
  stage.add(
    'learning_rate',
    'output',
    {'env_frames': env_frames, 'learning_rate': np.float32(rates)},
    {
      'env_frames': 'counted before the update, [7]',
      'learning_rate': 'of the update, [7]',
    },
  )


def _normal(random, *shape):
  return random.standard_normal(shape).astype(np.float32)
