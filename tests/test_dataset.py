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
"""Tests for dataset: joining columns, and the pipeline's end."""

import threading

import numpy as np
import pytest
import tree
from doubles import CountingPolicy, ScriptedEnvironments

from scalable_agent import actor, dataset, queues


def unrolls(num_envs, num_unrolls, unroll_length=2):
  """Unrolls whose columns are told apart by their level."""
  one = actor.Actor(
    ScriptedEnvironments(num_envs=num_envs),
    CountingPolicy(num_envs),
    unroll_length,
  )
  for i in range(num_unrolls):
    level = num_envs * i + np.arange(num_envs, dtype=np.int32)
    yield one.unroll()._replace(level=level)


@pytest.mark.parametrize(
  ('num_envs', 'batch_size'),
  [(1, 4), (4, 1), (4, 4), (3, 4), (4, 3), (5, 2)],
)
def test_every_column_is_used_once_and_in_order(num_envs, batch_size):
  source = list(unrolls(num_envs, 12))
  batches = list(dataset.join_columns(iter(source), batch_size))
  assert len(batches) == 12 * num_envs // batch_size
  levels = np.concatenate([b.level for b in batches])
  np.testing.assert_array_equal(levels, np.arange(len(levels)))
  whole = dataset.concatenate(source)
  for i, batch in enumerate(batches):
    columns = slice(i * batch_size, (i + 1) * batch_size)
    tree.map_structure(
      lambda got, want, columns=columns: np.testing.assert_array_equal(
        got, want[:, columns]
      ),
      batch.env_outputs,
      whole.env_outputs,
    )


def test_a_batch_of_one_unroll_is_not_copied():
  (unroll,) = unrolls(4, 1)
  (batch,) = dataset.join_columns(iter([unroll]), 4)
  assert batch is unroll


def test_the_dataset_gives_batches_and_ends_when_the_queue_is_closed():
  queue = queues.UnrollQueue(2)
  seen = []
  (example,) = unrolls(1, 1)
  batches = dataset.make_dataset(queue, 3, seen.append, example)

  def produce():
    for unroll in unrolls(2, 6):
      queue.put(unroll)
    while queue.num_left:
      pass
    queue.close()

  thread = threading.Thread(target=produce, daemon=True)
  thread.start()
  got = list(batches)
  thread.join(5)
  assert [b.level.numpy().tolist() for b in got[:3]] == [
    [0, 1, 2],
    [3, 4, 5],
    [6, 7, 8],
  ]
  assert got[0].env_outputs.reward.shape == (3, 3)
  assert got[0].env_outputs.observation.shape == (3, 3, 2)
  assert len(seen) == 6


def test_read_only_arrays_are_fine():
  queue = queues.UnrollQueue(2)
  (example,) = unrolls(1, 1)
  for unroll in unrolls(2, 2):
    tree.map_structure(lambda x: x.setflags(write=False), unroll)
    queue.put(unroll)
  batches = iter(dataset.make_dataset(queue, 4, lambda _: None, example))
  assert next(batches).level.shape == (4,)
  queue.close()
