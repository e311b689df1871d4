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
"""Action spaces: how a vector of parameters becomes a policy.

Each knows how many parameters its policy takes (`num_parameters`, the size P of
`policy_logits`), makes the TensorFlow Probability distribution from them, and
encodes an action as features for the core. None has variables. Everything is
float32 whatever the precision of the torso.
"""

from typing import Protocol

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from dm_env import specs

from scalable_agent.nets import clipped_normal

tfd = tfp.distributions

# Logit of a choice that does not exist: probability 0, all gradients finite.
_NO_CHOICE = -1e9
_MIN_SCALE = 1e-3
_INVERSE_SOFTPLUS_OF_1 = float(np.log(np.e - 1))


class Head(Protocol):
  """What all action spaces offer."""

  num_parameters: int
  encoded_size: int

  def distribution(self, parameters: tf.Tensor) -> tfd.Distribution:
    """Policy over actions from `[..., P]` float32 parameters."""

  def encode(self, actions: tf.Tensor) -> tf.Tensor:
    """`[..., encoded_size]` float32 features of actions."""


class Discrete:
  """One choice of `num_values`: a categorical policy, one-hot features."""

  def __init__(self, num_values: int):
    self.num_parameters = num_values
    self.encoded_size = num_values

  def distribution(self, parameters: tf.Tensor) -> tfd.Distribution:
    """Categorical over int32 actions `[...]`."""
    return tfd.Categorical(logits=parameters, dtype=tf.int32)

  def encode(self, actions: tf.Tensor) -> tf.Tensor:
    """One-hot, `[..., num_values]`."""
    return tf.one_hot(actions, self.encoded_size)


class MultiDiscrete:
  """`K` independent choices of `num_values[k]` each.

  Parameters are the logits of the first choice, then of the second, and so on.
  """

  def __init__(self, num_values: np.ndarray):
    self.num_parameters = int(np.sum(num_values))
    self.encoded_size = self.num_parameters
    exists = np.arange(np.max(num_values)) < np.asarray(num_values)[:, None]
    # Where in the padded `[K, max]` table each parameter goes, and back.
    self._used = np.flatnonzero(exists)
    self._index = np.full(exists.shape, self.num_parameters, np.int32)
    self._index[exists] = np.arange(self.num_parameters)

  def distribution(self, parameters: tf.Tensor) -> tfd.Distribution:
    """Independent categoricals over int32 actions `[..., K]`."""
    none = tf.fill(tf.shape(parameters[..., :1]), _NO_CHOICE)
    padded = tf.concat([parameters, none], axis=-1)
    logits = tf.gather(padded, self._index, axis=-1)
    return tfd.Independent(
      tfd.Categorical(logits=logits, dtype=tf.int32),
      reinterpreted_batch_ndims=1,
    )

  def encode(self, actions: tf.Tensor) -> tf.Tensor:
    """One-hot of each choice, side by side, `[..., sum(num_values)]`."""
    one_hot = tf.one_hot(actions, self._index.shape[1])
    flat = tf.reshape(
      one_hot, tf.concat([tf.shape(actions)[:-1], [self._index.size]], axis=0)
    )
    return tf.gather(flat, self._used, axis=-1)


class Box:
  """`D` real numbers between bounds: an independent clipped normal for each.

  Why clipped and not squashed: see `clipped_normal.ClippedNormal`. Parameters
  are D locations, then D scales, in units of half the interval around its
  middle, so that zeros mean the middle and a deviation of half the interval. A
  dimension without two finite bounds has unit 1 around 0.
  """

  def __init__(self, low: np.ndarray, high: np.ndarray):
    self._low = np.asarray(low, np.float32)
    self._high = np.asarray(high, np.float32)
    bounded = np.isfinite(self._low) & np.isfinite(self._high)
    low = np.where(bounded, self._low, -1)
    high = np.where(bounded, self._high, 1)
    self._middle = ((low + high) / 2).astype(np.float32)
    self._half = ((high - low) / 2).astype(np.float32)
    self.num_parameters = 2 * self._low.size
    self.encoded_size = self._low.size

  def distribution(self, parameters: tf.Tensor) -> tfd.Distribution:
    """Over float32 actions `[..., D]` between the bounds."""
    loc, scale = tf.split(parameters, 2, axis=-1)
    scale = tf.nn.softplus(scale + _INVERSE_SOFTPLUS_OF_1) + _MIN_SCALE
    return tfd.Independent(
      clipped_normal.ClippedNormal(
        self._middle + self._half * loc,
        self._half * scale,
        self._low,
        self._high,
      ),
      reinterpreted_batch_ndims=1,
    )

  def encode(self, actions: tf.Tensor) -> tf.Tensor:
    """In units of half the interval around its middle, `[..., D]`."""
    return (tf.cast(actions, tf.float32) - self._middle) / self._half


def head_for(action_spec: specs.Array) -> Head:
  """The head for an action spec, as `structs.EnvironmentSpec` defines it."""
  if isinstance(action_spec, specs.DiscreteArray):
    return Discrete(action_spec.num_values)
  if (
    isinstance(action_spec, specs.BoundedArray) and len(action_spec.shape) == 1
  ):
    low, high = (
      np.broadcast_to(bound, action_spec.shape)
      for bound in (action_spec.minimum, action_spec.maximum)
    )
    if np.issubdtype(action_spec.dtype, np.floating) and np.all(low < high):
      return Box(low, high)
    if np.issubdtype(action_spec.dtype, np.integer) and not np.any(low):
      return MultiDiscrete(high + 1)
  raise ValueError(
    f'The action spec is {action_spec}; give a DiscreteArray, an integer '
    'BoundedArray of shape [K] from 0 on, or a float BoundedArray of shape [D] '
    'with minimum < maximum.'
  )
