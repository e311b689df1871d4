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
"""Environments in processes of their own: for slow or unsafe simulators.

Every environment lives in a fresh interpreter: nothing is forked, so no lock of
this process and no TensorFlow gets in there. Observations come back through
shared memory, which has no name and therefore cannot be left behind.
"""

import json
import mmap
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from scalable_agent import structs
from scalable_agent.envs import base, batches, buffers, restarts, worker

_CLOSE_SECS = 3.0
# For what is small and under way already.
_BLOCK_SECS = 60.0

# Simulators are to use one core each: there are as many of them as cores.
_ONE_THREAD = {
  'MKL_NUM_THREADS': '1',
  'OMP_NUM_THREADS': '1',
  'OPENBLAS_NUM_THREADS': '1',
}

_MAIN = (
  'import json, sys; sys.path[:] = json.loads(sys.argv[1]); '
  'from scalable_agent.envs import worker; worker.main(*map(int, sys.argv[2:]))'
)


class ProcessEnvironments(batches.Batch):
  """Environments in one process each.

  A process that dies, raises, answers nonsense or stays silent for too long is
  killed, and replaced if `on_error` says so. All die with this process, however
  that ends.
  """

  def __init__(
    self,
    factories: Sequence[base.Factory],
    level_names: Sequence[str],
    *,
    base_seed: int = 0,
    actor: int = 0,
    on_error: str = 'abort',
    max_restarts: int = 10,
    restarts_used: int = 0,
    timeout_secs: float = 600.0,
  ):
    """Starts the processes and waits until all environments are made.

    Args:
      factories: `[E]`, each makes an environment from a seed. They travel by
        pickle: functions of modules, or `functools.partial` of such.
      level_names: `[E]`, what each plays.
      base_seed: Seed of the run.
      actor: Index of the actor, for seeds and messages.
      on_error: 'abort' or 'restart' when an environment fails.
      max_restarts: Most restarts, over all `E`.
      restarts_used: How many of them are used up already.
      timeout_secs: An environment silent for so long has failed. Making one and
        resetting it count as well.
    """
    for factory, level_name in zip(factories, level_names, strict=True):
      check_picklable(factory, level_name)
    if os.name != 'posix':
      raise ValueError(
        'environment processes need a POSIX system; use env_backend=serial.'
      )
    self._factories = tuple(factories)
    self._timeout_secs = timeout_secs
    self._memory = tempfile.TemporaryFile(dir=_memory_folder())
    self._processes: list[_Process] = []
    policy = restarts.Restarts(
      on_error, max_restarts, base_seed, actor, restarts_used
    )
    try:
      self._processes += [
        self._process(index, policy.seed(index))
        for index in range(len(self._factories))
      ]
      found = [
        self._spec(i, policy, level_names) for i in range(len(factories))
      ]
      spec = batches.common_spec(found, level_names)
      self._layout = buffers.Layout(spec, len(self._factories))
      self._memory.truncate(self._layout.num_bytes)
      memory = mmap.mmap(self._memory.fileno(), self._layout.num_bytes)
      super().__init__(level_names, spec, policy, self._layout.buffers(memory))
      for process in self._processes:
        process.send_layout(self._layout)
    except BaseException:
      _end(self._processes)
      self._memory.close()
      raise

  def close(self):
    """Ends all processes, within seconds."""
    if self._closing.is_set():
      return
    self._closing.set()
    _end(self._processes)
    self._memory.close()

  def _reset_all(self) -> batches.Failures:
    self._tell_all(worker.RESET)
    return self._receive()

  def _send(self):
    self._tell_all(worker.STEP)

  def _receive(self) -> batches.Failures:
    failures = []
    deadline = _Deadline(self._timeout_secs)
    for index, process in enumerate(self._processes):
      try:
        process.wait_done(deadline)
      except base.BrokenEnvironmentError as e:
        failures.append((index, self._broken(index, e)))
    return failures

  def _replace(self, index: int, seed: int):
    _end([self._processes[index]])
    process = self._processes[index] = self._process(index, seed)
    deadline = _Deadline(self._timeout_secs)
    try:
      spec = process.spec(deadline)
      batches.common_spec([self.spec, spec], [self.level_names[index]] * 2)
      process.send_layout(self._layout)
      process.tell(worker.RESET)
      process.wait_done(deadline)
    except (base.BrokenEnvironmentError, ValueError) as e:
      raise self._broken(index, e) from e

  def _process(self, index, seed):
    setup = worker.Setup(self._factories[index], seed, index)
    return _Process(setup, self._memory.fileno())

  def _spec(self, index, policy, level_names):
    try:
      return self._processes[index].spec(_Deadline(self._timeout_secs))
    except base.BrokenEnvironmentError as e:
      name = policy.name(index, level_names[index])
      raise base.BrokenEnvironmentError(f'{name} failed: {e}') from e

  def _tell_all(self, command):
    for process in self._processes:
      process.tell(command)


