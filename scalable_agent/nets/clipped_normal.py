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
"""A normal distribution whose samples are clipped to an interval."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

tfd = tfp.distributions

_HALF_LOG_TWO_PI_E = 0.5 * np.log(2 * np.pi * np.e)


class ClippedNormal(tfd.Distribution):
  """Law of `clip(x, low, high)` where `x` is normal.

  Inside the interval it has the density of the normal distribution, and on
  each bound it has, as a probability, all the mass beyond. Every sample lies
  in the interval, and the log-probability of every sample is finite, the bounds
  included, which a tanh-squashed normal cannot say: there a float32 sample that
  rounds to the bound has no finite pre-image. The ratio of two such laws is an
  exact importance weight, since both share the same reference measure (density
  inside, counting on the bounds). Its policy gradient is that of Fujita and
  Maeda, Clipped Action Policy Gradient (2018).

  An infinite bound clips nothing.
  """

  def __init__(
    self,
    loc: tf.Tensor,
    scale: tf.Tensor,
    low: np.ndarray,
    high: np.ndarray,
    name: str = 'ClippedNormal',
  ):
    """Makes the distribution.

    Args:
      loc: `[..., D]` float32 mean before clipping.
      scale: `[..., D]` float32 standard deviation before clipping.
      low: `[D]` lower bounds.
      high: `[D]` upper bounds.
      name: of the ops.
    """
    parameters = dict(locals())
    self._normal = tfd.Normal(loc, scale)
    self._low = np.asarray(low, np.float32)
    self._high = np.asarray(high, np.float32)
    # Where a bound is infinite this stands in, and what it gives is not used:
    # infinities would turn the gradient of the unused branch into NaN.
    self._finite_low = np.where(np.isfinite(low), self._low, 0)
    self._finite_high = np.where(np.isfinite(high), self._high, 0)
    super().__init__(
      dtype=self._normal.dtype,
      reparameterization_type=tfd.NOT_REPARAMETERIZED,
      validate_args=False,
      allow_nan_stats=True,
      parameters=parameters,
      name=name,
    )

  @classmethod
  def _parameter_properties(cls, dtype, num_classes=None):
    return {
      name: tfp.util.ParameterProperties()
      for name in ('loc', 'scale', 'low', 'high')
    }

  def _event_shape_tensor(self):
    return tf.constant([], tf.int32)

  def _event_shape(self):
    return tf.TensorShape([])

  def _sample_n(self, n, seed=None):
    return self._clip(self._normal.sample(n, seed=seed))

  def _mode(self):
    return self._clip(self._normal.mode())

  def _clip(self, values):
    return tf.clip_by_value(values, self._low, self._high)

  def _log_prob(self, value):
    log_prob = self._normal.log_prob(value)
    log_prob = tf.where(
      value <= self._low, self._normal.log_cdf(self._finite_low), log_prob
    )
    return tf.where(
      value >= self._high,
      self._normal.log_survival_function(self._finite_high),
      log_prob,
    )

  def _entropy(self):
    """In closed form: minus the mean log-probability, over both parts."""
    normal = self._normal
    below = self._bound_terms(
      normal.log_cdf(self._finite_low), self._finite_low, self._low
    )
    above = self._bound_terms(
      normal.log_survival_function(self._finite_high),
      self._finite_high,
      self._high,
    )
    inside = 1.0 - below[0] - above[0]
    return (
      inside * (_HALF_LOG_TWO_PI_E + tf.math.log(normal.scale))
      + 0.5 * (below[2] - above[2])
      + below[1]
      + above[1]
    )

  def _bound_terms(self, log_mass, finite_bound, bound):
    """Mass, entropy and z * density(z) at a bound; zeros where infinite."""
    mass = tf.exp(log_mass)
    z = (finite_bound - self._normal.loc) / self._normal.scale
    density = tf.exp(-0.5 * tf.square(z)) / np.sqrt(2 * np.pi)
    terms = (mass, -mass * log_mass, z * density)
    return [tf.where(np.isfinite(bound), term, 0.0) for term in terms]
