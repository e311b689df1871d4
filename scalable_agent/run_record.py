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
"""What a run was: its settings, code, versions and machine, beside its results.

The process environment is never written: it holds other people's secrets.
"""

import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from typing import Any

from scalable_agent import config as config_lib
from scalable_agent import files

CONFIG_FILE = 'config.json'
STARTS_FILE = 'starts.json'
_GIT_TIMEOUT_SECS = 10.0


def record_start(
  logdir: str,
  config: config_lib.Config,
  command: Sequence[str],
  env_frames: int = 0,
) -> None:
  """Notes that a run starts, or is continued, in `logdir`.

  `config.json` gets the settings; `starts.json` gets one more entry: time,
  frames, command line, settings, git commit and whether files differ from it,
  Python, operating system, CPU, and the version of every installed package.

  Args:
    logdir: the run directory; it is made if it is not there.
    config: the settings of this start.
    command: the command line, `sys.argv`.
    env_frames: frames at which the run continues.

  Raises:
    ValueError: `starts.json` is there and cannot be read.
  """
  os.makedirs(logdir, exist_ok=True)
  path = os.path.join(logdir, STARTS_FILE)
  starts = _read(path) if os.path.exists(path) else []
  settings = dataclasses.asdict(config)
  starts.append(
    {
      'time': datetime.datetime.now(datetime.timezone.utc).isoformat(),
      'env_frames': env_frames,
      'command': list(command),
      'config': settings,
      'git': git_state(os.path.dirname(os.path.abspath(__file__))),
      'python': platform.python_version(),
      'os': platform.platform(),
      'cpu': _cpu_name(),
      'num_cpus': os.cpu_count(),
      'packages': _packages(),
    }
  )
  _write(os.path.join(logdir, CONFIG_FILE), settings)
  _write(path, starts)


def load_config(logdir: str) -> config_lib.Config:
  """Returns the settings of the run in `logdir`.

  What is newer than the run, a setting or a section, has its default.

  Raises:
    ValueError: there are none, or some that this version does not have.
  """
  path = os.path.join(logdir, CONFIG_FILE)
  if not os.path.exists(path):
    raise ValueError(f'{path} is missing; {logdir} holds no run to load.')
  saved = _read(path)
  try:
    sections = {
      field.name: field.type(  # type: ignore[operator]
        **saved.pop(field.name, {})
      )
      for field in dataclasses.fields(config_lib.Config)
    }
    return config_lib.Config(**sections, **saved)
  except TypeError as error:
    raise ValueError(
      f'{path} does not hold the settings that this version has ({error}); '
      'use the version that wrote it: starts.json names its git commit.'
    ) from error


def git_state(folder: str) -> dict[str, Any] | None:
  """Commit of the checkout that `folder` is part of; None if it is of none.

  A package that is installed somewhere inside another repository is not part
  of that one: its files must be tracked.
  """
  if not _git(folder, 'ls-files', '--error-unmatch', '__init__.py'):
    return None
  commit = _git(folder, 'rev-parse', 'HEAD')
  changes = _git(folder, 'status', '--porcelain', '--untracked-files=no')
  return {'commit': commit, 'dirty': None if changes is None else changes != ''}


def _git(folder: str, *arguments: str) -> str | None:
  """What git prints; None if it fails or is not installed."""
  try:
    result = subprocess.run(
      ['git', '-C', folder, *arguments],
      capture_output=True,
      check=True,
      text=True,
      timeout=_GIT_TIMEOUT_SECS,
    )
  except (OSError, subprocess.SubprocessError):
    return None
  return result.stdout.strip()


def _cpu_name() -> str:
  """Model of the processor, as far as the system tells."""
  try:
    with open('/proc/cpuinfo', encoding='utf-8') as file:
      for line in file:
        if line.startswith('model name'):
          return line.partition(':')[2].strip()
  except OSError:
    pass
  return platform.processor() or platform.machine()


def _packages() -> dict[str, str]:
  installed = importlib.metadata.distributions()
  return dict(sorted((d.metadata['Name'], d.version) for d in installed))


def _read(path: str) -> Any:
  try:
    with open(path, encoding='utf-8') as file:
      return json.load(file)
  except ValueError as error:
    raise ValueError(
      f'{path} is not JSON ({error}); move it away or mend it.'
    ) from error


def _write(path: str, content: Any) -> None:
  text = json.dumps(content, indent=2) + '\n'
  files.write_atomically(path, text.encode())
