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
"""Makes environments of DeepMind Lab.

The only module that imports `deepmind_lab`, and only when an environment is
made: Lab is a separate install, and each process has one of its own.
"""

import dataclasses
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from scalable_agent import structs
from scalable_agent.dmlab30 import (
  actions,
  curriculum,
  episodes,
  level_cache,
  levels,
  temp_folders,
)
from scalable_agent.dmlab30 import settings as settings_lib
from scalable_agent.envs import observations


@dataclasses.dataclass(frozen=True)
class LabFactory:
  """Makes environments of one level; small and picklable, for processes.

  level: as `levels.resolve` gives it.
  settings: how Lab is set up.
  schedule: level settings by progress, or None.
  progress: where a resumed environment goes on.
  """

  level: str
  settings: settings_lib.LabSettings = dataclasses.field(
    default_factory=settings_lib.LabSettings
  )
  schedule: curriculum.Curriculum | None = None
  progress: curriculum.Progress = dataclasses.field(
    default_factory=curriculum.Progress
  )

  def __call__(self, seed: int) -> episodes.LabEnvironment:
    """An environment whose episodes are drawn from `seed`."""
    return episodes.LabEnvironment(
      self.open_lab,
      seed,
      num_action_repeats=self.settings.num_action_repeats,
      action_set=self.settings.action_set,
      num_level_seeds=self.settings.num_level_seeds,
      schedule=self.schedule,
      progress=self.progress,
    )

  @property
  def spec(self) -> structs.EnvironmentSpec:
    """What batches of the environments show and take, known without a Lab."""
    return structs.EnvironmentSpec(
      observation=observations.received_spec(
        episodes.observation_spec(self.settings.height, self.settings.width)
      ),
      action=actions.Actions(self.settings.action_set).spec,
      frames_per_step=self.settings.num_action_repeats,
    )

  def open_lab(self, extra: Mapping[str, str]) -> 'OwnedLab':
    """A Lab that plays the level with the settings and `extra` ones."""
    return OwnedLab(
      levels.lab_name(self.level, self.settings.level_directory),
      self.settings.lab_config(extra),
      self.settings.renderer,
      self.cache(),
    )

  def cache(self) -> level_cache.LevelCache | None:
    """The level cache of the settings."""
    if not self.settings.level_cache_dir:
      return None
    return level_cache.LevelCache(
      self.settings.level_cache_dir,
      int(self.settings.level_cache_gib * 2**30),
    )


class OwnedLab:
  """A `deepmind_lab.Lab` together with its temporary folder."""

  def __init__(
    self,
    level: str,
    config: Mapping[str, str],
    renderer: str = 'software',
    cache: Any = None,
  ):
    """Makes the Lab.

    Args:
      level: name of the level script, as Lab knows it.
      config: Lab's settings.
      renderer: `software` or `hardware`.
      cache: object with `fetch` and `write`, or None.
    """
    module = import_lab()
    self._folder = temp_folders.TempFolder()
    try:
      self._lab = module.Lab(
        level,
        [episodes.FRAME, episodes.INSTRUCTION],
        config=dict(config),
        renderer=renderer,
        level_cache=cache,
        temp_folder=self._folder.path,
      )
    except BaseException:
      self._folder.close()
      raise
    self.reset = self._lab.reset
    self.step = self._lab.step
    self.is_running = self._lab.is_running
    self.observations = self._lab.observations
    self.observation_spec = self._lab.observation_spec
    self.action_spec = self._lab.action_spec

  def close(self) -> None:
    """Closes the Lab and removes the folder. May be called twice."""
    try:
      self._lab.close()
    finally:
      self._folder.close()


def import_lab() -> ModuleType:
  """The module `deepmind_lab`; `ValueError` if it is missing or broken."""
  settings_lib.check_installed()
  try:
    import deepmind_lab
  except ImportError as error:
    raise ValueError(
      f'deepmind_lab is installed and does not load ({error}); '
      f'{settings_lib.HOW_TO_INSTALL}.'
    ) from error
  return deepmind_lab
