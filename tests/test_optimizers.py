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
"""RMSProp against TensorFlow 1's, and the learning rate of a frame."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
import two_devices

from scalable_agent import optimizers

SHAPES = {'kernel': (3, 4), 'bias': (4,), 'embeddings': (5, 2)}
LEARNING_RATES = (0.5, 0.4, 0.3, 0.2, 0.1)
# Rows of the embedding that each update reads; row 0 is never read.
ROWS = ([1, 1, 3], [2], [3, 1], [4, 2, 2], [1])


def make_optimizer(**settings):
  defaults = {
    'learning_rate': 0.1,
    'decay': 0.9,
    'momentum': 0.0,
    'epsilon': 0.1,
  }
  return optimizers.RMSProp(**(defaults | settings))


def arrays(seed, scale=1.0):
  """One array for each of `SHAPES`."""
  random = np.random.default_rng(seed)
  return [
    (scale * random.standard_normal(shape)).astype(np.float32)
    for shape in SHAPES.values()
  ]


def make_variables():
  return [
    keras.Variable(value, name=name)
    for name, value in zip(SHAPES, arrays(99), strict=True)
  ]


def make_gradients(seed, scale=1.0):
  return [tf.constant(gradient) for gradient in arrays(seed, scale)]


def updater(optimizer, variables):
  """The update of these variables as one compiled function."""
  return tf.function(
    lambda gradients, rate, ok=None: optimizer.update(
      gradients, variables, rate, ok
    )
  )


def state_of(optimizer, variables):
  """Variables and slots as arrays, in a fixed order."""
  return [
    v.numpy()
    for variable in variables
    for v in (variable, *optimizer.slots(variable).values())
  ]


def sparse_gradient(step):
  values = np.random.default_rng(step).standard_normal((len(ROWS[step]), 2))
  return values.astype(np.float32), np.array(ROWS[step])


def tensorflow_1(momentum, epsilon):
  """State after each update of `tf.train.RMSPropOptimizer`, in graph mode."""
  states = []
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    variables = [
      tf.compat.v1.get_variable(name, initializer=initial, use_resource=True)
      for name, initial in zip(SHAPES, arrays(99), strict=True)
    ]
    rate = tf.compat.v1.placeholder(tf.float32, [])
    dense = [
      tf.compat.v1.placeholder(tf.float32, SHAPES[name])
      for name in ('kernel', 'bias')
    ]
    values = tf.compat.v1.placeholder(tf.float32, [None, 2])
    indices = tf.compat.v1.placeholder(tf.int64, [None])
    optimizer = tf.compat.v1.train.RMSPropOptimizer(
      rate, decay=0.9, momentum=momentum, epsilon=epsilon
    )
    gradients = [*dense, tf.IndexedSlices(values, indices)]
    train = optimizer.apply_gradients(zip(gradients, variables, strict=True))
    fetches = [
      [v, optimizer.get_slot(v, 'rms'), optimizer.get_slot(v, 'momentum')]
      for v in variables
    ]
    session.run(tf.compat.v1.global_variables_initializer())
    for step, learning_rate in enumerate(LEARNING_RATES):
      feed = dict(zip(dense, arrays(step)[:2], strict=True))
      feed[values], feed[indices] = sparse_gradient(step)
      session.run(train, feed | {rate: learning_rate})
      states.append(list(itertools.chain(*session.run(fetches))))
  return states


@pytest.mark.parametrize('momentum', [0.0, 0.9])
@pytest.mark.parametrize('epsilon', [0.1, 0.01, 1e-7])
def test_equals_tensorflow_1(momentum, epsilon):
  variables = make_variables()
  optimizer = make_optimizer(momentum=momentum, epsilon=epsilon)
  optimizer.build(variables)
  update = updater(optimizer, variables)
  for step, expected in enumerate(tensorflow_1(momentum, epsilon)):
    values, indices = sparse_gradient(step)
    slices = tf.IndexedSlices(tf.constant(values), tf.constant(indices))
    gradients = [*make_gradients(step)[:2], slices]
    update(gradients, tf.constant(LEARNING_RATES[step]))
    for ours, theirs in zip(
      state_of(optimizer, variables), expected, strict=True
    ):
      np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_first_step_by_hand():
  variable = keras.Variable(np.float32([1.0]), name='x')
  optimizer = make_optimizer()
  optimizer.build([variable])
  norm = optimizer.update([tf.constant([2.0])], [variable], 0.1)
  # The mean square starts at 1: 0.9 * 1 + 0.1 * 2^2 = 1.3.
  np.testing.assert_allclose(
    variable.numpy(), [1 - 0.1 * 2 / np.sqrt(1.3 + 0.1)], rtol=1e-6
  )
  np.testing.assert_allclose(norm, 2.0)


@pytest.mark.parametrize(
  ('scale', 'clips'), [(0.01, False), (100.0, True)], ids=['below', 'above']
)
def test_clips_the_global_norm(scale, clips):
  gradients = make_gradients(1, scale)
  norm = np.sqrt(sum(np.sum(np.square(g)) for g in gradients))
  factor = 2.5 / norm if clips else 1.0
  results = []
  for clip, applied in (
    (2.5, gradients),
    (None, [factor * g for g in gradients]),
  ):
    variables = make_variables()
    optimizer = make_optimizer(clip_gradient_norm=clip)
    optimizer.build(variables)
    returned = optimizer.update(applied, variables, 0.1)
    results.append(state_of(optimizer, variables))
    if clip is not None:
      np.testing.assert_allclose(returned, norm, rtol=1e-6)
  for ours, expected in zip(*results, strict=True):
    np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_repeated_rows_count_summed_in_the_norm():
  variable = keras.Variable(np.zeros((5, 1), np.float32), name='embeddings')
  optimizer = make_optimizer()
  optimizer.build([variable])
  slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([3, 3]))
  np.testing.assert_allclose(optimizer.update([slices], [variable], 0.1), 3.0)


@pytest.mark.parametrize('poison', [np.nan, np.inf], ids=['nan', 'inf'])
def test_not_ok_leaves_everything(poison):
  variables = make_variables()
  optimizer = make_optimizer(momentum=0.9, clip_gradient_norm=1.0)
  optimizer.build(variables)
  update = updater(optimizer, variables)
  rate = tf.constant(0.1)
  update(make_gradients(0), rate, tf.constant(True))
  before = state_of(optimizer, variables)
  bad = make_gradients(1)
  bad[0] = tf.fill(bad[0].shape, np.float32(poison))
  bad[2] = tf.IndexedSlices(
    tf.fill([1, 2], np.float32(poison)), tf.constant([1])
  )
  update(bad, rate, tf.constant(False))
  for now, then in zip(state_of(optimizer, variables), before, strict=True):
    np.testing.assert_array_equal(now, then)
  assert int(optimizer.iterations) == 1


def test_ok_is_the_plain_step():
  results = []
  for ok in (None, tf.constant(True)):
    variables = make_variables()
    optimizer = make_optimizer(momentum=0.9)
    optimizer.build(variables)
    optimizer.update(make_gradients(1), variables, 0.1, ok)
    assert int(optimizer.iterations) == 1
    results.append(state_of(optimizer, variables))
  for ours, expected in zip(*results, strict=True):
    np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize('entry', ['update', 'apply'])
def test_two_replicas_equal_one(entry):
  strategy = two_devices.mirrored()
  random = np.random.default_rng(3)
  inputs = random.standard_normal((3, 4, 3)).astype(np.float32)
  words = random.integers(0, 5, (3, 4))

  def gradients_of(variables, inputs, words):
    kernel, bias, embeddings = (v.value for v in variables)
    with tf.GradientTape() as tape:
      outputs = tf.tanh(tf.matmul(inputs, kernel) + bias)
      embedded = tf.gather(embeddings, words)
      loss = tf.reduce_sum(tf.square(outputs)) + tf.reduce_sum(embedded**3)
    return tape.gradient(loss, [kernel, bias, embeddings])

  def step(optimizer, variables, inputs, words):
    gradients = gradients_of(variables, inputs, words)
    context = tf.distribute.get_replica_context()
    gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
    if entry == 'update':
      optimizer.update(gradients, variables, 0.1, tf.constant(True))
    else:
      optimizer.apply(gradients, variables)

  @tf.function
  def replicated(inputs, words):
    def replica():
      # Replica k takes columns [2k, 2k + 2) of the batch of four.
      k = tf.distribute.get_replica_context().replica_id_in_sync_group
      step(*mirrored, inputs[2 * k : 2 * k + 2], words[2 * k : 2 * k + 2])

    strategy.run(replica)

  with strategy.scope():
    mirrored_variables = make_variables()
    mirrored_optimizer = make_optimizer(momentum=0.9)
    mirrored_optimizer.build(mirrored_variables)
  mirrored = (mirrored_optimizer, mirrored_variables)
  variables, optimizer = make_variables(), make_optimizer(momentum=0.9)
  optimizer.build(variables)
  for x, w in zip(inputs, words, strict=True):
    replicated(tf.constant(x), tf.constant(w))
    step(optimizer, variables, x, w)
  for each in (mirrored_optimizer, optimizer):
    assert each.iterations.numpy() == 3
  for ours, expected in zip(
    state_of(mirrored_optimizer, mirrored_variables),
    state_of(optimizer, variables),
    strict=True,
  ):
    np.testing.assert_allclose(ours, expected, rtol=2e-6, atol=3e-7)
  for variable in mirrored_variables:
    first, second = strategy.experimental_local_results(variable.value)
    np.testing.assert_array_equal(first.numpy(), second.numpy())


def test_keras_saves_and_restores_it(tmp_path):
  random = np.random.default_rng(0)
  x, y = random.standard_normal((2, 8, 3)).astype(np.float32)
  keras.utils.set_random_seed(1)
  model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3)])
  model.compile(make_optimizer(momentum=0.9), 'mse')
  model.train_on_batch(x, y)
  model.save(tmp_path / 'model.keras')
  restored = keras.saving.load_model(tmp_path / 'model.keras')
  assert restored.optimizer.get_config() == model.optimizer.get_config()
  for each in (model, restored):
    each.train_on_batch(x, y)
  for ours, expected in zip(
    state_of(restored.optimizer, restored.trainable_variables),
    state_of(model.optimizer, model.trainable_variables),
    strict=True,
  ):
    np.testing.assert_array_equal(ours, expected)


def test_update_before_build_is_refused():
  variables = make_variables()
  with pytest.raises(RuntimeError, match='build'):
    make_optimizer().update(make_gradients(0), variables, 0.1)


@pytest.mark.parametrize(
  ('gradient', 'message'),
  [
    (None, 'kernel has no gradient'),
    (tf.constant(1.0), r'kernel has shape \(\).*\(3, 4\)'),
  ],
  ids=['none', 'shape'],
)
def test_bad_gradient_names_its_variable(gradient, message):
  variables = make_variables()
  optimizer = make_optimizer()
  optimizer.build(variables)
  with pytest.raises(ValueError, match=message):
    optimizer.update([gradient, *make_gradients(0)[1:]], variables, 0.1)


def test_foreign_variable_is_refused():
  optimizer = make_optimizer()
  optimizer.build(make_variables())
  with pytest.raises(ValueError, match='Unknown variable'):
    optimizer.update(make_gradients(0), make_variables(), 0.1)


AS_NUMBER = pytest.param(lambda frames: frames, id='number')
AS_NUMPY = pytest.param(np.int64, id='numpy')
AS_TENSOR = pytest.param(
  lambda frames: tf.constant(frames, tf.int64), id='tensor'
)


@pytest.mark.parametrize('kind', [AS_NUMBER, AS_NUMPY, AS_TENSOR])
@pytest.mark.parametrize(
  ('frames', 'total', 'expected'),
  [
    (0, 1000, 4.8e-4),
    (40, 1000, 4.608e-4),
    (400, 1000, 2.88e-4),
    (960, 1000, 1.92e-5),
    (1000, 1010, 4.7525e-6),
    # One frame before the end of a long run; float32 would round it away.
    (10**10 - 1, 10**10, 4.8e-14),
  ],
)
def test_learning_rate_follows_frames(kind, frames, total, expected):
  rate = optimizers.learning_rate_at(kind(frames), 4.8e-4, total)
  np.testing.assert_allclose(rate, expected, rtol=1e-5)


@pytest.mark.parametrize('kind', [AS_NUMBER, AS_NUMPY, AS_TENSOR])
@pytest.mark.parametrize('frames', [1000, 1040, 10**12])
def test_learning_rate_is_zero_at_and_past_the_end(kind, frames):
  assert float(optimizers.learning_rate_at(kind(frames), 4.8e-4, 1000)) == 0.0


@pytest.mark.parametrize(('total', 'updates'), [(1000, 25), (1010, 26)])
def test_number_of_updates_until_the_rate_is_zero(total, updates):
  frames = tf.Variable(0, dtype=tf.int64)
  count = 0
  while optimizers.learning_rate_at(frames, 4.8e-4, total) > 0:
    frames.assign_add(5 * 2 * 4)
    count += 1
  assert count == updates
