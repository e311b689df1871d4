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
"""What runs in an environment's own process; see `process` for the other end.

The two talk through a socket: one byte per command and per answer, text and
pickles with their length before them; its end means the end. All that is large
or frequent lies in shared memory.
"""

import mmap
import os
import pickle
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from typing import NamedTuple

from scalable_agent.envs import base, buffers

RESET = b'r'
STEP = b's'
DONE = b'd'
FAILED = b'f'

_LENGTH = struct.Struct('<Q')
_ENDS = (BrokenPipeError, ConnectionResetError, EOFError)


class Setup(NamedTuple):
  """What a process needs to know to make its environment.

  factory: Makes it.
  seed: Its seed.
  row: Its row in the shared arrays.
  """

  factory: base.Factory
  seed: int
  row: int


def send_block(connection: socket.socket, block: bytes):
  """Sends bytes with their length before them."""
  connection.sendall(_LENGTH.pack(len(block)) + block)


def receive_block(connection: socket.socket) -> bytes:
  """Receives what `send_block` sent; EOFError if the other end is gone."""
  (length,) = _LENGTH.unpack(_receive(connection, _LENGTH.size))
  return _receive(connection, length)


def _receive(connection, length):
  block = bytearray()
  while len(block) < length:
    piece = connection.recv(length - len(block))
    if not piece:
      raise EOFError
    block += piece
  return bytes(block)


def main(connection_fd: int, memory_fd: int, lifeline_fd: int):
  """Serves one environment until the socket ends, then closes it.

  Args:
    connection_fd: The socket.
    memory_fd: File of the shared memory; has its size once a layout is sent.
    lifeline_fd: Read end of a pipe that nobody writes to. It ends with the
      parent.
  """
  _die_with_parent(lifeline_fd)
  connection = socket.socket(fileno=connection_fd)
  try:
    _serve(connection, memory_fd)
  except _ENDS:
    # Nobody is left to tell.
    sys.exit(1)


def _serve(connection, memory_fd):
  environment = None
  try:
    setup = pickle.loads(receive_block(connection))
    environment = base.CheckedEnvironment(setup.factory, setup.seed)
    connection.sendall(DONE)
    send_block(connection, pickle.dumps(environment.spec))
    layout = pickle.loads(receive_block(connection))
    memory = mmap.mmap(memory_fd, layout.num_bytes)
    _play(connection, environment, layout.buffers(memory), setup.row)
  except _ENDS:
    raise
  except BaseException:
    connection.sendall(FAILED)
    send_block(connection, traceback.format_exc().encode())
  finally:
    if environment is not None:
      environment.close()


def _play(connection, environment, arrays: buffers.Buffers, row: int):
  methods: dict[bytes, Callable[[buffers.Buffers, int], None]] = {
    RESET: environment.reset,
    STEP: environment.step,
  }
  while True:
    command = connection.recv(1)
    if not command:
      return
    methods[command](arrays, row)
    connection.sendall(DONE)


def _die_with_parent(lifeline_fd):
  """Has the kernel kill this process group when the lifeline ends.

  An idle process notices the end of its socket. One that is stuck in a
  simulator, perhaps with the interpreter lock in its hand, would not; and a
  parent killed with SIGKILL cannot say goodbye. So the kernel is asked for a
  signal. (`PR_SET_PDEATHSIG` would tie this process to the parent's *thread*.)
  """
  import fcntl  # Not on Windows, where this module must be importable still.

  if not hasattr(fcntl, 'F_SETSIG'):
    # Not Linux: the signal would be SIGIO, which elsewhere kills nobody.
    return
  fcntl.fcntl(lifeline_fd, fcntl.F_SETSIG, signal.SIGKILL)
  fcntl.fcntl(lifeline_fd, fcntl.F_SETOWN, -os.getpgrp())
  flags = fcntl.fcntl(lifeline_fd, fcntl.F_GETFL)
  fcntl.fcntl(lifeline_fd, fcntl.F_SETFL, flags | os.O_ASYNC)
  if select.select([lifeline_fd], [], [], 0)[0]:
    # It ended before the kernel was asked.
    sys.exit(1)
