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
"""What lies behind one `Lab`: level, episode, observations."""

import os
import shutil
import tempfile
import threading
import zlib

import numpy as np

from deepmind_lab import _maps, _scripts

CLOSED, UNINITIALIZED, INITIALIZED, RUNNING, TERMINATED = range(5)

_ACTIONS = (
  ('LOOK_LEFT_RIGHT_PIXELS_PER_FRAME', -512, 512),
  ('LOOK_DOWN_UP_PIXELS_PER_FRAME', -512, 512),
  ('STRAFE_LEFT_RIGHT', -1, 1),
  ('MOVE_BACK_FORWARD', -1, 1),
  ('FIRE', 0, 1),
  ('JUMP', 0, 1),
  ('CROUCH', 0, 1),
)


class Engine:
  """What lies behind one `Lab`; `Lab` itself has nothing but methods."""

  def __init__(self, settings, cache, temp_folder, renderer):
    self.settings = settings
    self.cache = cache
    self.hardware = renderer == 'hardware'
    self.thread, self.pid = threading.get_ident(), os.getpid()
    self.busy = threading.Lock()
    self.status, self.episode, self.num_steps = UNINITIALIZED, 0, 0
    self.events, self.pending, self.rgb = [], 0, None
    self.owns_folder = not temp_folder
    self.folder = temp_folder or tempfile.mkdtemp(prefix='dmlab_temp_folder_')
    try:
      self.init()
    except BaseException:
      self.release()
      raise

  def init(self):
    name, self.script = _scripts.find(
      self.settings.level_name, self.settings.level_directory
    )
    self.name = name.rsplit('/', 1)[-1]
    try:
      self.params = _scripts.parameters(
        self.script, self.settings.level_settings
      )
      own = {key: self.params[key] for key, _ in self.script.params}
      self.game = self.script.game(**own)
    except ValueError as error:
      raise RuntimeError(f'Failed to init environment - "{error}"') from None
    self.actions = [
      {'min': low, 'max': high, 'name': name} for name, low, high in _ACTIONS
    ]
    if self.params.get('gadgetSelect'):
      self.actions.append({'min': 0, 'max': 10, 'name': 'SELECT_GADGET'})
    if self.params.get('gadgetSwitch'):
      self.actions.append({'min': -1, 'max': 1, 'name': 'SWITCH_GADGET'})
    self.specs = _observation_specs(self.settings, self.script)

  def start(self, episode, seed):
    """Begins an episode, as `dmlab_start`."""
    script = self.script
    if not script.overrides and (
      set(self.settings.level_settings) - _scripts.WHITELIST
      or 'enableCameraMovement' in self.settings.level_settings
    ):
      raise RuntimeError(
        'Failed to start environment - "the level generator does not know one '
        'of the settings"'
      )
    if script.dataset and not self.params['datasetPath']:
      raise RuntimeError(
        'Failed to start environment - "Follow instructions to download '
        'datasets"'
      )
    mixed = seed ^ self.settings.mixer_seed << 32
    random = np.random.default_rng([mixed, zlib.crc32(self.name.encode())])
    self.game.start(random)
    self.steps, self.pending, self.rgb = 0, 0, None
    self.events = []
    if script.events:
      self.events = [('TEXT', [f'EPISODE {episode}'])]
    os.makedirs(os.path.join(self.folder, 'baselab'), exist_ok=True)
    if script.compiles:
      source = f'{self.name} {self.params} {random.integers(2**62)}\n'
      _maps.load(source, self.name, script.bots, self.cache, self.folder)

  def advance(self, action, num_steps):
    """Plays frames; returns the sum of their rewards.

    A frame's reward arrives with the next frame; the extra frame after the last
    one brings what is outstanding.
    """
    self.events, self.rgb, reward = [], None, 0
    for _ in range(num_steps):
      self.steps += 1
      reward += self.pending
      self.pending = self.game.frame(action)
      seconds = self.steps * self.settings.frame_msecs / 960
      if self.game.over or seconds >= self.params['episodeLengthSeconds']:
        reward += self.pending
        self.status = TERMINATED
        if self.script.events:
          self.events = [('LOG', ['Episode ended'])]
        return reward
    self.status = RUNNING
    return reward

  def observe(self, name):
    """One observation, freshly made."""
    size = self.settings.height, self.settings.width
    if name in _PIXELS:
      if self.rgb is None:  # Drawn only when looked at.
        self.rgb = self.game.draw(*size)
      return _PIXELS[name](self.rgb)
    left = self.params['episodeLengthSeconds'] - (
      self.steps * self.settings.frame_msecs / 960
    )
    position = [float(self.game.position), 0.0, 0.0]
    heading = [0.0, self.game.yaw * 360 / 3420, 0.0]
    special = {
      'INSTR': lambda: str(self.game.instruction),
      'MAP_FRAME_NUMBER': lambda: np.array([float(self.steps)]),
      'FRAMES_REMAINING_AT_60': lambda: np.array([left * 60]),
      'DEBUG.POS.TRANS': lambda: np.array(position),
      'DEBUG.POS.ROT': lambda: np.array(heading),
      'DEBUG.PLAYER_ID': lambda: np.array([1.0]),
      'DEBUG.PLAYERS.ID': lambda: np.array([1.0]),
      'DEBUG.MAZE.LAYOUT': lambda: '',
    }
    if name in special:
      return special[name]()
    shape, dtype = next(s[1:] for s in self.specs if s[0] == name)
    return np.zeros(shape, dtype)

  def release(self):
    self.status = CLOSED
    if self.owns_folder and self.pid == os.getpid():
      shutil.rmtree(self.folder, ignore_errors=True)


