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
"""Saves and restores a run: arrays by name, and counters.

A checkpoint is one file, `checkpoint-<number>.npz`: NumPy's format, plus a
member `meta.json` with the format version and the counters, plus the SHA-256 of
everything before it as the archive's comment, the file's last 64 bytes. So
`np.load` reads it, nothing in it is ever unpickled, and damage anywhere shows.
It is written aside and renamed: a process killed at any moment leaves the
earlier checkpoints as they were.
"""

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from scalable_agent import files

FORMAT_VERSION = 1

_META = 'meta.json'
_SUFFIX = '.npy'
_NAME = re.compile(r'checkpoint-(\d+)\.npz')
# How `files.write_atomically` names what it writes aside.
_LEFTOVER = re.compile(_NAME.pattern + r'\.\d+\.tmp')
_DIGEST_LENGTH = 64


class DamagedError(ValueError):
  """A file that is no whole checkpoint: cut off, altered, or foreign."""


class Saved(NamedTuple):
  """What a checkpoint holds.

  arrays: by name, as they were given to `save`, bit for bit.
  counters: as given to `save`, after JSON: keys are strings, tuples and
    arrays are lists.
  path: of the file.
  """

  arrays: dict[str, np.ndarray]
  counters: dict[str, Any]
  path: str


class Checkpointer:
  """The checkpoints of one run, in one directory, written by one process."""

  def __init__(self, directory: str | os.PathLike[str], keep: int = 3):
    """Looks at nothing and creates nothing yet.

    Args:
      directory: of the run; other files in it are left alone.
      keep: how many of the newest checkpoints stay.
    """
    if keep < 1:
      raise ValueError(f'keep is {keep}; at least 1 checkpoint must stay.')
    self._directory = os.fspath(directory)
    self._keep = keep

  def save(
    self, arrays: Mapping[str, np.ndarray], counters: Mapping[str, Any]
  ) -> str:
    """Writes one more checkpoint, drops the oldest; returns its path.

    Args:
      arrays: numbers or booleans of any shape.
      counters: what JSON can hold; NumPy's numbers and arrays too.

    Raises:
      OSError: nothing was written, earlier checkpoints are intact.
    """
    data = _encode(arrays, counters)
    numbers = self._numbers()
    numbers.append(numbers[-1] + 1 if numbers else 0)
    path = self._path(numbers[-1])
    try:
      os.makedirs(self._directory, exist_ok=True)
      self._remove_leftovers()
      files.write_atomically(path, data)
      _sync_directory(self._directory)
    except OSError as error:
      raise OSError(
        error.errno,
        f'{error.strerror}: {path} was not written, earlier checkpoints are '
        f'intact; it needs {len(data)} bytes and the right to write there',
      ) from error
    for number in numbers[: -self._keep]:
      os.remove(self._path(number))
    return path

  def latest(self) -> str | None:
    """Path of the newest checkpoint, unread; None if there is none."""
    numbers = self._numbers()
    return self._path(numbers[-1]) if numbers else None

  def restore(self) -> Saved | None:
    """The newest checkpoint that is whole; None if there is none at all.

    Damaged ones are skipped with a warning. If all are damaged that is a
    `DamagedError`: to start anew must be someone's decision.
    """
    damage: dict[str, str] = {}
    while candidates := [
      path for path in map(self._path, self._numbers()) if path not in damage
    ]:
      path = candidates[-1]
      try:
        saved = read(path)
      except (DamagedError, FileNotFoundError) as error:
        # Not found: meanwhile the run that writes here has dropped it.
        damage[path] = str(error)
        continue
      for message in damage.values():
        logging.warning('%s Using %s instead.', message, path)
      return saved
    if damage:
      raise DamagedError(
        f'No checkpoint in {self._directory} can be read: '
        f'{" ".join(damage.values())} Move them away to start anew.'
      )
    return None

  def restore_required(self) -> Saved:
    """As `restore`, but no checkpoint is a `FileNotFoundError`."""
    saved = self.restore()
    if saved is None:
      raise FileNotFoundError(
        f'There is no checkpoint in {self._directory}; name the directory of a '
        'run that has saved one.'
      )
    return saved

  def _path(self, number: int) -> str:
    return os.path.join(self._directory, f'checkpoint-{number:08}.npz')

  def _numbers(self) -> list[int]:
    """Of the checkpoints that are there, in ascending order."""
    if not os.path.isdir(self._directory):
      return []
    matches = map(_NAME.fullmatch, os.listdir(self._directory))
    return sorted(int(match[1]) for match in matches if match)

  def _remove_leftovers(self) -> None:
    """Removes what a process killed while saving has left."""
    for name in os.listdir(self._directory):
      if _LEFTOVER.fullmatch(name):
        os.remove(os.path.join(self._directory, name))


