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
"""The instruction encoder: words, lengths, and what their gradient holds."""

import numpy as np
import pytest
import tensorflow as tf

from scalable_agent.nets import instruction, layers

# Buckets out of 1000 that the hash gives in every process, on every machine.
BUCKETS = {'go': 681, 'to': 641, 'the': 354, 'red': 910, 'ball': 199}


@pytest.fixture(scope='module')
def encoder():
  return instruction.InstructionEncoder(layers.seeds_from(0))


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


def by_definition(encoder, words):
  """One instruction, word by word, in float64."""
  embeddings = encoder.embeddings.numpy()
  kernel, bias = encoder.lstm.kernel.numpy(), encoder.lstm.bias.numpy()
  c = h = np.zeros(64)
  for word in words:
    inputs = np.concatenate([embeddings[BUCKETS[word]], h])
    i, j, f, o = np.split(inputs @ kernel + bias, 4)
    c = c * sigmoid(f + 1) + sigmoid(i) * np.tanh(j)
    h = np.tanh(c) * sigmoid(o)
  return h


def test_buckets_are_the_known_ones():
  buckets = tf.strings.to_hash_bucket_fast(list(BUCKETS), 1000)
  assert buckets.numpy().tolist() == list(BUCKETS.values())


def test_each_row_is_encoded_at_its_own_length(encoder):
  rows = ['go to the red ball', '', 'ball', 'to go']
  outputs = encoder.encode(tf.constant(rows))
  assert outputs.shape == (4, 64)
  assert outputs.dtype == tf.float32
  for output, row in zip(outputs, rows, strict=True):
    expected = by_definition(encoder, row.split())
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


def test_an_instruction_does_not_depend_on_its_company(encoder):
  alone = encoder.encode(tf.constant(['red ball']))[0]
  company = encoder.encode(tf.constant(['go to the red ball', 'red ball', '']))[
    1
  ]
  np.testing.assert_allclose(company, alone, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize('rows', [[''], ['', ''], ['  ']], ids=repr)
def test_no_words_give_zeros(encoder, rows):
  graph = tf.function(encoder.encode)
  for encode in (encoder.encode, graph):
    outputs = encode(tf.constant(rows))
    np.testing.assert_array_equal(outputs, np.zeros((len(rows), 64)))


def test_spaces_do_not_count(encoder):
  outputs = encoder.encode(tf.constant(['red ball', '  red   ball ']))
  np.testing.assert_array_equal(outputs[0], outputs[1])


def test_text_and_bytes_are_the_same(encoder):
  text = encoder.encode(tf.constant(np.array(['red ball', ''], object)))
  data = encoder.encode(tf.constant(np.array([b'red ball', b''], object)))
  np.testing.assert_array_equal(text, data)
  assert np.any(text[0] != 0)


def update(encoder, rows):
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(tf.square(encoder.encode(rows)))
  return tape.gradient(loss, encoder.trainable_variables)


@pytest.mark.parametrize('graph', [False, True], ids=['eager', 'graph'])
def test_gradient_of_embeddings_has_one_row_per_word(encoder, graph):
  rows = tf.constant(['ball ball', 'red ball', ''])
  compute = tf.function(update) if graph else update
  gradient = compute(encoder, rows)[0]
  read = sorted(BUCKETS[word] for word in ('ball', 'red'))
  touched = {
    index: row
    for index, row in zip(
      gradient.indices.numpy(), gradient.values.numpy(), strict=True
    )
    if row.any()
  }
  assert sorted(touched) == read
  assert len(set(gradient.indices.numpy())) == len(gradient.indices)
  # Against a finite difference of the loss by one number of one embedding.
  before = encoder.embeddings.numpy()
  losses = []
  for change in (0.01, -0.01):
    changed = before.copy()
    changed[BUCKETS['ball'], 3] += change
    encoder.embeddings.assign(changed)
    losses.append(
      np.sum(np.square(encoder.encode(rows).numpy().astype(np.float64)))
    )
  encoder.embeddings.assign(before)
  slope = (losses[0] - losses[1]) / 0.02
  np.testing.assert_allclose(touched[BUCKETS['ball']][3], slope, rtol=1e-3)


def test_gradient_exists_where_nobody_says_a_word(encoder):
  embeddings, *others = tf.function(update)(encoder, tf.constant(['', '']))
  assert not embeddings.values.numpy().any()
  for gradient in others:
    assert not gradient.numpy().any()


def test_initial_embeddings_are_standard_normal():
  encoder = instruction.InstructionEncoder(layers.seeds_from(5))
  embeddings = encoder.embeddings.numpy()
  assert embeddings.shape == (1000, 20)
  np.testing.assert_allclose(embeddings.mean(), 0, atol=0.03)
  np.testing.assert_allclose(embeddings.std(), 1, rtol=0.02)
