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
"""RMSProp as TensorFlow 1 computes it, and the learning rate of a frame.

Source: the original's `experiment.py` (`build_learner`), TensorFlow 1's
`tf.train.RMSPropOptimizer` and `tf.train.polynomial_decay`.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

_MEAN_SQUARE = 'mean_square'
_MOMENTUM = 'momentum'


def learning_rate_at(
  env_frames: Any, initial: float, total_environment_frames: int
) -> Any:
  """Learning rate that falls linearly from `initial` to exactly 0.

  Args:
    env_frames: frames seen so far; a Python number or an integer tensor.
    initial: learning rate at frame 0.
    total_environment_frames: from this frame on the rate is 0.

  Returns:
    A float for a Python number, a float32 tensor of its shape for a tensor.
  """
  if isinstance(env_frames, int | float | np.number):
    remaining = max(total_environment_frames - env_frames, 0)
    return float(initial * (remaining / total_environment_frames))
  # Subtracted as integers: float32 cannot tell frames apart beyond 2^24.
  remaining = tf.maximum(total_environment_frames - env_frames, 0)
  fraction = tf.cast(remaining, tf.float32) / float(total_environment_frames)
  return initial * fraction


@keras.saving.register_keras_serializable('scalable_agent')
class RMSProp(keras.optimizers.Optimizer):
  """RMSProp, step for step that of TensorFlow 1.

      mean_square += (1 - decay) * (gradient**2 - mean_square)
      momentum     = momentum * momentum_slot
                     + learning_rate * gradient / sqrt(mean_square + epsilon)
      variable    -= momentum

  It differs from `keras.optimizers.RMSprop` in that the mean square starts at
  one. Rows of an embedding that an update does not touch (the gradient is
  `tf.IndexedSlices`) keep their slots, as in TensorFlow 1.

  **Gradients are applied as they are given.** Nothing is reduced over replicas,
  neither in `update` nor in `apply`; whoever computes gradients in replicas
  sums them first with `all_reduce`. Keras's own optimizers would sum again.
  """

  def __init__(
    self,
    learning_rate: float,
    decay: float,
    momentum: float,
    epsilon: float,
    clip_gradient_norm: float | None = None,
    name: str = 'rmsprop',
  ):
    """Creates the optimizer; `build` then creates its slots.

    Args:
      learning_rate: what `apply` uses; `update` is given its own.
      decay: of the mean square, per update.
      momentum: 0 for none.
      epsilon: added to the mean square, inside the square root.
      clip_gradient_norm: largest global norm of the gradients; None for no
        clipping.
      name: name of the optimizer's variables.
    """
    super().__init__(learning_rate=float(learning_rate), name=name)
    self.decay = float(decay)
    self.momentum = float(momentum)
    self.epsilon = float(epsilon)
    self.clip_gradient_norm = clip_gradient_norm

  def build(self, variables: Sequence[Any]) -> None:
    """Creates the slots: mean square of ones, momentum of zeros.

    With `tf.distribute`, call it once in the scope of the strategy.
    """
    if self.built:
      return
    variables = list(variables)
    super().build(variables)
    self._mean_squares = self.add_optimizer_variables(
      variables, _MEAN_SQUARE, 'ones'
    )
    self._momentums = self.add_optimizer_variables(variables, _MOMENTUM)

  def slots(self, variable: Any) -> dict[str, keras.Variable]:
    """Slots of one variable: `mean_square` and `momentum`, of its shape."""
    if not self.built:
      raise RuntimeError(
        'RMSProp has no slots yet; call build(variables) first, in the scope '
        'of the strategy if there is one.'
      )
    self._check_variables_are_known([variable])
    index = self._get_variable_index(variable)
    return {
      _MEAN_SQUARE: self._mean_squares[index],
      _MOMENTUM: self._momentums[index],
    }

  def update(
    self,
    gradients: Sequence[Any],
    variables: Sequence[Any],
    learning_rate: Any,
    ok: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Takes one step; works in replica context too, where it must agree.

    Args:
      gradients: one per variable, already summed over replicas. May hold
        anything, NaN included, where `ok` is false.
      variables: those that `build` was given, in any order.
      learning_rate: scalar of this step, a float or a float32 tensor.
      ok: scalar bool tensor; false leaves variables, slots and the count of
        iterations as they are. None takes the step.

    Returns:
      Scalar float32, global norm of the gradients before clipping.
    """
    slots = [self.slots(variable) for variable in variables]
    gradients, touched = zip(
      *(
        _dense(gradient, variable)
        for gradient, variable in zip(gradients, variables, strict=True)
      ),
      strict=True,
    )
    norm = tf.linalg.global_norm(gradients)
    if self.clip_gradient_norm is not None:
      scale = self.clip_gradient_norm / tf.maximum(
        norm, self.clip_gradient_norm
      )
      gradients = [gradient * scale for gradient in gradients]
    self._step_all(gradients, variables, slots, touched, learning_rate, ok)
    one = tf.ones([], self.iterations.dtype)
    self.iterations.assign_add(one if ok is None else tf.cast(ok, one.dtype))
    return norm

  def _step_all(self, gradients, variables, slots, touched, learning_rate, ok):
    """Steps all variables, see `update`; `touched`: their rows, or None."""
    dense = []
    for gradient, variable, slot, rows in zip(
      gradients, variables, slots, touched, strict=True
    ):
      state = [
        v.value if isinstance(v, keras.Variable) else v
        for v in (variable, slot[_MEAN_SQUARE], slot[_MOMENTUM])
      ]
      if rows is None:
        dense.append((gradient, state))
      else:
        mask = rows if ok is None else rows & ok
        self._step_rows(gradient, state, learning_rate, mask)

    def step_dense():
      for gradient, state in dense:
        self._step(gradient, state, learning_rate)

    if ok is None:
      step_dense()
    else:
      tf.cond(ok, step_dense, lambda: None)

  def _step(self, gradient, state, learning_rate):
    """Steps a variable in one pass: TensorFlow 1's own operation."""
    variable, mean_square, momentum = state
    tf.raw_ops.ResourceApplyRMSProp(
      var=variable.handle,
      ms=mean_square.handle,
      mom=momentum.handle,
      lr=learning_rate,
      rho=self.decay,
      momentum=self.momentum,
      epsilon=self.epsilon,
      grad=gradient,
    )

  def _step_rows(self, gradient, state, learning_rate, mask):
    """The same where `mask` is true; the operation cannot leave rows out."""
    old = [tf.convert_to_tensor(v) for v in state]
    value, mean_square, momentum = old
    mean_square += (1 - self.decay) * (tf.square(gradient) - mean_square)
    momentum = self.momentum * momentum + learning_rate * gradient / tf.sqrt(
      mean_square + self.epsilon
    )
    new = [value - momentum, mean_square, momentum]
    for v, before, after in zip(state, old, new, strict=True):
      v.assign(tf.where(mask, after, before))

  def apply(self, grads, trainable_variables=None):
    """Keras's entry: `update` at the optimizer's own learning rate."""
    if trainable_variables is None:
      trainable_variables = self._trainable_variables
    self.build(trainable_variables)
    self.update(grads, trainable_variables, self.learning_rate.value)

  def get_config(self) -> dict[str, Any]:
    """Arguments of the constructor, for Keras's saving."""
    return {
      'learning_rate': float(self.learning_rate.numpy()),
      'decay': self.decay,
      'momentum': self.momentum,
      'epsilon': self.epsilon,
      'clip_gradient_norm': self.clip_gradient_norm,
      'name': self.name,
    }


def _dense(gradient, variable):
  """The gradient as a tensor, and which rows it touches (None: all)."""
  name = getattr(variable, 'path', variable.name)
  if gradient is None:
    raise ValueError(
      f'Variable {name} has no gradient (None); the loss must depend on every '
      'variable of the optimizer.'
    )
  touched = None
  if isinstance(gradient, tf.IndexedSlices):
    num_rows = variable.shape[0]
    touched = tf.math.unsorted_segment_sum(
      tf.ones_like(gradient.indices, tf.float32), gradient.indices, num_rows
    )
    touched = tf.reshape(
      touched > 0, [num_rows] + [1] * (len(variable.shape) - 1)
    )
    gradient = tf.math.unsorted_segment_sum(
      gradient.values, gradient.indices, num_rows
    )
  if not gradient.shape.is_compatible_with(variable.shape):
    raise ValueError(
      f'The gradient of variable {name} has shape {gradient.shape}; it must '
      f"have the variable's, {variable.shape}."
    )
  return tf.cast(gradient, variable.dtype), touched