def read(path: str | os.PathLike[str]) -> Saved:
  """Reads one checkpoint.

  Raises:
    DamagedError: the file is not a whole checkpoint.
    ValueError: a newer version of this library wrote it.
  """
  with open(path, 'rb') as file:
    data = file.read()
  digest = hashlib.sha256(data[:-_DIGEST_LENGTH]).hexdigest()
  if data[-_DIGEST_LENGTH:] != digest.encode():
    raise DamagedError(
      f'{os.fspath(path)} is damaged or no checkpoint: its {len(data)} bytes '
      'do not have the checksum at their end.'
    )
  with zipfile.ZipFile(io.BytesIO(data)) as archive:
    meta = json.loads(archive.read(_META))
    version = meta['format_version']
    if version > FORMAT_VERSION:
      raise ValueError(
        f'{os.fspath(path)} has format version {version}, and this library '
        f'reads versions up to {FORMAT_VERSION}; update scalable_agent.'
      )
    arrays = {
      name.removesuffix(_SUFFIX): _read_array(archive, name)
      for name in archive.namelist()
      if name != _META
    }
  return Saved(arrays, meta['counters'], os.fspath(path))


def assign_all(
  variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
  """Assigns every array to the variable of its name, or none of them.

  Args:
    variables: Keras or TensorFlow variables by name.
    arrays: must have the same names, shapes and dtypes.

  Raises:
    ValueError: names each variable that is missing, surplus or different.
  """
  differing = [
    f'{name} is {_describe(arrays[name])} in the checkpoint and '
    f'{_describe(variable)} here'
    for name, variable in variables.items()
    if name in arrays and _describe(arrays[name]) != _describe(variable)
  ]
  problems = {
    'missing from it': [name for name in variables if name not in arrays],
    'surplus in it': [name for name in arrays if name not in variables],
    'different': differing,
  }
  if any(problems.values()):
    found = '; '.join(
      f'{what}: {_shorten(names)}' for what, names in problems.items() if names
    )
    raise ValueError(
      f'The checkpoint does not fit these variables. {found}. Use the settings '
      'that the run was started with, or another directory.'
    )
  for name, variable in variables.items():
    variable.assign(arrays[name])


def _encode(
  arrays: Mapping[str, np.ndarray], counters: Mapping[str, Any]
) -> bytes:
  """The bytes of a checkpoint file."""
  meta = json.dumps(
    {'format_version': FORMAT_VERSION, 'counters': dict(counters)},
    default=_plain,
  )
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_STORED) as archive:
    archive.writestr(_META, meta)
    for name, array in arrays.items():
      array = np.asarray(array)
      if array.dtype.kind not in 'biuf':
        raise ValueError(
          f'Array {name} is {array.dtype}; a checkpoint holds numbers and '
          'booleans.'
        )
      with archive.open(name + _SUFFIX, 'w', force_zip64=True) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)
    archive.comment = b'0' * _DIGEST_LENGTH
  content = buffer.getvalue()[:-_DIGEST_LENGTH]
  return content + hashlib.sha256(content).hexdigest().encode()


def _plain(value: Any) -> Any:
  """NumPy's numbers and arrays as JSON can hold them."""
  if isinstance(value, np.generic | np.ndarray):
    return value.tolist()
  raise ValueError(
    f'Counters hold {value!r}, a {type(value).__name__}; give numbers, '
    'strings, lists and dicts, as JSON has them.'
  )


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
  with archive.open(name) as member:
    return np.lib.format.read_array(member, allow_pickle=False)


def _sync_directory(directory: str) -> None:
  """Makes a rename in `directory` survive a power cut."""
  descriptor = os.open(directory, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def _describe(value: Any) -> str:
  """Dtype and shape of an array or a variable."""
  dtype = getattr(value.dtype, 'as_numpy_dtype', value.dtype)
  return f'{np.dtype(dtype)} {tuple(value.shape)}'


def _shorten(names: Iterable[str], limit: int = 10) -> str:
  """The names, or the first of them and how many more."""
  names = list(names)
  more = len(names) - limit
  listed = ', '.join(names[:limit])
  return listed if more <= 0 else f'{listed} and {more} more'
