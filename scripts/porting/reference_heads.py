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
"""Policies over all kinds of actions in NumPy, with gradients by hand.

As `reference`, of which this is a part: float64, and nothing here knows of
TensorFlow or of scalable_agent. Arrays are `[..., D]`, one policy for each of D
choices or numbers, which are independent: their log-probabilities and entropies
add up. Gradients are `[..., P]`, of these sums to the parameters of the policy.
"""

import math

import numpy as np

from porting import reference


def policy_for(settings, parameters):
  """The policy of a case of stage `heads`, from parameters `[..., P]`."""
  if settings['head'] == 'box':
    return Clipped(parameters, settings['low'], settings['high'])
  return Choices(parameters, np.atleast_1d(settings['num_values']))


class Choices:
  """D choices of `num_values[d]` each; the logits lie side by side."""

  def __init__(self, logits, num_values):
    parts = np.split(np.asarray(logits), np.cumsum(num_values)[:-1], axis=-1)
    self._log_policies = [reference.log_softmax(part) for part in parts]

  def mode(self):
    """The likeliest value of each choice."""
    return np.stack([p.argmax(axis=-1) for p in self._log_policies], axis=-1)

  def encode(self, actions):
    """One-hot of each choice, side by side, `[..., P]`."""
    hot = [
      np.eye(policy.shape[-1])[actions[..., d]]
      for d, policy in enumerate(self._log_policies)
    ]
    return np.concatenate(hot, axis=-1)

  def log_probs(self, actions):
    """Of each choice, `[..., D]`."""
    taken = [
      np.take_along_axis(policy, actions[..., d, np.newaxis], axis=-1)
      for d, policy in enumerate(self._log_policies)
    ]
    return np.concatenate(taken, axis=-1)

  def entropies(self):
    """Of each choice, `[..., D]`."""
    terms = [-(np.exp(p) * p).sum(axis=-1) for p in self._log_policies]
    return np.stack(terms, axis=-1)

  def d_log_probs(self, actions):
    """Gradient of the log-probability of all choices together."""
    policy = np.exp(np.concatenate(self._log_policies, axis=-1))
    return self.encode(actions) - policy

  def d_entropies(self):
    """Gradient of the entropy of all choices together."""
    entropies = self.entropies()
    parts = [
      -np.exp(policy) * (policy + entropies[..., d, np.newaxis])
      for d, policy in enumerate(self._log_policies)
    ]
    return np.concatenate(parts, axis=-1)


class Clipped:
  """D normal numbers, clipped to bounds; None is no bound.

  A number has the normal's density between its bounds, and on a bound, as a
  probability, all the mass beyond.
  """

  def __init__(self, parameters, low, high):
    self.low = np.array([-np.inf if x is None else x for x in low])
    self.high = np.array([np.inf if x is None else x for x in high])
    bounded = np.isfinite(self.low) & np.isfinite(self.high)
    ends = np.where(bounded, [self.low, self.high], [[-1], [1]])
    self.middle, self.half = (ends[1] + ends[0]) / 2, (ends[1] - ends[0]) / 2
    loc, raw = np.split(np.asarray(parameters, np.float64), 2, axis=-1)
    raw = raw + math.log(math.e - 1)
    self.loc = self.middle + self.half * loc
    self.scale = self.half * (np.logaddexp(0, raw) + 1e-3)
    self._d_scale = self.half / (1 + np.exp(-raw))

  def mode(self):
    """The location, clipped."""
    return np.clip(self.loc, self.low, self.high)

  def encode(self, actions):
    """In units of half the interval around its middle."""
    return (actions - self.middle) / self.half

  def densities(self, actions):
    """Log-densities of the normals that are clipped."""
    z = (actions - self.loc) / self.scale
    return -0.5 * (z**2 + math.log(2 * math.pi)) - np.log(self.scale)

  def log_probs(self, actions):
    """Of each number, `[..., D]`."""
    log_below, log_above = self._log_masses()
    log_probs = self.densities(actions)
    log_probs = np.where(actions <= self.low, log_below, log_probs)
    return np.where(actions >= self.high, log_above, log_probs)

  def unclipped_entropies(self):
    """Of the normals that are clipped."""
    return 0.5 * math.log(2 * math.pi * math.e) + np.log(self.scale)

  def entropies(self):
    """Of each number: of the part between the bounds, and of both bounds."""
    log_below, log_above = self._log_masses()
    below, above = np.exp(log_below), np.exp(log_above)
    (a, b), (at_a, at_b) = self._bounds()
    inside = (1 - below - above) * self.unclipped_entropies()
    inside += 0.5 * (a * at_a - b * at_b)
    return inside - below * log_below - above * log_above

  def d_log_probs(self, actions):
    """Gradient of the log-probability of all numbers together."""
    z = (actions - self.loc) / self.scale
    d_loc, d_scale = z / self.scale, (z**2 - 1) / self.scale
    for sign, on_bound, z, log_mass in zip(
      (-1, 1),
      (actions <= self.low, actions >= self.high),
      self._bounds()[0],
      self._log_masses(),
      strict=True,
    ):
      # The hazard, density over mass, by logarithms: both may underflow.
      log_hazard = -0.5 * (z**2 + math.log(2 * math.pi)) - log_mass
      hazard = np.exp(np.where(on_bound, log_hazard, -np.inf))
      slope = sign * hazard / self.scale
      d_loc = np.where(on_bound, slope, d_loc)
      d_scale = np.where(on_bound, z * slope, d_scale)
    return self._to_parameters(d_loc, d_scale)

  def d_entropies(self):
    """Gradient of the entropy of all numbers together."""
    log_below, log_above = self._log_masses()
    (a, b), (at_a, at_b) = self._bounds()
    unclipped = self.unclipped_entropies()
    d_a = at_a * (0.5 * (1 - a**2) - unclipped - log_below - 1)
    d_b = -at_b * (0.5 * (1 - b**2) - unclipped - log_above - 1)
    inside = 1 - np.exp(log_below) - np.exp(log_above)
    d_loc = -(d_a + d_b) / self.scale
    d_scale = (inside - d_a * a - d_b * b) / self.scale
    return self._to_parameters(d_loc, d_scale)

  def _to_parameters(self, d_loc, d_scale):
    return np.concatenate([d_loc * self.half, d_scale * self._d_scale], axis=-1)

  def _bounds(self):
    """Both bounds in deviations from the location, and the density there.

    A bound that is not there is at 0 with density 0: what it counts.
    """
    bounds, densities = [], []
    for bound in (self.low, self.high):
      there = np.isfinite(bound)
      z = (np.where(there, bound, self.loc) - self.loc) / self.scale
      bounds.append(z)
      density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
      densities.append(np.where(there, density, 0))
    return bounds, densities

  def _log_masses(self):
    """Logarithms of the masses beyond both bounds.

    Where there is none: of a mass so small that it is 0.
    """
    (a, b), _ = self._bounds()
    none = -1e9
    return (
      np.where(np.isfinite(self.low), _log_normal_cdf(a), none),
      np.where(np.isfinite(self.high), _log_normal_cdf(-b), none),
    )


@np.vectorize
def _log_normal_cdf(x):
  """Logarithm of the mass of a standard normal below `x`."""
  if x > -25:
    return math.log(0.5 * math.erfc(-x / math.sqrt(2)))
  # The asymptotic series; the next term is below 1e-9 here.
  series = -1 / x**2 + 3 / x**4 - 15 / x**6
  return (
    -0.5 * x**2
    - math.log(-x)
    - 0.5 * math.log(2 * math.pi)
    + math.log1p(series)
  )
