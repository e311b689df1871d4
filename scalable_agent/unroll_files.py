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
import threading
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
    """Touches nothing yet; files that are there stay as they are.

    Args:
      folder: where the files go.
      level_names: that the unrolls' level indices mean.
      max_bytes: most to write; what comes later is left out, and said.
    """
    self._folder = folder
    self._level_names = tuple(level_names)
    self._max_bytes = max_bytes
    self._num_bytes = 0
    self._shard: tf.io.TFRecordWriter | None = None
    self._shard_bytes = 0
    self._full = self._closed = False
    self._lock = threading.Lock()
    self.num_records = 0

  def write(self, unroll: structs.Unroll) -> None:
    """Appends each column of `unroll` (`[T + 1, E, ...]`) as a record.

    Raises OSError if the disk does not take it; does nothing once closed.
    """
    with self._lock:
      for column in range(len(unroll.level)):
        if self._full or self._closed:
          return
        self._append(unroll_records.encode(unroll, column, self._level_names))

  def close(self) -> None:
    """Completes the last file; from any thread."""
    with self._lock:
      self._closed = True
      self._close_shard()

  def _append(self, record):
    if self._num_bytes + len(record) > self._max_bytes:
      self._say_full()
      return
    try:
      if self._shard is None or self._shard_bytes >= _SHARD_BYTES:
        self._shard = self._next_shard()
      self._shard.write(record)
    except tf.errors.OpError as error:
      raise OSError(f'{self._folder}: {error.message}') from error
    self._shard_bytes += len(record)
    self._num_bytes += len(record)
    self.num_records += 1

  def _close_shard(self):
    if self._shard is not None:
      self._shard.close()
      self._shard = None

  def _next_shard(self):
    self._close_shard()
    os.makedirs(self._folder, exist_ok=True)
    number = len(glob.glob(os.path.join(self._folder, _PATTERN)))
    name = f'unrolls-{number:05d}-{os.getpid()}.tfrecord'
    self._shard_bytes = 0
    return tf.io.TFRecordWriter(os.path.join(self._folder, name))

  def _say_full(self):
    self._full = True
    self._close_shard()
    logging.warning(
      'Recorded %.1f GiB in %s, all that record_gib allows; nothing more is '
      'written.',
      self._num_bytes / 2**30,
      self._folder,
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
    """Reads until it has found a record that can be used.

    Args:
      folder: with files of `UnrollWriter`.
      example: an unroll of one column, with the shapes and dtypes to expect.
      action_spec: of the environments; it bounds discrete actions.
      level_names: of this run.
      seed: of the order.
      num_shuffled: records among which the next one is drawn.

    Raises:
      ValueError: the folder holds no file of unrolls, or nothing in them can
        be used.
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
    if next(self._one_pass(), None) is None:
      self._refuse()
    self.num_skipped.clear()

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
        self._refuse()
      while drawn:
        yield self._draw(drawn)

  def _refuse(self):
    kinds = ', '.join(f'{n} {k}' for k, n in self.num_skipped.items())
    raise ValueError(
      f'no record in {self._folder} can be used ({kinds or "all are empty"}); '
      'the log names the first of each kind.'
    )

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
