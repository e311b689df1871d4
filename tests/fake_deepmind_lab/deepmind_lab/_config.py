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
"""Settings that the engine itself reads (`dmlab_connect.c`)."""

import re

from deepmind_lab import _rules

UINT32_MAX = 2**32 - 1
MAX_CVAR_VALUE_STRING = 256

_BOOLEANS = frozenset(
  (
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
)
_INTEGERS = frozenset(
  (
    'maxAltCameraWidth',
    'maxAltCameraHeight',
    'serverPort',
    'port',
    'gpuDeviceIndex',
  )
)
_TEXTS = frozenset(('appendCommand', 'record', 'demo', 'video', 'demofiles'))
_VM_MODES = ('interpreted', 'compiled', 'native')


class EngineSettings:
  """What the engine keeps of the settings; the rest goes to the level."""

  def __init__(self, level_name):
    self.level_name = level_name
    self.level_directory = ''
    self.width = 320
    self.height = 240
    self.mixer_seed = 0
    self.alt_camera_width = 0
    self.alt_camera_height = 0
    self.frame_msecs = 0
    self.level_settings = {}
    self.apply('fps', '60')

  def apply(self, key, value):
    """Takes one setting; RuntimeError if the engine refuses it."""
    try:
      self._apply(key, value)
    except ValueError as error:
      raise RuntimeError(
        f'Failed to apply setting \'{key} = {value}\' - "{error}"'
      ) from None

  def _apply(self, key, value):
    if key == 'levelName':
      self.level_name = value
    elif key == 'levelDirectory':
      self.level_directory = value
    elif key in ('width', 'height'):
      setattr(self, key, _size(key, value))
    elif key == 'fps':
      self._set_fps(value)
    elif key == 'mixerSeed':
      self.mixer_seed = _mixer_seed(value)
    elif key == 'vmMode':
      if value not in _VM_MODES:
        raise ValueError(f'vmMode must be either: {_VM_MODES}')
    elif key == 'playerName':
      if len(value) >= MAX_CVAR_VALUE_STRING:
        raise ValueError('Invalid playerName is must be shorter')
    elif key in _BOOLEANS:
      if value not in ('true', 'false'):
        raise ValueError(
          f'Invalid boolean arg must be either "true" or "false"; actual '
          f'"{value}"\n'
        )
      self._refuse_untold(key, value)
    elif key in _INTEGERS:
      self._set_integer(key, _integer(value))
    elif key not in _TEXTS:
      self.level_settings[key] = value

  def _set_fps(self, value):
    match = re.fullmatch(r'\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?', value)
    if not match:
      raise ValueError(f'Invalid double arg {value}\n')
    frames = int(float(value))  # Kept in a long, as the engine does.
    if frames > 0:
      self.frame_msecs = int(960 / frames + 0.5)
      if self.frame_msecs == 0:
        raise _rules.UndefinedBehaviour(
          f'fps is {value}: Lab then follows the wall clock.'
        )

  def _set_integer(self, key, number):
    if key == 'maxAltCameraWidth' and number >= 0:
      self.alt_camera_width = number
    elif key == 'maxAltCameraHeight' and number >= 0:
      self.alt_camera_height = number

  def _refuse_untold(self, key, value):
    if key in ('server', 'client', 'nativeApp') and value == 'true':
      raise _rules.UndefinedBehaviour(
        f'{key} makes another program of Lab; the double has none.'
      )


def _integer(text):
  """`strtol` with base 0: spaces before, a sign, hexadecimal, octal."""
  match = re.fullmatch(r'\s*([-+]?)(0[xX][0-9a-fA-F]+|\d+)', text)
  if match:
    sign, digits = match.groups()
    base = 16 if digits[:2] in ('0x', '0X') else 8 if digits[0] == '0' else 10
    try:
      number = int(digits, base)
    except ValueError:
      number = None
    if number is not None and number < 2**63:
      return -number if sign == '-' else number
  raise ValueError(f'Invalid int setting {text}\n')


def _size(key, text):
  number = _integer(text)
  if number < 4 or number % 4:
    raise ValueError(
      f"'{key}' must be a positive multiple of 4. Actual {number}"
    )
  return number


def _mixer_seed(text):
  number = _integer(text)
  if not 0 <= number <= UINT32_MAX:
    raise ValueError(
      'Invalid mixerSeed value, must be a positive integer not greater than '
      f"'{UINT32_MAX}'."
    )
  return number
