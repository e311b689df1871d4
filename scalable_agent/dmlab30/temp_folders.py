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
"""Temporary folders of DeepMind Lab that no exit leaves behind for long.

Lab writes maps and logs into a folder of its own and removes it only on a
clean end. So each environment gives Lab a folder, removes it on `close` and at
the interpreter's exit, and removes those whose owner was killed. A lock, which
the system frees with its owner, says who lives: process ids mean nothing
between containers that share a folder.
"""

import os
import shutil
import tempfile
import weakref

try:
  import fcntl
except ImportError:  # Windows, for which DeepMind Lab does not exist.
  fcntl = None  # type: ignore[assignment]

PREFIX = 'scalable_agent_lab_'
_LOCK = '.lock'


class TempFolder:
  """An empty folder of this process, gone after `close`."""

  def __init__(self, parent: str | None = None):
    """Makes the folder, and removes those of dead owners beside it.

    Args:
      parent: where; None: the system's folder for temporary files.
    """
    parent = parent or tempfile.gettempdir()
    remove_abandoned(parent)
    lock = None
    while lock is None:
      handle, lock_path = tempfile.mkstemp(_LOCK, PREFIX, parent)
      lock = _try_lock(handle)
    self.path = lock_path.removesuffix(_LOCK)
    os.mkdir(self.path, 0o700)
    self._finalizer = weakref.finalize(
      self, _remove_own, self.path, lock, os.getpid()
    )

  def close(self) -> None:
    """Removes the folder and all in it. May be called twice."""
    self._finalizer()


def remove_abandoned(parent: str) -> None:
  """Removes folders in `parent` whose owner ended without removing them."""
  if fcntl is None:
    return
  for name in os.listdir(parent):
    if not (name.startswith(PREFIX) and name.endswith(_LOCK)):
      continue
    path = os.path.join(parent, name)
    try:
      lock = _try_lock(os.open(path, os.O_RDWR))
    except OSError:  # Somebody else's, or gone by now.
      continue
    if lock is not None:
      _remove(path.removesuffix(_LOCK), lock)


def _try_lock(handle: int) -> int | None:
  """Locks an open lock file and returns it; closes it if that fails.

  A file that was removed before the lock was got does not count.
  """
  if fcntl is None:
    return handle
  try:
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if os.fstat(handle).st_nlink:
      return handle
  except OSError:
    pass
  os.close(handle)
  return None


def _remove_own(path: str, lock: int, owner: int) -> None:
  if os.getpid() == owner:  # A forked process has it from its parent.
    _remove(path, lock)


def _remove(path: str, lock: int) -> None:
  shutil.rmtree(path, ignore_errors=True)
  try:
    os.unlink(path + _LOCK)
  except OSError:
    pass
  os.close(lock)
