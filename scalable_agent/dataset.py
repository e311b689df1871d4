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
"""From the queue of unrolls to batches on the learner's device."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from scalable_agent import queues, structs
from scalable_agent.nets import agent as agent_lib


def join_columns(
  unrolls: Iterator[structs.Unroll], batch_size: int
) -> Iterator[structs.Unroll]:
  """Joins and splits unrolls of any width into batches of `batch_size`.

  Columns keep their order; those left over wait for the next batch, so every
  column is used exactly once. A batch made of exactly one unroll is that
  unroll, without a copy.
  """
  waiting: list[structs.Unroll] = []
  num_columns = 0
  for unroll in unrolls:
    waiting.append(unroll)
    num_columns += len(unroll.level)
    while num_columns >= batch_size:
      joined = waiting[0] if len(waiting) == 1 else concatenate(waiting)
      yield slice_columns(joined, 0, batch_size)
      num_columns -= batch_size
      rest = slice_columns(joined, batch_size, None)
      waiting = [rest] if num_columns else []


def concatenate(unrolls: list[structs.Unroll]) -> structs.Unroll:
  """One unroll with the columns of all."""
  return map_columns(
    lambda x, axis, *xs: np.concatenate((x, *xs), axis), *unrolls
  )


def slice_columns(
  unroll: structs.Unroll, start: int, stop: int | None
) -> structs.Unroll:
  """The columns `start:stop` of `unroll`, as views."""
  if start == 0 and stop == len(unroll.level):
    return unroll
  columns = slice(start, stop)
  return map_columns(
    lambda x, axis: x[(slice(None),) * axis + (columns,)], unroll
  )


def map_columns(
  function: Callable[..., Any], unroll: structs.Unroll, *more: structs.Unroll
) -> structs.Unroll:
  """`function(x, axis, *others)` of each array, `axis` that of its columns."""
  return structs.Unroll(
    *[
      tree.map_structure(
        lambda x, *xs, axis=axis: function(x, axis, *xs), *parts
      )
      for axis, *parts in zip(_COLUMN_AXES, unroll, *more, strict=True)
    ]
  )


# The axis of the columns in each field of `structs.Unroll`.
_COLUMN_AXES = structs.Unroll(
  level=0,
  version=0,
  core_state=0,
  env_outputs=1,
  agent_outputs=1,
  truncation_values=1,
)


def make_dataset(
  queue: queues.UnrollQueue,
  batch_size: int,
  on_unroll: Callable[[structs.Unroll], None],
  example: structs.Unroll,
  device: str | None = None,
  num_fresh: int | None = None,
  complete: Callable[[structs.Unroll], structs.Unroll] | None = None,
) -> tf.data.Dataset:
  """Batches of `[T + 1, B, ...]` until the queue is closed.

  Args:
    queue: where unrolls come from.
    batch_size: B.
    on_unroll: told of every unroll that leaves the queue, on the pipeline's
      thread, before it is joined: episodes are counted here.
    example: an unroll of any width; it gives structure, shapes and dtypes.
    device: one batch is copied ahead to this device; None: one waits on the
      host.
    num_fresh: columns of a batch that come from the queue; None: all.
    complete: makes batches of B columns of them; None: they are batches.
  """

  def unrolls():
    while True:
      try:
        unroll = queue.get()
      except structs.Closed:
        return
      on_unroll(unroll)
      yield unroll

  def flat_batches():
    for batch in join_columns(unrolls(), num_fresh or batch_size):
      yield tuple(tree.flatten(complete(batch) if complete else batch))

  dataset = tf.data.Dataset.from_generator(
    flat_batches,
    output_signature=tuple(tree.flatten(batch_signature(example, batch_size))),
  ).map(lambda *flat: tree.unflatten_as(example, flat))
  # One batch ahead and not one more: what waits grows old.
  options = tf.data.Options()
  options.autotune.enabled = False
  options.experimental_optimization.inject_prefetch = False
  dataset = dataset.with_options(options)
  if device is None:
    return dataset.prefetch(1)
  return dataset.apply(tf.data.experimental.prefetch_to_device(device, 1))


def join_replicas(
  batches: Sequence[Iterable[structs.Unroll]], strategy: tf.distribute.Strategy
) -> Iterator[structs.Unroll]:
  """Batches whose values are those of all replicas of this host.

  Ends when the first source does. `version` stays plain, `[K * B]`, for K
  replicas: no replica needs it. With one replica batches pass as they are.

  Args:
    batches: of each replica.
    strategy: of the learner.
  """
  if len(batches) == 1:
    yield from batches[0]
    return
  for replicas in zip(*batches, strict=False):
    values = zip(*map(tree.flatten, replicas), strict=True)
    joined = tree.unflatten_as(
      replicas[0], [_per_replica(strategy, value) for value in values]
    )
    yield joined._replace(version=tf.concat([r.version for r in replicas], 0))


def _per_replica(strategy, values):
  """One value for each replica on this host, whose order is theirs."""
  remaining = iter(values)
  return strategy.experimental_distribute_values_from_function(
    lambda _: next(remaining)
  )


def batch_signature(example: structs.Unroll, batch_size: int) -> structs.Unroll:
  """`tf.TensorSpec`s of a batch of `batch_size` columns like `example`'s."""

  def to_spec(x, axis):
    shape = list(x.shape)
    shape[axis] = batch_size
    is_text = x.dtype.kind in 'OSU'
    return tf.TensorSpec(shape, tf.string if is_text else x.dtype)

  return map_columns(to_spec, example)


def example_unroll(
  agent: agent_lib.Agent, spec: structs.EnvironmentSpec, unroll_length: int
) -> structs.Unroll:
  """An unroll of one column and no content, for its shapes and dtypes.

  Args:
    agent: the network that acts; it knows core state and logits.
    spec: of the environments.
    unroll_length: T.
  """

  def blank(shape, dtype):
    shape = (unroll_length + 1, 1, *shape)
    if np.dtype(dtype).kind in 'OSU':
      return np.full(shape, '', object)
    return np.zeros(shape, dtype)

  env_outputs = structs.EnvOutput(
    reward=blank((), np.float32),
    info=structs.EpisodeInfo(blank((), np.float32), blank((), np.int32)),
    done=blank((), bool),
    first=blank((), bool),
    truncated=blank((), bool),
    observation=tree.map_structure(
      lambda s: blank(s.shape, s.dtype), spec.observation
    ),
  )
  core_state = agent.initial_state(1)
  action = structs.no_actions(spec.action, 1)
  first_slot = tree.map_structure(lambda x: x[0], env_outputs)
  net, _ = agent.step(action, first_slot, core_state)
  return structs.Unroll(
    level=np.zeros(1, np.int32),
    version=np.zeros(1, np.int64),
    core_state=tree.map_structure(np.asarray, core_state),
    env_outputs=env_outputs,
    agent_outputs=structs.AgentOutput(
      action=blank(action.shape[1:], action.dtype),
      policy_logits=blank(net.policy_logits.shape[1:], np.float32),
      baseline=blank((), np.float32),
    ),
    truncation_values=blank((), np.float32),
  )
