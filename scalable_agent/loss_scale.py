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
"""Loss scaling: keeps small gradients of float16 above zero.

After Micikevicius et al. 2018, "Mixed Precision Training", section 3.2.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

_GROW_AFTER = 2000
_LARGEST = 2.0**24


class DynamicLossScale:
  """A factor that halves when gradients overflow and doubles when it can.

  Works in replica context: every replica must see the same `finite`.
  """

  def __init__(self, initial: float = 2.0**15):
    """Makes the variables, in the scope of the strategy if there is one."""
    self.factor = tf.Variable(
      initial, trainable=False, dtype=tf.float32, name='loss_scale/factor'
    )
    self.num_good = tf.Variable(
      0, trainable=False, dtype=tf.int64, name='loss_scale/num_good'
    )

  def scale(self, loss: tf.Tensor) -> tf.Tensor:
    """The loss whose gradients `unscale` takes."""
    return loss * self.factor

  def unscale(self, gradients: Sequence[Any]) -> list[Any]:
    """Gradients of the loss itself; sparse ones stay sparse."""
    return [
      tf.IndexedSlices(g.values / self.factor, g.indices, g.dense_shape)
      if isinstance(g, tf.IndexedSlices)
      else g / self.factor
      for g in gradients
    ]

  def adapt(self, finite: tf.Tensor) -> None:
    """Halves after an overflow, doubles after 2,000 updates without one."""
    num_good = tf.where(finite, self.num_good + 1, 0)
    grow = num_good >= _GROW_AFTER
    factor = tf.where(finite, self.factor, tf.maximum(self.factor / 2, 1.0))
    factor = tf.where(grow, tf.minimum(factor * 2, _LARGEST), factor)
    self.factor.assign(factor)
    self.num_good.assign(tf.where(grow, tf.zeros_like(num_good), num_good))
