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
"""Shapes that are demanded by name, so that nothing broadcasts unasked.

`[B]` minus `[B, 1]` is `[B, B]` and raises nothing: learning gets slower, and
nobody sees why. V-trace and the losses therefore demand the shape of every
tensor. What is known while tracing raises a `ValueError` there and costs
nothing later; the rest is checked when the operation runs.
"""

from typing import Any, NamedTuple

import tensorflow as tf


class Shape(NamedTuple):
  """A shape, as far as it is known now, and as it will be.

  static: what is known while tracing.
  dynamic: `[rank]` int32, the whole.
  """

  static: tf.TensorShape
  dynamic: tf.Tensor

  def part(self, start: int | None, stop: int | None = None) -> 'Shape':
    """The axes from `start` up to `stop`, as in a slice."""
    return Shape(self.static[start:stop], self.dynamic[start:stop])


def shape_of(tensor: tf.Tensor) -> Shape:
  """The shape of a tensor."""
  return Shape(tensor.shape, tf.shape(tensor))


def to_float(tensor: Any) -> tf.Tensor:
  """Anything numeric as float32, whatever precision it came in."""
  return tf.cast(tf.convert_to_tensor(tensor), tf.float32)


def require_rank(tensor: tf.Tensor, name: str, rank: int, axes: str) -> None:
  """Raises if the rank is known and wrong. `axes` spells the right one."""
  if tensor.shape.rank not in (None, rank):
    raise ValueError(
      f'{name} has shape {tensor.shape}, but must have rank {rank}: {axes}.'
    )


def require(
  tensor: tf.Tensor,
  name: str,
  expected: Shape,
  reason: str,
  *,
  spread_from: int | None = None,
) -> tf.Tensor:
  """The tensor itself, with exactly the expected shape, or an error.

  Args:
    tensor: what was given.
    name: what the caller knows it by.
    expected: the shape it must have.
    reason: where that shape comes from, as in 'the shape of values'.
    spread_from: from this axis on, a size of 1 is allowed, and repeated.

  Returns:
    The tensor. Where its shape or the expected one is unknown while tracing,
    the result depends on a check that runs with it.

  Raises:
    ValueError: the shapes are known and differ.
  """
  rank, expected_rank = tensor.shape.rank, expected.static.rank
  if None not in (rank, expected_rank) and rank != expected_rank:
    raise ValueError(
      f'{name} has shape {tensor.shape}, but must have rank {expected_rank}: '
      f'{expected.static}, {reason}.'
    )
  if not _may_match(tensor.shape, expected.static, spread_from):
    raise ValueError(
      f'{name} has shape {tensor.shape}, but must have shape '
      f'{expected.static}, {reason}.'
    )
  if tensor.shape.is_fully_defined() and expected.static.is_fully_defined():
    if tensor.shape != expected.static:
      tensor = tf.broadcast_to(tensor, expected.static)
    return tensor
  return _require_later(tensor, name, expected, reason, spread_from)


def categorical_log_probs(logits: Any, actions: Any, name: str) -> tf.Tensor:
  """Log-probabilities of actions under a softmax policy.

  Args:
    logits: `[..., A]`, unnormalized log-probabilities of A actions.
    actions: `[...]` integers from 0 to A - 1.
    name: what the caller knows the logits by.

  Returns:
    `[...]` float32.
  """
  logits = to_float(logits)
  actions = require(
    tf.cast(tf.convert_to_tensor(actions), tf.int32),
    'actions',
    shape_of(logits).part(0, -1),
    f'the shape of {name}, {logits.shape}, without its last axis',
  )
  return -tf.nn.sparse_softmax_cross_entropy_with_logits(
    labels=actions, logits=logits
  )


def log_probs(distribution: Any, actions: Any, name: str) -> tf.Tensor:
  """Log-probabilities of actions, one for each member of the batch.

  Args:
    distribution: a TensorFlow Probability distribution, batch shape `[...]`.
    actions: `[..., *event]`, the batch shape followed by the event shape.
    name: what the caller knows the distribution by.

  Returns:
    `[...]` float32.
  """
  actions = tf.convert_to_tensor(actions)
  batch_and_event = Shape(
    distribution.batch_shape + distribution.event_shape,
    tf.concat(
      [distribution.batch_shape_tensor(), distribution.event_shape_tensor()], 0
    ),
  )
  actions = require(
    actions, 'actions', batch_and_event, f'the batch and event shape of {name}'
  )
  return to_float(distribution.log_prob(actions))


def _may_match(shape, expected, spread_from):
  if None in (shape.rank, expected.rank):
    return True
  return all(
    None in (size, wanted)
    or size == wanted
    or (spread_from is not None and axis >= spread_from and size == 1)
    for axis, (size, wanted) in enumerate(
      zip(shape.as_list(), expected.as_list(), strict=True)
    )
  )


def _require_later(tensor, name, expected, reason, spread_from):
  """`require` for what only running tells."""
  wanted = expected.dynamic
  if spread_from is not None:
    # An axis that may be spread may have size 1 instead.
    actual = tf.concat([tf.shape(tensor), tf.zeros_like(wanted)], 0)
    one = tf.equal(actual[: tf.size(wanted)], 1)
    late = tf.range(tf.size(wanted)) >= spread_from
    wanted = tf.where(one & late, 1, wanted)
  same = tf.cond(
    tf.equal(tf.rank(tensor), tf.size(wanted)),
    lambda: tf.reduce_all(tf.equal(tf.shape(tensor), wanted)),
    lambda: False,
  )
  check = tf.debugging.Assert(
    same,
    [
      f'{name} has shape',
      tf.shape(tensor),
      'but must have shape',
      expected.dynamic,
      reason,
    ],
  )
  with tf.control_dependencies([check] if check is not None else []):
    # XLA drops assertions, but not this: a stack never broadcasts.
    like = tf.zeros(wanted, tensor.dtype)
    tensor = tf.stack([tensor, like], name=f'require_shape_of_{name}')[0]
  if spread_from is not None:
    tensor = tf.broadcast_to(tensor, expected.dynamic)
  return tf.ensure_shape(tensor, expected.static)
