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
"""A trial: an ordinary run directory, and the process that trains in it.

Besides what every run has, the directory holds `trial.flags`, with which
scripts/train.py continues the run by hand; `trial.json`, what the sweep must
remember of it; and `output.txt`, what the run printed.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from scalable_agent import checkpoint, files
from scalable_agent.reports import curves, published, runs

FLAGS_FILE = 'trial.flags'
OUTPUT_FILE = 'output.txt'
_STATE_FILE = 'trial.json'
_ADOPTED_FILE = 'adopted.npz'
_LOCK_FILE = 'trial.lock'
_CHECKPOINTS_KEPT = 3


class State(NamedTuple):
  """What a sweep remembers of a trial.

  settings: those that differ from trial to trial, as flags take them.
  turns: how many turns of population based training it has had.
  last_episodes: how many episodes it had finished at the last one.
  """

  settings: Mapping[str, str]
  turns: int = 0
  last_episodes: int = 0


class Progress(NamedTuple):
  """How far a trial is.

  env_frames: trained.
  episodes: finished, on all levels.
  fitness: mean capped human-normalized score in percent, over all levels; where
    no human played the mean return. NaN before the first episode.
  """

  env_frames: int = 0
  episodes: int = 0
  fitness: float = float('nan')


class TrialFailedError(RuntimeError):
  """The run of a trial ended with an error."""


def write_state(path: str, base: Sequence[str], state: State) -> None:
  """Notes a trial's state, and its flags: those of `base`, then its own.

  The state is written last; until then the old one holds.
  """
  os.makedirs(path, exist_ok=True)
  own = [f'--{name}={value}' for name, value in state.settings.items()]
  lines = [*base, *own, f'--logdir={path}']
  _write_text(path, FLAGS_FILE, '\n'.join(lines) + '\n')
  _write_text(path, _STATE_FILE, json.dumps(state._asdict(), indent=2) + '\n')


def has_state(path: str) -> bool:
  """Whether the trial in `path` has been planned."""
  return os.path.exists(os.path.join(path, _STATE_FILE))


def read_state(path: str) -> State:
  """The state of the trial in `path`."""
  with open(os.path.join(path, _STATE_FILE), encoding='utf-8') as file:
    return State(**json.load(file))


def progress(path: str, window: int) -> Progress:
  """How far the trial in `path` is.

  Args:
    path: of its directory.
    window: number of episodes, on each level, that the fitness is a mean of.
  """
  try:
    run = runs.read(path)
  except (FileNotFoundError, ValueError):
    return Progress()
  scores = []
  for level in run.curves:
    mean = curves.final_return(run, level, window)
    known = published.reference(level)
    scores.append(min(known.percent(mean), 100.0) if known else mean)
  return Progress(
    int(run.series['env_frames'][-1]),
    int(sum(curve.episodes.sum() for curve in run.curves.values())),
    float(np.mean(scores)),
  )


def offer(source: str, path: str) -> bool:
  """Lays a copy of the newest checkpoint in `source` ready for `path`.

  Returns:
    False if there is none.
  """
  newest = checkpoint.Checkpointer(source).latest()
  if newest is None:
    return False
  aside = os.path.join(path, _ADOPTED_FILE + '.tmp')
  try:
    shutil.copyfile(newest, aside)
  except FileNotFoundError:
    # The source has just dropped it for a newer one.
    return offer(source, path)
  os.replace(aside, os.path.join(path, _ADOPTED_FILE))
  return True


def adopt(path: str) -> None:
  """Makes an offered checkpoint the newest one of the trial, if there is one.

  Weights and optimizer slots are the source's; frames, episodes and updates are
  counted on as the trial's own.
  """
  offered = os.path.join(path, _ADOPTED_FILE)
  if not os.path.exists(offered):
    return
  source = checkpoint.read(offered)
  own = checkpoint.Checkpointer(path, _CHECKPOINTS_KEPT)
  saved = own.restore()
  own.save(source.arrays, (saved or source).counters)
  os.remove(offered)


class Process:
  """Trains a trial in a process of its own; one at a time per directory.

  The process ends with this one, however that ends, after it has saved.
  """

  def __init__(self, path: str, train: Sequence[str], timeout_secs: float):
    """Starts it.

    Args:
      path: the trial's directory, which has its flags.
      train: the beginning of the command: Python and scripts/train.py.
      timeout_secs: how long another process may still take to leave the
        directory.

    Raises:
      TrialFailedError: another process trains there.
    """
    self._path = path
    self._lock = open(os.path.join(path, _LOCK_FILE), 'w')
    self._wait_for_lock(timeout_secs)
    adopt(path)
    command = [sys.executable, '-m', 'scalable_agent.tuning.guard', *train]
    command.append(f'--flagfile={os.path.join(path, FLAGS_FILE)}')
    descriptor = self._lock.fileno()
    reader, writer = os.pipe()
    self._alive = os.fdopen(writer, 'wb')
    with open(os.path.join(path, OUTPUT_FILE), 'ab') as output:
      self._process = subprocess.Popen(
        command,
        env={**os.environ, 'SCALABLE_AGENT_TRIAL_LOCK': str(descriptor)},
        pass_fds=[descriptor],
        start_new_session=True,
        stdin=reader,
        stdout=output,
        stderr=subprocess.STDOUT,
      )
    os.close(reader)

  def wait(self, timeout_secs: float) -> bool:
    """Waits for the end of training; returns whether it came.

    Raises:
      TrialFailedError: it ended with an error; with the last it printed.
    """
    try:
      code = self._process.wait(timeout_secs)
    except subprocess.TimeoutExpired:
      return False
    if code:
      raise TrialFailedError(
        f'The run in {self._path} ended with exit code {code}: '
        f'{last_line(self._path)}'
      )
    return True

  def stop(self, timeout_secs: float) -> None:
    """Asks it to save and leave, and waits; kills it after a time."""
    self._alive.close()
    try:
      self._process.wait(timeout_secs)
    except subprocess.TimeoutExpired:
      # It leads a session of its own, with all its processes in it.
      os.killpg(self._process.pid, 9)
      self._process.wait()
    self._lock.close()

  def _wait_for_lock(self, timeout_secs: float) -> None:
    end = time.monotonic() + timeout_secs
    while True:
      try:
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
      except BlockingIOError:
        if time.monotonic() > end:
          self._lock.close()
          raise TrialFailedError(
            f'Another process has trained in {self._path} for '
            f'{timeout_secs:g} seconds; end it, or wait for it.'
          ) from None
        time.sleep(0.2)


def last_line(path: str) -> str:
  """The last that the run in `path` printed; '' if nothing."""
  try:
    with open(os.path.join(path, OUTPUT_FILE), 'rb') as file:
      lines = file.read()[-4000:].decode(errors='replace').split('\n')
  except FileNotFoundError:
    return ''
  return next((line.strip() for line in reversed(lines) if line.strip()), '')


def _write_text(path: str, name: str, text: str) -> None:
  files.write_atomically(os.path.join(path, name), text.encode())


def as_text(settings: Mapping[str, Any]) -> dict[str, str]:
  """Settings as flags take them: floats with all their digits."""
  return {name: str(value) for name, value in settings.items()}
