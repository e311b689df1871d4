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
"""Puts the contract double in the place of `deepmind_lab`.

In a test: `lab_double.install(monkeypatch)`; processes started with `spawn`
have it too. For a command line: `env=lab_double.environ()`.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
EPISODE_SECONDS = 'DEEPMIND_LAB_DOUBLE_EPISODE_SECONDS'


def install(monkeypatch, episode_seconds=None):
  """Makes `import deepmind_lab` give a fresh double; returns it.

  Args:
    monkeypatch: pytest's; it takes everything back.
    episode_seconds: length of all episodes; None: the real lengths.
  """
  for name in [n for n in sys.modules if n.split('.')[0] == 'deepmind_lab']:
    monkeypatch.delitem(sys.modules, name)
  monkeypatch.syspath_prepend(FOLDER)
  if episode_seconds is None:
    monkeypatch.delenv(EPISODE_SECONDS, raising=False)
  else:
    monkeypatch.setenv(EPISODE_SECONDS, str(episode_seconds))
  import deepmind_lab

  return deepmind_lab


def environ(episode_seconds=None):
  """Environment variables under which Python programs find the double."""
  paths = [FOLDER, os.environ.get('PYTHONPATH', '')]
  result = os.environ | {'PYTHONPATH': os.pathsep.join(filter(None, paths))}
  if episode_seconds is not None:
    result[EPISODE_SECONDS] = str(episode_seconds)
  return result
