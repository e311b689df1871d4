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
"""How DeepMind Lab is set up, checked before a process starts.

Lab takes its settings as text and finds mistakes late: in another process,
minutes into a run, or with an exit. What can be known beforehand is checked
here, with one sentence that says what to do.
"""

import dataclasses
import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalable_agent import task_config
from scalable_agent.dmlab30 import actions, levels

# `mixerSeed` of the original's test mode: episodes that training never saw.
TEST_MIXER_SEED = 0x600D5EED
DUMMY_DATASET = 'dummy'
HOW_TO_INSTALL = (
  'build its Python package as docs/dmlab30.md says and install it here'
)

# Settings with a field of their own in `LabSettings`.
_OWN_FIELD = {
  'width': 'width',
  'height': 'height',
  'datasetPath': 'dataset_path',
  'allowHoldOutLevels': 'allow_hold_out_levels',
  'mixerSeed': 'mixer_seed',
  'levelDirectory': 'level_directory',
  'levelName': 'level_name',
}
# Of `dmlab_connect.c`: the only other values are refused.
_BOOLEANS = (
  'server',
  'client',
  'hasAltCameras',
  'localLevelCache',
  'globalLevelCache',
  'logToStdErr',
  'minimalUI',
  'reducedUI',
  'nativeApp',
  'use_pbos',
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabSettings:
  """Settings of an environment; defaults are the original's.

  width, height: of RGB_INTERLEAVED, in pixels, multiples of 4.
  num_action_repeats: simulator frames per agent step.
  action_set: `paper` (9 actions), `extended` (15) or `raw` (7 numbers).
  dataset_path: folder with the images 0001.png to 2400.png of Brady, Konkle
    and Oliva (2008), or `dummy` for plain colours; two psychlab levels need it.
  allow_hold_out_levels: permits the two levels with a map for testing.
  mixer_seed: mixed into every episode's seed; None leaves Lab's default, 0.
  renderer: `software` (OSMesa) or `hardware` (EGL).
  level_directory: folder of level scripts, absolute or below Lab's own.
  num_level_seeds: episodes draw their seed among so many, so that maps compiled
    ahead are met again; None: among 2**31 - 1, as the original.
  level_cache_dir: folder of compiled maps, shared by all; empty: no cache, as
    the original.
  level_cache_gib: most that the cache may hold, in GiB; the maps longest unused
    go first.
  config: further settings of Lab and of the level script, text to text;
    numbers and truth values are turned into Lab's text.
  """

  width: int = 96
  height: int = 72
  num_action_repeats: int = 4
  action_set: str = task_config.DmlabConfig.action_set
  dataset_path: str = task_config.TaskConfig.dataset_path
  allow_hold_out_levels: bool = task_config.DmlabConfig.allow_hold_out_levels
  mixer_seed: int | None = task_config.DmlabConfig.mixer_seed
  renderer: str = task_config.DmlabConfig.renderer
  level_directory: str = task_config.DmlabConfig.level_directory
  num_level_seeds: int | None = task_config.DmlabConfig.num_level_seeds
  level_cache_dir: str = task_config.DmlabConfig.level_cache_dir
  level_cache_gib: float = task_config.DmlabConfig.level_cache_gib
  config: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    _check_numbers(self)
    _check_choice('renderer', self.renderer, task_config.LAB_RENDERERS)
    _check_choice('action_set', self.action_set, actions.ACTION_SETS)
    if os.path.isabs(self.level_directory) and not os.path.isdir(
      self.level_directory
    ):
      raise ValueError(
        f'level_directory {self.level_directory!r} is not a folder; give the '
        'one with your level scripts.'
      )
    text = {key: to_lab_text(value) for key, value in self.config.items()}
    _check_config(text)
    object.__setattr__(self, 'config', text)

  def for_test(self) -> 'LabSettings':
    """The same, with held-out maps and the original's mixer seed for tests."""
    return dataclasses.replace(
      self, allow_hold_out_levels=True, mixer_seed=TEST_MIXER_SEED
    )

  def lab_config(
    self, extra: Mapping[str, Any] | None = None
  ) -> dict[str, str]:
    """Lab's `config`. `extra` settings, of a curriculum, win over `config`."""
    result = {
      'width': str(self.width),
      'height': str(self.height),
      'logLevel': 'WARN',
    }
    if self.dataset_path:
      result['datasetPath'] = self.dataset_path
    if self.allow_hold_out_levels:
      result['allowHoldOutLevels'] = 'true'
    if self.mixer_seed is not None:
      result['mixerSeed'] = str(self.mixer_seed)
    if self.level_directory:
      result['levelDirectory'] = self.level_directory
    text = {key: to_lab_text(value) for key, value in (extra or {}).items()}
    _check_config(text)
    return result | dict(self.config) | text


def check_settings(
  level_names: Sequence[str],
  settings: LabSettings,
  mode: str = 'train',
) -> None:
  """Checks what `LabSettings` alone cannot: Lab, levels, what they need.

  Args:
    level_names: as `levels.resolve` takes them.
    settings: of all these levels.
    mode: `train` or `test`.

  Raises:
    ValueError: DeepMind Lab is not installed, a level is unknown or held out,
      or its data set is missing.
  """
  check_installed()
  for name in levels.resolve(level_names, mode, settings.level_directory):
    level = levels.find(name)
    if level is not None and level.needs_dataset:
      _check_dataset(name, settings.dataset_path)
    if level is not None and name != level.train_name:
      _check_hold_out(name, settings)


def check_installed() -> None:
  """Raises `ValueError` if there is no `deepmind_lab`; does not import it."""
  if 'deepmind_lab' in sys.modules:
    return
  if importlib.util.find_spec('deepmind_lab') is None:
    raise ValueError(f'deepmind_lab is not installed; {HOW_TO_INSTALL}.')


def to_lab_text(value: Any) -> str:
  """A setting as Lab reads it: truth values are `true` and `false`."""
  if isinstance(value, bool):
    return 'true' if value else 'false'
  return str(value)


def parse_config(items: Iterable[str]) -> dict[str, str]:
  """`['botCount=2', ...]`, as flags give it, as a mapping."""
  result = {}
  for item in items:
    key, equals, value = item.partition('=')
    if not equals or not key:
      raise ValueError(
        f'Lab setting {item!r} is not name=value; write, for example, '
        'episodeLengthSeconds=60.'
      )
    result[key] = value
  return result


def _check_numbers(settings: LabSettings) -> None:
  for name in ('width', 'height'):
    value = getattr(settings, name)
    if value < 4 or value % 4:
      raise ValueError(
        f'{name} is {value}; DeepMind Lab draws sizes that are multiples of 4, '
        f'such as {max(4, round(value / 4) * 4)}.'
      )
  for name in ('num_action_repeats', 'num_level_seeds'):
    value = getattr(settings, name)
    if value is not None and value < 1:
      raise ValueError(f'{name} is {value}; it must be at least 1.')
  if settings.mixer_seed is not None and not (0 <= settings.mixer_seed < 2**32):
    raise ValueError(
      f'mixer_seed is {settings.mixer_seed}; it must be from 0 to 2**32 - 1.'
    )
  if not settings.level_cache_gib > 0:
    raise ValueError(
      f'level_cache_gib is {settings.level_cache_gib}; it must be above 0.'
    )


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
  if value not in choices:
    raise ValueError(
      f'{name} is {value!r}; choose one of {", ".join(choices)}.'
    )


def _check_config(config: Mapping[str, str]) -> None:
  for key, value in config.items():
    if not isinstance(key, str) or not key:
      raise ValueError(f'Lab setting {key!r} is not a name; give text.')
    if '\0' in key + value:
      raise ValueError(
        f'Lab setting {key!r} holds a zero character, where Lab would stop '
        'reading; remove it.'
      )
    if key in _OWN_FIELD:
      raise ValueError(
        f'Lab setting {key!r} is given freely; use {_OWN_FIELD[key]} for it.'
      )
    if key in _BOOLEANS and value not in ('true', 'false'):
      raise ValueError(
        f'Lab setting {key!r} is {value!r}; Lab takes true or false.'
      )


def _check_dataset(name: str, path: str) -> None:
  what = 'the folder with the images 0001.png to 2400.png, or dummy'
  if not path:
    raise ValueError(
      f'Level {name!r} shows a data set and dataset_path is empty; give {what} '
      'for plain colours.'
    )
  if path != DUMMY_DATASET and not os.path.isfile(
    os.path.join(path, '0001.png')
  ):
    raise ValueError(
      f'Level {name!r} shows a data set and dataset_path {path!r} has no '
      f'0001.png; give {what} for plain colours.'
    )


def _check_hold_out(name: str, settings: LabSettings) -> None:
  if not settings.allow_hold_out_levels:
    raise ValueError(
      f'Level {name!r} is held out and allow_hold_out_levels is off; play it '
      'in test mode.'
    )
