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
"""Compiles maps ahead of training, in parallel, into a level cache.

A map depends on its level, its settings, the mixer seed and the episode's seed.
Episodes that draw among `num_level_seeds` seeds meet again what is compiled
here: the maps of the seeds from 0 to `num_level_seeds - 1`.
"""

import collections
import dataclasses
import multiprocessing
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any

from scalable_agent.dmlab30 import environment, level_cache, levels
from scalable_agent.dmlab30 import settings as settings_lib

# Maps per process: a fresh one now and then keeps what Lab leaks small, and an
# engine that exits takes few maps with it.
_MAPS_PER_PROCESS = 32
_REPORT_SECS = 5.0


@dataclasses.dataclass
class Progress:
  """How far the filling is, in maps.

  total: to be there in the end.
  compiled: compiled and kept now.
  present: there before.
  failed: not made; `failures` has the reasons, one per failed process.
  """

  total: int
  compiled: int = 0
  present: int = 0
  failed: int = 0
  failures: list[str] = dataclasses.field(default_factory=list)

  @property
  def done(self) -> int:
    """Maps that are dealt with."""
    return self.compiled + self.present + self.failed


def fill(
  level_names: Sequence[str],
  settings: settings_lib.LabSettings,
  num_workers: int,
  report: Callable[[Progress, float], None],
) -> Progress:
  """Compiles the maps of the levels that compile any.

  Maps that are there are not compiled again, so an interrupted filling goes on
  where it was. A worker that dies costs its own maps only.

  Args:
    level_names: as `levels.resolve` gives them; levels without maps of their
      own are passed over.
    settings: with `level_cache_dir` and `num_level_seeds`.
    num_workers: processes at work at once; each runs one Lab.
    report: told of the progress, and of the seconds since the start, every few
      seconds and at the end.

  Raises:
    ValueError: the settings name no cache or no number of seeds.
  """
  if not settings.level_cache_dir or settings.num_level_seeds is None:
    raise ValueError(
      f'level_cache_dir is {settings.level_cache_dir!r} and num_level_seeds '
      f'{settings.num_level_seeds}; give both, a folder and a number.'
    )
  # Frames are not looked at; the smallest cost least.
  small = dataclasses.replace(settings, width=32, height=24)
  jobs = collections.deque(
    (name, range(first, min(first + _MAPS_PER_PROCESS, small.num_level_seeds)))
    for name in with_maps(level_names)
    for first in range(0, small.num_level_seeds, _MAPS_PER_PROCESS)
  )
  progress = Progress(total=sum(len(seeds) for _, seeds in jobs))
  workers: list[_Worker] = []
  started = reported = time.monotonic()
  try:
    while jobs or workers:
      while jobs and len(workers) < num_workers:
        workers.append(_Worker(*jobs.popleft(), small))
      connection.wait([w.receiver for w in workers], timeout=_REPORT_SECS)
      workers = [worker for worker in workers if worker.listen(progress)]
      if time.monotonic() > reported + _REPORT_SECS:
        reported = time.monotonic()
        report(progress, reported - started)
  finally:
    for worker in workers:
      worker.kill()
  report(progress, time.monotonic() - started)
  return progress


def with_maps(level_names: Sequence[str]) -> list[str]:
  """Those of the levels that compile maps; of unknown ones nobody knows."""
  known = {name: levels.find(name) for name in level_names}
  return [n for n, level in known.items() if not level or level.compiles_maps]


class _Worker:
  """One process at one job."""

  def __init__(
    self, name: str, seeds: Sequence[int], settings: settings_lib.LabSettings
  ):
    context = multiprocessing.get_context('spawn')
    self.receiver, sender = context.Pipe(duplex=False)
    self._name = name
    self._left = len(seeds)
    self._process = context.Process(
      target=_compile_maps, args=(name, seeds, settings, sender), daemon=True
    )
    self._process.start()
    sender.close()

  def listen(self, progress: Progress) -> bool:
    """Takes the news into `progress`; false once the process has ended."""
    reason = ''
    try:
      while self.receiver.poll():
        message = self.receiver.recv()
        if isinstance(message, str):
          reason = message
          continue
        self._left -= 1
        if message:
          progress.compiled += 1
        else:
          progress.present += 1
      if not reason:
        return True
    except EOFError:
      pass
    self._process.join()
    self.receiver.close()
    if self._left:
      progress.failed += self._left
      progress.failures.append(
        f'{self._name}: {self._left} maps not made, exit code '
        f'{self._process.exitcode}. {reason}'
      )
    return False

  def kill(self) -> None:
    """Ends the process at once."""
    self._process.kill()
    self._process.join()


class _CountingCache:
  """A level cache that says how many maps were kept."""

  def __init__(self, cache: level_cache.LevelCache):
    self._cache = cache
    self.num_written = 0

  def fetch(self, key: str, pk3_path: str) -> bool:
    return self._cache.fetch(key, pk3_path)

  def write(self, key: str, pk3_path: str) -> None:
    if not self._cache.write(key, pk3_path):
      raise OSError('the level cache takes no more maps; is the disk full?')
    self.num_written += 1


def _compile_maps(
  name: str,
  seeds: Sequence[int],
  settings: settings_lib.LabSettings,
  sender: Any,
) -> None:
  """In a process: sends True or False for each map, or text for a failure."""
  try:
    factory = environment.LabFactory(name, settings)
    cache = _CountingCache(factory.cache())
    lab = environment.OwnedLab(
      levels.lab_name(name, settings.level_directory),
      settings.lab_config(),
      settings.renderer,
      cache,
    )
    try:
      for seed in seeds:
        before = cache.num_written
        lab.reset(seed=seed)
        sender.send(cache.num_written > before)
    finally:
      lab.close()
  except Exception:
    sender.send(traceback.format_exc())
  finally:
    sender.close()
