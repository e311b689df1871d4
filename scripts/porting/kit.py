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
"""The kit's files: stages of named arrays, and what is said about them.

A kit is a directory. Each stage is two files: `<stage>.npz` holds its arrays,
`<stage>.json` says what they are. `kit.json` lists the stages. An array's name
is `<case>/<role>/<name>`; roles are `input`, `weight` and `output`. Nothing is
pickled. Needs NumPy only.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

FORMAT = 'scalable_agent porting kit'
FORMAT_VERSION = 1
KIT_FILE = 'kit.json'
ROLES = ('input', 'weight', 'output')

_NAME = re.compile(r'[\w.]+')


class Stage:
  """Arrays of one stage, by name, with their meanings and settings.

  name: of the stage and of its files.
  about: what is computed, in a sentence or two.
  tolerance: what a candidate may differ by, relative to the larger of a value
    and the root mean square of its array.
  cases: settings of each case.
  arrays: by `<case>/<role>/<name>`.
  meanings: of the arrays, by the same names.
  tolerances: of single arrays, where they are not the stage's.
  """

  def __init__(self, name: str, about: str, tolerance: float):
    self.name = name
    self.about = ' '.join(about.split())
    self.tolerance = tolerance
    self.cases: dict[str, dict[str, Any]] = {}
    self.arrays: dict[str, np.ndarray] = {}
    self.meanings: dict[str, str] = {}
    self.tolerances: dict[str, float] = {}

  def add_case(self, case: str, **settings: Any) -> None:
    """Declares a case, with settings that JSON can hold."""
    if not _NAME.fullmatch(case):
      raise ValueError(
        f'case is {case!r}; use letters, digits, points and underscores.'
      )
    self.cases[case] = settings

  def add(
    self,
    case: str,
    role: str,
    arrays: Mapping[str, Any],
    meanings: Mapping[str, str] | str = '',
    tolerance: float | None = None,
  ) -> None:
    """Adds arrays by name to a case.

    Args:
      case: one that was declared.
      role: `input`, `weight` or `output`.
      arrays: anything NumPy makes arrays of; strings become fixed-width.
      meanings: of each array by name, or of all of them.
      tolerance: of these arrays; None: the stage's.
    """
    if case not in self.cases or role not in ROLES:
      raise ValueError(
        f'{case}/{role} is no place for arrays; declare the case, and choose '
        f'one of {", ".join(ROLES)}.'
      )
    for name, array in arrays.items():
      array = np.asarray(array)
      if array.dtype == object:
        array = array.astype(str)
      key = f'{case}/{role}/{name}'
      self.arrays[key] = array
      meaning = meanings if isinstance(meanings, str) else meanings[name]
      self.meanings[key] = meaning
      if tolerance is not None:
        self.tolerances[key] = tolerance

  def names(self, *roles: str) -> list[str]:
    """Full names of the arrays with these roles."""
    return [key for key in self.arrays if key.split('/')[1] in roles]

  def part(self, case: str, role: str) -> dict[str, np.ndarray]:
    """Arrays of one role of a case, by their short names."""
    prefix = f'{case}/{role}/'
    return {
      key.removeprefix(prefix): array
      for key, array in self.arrays.items()
      if key.startswith(prefix)
    }

  def tolerance_of(self, key: str) -> float:
    """Tolerance of one array."""
    return self.tolerances.get(key, self.tolerance)


def write(
  directory: str, stages: Iterable[Stage], facts: Mapping[str, Any]
) -> None:
  """Writes a kit; `facts` (seed, versions) go into `kit.json`."""
  os.makedirs(directory, exist_ok=True)
  names = []
  for stage in stages:
    names.append(stage.name)
    write_arrays(directory, stage.name, stage.arrays)
    described = {
      key: {
        'shape': list(array.shape),
        'dtype': str(array.dtype),
        'meaning': stage.meanings[key],
        **(
          {'tolerance': stage.tolerances[key]}
          if key in stage.tolerances
          else {}
        ),
      }
      for key, array in stage.arrays.items()
    }
    _write_json(
      os.path.join(directory, f'{stage.name}.json'),
      {
        'about': stage.about,
        'tolerance': stage.tolerance,
        'cases': stage.cases,
        'arrays': described,
      },
    )
  _write_json(
    os.path.join(directory, KIT_FILE),
    {
      'format': FORMAT,
      'format_version': FORMAT_VERSION,
      **facts,
      'stages': names,
    },
  )


def write_arrays(
  directory: str, stage: str, arrays: Mapping[str, np.ndarray]
) -> None:
  """Writes `<stage>.npz`: all that a candidate has to write."""
  os.makedirs(directory, exist_ok=True)
  np.savez(os.path.join(directory, f'{stage}.npz'), **arrays)


def read(directory: str) -> dict[str, Stage]:
  """All stages of a kit, by name.

  Raises:
    ValueError: the directory holds no kit, or one of another version.
  """
  path = os.path.join(directory, KIT_FILE)
  if not os.path.exists(path):
    raise ValueError(
      f'{path} is missing; name a kit that scripts/export_golden.py wrote.'
    )
  facts = _read_json(path)
  if facts.get('format') != FORMAT:
    raise ValueError(f'{path} is not of a porting kit; name another directory.')
  if facts['format_version'] != FORMAT_VERSION:
    raise ValueError(
      f'{directory} has format version {facts["format_version"]}, and this '
      f'program reads {FORMAT_VERSION}; export the kit anew.'
    )
  return {name: _read_stage(directory, name) for name in facts['stages']}


def _read_stage(directory, name):
  said = _read_json(os.path.join(directory, f'{name}.json'))
  stage = Stage(name, said['about'], said['tolerance'])
  stage.cases = said['cases']
  arrays = read_arrays(directory, name)
  if arrays is None or set(arrays) != set(said['arrays']):
    raise ValueError(
      f'{name}.npz in {directory} does not hold what {name}.json lists; export '
      'the kit anew.'
    )
  for key, about in said['arrays'].items():
    stage.arrays[key] = arrays[key]
    stage.meanings[key] = about['meaning']
    if 'tolerance' in about:
      stage.tolerances[key] = about['tolerance']
  return stage


def read_arrays(directory: str, stage: str) -> dict[str, np.ndarray] | None:
  """Arrays of `<stage>.npz`, None if there is no such file.

  Raises:
    ValueError: the file is no archive of arrays.
  """
  path = os.path.join(directory, f'{stage}.npz')
  if not os.path.exists(path):
    return None
  try:
    with np.load(path, allow_pickle=False) as archive:
      return dict(archive)
  except Exception as error:  # Whatever zip, npy and dtypes can raise.
    raise ValueError(
      f'{path} is no archive of plain arrays ({error}); write it with '
      'numpy.savez, without objects.'
    ) from error


def _read_json(path):
  try:
    with open(path, encoding='utf-8') as file:
      return json.load(file)
  except (OSError, ValueError) as error:
    raise ValueError(
      f'{path} cannot be read as JSON ({error}); export the kit anew.'
    ) from error


def _write_json(path, content):
  with open(path, 'w', encoding='utf-8') as file:
    json.dump(content, file, indent=1)
    file.write('\n')
