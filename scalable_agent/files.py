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
"""Writing to a disk that may be full and a process that may be killed."""

import contextlib
import errno
import os
import types

from absl import logging


def write_atomically(path: str, data: bytes) -> None:
  """Puts `data` in place of the file `path`; never leaves half of it there."""
  aside = f'{path}.{os.getpid()}.tmp'
  try:
    with open(aside, 'wb') as file:
      file.write(data)
      file.flush()
      os.fsync(file.fileno())
    os.replace(aside, path)
  except OSError:
    with contextlib.suppress(OSError):
      os.remove(aside)
    raise


def append(path: str, data: bytes) -> None:
  """Adds all of `data` to the file `path`, or none of it."""
  with open(path, 'ab', buffering=0) as file:
    size = file.tell()
    try:
      if file.write(data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    except OSError:
      file.truncate(size)
      raise


class WarnOnce:
  """A context that survives any OSError and warns of the first one only.

  For what a run can do without: its figures, not its checkpoints.
  """

  def __init__(self, what: str):
    """Makes a context; `what` is lost while writing fails, says the warning."""
    self._what = what
    self._warned = False

  def __enter__(self) -> None:
    """Nothing to prepare."""

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: types.TracebackType | None,
  ) -> bool:
    """Swallows an OSError."""
    if not isinstance(error, OSError):
      return False
    if not self._warned:
      logging.warning(
        '%s cannot be written (%s); the run goes on without.', self._what, error
      )
    self._warned = True
    return True