class _Deadline:
  """How long to wait for answers to what is asked now."""

  def __init__(self, timeout_secs: float):
    self.timeout_secs = timeout_secs
    self._end = time.monotonic() + timeout_secs

  def remaining(self) -> float:
    """Seconds left, at least 0."""
    return max(self._end - time.monotonic(), 0.0)


class _Process:
  """One environment's process, from outside."""

  def __init__(self, setup, memory_fd):
    self._connection, theirs = socket.socketpair()
    lifeline, self._lifeline = os.pipe()
    fds = (theirs.fileno(), memory_fd, lifeline)
    try:
      self._popen = subprocess.Popen(
        [sys.executable, '-c', _MAIN, json.dumps(sys.path), *map(str, fds)],
        env=_ONE_THREAD | os.environ,
        pass_fds=fds,
        # Ctrl-C is for the parent, which then ends its processes in order; and
        # a group of its own can be killed with all that it started.
        start_new_session=True,
        stdin=subprocess.DEVNULL,
      )
    finally:
      theirs.close()
      os.close(lifeline)
    self._send(pickle.dumps(setup))

  def spec(self, deadline: _Deadline) -> structs.EnvironmentSpec:
    """Waits until the environment is made."""
    self.wait_done(deadline)
    return pickle.loads(self._receive_block())

  def send_layout(self, layout: buffers.Layout):
    """Tells where the arrays lie."""
    self._send(pickle.dumps(layout))

  def tell(self, command: bytes):
    """Sends a command. A process that is gone is noticed on waiting."""
    try:
      self._connection.sendall(command)
    except OSError:
      pass

  def wait_done(self, deadline: _Deadline):
    """Waits for an answer; raises if it is not the right one."""
    # A timeout of 0 would not even look at what lies there.
    self._connection.settimeout(deadline.remaining() or 1e-3)
    try:
      answer = self._connection.recv(1)
    except TimeoutError:
      raise base.BrokenEnvironmentError(
        f'it has not answered for {deadline.timeout_secs:g} s (timeout_secs).'
      ) from None
    except OSError:
      answer = b''
    if answer == worker.FAILED:
      text = self._receive_block().decode(errors='replace')
      raise base.BrokenEnvironmentError(
        f'{text.strip().splitlines()[-1]}\nIn its process:\n{text}'
      )
    if answer != worker.DONE:
      raise base.BrokenEnvironmentError(f'its process {self._death()}.')

  def ask_to_end(self):
    """Ends the socket, so that the process closes its environment and ends."""
    try:
      self._connection.shutdown(socket.SHUT_WR)
    except OSError:
      pass

  def end(self, deadline: _Deadline):
    """Waits until the process has ended, or kills it and what it started."""
    try:
      self._popen.wait(deadline.remaining())
    except subprocess.TimeoutExpired:
      pass
    try:
      os.killpg(self._popen.pid, signal.SIGKILL)
    except (PermissionError, ProcessLookupError):
      pass
    self._popen.wait()
    self._connection.close()
    if self._lifeline is not None:
      os.close(self._lifeline)
      self._lifeline = None

  def _death(self):
    try:
      code = self._popen.wait(_CLOSE_SECS)
    except subprocess.TimeoutExpired:
      return 'closed its connection'
    if code < 0:
      return f'was killed by {signal.Signals(-code).name}'
    return f'ended with exit status {code}'

  def _send(self, block):
    try:
      self._connection.settimeout(_BLOCK_SECS)
      worker.send_block(self._connection, block)
    except OSError:
      pass

  def _receive_block(self):
    try:
      self._connection.settimeout(_BLOCK_SECS)
      return worker.receive_block(self._connection)
    except (EOFError, OSError):
      raise base.BrokenEnvironmentError(
        f'its process {self._death()}.'
      ) from None


def check_picklable(factory: base.Factory, level_name: str):
  """Raises ValueError unless `factory` can be sent to another process."""
  advice = (
    'a factory must be a function or a class of an importable module, or '
    '`functools.partial` of one.'
  )
  try:
    pickled = pickle.dumps(factory)
  except Exception as e:
    raise ValueError(
      f'the factory of {level_name}, {factory!r}, cannot be sent to another '
      f'process ({e}); {advice}'
    ) from e
  if b'__main__' in pickled:
    raise ValueError(
      f'the factory of {level_name}, {factory!r}, is defined in the script that'
      f' was started, which environment processes do not load; {advice}'
    )


def _end(processes):
  """Ends processes: first asks, then kills what is left after a while."""
  deadline = _Deadline(_CLOSE_SECS)
  for process in processes:
    process.ask_to_end()
  for process in processes:
    process.end(deadline)


def _memory_folder() -> str | None:
  """A folder in memory, or None for the usual one for temporary files."""
  return '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
