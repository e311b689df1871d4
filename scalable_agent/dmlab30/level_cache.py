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
"""A folder of compiled maps, shared by all environments of a machine.

Lab asks `fetch(key, pk3_path)` before it compiles a map, which takes from
seconds to half a minute, and offers the result with `write(key, pk3_path)`.
The key holds a hash of the map's source, so one folder serves all levels,
seeds and runs. What an environment's cache raises ends its episode: nothing
that a disk does is raised here.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable

from absl import logging

_PART = '.part'
# A copy that is still unfinished after so long has lost its process.
_ABANDONED_SECS = 3600.0


class LevelCache:
  """DeepMind Lab's level cache protocol on a local folder.

  Files appear whole: they are written beside their place and renamed, so that
  any number of processes may fetch and write the same key. A fault of the disk
  is a map not found, with one warning. Picklable.
  """

  def __init__(self, folder: str, max_bytes: int = 20 * 2**30):
    """Nothing is touched until Lab asks.

    Args:
      folder: where compiled maps are kept; made if it is missing.
      max_bytes: when the maps take more, those longest unused are removed.
    """
    if not folder:
      raise ValueError('folder is empty; name one for the level cache.')
    if max_bytes < 1:
      raise ValueError(f'max_bytes is {max_bytes}; it must be at least 1.')
    self._folder = os.path.abspath(os.path.expanduser(folder))
    self._max_bytes = max_bytes
    self._warned: set[str] = set()

  def path(self, key: str) -> str:
    """Where the map of that key is, or would be."""
    name = hashlib.sha256(key.encode()).hexdigest()
    return os.path.join(self._folder, name[:2], name[2:] + '.pk3')

  def fetch(self, key: str, pk3_path: str) -> bool:
    """Copies the map to `pk3_path`; false if it is not there or unreadable."""
    path = self.path(key)
    try:
      _copy_whole(path, pk3_path, durable=False)
    except FileNotFoundError:
      return False
    except OSError as error:
      self._warn('read', error)
      return False
    self._tolerate('mark as used', lambda: os.utime(path))
    return True

  def write(self, key: str, pk3_path: str) -> bool:
    """Keeps the map at `pk3_path`; false if the disk does not let it."""
    path = self.path(key)

    def keep():
      os.makedirs(os.path.dirname(path), exist_ok=True)
      _copy_whole(pk3_path, path, durable=True)
      self._evict(path)

    return self._tolerate('write', keep)

  def _evict(self, newest: str) -> None:
    """Removes the maps longest unused until the rest fits."""
    maps, total = [], 0
    for path, status in _files(self._folder):
      total += status.st_size
      if not path.endswith(_PART):
        maps.append((status.st_mtime, status.st_size, path))
      elif status.st_mtime < time.time() - _ABANDONED_SECS:
        _unlink(path)
        total -= status.st_size
    for _, size, path in sorted(maps):
      if total <= self._max_bytes:
        return
      if path != newest:
        _unlink(path)
        total -= size

  def _tolerate(self, what: str, action: Callable[[], None]) -> bool:
    try:
      action()
    except OSError as error:
      self._warn(what, error)
      return False
    return True

  def _warn(self, what: str, error: OSError) -> None:
    if what not in self._warned:
      self._warned.add(what)
      logging.warning(
        'Level cache %s: cannot %s (%s). Maps are compiled instead; this is '
        'said once.',
        self._folder,
        what,
        error,
      )


def _copy_whole(source: str, target: str, durable: bool) -> None:
  """Copies a file so that `target` is never seen half written.

  Args:
    source, target: paths.
    durable: also after a power failure, which is slower.
  """
  with open(source, 'rb') as content:
    handle, part = tempfile.mkstemp(_PART, dir=os.path.dirname(target) or '.')
    try:
      with os.fdopen(handle, 'wb') as output:
        shutil.copyfileobj(content, output, 2**20)
        output.flush()
        if durable:
          os.fsync(output.fileno())
      os.chmod(part, 0o644)  # The cache may be shared between users.
      os.replace(part, target)
    except BaseException:
      _unlink(part)
      raise


def _files(folder: str):
  """`(path, status)` of all files below; those that vanish are left out."""
  for parent, _, names in os.walk(folder):
    for name in names:
      path = os.path.join(parent, name)
      try:
        yield path, os.stat(path)
      except FileNotFoundError:
        continue


def _unlink(path: str) -> None:
  try:
    os.unlink(path)
  except FileNotFoundError:
    pass
