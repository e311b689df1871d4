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
    super().__init__(name=name, dtype=dtype, autocast=False)
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

  def call(self, instructions: tf.Tensor) -> tf.Tensor:
    """`[N, 64]` float32 features of `instructions` `[N]` strings."""
    words = tf.compat.v1.string_split(instructions, sep=' ')
    num_instructions = tf.size(instructions)
    lengths = tf.math.bincount(
      tf.cast(words.indices[:, 0], tf.int32),
      minlength=num_instructions,
      maxlength=num_instructions,
    )
    buckets = tf.sparse.to_dense(
      tf.SparseTensor(
        words.indices,
        tf.strings.to_hash_bucket_fast(words.values, NUM_HASH_BUCKETS),
        words.dense_shape,
      )
    )
    embeddings = _densify_gradient(tf.convert_to_tensor(self.embeddings))
    # Time-major. What pads short instructions is never consumed.
    embedded = tf.gather(embeddings, tf.transpose(buckets))
    return self.lstm.last_output(embedded, lengths)


@tf.custom_gradient
def _densify_gradient(embeddings):
  """The identity. Words that repeat arrive in the gradient as one sum.

  A gradient in slices holds a row per occurrence; its norm would be wrong.
  """
  return tf.identity(embeddings), tf.convert_to_tensor
