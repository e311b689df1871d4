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
"""The torsos: against NumPy, and their initial weights."""

import numpy as np
import pytest
import tensorflow as tf

from scalable_agent.nets import layers, torsos


def convolve(images, kernel, bias, stride):
  """Without padding, pixel by pixel."""
  size = kernel.shape[0]
  rows = (images.shape[1] - size) // stride + 1
  columns = (images.shape[2] - size) // stride + 1
  outputs = np.zeros((len(images), rows, columns, kernel.shape[3]))
  for r in range(rows):
    for c in range(columns):
      top, left = r * stride, c * stride
      patch = images[:, top : top + size, left : left + size]
      outputs[:, r, c] = np.tensordot(patch, kernel, axes=3) + bias
  return outputs


def pad(images, height, width):
  """Zeros as `SAME` puts them: the odd one below and to the right."""
  return np.pad(
    images,
    [
      (0, 0),
      (height // 2, -(-height // 2)),
      (width // 2, -(-width // 2)),
      (0, 0),
    ],
  )


def relu(x):
  return np.maximum(x, 0)


def numbers(layer):
  return layer.kernel.numpy(), layer.bias.numpy()


def randomize_biases(torso):
  random = np.random.RandomState(3)
  for variable in torso.trainable_variables:
    if variable.name == 'bias':
      variable.assign(0.1 * random.standard_normal(variable.shape))


def random_images(*shape):
  return np.random.RandomState(0).uniform(size=shape).astype(np.float32)


@pytest.mark.parametrize(
  ('kind', 'shape', 'strides', 'num_features'),
  [
    (torsos.ShallowTorso, (24, 31, 3), (4, 2), 256),
    (torsos.NatureTorso, (36, 45, 4), (4, 2, 1), 512),
  ],
  ids=['shallow', 'nature'],
)
def test_conv_torso_equals_the_definition(kind, shape, strides, num_features):
  torso = kind(shape, layers.seeds_from(0))
  randomize_biases(torso)
  images = random_images(2, *shape)
  outputs = images
  for conv, stride in zip(torso.convs, strides, strict=True):
    outputs = relu(convolve(outputs, *numbers(conv), stride))
  kernel, bias = numbers(torso.linear)
  expected = relu(outputs.reshape(2, -1) @ kernel + bias)
  assert expected.any()
  assert expected.shape == (2, num_features)
  np.testing.assert_allclose(torso(images), expected, rtol=1e-4, atol=1e-6)


def test_nature_torso_has_the_layers_of_dqn():
  """Mnih et al. 2015, Methods: 32 8x8/4, 64 4x4/2, 64 3x3/1, 512 units."""
  torso = torsos.NatureTorso((84, 84, 4), layers.seeds_from(0))
  kernels = [
    tuple(v.shape) for v in torso.trainable_variables if v.name == 'kernel'
  ]
  assert kernels == [(8, 8, 4, 32), (4, 4, 32, 64), (3, 3, 64, 64), (3136, 512)]
  sizes = [v.numpy().size for v in torso.trainable_variables]
  # By hand: 8192 + 32 + 32768 + 64 + 36864 + 64 + 1605632 + 512.
  assert sum(sizes) == 1_684_128


def max_pool(images):
  """3 x 3, stride 2; what lies outside never wins."""
  height, width = images.shape[1:3]
  rows, columns = -(-height // 2), -(-width // 2)
  total = [
    max(2 * (n - 1) + 3 - s, 0) for n, s in ((rows, height), (columns, width))
  ]
  padded = pad(images + 1000, *total)
  outputs = np.zeros((len(images), rows, columns, images.shape[3]))
  for r in range(rows):
    for c in range(columns):
      patch = padded[:, 2 * r : 2 * r + 3, 2 * c : 2 * c + 3]
      outputs[:, r, c] = patch.max(axis=(1, 2)) - 1000
  return outputs


def test_deep_torso_equals_the_definition():
  torso = torsos.DeepTorso((9, 12, 2), layers.seeds_from(0))
  randomize_biases(torso)

  def same(images, layer):
    return convolve(pad(images, 2, 2), *numbers(layer), 1)

  images = random_images(2, 9, 12, 2)
  outputs = images
  for section in torso.sections:
    outputs = max_pool(same(outputs, section.conv))
    for block in section.blocks:
      inner = same(relu(outputs), block.conv_0)
      outputs = outputs + same(relu(inner), block.conv_1)
  kernel, bias = numbers(torso.linear)
  expected = relu(relu(outputs).reshape(2, -1) @ kernel + bias)
  assert expected.any()
  np.testing.assert_allclose(torso(images), expected, rtol=1e-4, atol=1e-5)


def test_mlp_torso_equals_the_definition():
  torso = torsos.MLPTorso(7, layers.seeds_from(0))
  randomize_biases(torso)
  vectors = np.random.RandomState(0).standard_normal((3, 7)).astype('f')
  outputs = vectors
  for layer in (torso.linear_0, torso.linear_1):
    kernel, bias = numbers(layer)
    outputs = relu(outputs @ kernel + bias)
  np.testing.assert_allclose(torso(vectors), outputs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
  ('kind', 'shape', 'said'),
  [
    (torsos.ShallowTorso, (19, 84, 3), 'shallow torso, which takes 20 x 20'),
    (torsos.ShallowTorso, (84, 7, 3), 'shallow torso, which takes 20 x 20'),
    (torsos.NatureTorso, (84, 35, 3), 'nature torso, which takes 36 x 36'),
  ],
  ids=str,
)
def test_conv_torso_refuses_small_images(kind, shape, said):
  with pytest.raises(ValueError, match=rf'too small for the {said}.*torso='):
    kind(shape, layers.seeds_from(0))


@pytest.mark.parametrize('precision', ['mixed_float16', 'mixed_bfloat16'])
@pytest.mark.parametrize(
  'kind',
  [torsos.DeepTorso, torsos.ShallowTorso, torsos.NatureTorso],
  ids=['deep', 'shallow', 'nature'],
)
def test_half_precision(kind, precision):
  images = random_images(2, 36, 36, 3)
  exact = kind((36, 36, 3), layers.seeds_from(0))(images)
  torso = kind((36, 36, 3), layers.seeds_from(0), dtype=precision)
  outputs = torso(images)
  assert outputs.dtype.name == precision.removeprefix('mixed_')
  assert torso.linear.kernel.dtype == 'float32'
  np.testing.assert_allclose(tf.cast(outputs, tf.float32), exact, atol=0.05)


def test_initial_weights_are_those_of_sonnet_1():
  """Normal with stddev 1 / sqrt(fan-in), cut off at two of them."""
  torso = torsos.DeepTorso((72, 96, 3), layers.seeds_from(5))
  kernels = [v for v in torso.trainable_variables if v.name == 'kernel']
  assert len(kernels) == 16
  for kernel in kernels:
    values = kernel.numpy()
    unit = np.prod(values.shape[:-1]) ** -0.5
    assert 1.8 * unit < np.abs(values).max() <= 2 * unit
    # 0.8796 is the deviation of a standard normal cut off at 2.
    np.testing.assert_allclose(values.std(), 0.8796 * unit, rtol=0.1)
  first = [kernel.numpy().flat[0] for kernel in kernels]
  assert len(set(first)) == len(first)  # No two layers draw the same numbers.
  for variable in torso.trainable_variables:
    if variable.name == 'bias':
      assert not variable.numpy().any()
