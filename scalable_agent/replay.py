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
"""Replay: part of each batch is drawn again from unrolls of before.

Espeholt et al. 2018, section 5.2.2 and table D.3: 10,000 trajectories, uniform
sampling, first in first out, and half of each batch from replay. Samples carry
the logits of the policy that acted, so V-trace corrects for their age.
"""

import numpy as np
import psutil
import tree

from scalable_agent import dataset, structs

# Of the memory that is free, what a full buffer may take.
_LARGEST_SHARE = 0.9


class ReplayBuffer:
  """The newest `capacity` columns, copied. One thread's own."""

  def __init__(
    self, example: structs.Unroll, capacity: int, num_sampled: int, seed: int
  ):
    """Makes an empty buffer; memory is taken as it fills.

    Args:
      example: an unroll of one column, for its shapes and dtypes.
      capacity: columns that are kept.
      num_sampled: columns that complete a batch.
      seed: of the samples.

    Raises:
      ValueError: a full buffer would not fit into the memory that is free.
    """
    self._capacity = capacity
    self._num_sampled = num_sampled
    self._random = np.random.default_rng(seed)
    self._num_added = 0
    self._column_bytes = sum(
      np.asarray(x).nbytes for x in tree.flatten(example)
    )
    free = psutil.virtual_memory().available
    if self.max_bytes > _LARGEST_SHARE * free:
      raise ValueError(
        f'replay_capacity is {capacity}; so many unrolls of '
        f'{self._column_bytes:,} bytes take {self.max_bytes / 1e9:.1f} GB, and '
        f'{_LARGEST_SHARE:.0%} of the {free / 1e9:.1f} GB that are free may be '
        'taken; lower it.'
      )
    # Per leaf `[capacity, ...]`, a column's own axes behind.
    self._columns = dataset.map_columns(
      lambda x, axis: np.empty((capacity, *np.delete(x.shape, axis)), x.dtype),
      example,
    )

  @property
  def max_bytes(self) -> int:
    """What a full buffer takes. Of texts only the references are counted."""
    return self._capacity * self._column_bytes

  @property
  def num_kept(self) -> int:
    """Columns inside."""
    return min(self._num_added, self._capacity)

  def __str__(self) -> str:
    """One sentence about what it takes."""
    return (
      f'Replay: {self._num_sampled} columns of each batch, from the newest '
      f'{self._capacity:,} unrolls of {self._column_bytes:,} bytes: '
      f'{self.max_bytes / 1e9:.2f} GB of memory when full.'
    )

  def complete(self, fresh: structs.Unroll) -> structs.Unroll:
    """Takes in `fresh` columns; returns them followed by the sampled ones.

    The fresh ones may be drawn as well, so that the first batch has what to
    draw from.
    """
    self.add(fresh)
    return dataset.concatenate([fresh, self.sample()])

  def add(self, unroll: structs.Unroll) -> None:
    """Copies the columns in; the oldest make room."""
    num_columns = len(unroll.level)
    slots = (self._num_added + np.arange(num_columns)) % self._capacity

    def write(columns, x, axis):
      # Of more than fit the last ones stay.
      moved = np.moveaxis(x, axis, 0)[-self._capacity :]
      columns[slots[-self._capacity :]] = moved

    dataset.map_columns(
      lambda x, axis, columns: write(columns, x, axis), unroll, self._columns
    )
    self._num_added += num_columns

  def sample(self) -> structs.Unroll:
    """`num_sampled` columns, each drawn uniformly from all, independently."""
    drawn = self._random.integers(self.num_kept, size=self._num_sampled)
    return dataset.map_columns(
      lambda columns, axis: np.moveaxis(columns[drawn], 0, axis), self._columns
    )