def _planar(rgb):
  return np.ascontiguousarray(rgb.transpose(2, 0, 1))


def _with_depth(rgb):
  depth = rgb.mean(axis=2, keepdims=True).astype(np.uint8)
  return np.concatenate([rgb, depth], axis=2)


_PIXELS = {
  'RGB_INTERLEAVED': np.copy,
  'RGBD_INTERLEAVED': _with_depth,
  'RGB': _planar,
  'RGBD': lambda rgb: _planar(_with_depth(rgb)),
  'BGR_INTERLEAVED': lambda rgb: rgb[..., ::-1].copy(),
  'BGRD_INTERLEAVED': lambda rgb: _with_depth(rgb)[..., [2, 1, 0, 3]],
  'RGB_INTERLACED': np.copy,
  'RGBD_INTERLACED': _with_depth,
}


def _observation_specs(settings, script):
  """`(name, shape, dtype)` of all observations of the level, in Lab's order."""
  h, w = settings.height, settings.width
  alt = max(h, settings.alt_camera_height), max(w, settings.alt_camera_width)
  built_in = [
    ('RGB_INTERLEAVED', (h, w, 3), np.uint8),
    ('RGBD_INTERLEAVED', (h, w, 4), np.uint8),
    ('RGB', (3, h, w), np.uint8),
    ('RGBD', (4, h, w), np.uint8),
    ('BGR_INTERLEAVED', (h, w, 3), np.uint8),
    ('BGRD_INTERLEAVED', (h, w, 4), np.uint8),
    ('MAP_FRAME_NUMBER', (1,), np.float64),
    ('RGB_INTERLACED', (h, w, 3), np.uint8),
    ('RGBD_INTERLACED', (h, w, 4), np.uint8),
  ]
  if not script.observations:
    return built_in
  return [
    *built_in,
    ('VEL.TRANS', (3,), np.float64),
    ('VEL.ROT', (3,), np.float64),
    ('INSTR', (), str),
    ('TEAM.SCORE', (2,), np.float64),
    ('FRAMES_REMAINING_AT_60', (1,), np.float64),
    ('DEBUG.CAMERA.TOP_DOWN', (3, *alt), np.uint8),
    ('DEBUG.MAZE.LAYOUT', (), str),
    ('DEBUG.POS.TRANS', (3,), np.float64),
    ('DEBUG.POS.ROT', (3,), np.float64),
    ('DEBUG.PLAYER_ID', (1,), np.float64),
    ('DEBUG.PLAYERS.ID', (0,), np.float64),
  ]
