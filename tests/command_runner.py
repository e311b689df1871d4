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
"""Runs command lines of scripts, each in a fork that has its imports already.

Starting Python for each of hundreds of commands would take minutes. As a
program it reads a JSON list of words a line, and answers with a `Done` a line.
"""

import atexit
import functools
import importlib
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import traceback
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]

# What most scripts import. Nothing of it starts threads or defines flags.
PRELOADED = (
  'config_flags',
  'scalable_agent.runtime.training',
  'scalable_agent.tasks',
)


class Done(NamedTuple):
  """Exit code and output of a command."""

  code: int
  stdout: str
  stderr: str


def run(*words: str) -> Done:
  """Runs a script, `run('scripts/train.py', '--help')`, from the root."""
  runner = _runner()
  print(json.dumps(words), file=runner.stdin, flush=True)
  return Done(*json.loads(runner.stdout.readline()))


@functools.cache
def _runner():
  runner = subprocess.Popen(
    [sys.executable, __file__],
    cwd=ROOT,
    env={**os.environ, 'PYTHONPATH': f'{ROOT}:{ROOT / "scripts"}'},
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  # Leaving the context closes its input, and so ends it.
  atexit.register(runner.__exit__, None, None, None)
  return runner


def main() -> None:
  """Answers until there is no more to read."""
  for name in PRELOADED:
    importlib.import_module(name)
  for line in sys.stdin:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
      pid = os.fork()
      if pid == 0:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        _run_here(json.loads(line))
      _, status = os.waitpid(pid, 0)
      texts = []
      for file in (out, err):
        file.seek(0)
        texts.append(file.read().decode())
    done = Done(os.waitstatus_to_exitcode(status), *texts)
    print(json.dumps(done), flush=True)


def _run_here(words):
  """Runs a script as Python would, and ends this process."""
  code = 1
  try:
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name='__main__')
    code = 0
  except SystemExit as error:
    code = error.code if isinstance(error.code, int) else int(bool(error.code))
  except BaseException:
    traceback.print_exc()
  finally:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == '__main__':
  main()
