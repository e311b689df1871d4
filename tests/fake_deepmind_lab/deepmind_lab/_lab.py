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
"""The class `Lab`: its arguments, its life, and who may call it."""

import os
import random as random_lib
import threading

import numpy as np

from deepmind_lab import _config, _engine, _rules, _scripts

_UNSET = object()


class _Runfiles:
  """The module's folder of files; another one has no levels."""

  default = os.path.dirname(os.path.abspath(__file__))
  path = default


runfiles = _Runfiles()


class _Call:
  """One call into an engine: alone, in its process, in its thread."""

  def __init__(self, engine):
    self._engine = engine

  def __enter__(self):
    engine = self._engine
    if engine.pid != os.getpid():
      raise _rules.UndefinedBehaviour(
        'A forked process uses the Lab of its parent.'
      )
    if engine.hardware and engine.thread != threading.get_ident():
      raise _rules.UndefinedBehaviour(
        'Hardware rendering is used from another thread than the one that made '
        'the Lab.'
      )
    if not engine.busy.acquire(blocking=False):
      raise _rules.UndefinedBehaviour('Two threads use one Lab at once.')
    return engine

  def __exit__(self, *exc_info):
    self._engine.busy.release()


class _Open(_Call):
  """A call that the real module does not guard against a closed Lab."""

  def __enter__(self):
    if self._engine.status == _engine.CLOSED:
      raise _rules.UndefinedBehaviour(
        'The Lab is closed: only is_running may be called.'
      )
    return super().__enter__()


class Lab:
  """Lab object."""

  __slots__ = ('_engine',)

  def __init_subclass__(cls):
    raise TypeError("type 'deepmind_lab.Lab' is not an acceptable base type")

  def __reduce_ex__(self, protocol):
    raise TypeError("cannot pickle 'deepmind_lab.Lab' object")

  def __init__(
    self,
    level,
    observations,
    config=_UNSET,
    renderer=_UNSET,
    level_cache=None,
    temp_folder=_UNSET,
  ):
    level = _rules.c_string(level, 'argument 1')
    _rules.instance_of(observations, list, 'argument 2')
    config = {} if config is _UNSET else config
    _rules.instance_of(config, dict, 'argument 3')
    renderer = 'software' if renderer is _UNSET else renderer
    renderer = _rules.c_string(renderer, 'argument 4')
    temp_folder = '' if temp_folder is _UNSET else temp_folder
    temp_folder = _rules.c_string(temp_folder, 'argument 6')
    if renderer not in ('', 'software', 'hardware'):
      raise RuntimeError(
        'Failed to set renderer must be "hardware" or "software" actual '
        f'"{renderer}"!'
      )
    if runfiles.path != runfiles.default:
      raise RuntimeError('Failed to connect RL API')
    settings = _config.EngineSettings(level)
    for key, value in config.items():
      settings.apply(_rules.utf8(key), _rules.utf8(value))
    self._engine = _engine.Engine(settings, level_cache, temp_folder, renderer)
    known = {spec[0] for spec in self._engine.specs}
    self._engine.asked = [_rules.utf8(name) for name in observations]
    for name in self._engine.asked:
      if name not in known:
        raise ValueError(f"Unknown observation '{name}'.")

  def __del__(self):
    if hasattr(self, '_engine'):
      self._engine.release()

  def reset(self, episode=-1, seed=None):
    """Reset the environment."""
    episode = _rules.c_int(episode)
    with _Open(self._engine) as engine:
      if episode >= 0:
        engine.episode = episode
      if seed is None:
        seed = random_lib.randrange(_rules.INT_MAX)
      engine.start(engine.episode, _rules.seed(seed))
      engine.num_steps = 0
      engine.episode += 1
      engine.status = _engine.INITIALIZED
      return True

  def step(self, action, num_steps=1):
    """Advance the environment a number of steps."""
    _rules.instance_of(action, np.ndarray, 'argument 1')
    num_steps = _rules.c_int(num_steps)
    with _Call(self._engine) as engine:
      if not _is_running(engine):
        raise RuntimeError('Environment in wrong status to advance.')
      numbers = _rules.action(action, engine.actions)
      reward = engine.advance(numbers, num_steps)
      engine.num_steps += num_steps
      return float(reward)

  def observations(self):
    """Get the observations."""
    with _Call(self._engine) as engine:
      if not _is_running(engine):
        raise RuntimeError(
          'Environment in wrong status for call to observations()'
        )
      return {name: engine.observe(name) for name in engine.asked}

  def events(self):
    """Get the events."""
    with _Call(self._engine) as engine:
      if engine.status in (_engine.CLOSED, _engine.UNINITIALIZED):
        raise RuntimeError('Environment in wrong status for call to events()')
      return [(name, list(values)) for name, values in engine.events]

  def is_running(self):
    """If the environment is in status RUNNING."""
    return _is_running(self._engine)

  def num_steps(self):
    """Number of frames since the last reset() call."""
    with _Open(self._engine) as engine:
      return engine.num_steps

  def observation_spec(self):
    """The shape of the observations."""
    with _Open(self._engine) as engine:
      return [
        {'name': name, 'shape': shape, 'dtype': dtype}
        for name, shape, dtype in engine.specs
      ]

  def action_spec(self):
    """The shape of the actions."""
    with _Open(self._engine) as engine:
      return [dict(action) for action in engine.actions]

  def close(self):
    """Close the environment."""
    with _Call(self._engine) as engine:
      if engine.status == _engine.CLOSED:
        return False
      engine.release()
      return True

  def properties(self, key=''):
    """List sub-properties of an environment property."""
    key = _rules.c_string(key, 'argument 1')
    with _Open(self._engine) as engine:
      if key == '':
        listed = {'params': 4} if engine.script.overrides else {}
        return listed | {'engine': 4}
      if key == 'engine':
        return {'engine.fps': 1}
      if key == 'params' and engine.script.overrides:
        return {f'params.{name}': 3 for name in engine.params}
      if _is_value(engine, key):
        raise TypeError(f"'{key}' not listable.")
      raise KeyError(f"'{key}' not found.")

  def read_property(self, key):
    """Read an environment property."""
    key = _rules.c_string(key, 'argument 1')
    with _Open(self._engine) as engine:
      if key == 'engine.fps':
        return str(int(960 / engine.settings.frame_msecs))
      if _is_value(engine, key):
        return _to_text(engine.params[key.removeprefix('params.')])
      if key in ('engine', 'params'):
        raise TypeError(f"'{key}' not readable.")
      raise KeyError(f"'{key}' not found.")

  def write_property(self, key, value):
    """Write to an environment property."""
    key = _rules.c_string(key, 'argument 1')
    value = _rules.c_string(value, 'argument 2')
    with _Open(self._engine) as engine:
      if key in ('engine', 'params', 'engine.fps'):
        raise TypeError(f"'{key}' not writable.")
      if not _is_value(engine, key):
        raise KeyError(f"'{key}' not found.")
      name, new = key.removeprefix('params.'), _scripts.from_text(value)
      if type(new) is not type(engine.params[name]):
        raise TypeError(f"Type error! Cannot assign '{value}' to '{key}'.")
      engine.params[name] = new


def _is_running(engine):
  return engine.status in (_engine.INITIALIZED, _engine.RUNNING)


def _is_value(engine, key):
  if key == 'engine.fps':
    return True
  name = key.removeprefix('params.')
  return engine.script.overrides and name != key and name in engine.params


def _to_text(value):
  if isinstance(value, bool):
    return 'true' if value else 'false'
  return f'{value:g}' if isinstance(value, float) else str(value)
