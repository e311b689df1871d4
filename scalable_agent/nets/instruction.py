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
"""Turns an instruction in words into 64 features, as the original does."""

from collections.abc import Iterator

import keras
import tensorflow as tf

from scalable_agent.nets import lstm

NUM_HASH_BUCKETS = 1000
EMBEDDING_SIZE = 20
NUM_FEATURES = 64


class InstructionEncoder(keras.layers.Layer):
  """Words to hash buckets to embeddings, through an LSTM to its last output.

  Words are what stands between spaces. The hash (`to_hash_bucket_fast`) is the
  same in every process and for text and bytes. An empty instruction is zeros.
  """

  def __init__(
    self,
    seeds: Iterator[int],
    *,
    name: str = 'instruction_encoder',
    dtype: str = 'float32',
  ):
    super().__init__(name=name, dtype=dtype)
    # Sonnet 1 draws embeddings from the standard normal distribution.
    self.embeddings = self.add_weight(
      name='embeddings',
      shape=(NUM_HASH_BUCKETS, EMBEDDING_SIZE),
      initializer=keras.initializers.RandomNormal(stddev=1.0, seed=next(seeds)),
    )
    with keras.name_scope(name):
      self.lstm = lstm.LSTM(
        EMBEDDING_SIZE, NUM_FEATURES, next(seeds), dtype=dtype
      )
    self.built = True

  def encode(self, instructions: tf.Tensor) -> tf.Tensor:
    """`[N, 64]` float32 features of `instructions` `[N]` strings."""
    words = tf.compat.v1.string_split(instructions, sep=' ')
    num_instructions, num_words = tf.unstack(words.dense_shape)
    # Time-major. What pads short instructions is the empty word, and is never
    # consumed.
    buckets = tf.tensor_scatter_nd_update(
      tf.fill([num_words, num_instructions], _hash('')),
      words.indices[:, ::-1],
      _hash(words.values),
    )
    embeddings = _sum_repeated(tf.convert_to_tensor(self.embeddings))
    embedded = tf.gather(embeddings, buckets)
    # The loop wants one step at least, also where nobody says a word.
    padding = tf.cast(tf.equal(num_words, 0), tf.int32)
    embedded = tf.pad(embedded, [[0, padding], [0, 0], [0, 0]])
    lengths = tf.math.bincount(
      tf.cast(words.indices[:, 0], tf.int32),
      minlength=tf.size(instructions),
      maxlength=tf.size(instructions),
    )
    return self.lstm.last_output(embedded, lengths)


def _hash(words):
  return tf.strings.to_hash_bucket_fast(words, NUM_HASH_BUCKETS)


@tf.custom_gradient
def _sum_repeated(embeddings):
  """The identity. In the gradient, the rows of a repeated word are summed.

  The gradient stays `tf.IndexedSlices`, for TensorFlow 1's RMSProp leaves the
  slots of unread words alone; but with a row per occurrence its norm would be
  wrong.
  """

  def gradient(d_embedded):
    rows, segments = tf.unique(d_embedded.indices)
    values = tf.math.unsorted_segment_sum(
      d_embedded.values, segments, tf.size(rows)
    )
    return tf.IndexedSlices(values, rows, d_embedded.dense_shape)

  return tf.identity(embeddings), gradient
