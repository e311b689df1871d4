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
"""A contract double of `deepmind_lab`: its rules exactly, tiny games behind.

With `tests/fake_deepmind_lab` on the import path, `import deepmind_lab` gives
this module. Every rule that was read in the real module's source (commit
b1db91a) or seen on it is enforced here; where the real module crashes, exits or
silently misreads, the double raises `_rules.UndefinedBehaviour`, which is not
an `Exception`, so that no handler hides it.

Levels: all of DMLab-30 and Lab's own by their real names, as a small game with
drawn frames (`_games.RingWorld`), and three that are learned in minutes:

*   `double/turn_as_told`: INSTR alone says which way is right; 1 or -1 a turn.
*   `double/remember_colour`: a colour, a gap, then the choice; 1 or -1.
*   `double/long_corridor`: 1 for each pebble, 100 at the end, -10 for a fall;
    the setting `difficulty` (default 1.0) is the corridor's length.

Episodes last as long as the real ones. `DEEPMIND_LAB_DOUBLE_EPISODE_SECONDS` in
the environment replaces the length of every level, in game seconds of 60
frames; the setting `episodeLengthSeconds` wins over it where Lab heeds it.
"""

import os as _os

from deepmind_lab import _lab, _rules
from deepmind_lab._lab import Lab  # noqa: F401 - the module's interface.

READABLE = 1
WRITABLE = 2
READ_WRITABLE = 3
LISTABLE = 4


def version():
  """Version of the module."""
  return '1.0'


def runfiles_path():
  """Folder of Lab's files."""
  return _lab.runfiles.path


def set_runfiles_path(path):
  """Sets the folder of Lab's files, for environments made afterwards."""
  path = _rules.c_string(path, 'argument 1')
  if len(_os.fsencode(path)) >= 4096:
    raise RuntimeError('Runfiles directory name too long!')
  _lab.runfiles.path = path
  return True
