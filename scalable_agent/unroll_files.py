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
"""Unrolls on disk: TFRecord files of `unroll_records`, written and read.

The files carry checksums. What cannot be used is counted and named, and never
given out.
"""

import collections
import glob
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from scalable_agent import structs, unroll_records

_SHARD_BYTES = 64 * 2**20
_PATTERN = 'unrolls-*.tfrecord'


class UnrollWriter:
  """Writes the columns of unrolls into files of some 64 MiB in a folder.

  num_records: written so far.
  """

  def __init__(self, folder: str, level_names: Sequence[str], max_bytes: int):
    """Makes the folder. Files that are there stay as they are.

    Args:
      folder: where the files go.
      level_names: that the unrolls' level indices mean.
      max_bytes: most to write; what comes later is left out, and said.
    """
    os.makedirs(folder, exist_ok=True)
    self._folder = folder
    self._level_names = tuple(level_names)
    self._max_bytes = max_bytes
    self._num_bytes = 0
    self._shard: tf.io.TFRecordWriter | None = None
    self._shard_bytes = 0
    self._full = False
    self.num_records = 0

  def write(self, unroll: structs.Unroll) -> None:
    """Appends each column of `unroll` (`[T + 1, E, ...]`) as a record."""
    for column in range(len(unroll.level)):
      record = unroll_records.encode(unroll, column, self._level_names)
      if self._num_bytes + len(record) > self._max_bytes:
        self._say_full()
        return
      if self._shard is None or self._shard_bytes >= _SHARD_BYTES:
        self._shard = self._next_shard()
      self._shard.write(record)
      self._shard_bytes += len(record)
      self._num_bytes += len(record)
      self.num_records += 1

  def close(self) -> None:
    """Completes the last file."""
    if self._shard is not None:
      self._shard.close()
      self._shard = None

  def _next_shard(self):
    self.close()
    number = len(glob.glob(os.path.join(self._folder, _PATTERN)))
    name = f'unrolls-{number:05d}-{os.getpid()}.tfrecord'
    self._shard_bytes = 0
    return tf.io.TFRecordWriter(os.path.join(self._folder, name))

  def _say_full(self):
    if not self._full:
      self._full = True
      self.close()
      logging.warning(
        '%s holds %.1f GiB, all that record_gib allows; nothing more is '
        'recorded.',
        self._folder,
        self._num_bytes / 2**30,
      )


class UnrollReader:
  """Gives out the columns of a folder again and again, in random order.

  num_skipped: records that were not given out, by kind of reason.
  """

  def __init__(
    self,
    folder: str,
    example: structs.Unroll,
    action_spec: Any,
    level_names: Sequence[str],
    seed: int = 0,
    num_shuffled: int = 256,
  ):
    """Reads nothing yet.

    Args:
      folder: with files of `UnrollWriter`.
      example: an unroll of one column, with the shapes and dtypes to expect.
      action_spec: of the environments; it bounds discrete actions.
      level_names: of this run.
      seed: of the order.
      num_shuffled: records among which the next one is drawn.

    Raises:
      ValueError: the folder holds no file of unrolls.
    """
    self._files = sorted(glob.glob(os.path.join(folder, _PATTERN)))
    if not self._files:
      raise ValueError(
        f'{folder} holds no files {_PATTERN}; name a folder that '
        '--record_unrolls has filled.'
      )
    self._folder = folder
    self._expected = example, action_spec, level_names
    self._random = np.random.default_rng(seed)
    self._num_shuffled = num_shuffled
    self.num_skipped: collections.Counter[str] = collections.Counter()

  def __iter__(self) -> Iterator[structs.Unroll]:
    """Columns without end; raises `ValueError` if none can be used."""
    drawn: list[structs.Unroll] = []
    while True:
      num_used = 0
      for unroll in self._one_pass():
        num_used += 1
        drawn.append(unroll)
        if len(drawn) > self._num_shuffled:
          yield self._draw(drawn)
      if not num_used:
        kinds = ', '.join(f'{n} {k}' for k, n in self.num_skipped.items())
        raise ValueError(
          f'no record in {self._folder} can be used ({kinds or "no records"}); '
          'the log names the first of each.'
        )
      while drawn:
        yield self._draw(drawn)

  def _draw(self, drawn):
    index = int(self._random.integers(len(drawn)))
    drawn[index], drawn[-1] = drawn[-1], drawn[index]
    return drawn.pop()

  def _one_pass(self):
    for index in self._random.permutation(len(self._files)):
      path = self._files[index]
      number = -1
      try:
        for number, record in enumerate(tf.data.TFRecordDataset(path)):
          try:
            unroll = unroll_records.decode(record.numpy(), *self._expected)
          except unroll_records.UnusableRecordError as error:
            self._skip(path, number, error.kind, error)
          else:
            yield unroll
      except tf.errors.DataLossError as error:
        # The checksum tells; where the next record begins is not known.
        message = f'the rest of the file is damaged ({error.message})'
        self._skip(path, number + 1, 'damaged', message)

  def _skip(self, path, number, kind, message):
    if not self.num_skipped[kind]:
      logging.warning(
        'Skipped record %d of %s: %s More of this kind are only counted.',
        number,
        path,
        message,
      )
    self.num_skipped[kind] += 1
