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
"""Maps: made at a reset, compiled to a pk3 file, or fetched from the cache.

As `compile_map.cc`: fetch first; where it says no, the map is compiled and
offered with `write`. A pk3 file is a zip archive.
"""

import hashlib
import os
import zipfile

from deepmind_lab import _rules


def load(source, name, bots, cache, folder):
  """Puts the compiled map of `source`, a text, into `folder`.

  What the cache raises is raised here, after the map is there: as in Lab, where
  the reset goes on and only then finds the error.
  """
  digest = hashlib.md5(source.encode(), usedforsecurity=False).hexdigest()
  key = f'{name}_{"aas" if bots else "noaas"}_{digest}'
  path = os.path.join(folder, 'baselab', f'{name}.pk3')
  os.makedirs(os.path.dirname(path), exist_ok=True)
  error = None
  try:
    found = cache is not None and bool(cache.fetch(key, path))
  except Exception as raised:
    error, found = raised, False
  if not found:
    _compile(source, name, path)
    if cache is not None and error is None:
      try:
        cache.write(key, path)
      except Exception as raised:
        error = raised
  _check(source, name, path)
  if error is not None:
    raise error


def _compile(source, name, path):
  with zipfile.ZipFile(path, 'w') as archive:
    archive.writestr(zipfile.ZipInfo(f'maps/{name}.bsp'), source * 8)


def _check(source, name, path):
  try:
    with zipfile.ZipFile(path) as archive:
      whole = archive.read(f'maps/{name}.bsp') == (source * 8).encode()
  except (OSError, KeyError, zipfile.BadZipFile):
    whole = False
  if not whole:
    raise _rules.UndefinedBehaviour(
      f'The cache gave no whole map at {path}: Lab ends the process.'
    )
