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
"""What turns an observation into features (paper, Figure 3).

Torsos take floats: images `[N, H, W, C]` in [0, 1], vectors `[N, I]`. They give
`NUM_FEATURES`: 256, or 512 where Nature's DQN does (which is not the paper's,
but what many others measure themselves by). They know
no time axis; the agent folds it into the batch. Layers are kept in tuples: in
lists `tf.train.Checkpoint` does not see them (Keras 3.15).
"""

from collections.abc import Iterator, Sequence

import keras
import tensorflow as tf

from scalable_agent.nets import layers


class ResidualBlock(keras.layers.Layer):
  """`x + conv(relu(conv(relu(x))))`, 3 x 3."""

  def __init__(
    self, channels: int, seeds: Iterator[int], *, name: str, dtype: str
  ):
    super().__init__(name=name, dtype=dtype)
    with keras.name_scope(name):
      self.conv_0, self.conv_1 = (
        layers.Conv2D(
          channels, channels, 3, next(seeds), name=f'conv_{i}', dtype=dtype
        )
        for i in range(2)
      )
    self.built = True

  def call(self, inputs: tf.Tensor) -> tf.Tensor:
    """`[N, H, W, C]`, as `inputs`."""
    outputs = self.conv_0(tf.nn.relu(inputs))
    return self.conv_1(tf.nn.relu(outputs), residual=inputs)


class ResidualSection(keras.layers.Layer):
  """Convolution, max-pooling by 2, residual blocks."""

  def __init__(
    self,
    channels_in: int,
    channels: int,
    num_blocks: int,
    seeds: Iterator[int],
    *,
    name: str,
    dtype: str,
  ):
    super().__init__(name=name, dtype=dtype)
    with keras.name_scope(name):
      self.conv = layers.Conv2D(
        channels_in, channels, 3, next(seeds), name='conv', dtype=dtype
      )
      self.blocks = tuple(
        ResidualBlock(channels, seeds, name=f'block_{i}', dtype=dtype)
        for i in range(num_blocks)
      )
    self.built = True

  def call(self, inputs: tf.Tensor) -> tf.Tensor:
    """`[N, ceil(H / 2), ceil(W / 2), channels]`."""
    outputs = tf.nn.max_pool2d(self.conv(inputs), 3, 2, 'SAME')
    for block in self.blocks:
      outputs = block(outputs)
    return outputs


class DeepTorso(keras.layers.Layer):
  """The deep residual network: 15 convolutions and a linear layer."""

  SECTIONS = ((16, 2), (32, 2), (32, 2))  # Channels, residual blocks.
  NUM_FEATURES = 256

  def __init__(
    self,
    image_shape: Sequence[int],
    seeds: Iterator[int],
    *,
    name: str = 'deep_torso',
    dtype: str = 'float32',
  ):
    super().__init__(name=name, dtype=dtype)
    height, width, channels_in = image_shape
    sections = []
    with keras.name_scope(name):
      for i, (channels, num_blocks) in enumerate(self.SECTIONS):
        section = ResidualSection(
          channels_in,
          channels,
          num_blocks,
          seeds,
          name=f'section_{i}',
          dtype=dtype,
        )
        sections.append(section)
        height, width, channels_in = -(-height // 2), -(-width // 2), channels
      self.sections = tuple(sections)
      self.linear = layers.Linear(
        height * width * channels_in,
        self.NUM_FEATURES,
        next(seeds),
        dtype=dtype,
      )
    self.built = True

  def call(self, images: tf.Tensor) -> tf.Tensor:
    """`[N, 256]` features of `images` `[N, H, W, C]`."""
    outputs = images
    for section in self.sections:
      outputs = section(outputs)
    return tf.nn.relu(self.linear(_flatten(tf.nn.relu(outputs))))


class ConvTorso(keras.layers.Layer):
  """Convolutions without padding, then a linear layer; ReLU after each."""

  # Channels, kernel size, stride.
  CONVS: tuple[tuple[int, int, int], ...]
  NUM_FEATURES: int

  def __init__(
    self,
    image_shape: Sequence[int],
    seeds: Iterator[int],
    *,
    name: str | None = None,
    dtype: str = 'float32',
  ):
    super().__init__(name=name, dtype=dtype)
    self._check_size(image_shape)
    height, width, channels_in = image_shape
    convs = []
    with keras.name_scope(self.name):
      for i, (channels, size, stride) in enumerate(self.CONVS):
        conv = layers.Conv2D(
          channels_in,
          channels,
          size,
          next(seeds),
          stride=stride,
          padding='VALID',
          name=f'conv_{i}',
          dtype=dtype,
        )
        convs.append(conv)
        height = (height - size) // stride + 1
        width = (width - size) // stride + 1
        channels_in = channels
      self.convs = tuple(convs)
      self.linear = layers.Linear(
        height * width * channels_in,
        self.NUM_FEATURES,
        next(seeds),
        dtype=dtype,
      )
    self.built = True

  def call(self, images: tf.Tensor) -> tf.Tensor:
    """`[N, NUM_FEATURES]` features of `images` `[N, H, W, C]`."""
    outputs = images
    for conv in self.convs:
      outputs = tf.nn.relu(conv(outputs))
    return tf.nn.relu(self.linear(_flatten(outputs)))

  def _check_size(self, image_shape):
    smallest = 1
    for _, size, stride in reversed(self.CONVS):
      smallest = (smallest - 1) * stride + size
    if min(image_shape[:2]) < smallest:
      kind = type(self).__name__.removesuffix('Torso').lower()
      raise ValueError(
        f'An image of shape {tuple(image_shape)} is too small for the {kind} '
        f'torso, which takes {smallest} x {smallest} pixels and more; choose '
        "torso='deep' or torso='mlp'."
      )


class ShallowTorso(ConvTorso):
  """The shallow network: two convolutions, 256 units (Mnih et al. 2016)."""

  CONVS = ((16, 8, 4), (32, 4, 2))
  NUM_FEATURES = 256


class NatureTorso(ConvTorso):
  """The network of DQN: three convolutions, 512 units (Mnih et al. 2015)."""

  CONVS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
  NUM_FEATURES = 512


class MLPTorso(keras.layers.Layer):
  """Two linear layers of 256 units, for observations that are vectors."""

  NUM_FEATURES = 256

  def __init__(
    self,
    size_in: int,
    seeds: Iterator[int],
    *,
    name: str = 'mlp_torso',
    dtype: str = 'float32',
  ):
    super().__init__(name=name, dtype=dtype)
    with keras.name_scope(name):
      self.linear_0 = layers.Linear(
        size_in, self.NUM_FEATURES, next(seeds), name='linear_0', dtype=dtype
      )
      self.linear_1 = layers.Linear(
        self.NUM_FEATURES,
        self.NUM_FEATURES,
        next(seeds),
        name='linear_1',
        dtype=dtype,
      )
    self.built = True

  def call(self, vectors: tf.Tensor) -> tf.Tensor:
    """`[N, 256]` features of `vectors` `[N, I]`."""
    return tf.nn.relu(self.linear_1(tf.nn.relu(self.linear_0(vectors))))


def _flatten(images):
  return tf.reshape(images, [-1, images.shape[1:].num_elements()])
