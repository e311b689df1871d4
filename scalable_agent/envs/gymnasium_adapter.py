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
"""One Gymnasium environment as a `dm_env.Environment`."""

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import dm_env
import gymnasium
import numpy as np
from gymnasium.envs import registration

from scalable_agent import structs
from scalable_agent.envs import gymnasium_spaces


class GymnasiumEnvironment(dm_env.Environment):
  """Any `gymnasium.Env` whose spaces this agent knows.

  `terminated` is `LAST` with discount 0, `truncated` alone is `LAST` with
  discount 1.
  """

  def __init__(
    self, env: gymnasium.Env, seed: int, num_action_repeats: int = 1
  ):
    """Adapts.

    Args:
      env: The environment.
      seed: Seeds its first reset; later ones go on from there.
      num_action_repeats: Steps of `env` per step here; rewards are summed. An
        environment that repeats actions by itself is refused if this is not 1.
    """
    self._frame_skip = frame_skip(env)
    if num_action_repeats > 1 and self._frame_skip > 1:
      raise ValueError(
        f'{env} already repeats each action {self._frame_skip} times '
        f'and num_action_repeats={num_action_repeats} would repeat that; leave '
        'one of the two at 1.'
      )
    self._env = env
    self._seed: int | None = seed
    self._num_action_repeats = num_action_repeats
    self._observation_spec = gymnasium_spaces.observation_spec(
      env.observation_space
    )
    self._action_spec = gymnasium_spaces.action_spec(env.action_space)
    self._to_action = gymnasium_spaces.action_converter(env.action_space)
    self._playing = False

  @property
  def frames_per_step(self) -> int:
    """Simulator frames behind one step."""
    return self._num_action_repeats * self._frame_skip

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode."""
    observation, _ = self._env.reset(seed=self._seed)
    self._seed = None
    self._playing = True
    return dm_env.restart(observation)

  def step(self, action: Any) -> dm_env.TimeStep:
    """Repeats the action until its repeats or the episode are over."""
    if not self._playing:
      return self.reset()
    action = self._to_action(action)
    total = 0.0
    for _ in range(self._num_action_repeats):
      observation, reward, terminated, truncated, _ = self._env.step(action)
      # Some environments give arrays of one element.
      total += np.asarray(reward).item()
      if terminated or truncated:
        break
    if terminated:
      self._playing = False
      return dm_env.termination(total, observation)
    if truncated:
      self._playing = False
      return dm_env.truncation(total, observation)
    return dm_env.transition(total, observation)

  def observation_spec(self) -> structs.Nest:
    """A spec, or nested dicts of specs."""
    return self._observation_spec

  def action_spec(self) -> Any:
    """See `structs.EnvironmentSpec.action`."""
    return self._action_spec

  def render(self) -> np.ndarray:
    """A picture `[H, W, 3]` uint8."""
    picture = self._env.render() if self._env.render_mode else None
    if picture is None:
      raise ValueError(
        f'{self._env} gives no pictures; it needs the render mode rgb_array '
        "among its metadata's `render_modes`, and `render`."
      )
    return picture

  def close(self):
    """Closes the environment."""
    self._env.close()


def frame_skip(env: gymnasium.Env | gymnasium.vector.VectorEnv) -> int:
  """How often `env` repeats an action by itself.

  As it says in an attribute `frames_per_step`, or else in the argument
  `frameskip` that it was made with, as the ids of `ale_py` are.
  """
  told = getattr(env.unwrapped, 'frames_per_step', None)
  if told is not None:
    return told
  skip = env.spec.kwargs.get('frameskip', 1) if env.spec else 1
  return max(skip) if isinstance(skip, (tuple, list)) else skip


def make(
  seed: int,
  *,
  environment_id: str,
  gym_import: str = '',
  num_action_repeats: int = 1,
  render_mode: str | None = None,
) -> GymnasiumEnvironment:
  """Makes a registered environment; `functools.partial` of it is a factory.

  Args:
    seed: Seeds it.
    environment_id: As in `gymnasium.make`.
    gym_import: Module to import first, which registers your own environments.
    num_action_repeats: See `GymnasiumEnvironment`.
    render_mode: 'rgb_array' to film it, if it can be filmed.

  Returns:
    The environment.
  """
  import_module(gym_import)
  env = registered(_make, environment_id, gym_import, render_mode=render_mode)
  return GymnasiumEnvironment(env, seed, num_action_repeats)


def _make(environment_id, render_mode):
  creator = gymnasium.spec(environment_id).entry_point
  if isinstance(creator, str):
    creator = registration.load_env_creator(creator)
  metadata = getattr(creator, 'metadata', {})
  rendering = {}
  if render_mode in metadata.get('render_modes', ()):
    # Not every environment knows the argument.
    rendering['render_mode'] = render_mode
  # What Gymnasium's checker would say, `base.CheckedEnvironment` says.
  return gymnasium.make(environment_id, disable_env_checker=True, **rendering)


def import_module(gym_import: str):
  """Imports the module that registers a user's environments, if named."""
  if not gym_import:
    return
  # Scripts lie elsewhere than the users' own modules, which stand where they
  # stand themselves.
  if os.getcwd() not in sys.path:
    sys.path.append(os.getcwd())
  try:
    importlib.import_module(gym_import)
  except ImportError as e:
    raise ValueError(
      f'--gym_import={gym_import} cannot be imported ({e}); name a module '
      'that can be, of this folder or of PYTHONPATH, without `.py`.'
    ) from e


def registered(
  maker: Callable[..., Any], environment_id: str, gym_import: str, **kwargs: Any
) -> Any:
  """Makes; says what to do if the id is unknown.

  Args:
    maker: `gymnasium.make` or `gymnasium.make_vec`.
    environment_id: What to make.
    gym_import: Module that was imported before, or ''.
    **kwargs: For `maker`.

  Returns:
    What `maker` made.
  """
  try:
    return maker(environment_id, **kwargs)
  except gymnasium.error.UnregisteredEnv as e:
    hint = 'name the module that registers it with --gym_import'
    if environment_id.startswith('ALE/'):
      hint = 'name it with --gym_import=ale_py, or play atari/<game> instead'
    elif gym_import:
      hint = f'{gym_import}, which was imported, does not register it'
    message = f'gym/{environment_id} cannot be made: {e} Hint: {hint}.'
  except (gymnasium.error.DependencyNotInstalled, ImportError) as e:
    message = f'gym/{environment_id} lacks a package: {e}'
  raise ValueError(message)
