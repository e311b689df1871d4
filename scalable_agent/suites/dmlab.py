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
"""Levels of DeepMind Lab, one Lab per process, and DMLab-30."""

from collections.abc import Mapping, Sequence

from scalable_agent import config as config_lib
from scalable_agent.dmlab30 import curriculum, environment, levels, scores
from scalable_agent.dmlab30 import settings as settings_lib
from scalable_agent.suites import base

# Settings of `TaskConfig` that are None where the suite decides.
_DECIDED = ('width', 'height', 'num_action_repeats')
_PASSED_ON = (
  'action_set',
  'allow_hold_out_levels',
  'level_cache_dir',
  'level_cache_gib',
  'level_directory',
  'mixer_seed',
  'num_level_seeds',
  'renderer',
)
_CAP_PERCENT = 100


def is_level(name: str, settings: config_lib.Config) -> bool:
  """Whether `name`, of no other suite, is one of DeepMind Lab."""
  return (
    name == levels.SUITE
    or levels.find(name) is not None
    or name in levels.OTHER_LEVELS
    or '/' in name
    or bool(settings.dmlab.level_directory)
  )


def lab_settings(
  settings: config_lib.Config, mode: str = 'train'
) -> settings_lib.LabSettings:
  """How Lab is set up in a run.

  Args:
    settings: of the run.
    mode: `train`, or `test` for held-out maps and the original's mixer seed.

  Raises:
    ValueError: Lab would not take them.
  """
  decided = {name: getattr(settings.task, name) for name in _DECIDED}
  further = settings.dmlab.lab_setting
  result = settings_lib.LabSettings(
    dataset_path=settings.task.dataset_path,
    config=settings_lib.parse_config(further.split(',') if further else ()),
    **{name: v for name, v in decided.items() if v is not None},
    **{name: getattr(settings.dmlab, name) for name in _PASSED_ON},
  )
  return result.for_test() if mode == 'test' else result


def make_task(
  settings: config_lib.Config, names: Sequence[str], mode: str
) -> base.Task:
  """The task of these levels; `dmlab30` stands for all thirty.

  Its specification is known without a Lab, and everything that can be checked
  without one is.

  Args:
    settings: of the run.
    names: levels, as `levels.resolve` takes them.
    mode: `train` or `test`. Tests play the suite's test levels, and no
      curriculum.

  Raises:
    ValueError: Lab is missing, or the settings do not fit it or the levels.
  """
  lab = lab_settings(settings, mode)
  resolved = tuple(levels.resolve(names, mode, lab.level_directory))
  settings_lib.check_settings(resolved, lab, mode)
  schedule = None
  if settings.dmlab.curriculum and mode == 'train':
    schedule = curriculum.parse(settings.dmlab.curriculum)

  def factory(name):
    return environment.LabFactory(name, lab, schedule)

  task = base.single_task(settings, resolved, factory, auto_backend='process')
  whole = {levels.TRAIN_NAMES, levels.TEST_NAMES}
  return task._replace(
    known_spec=factory(resolved[0]).spec,
    human_normalized=_percent,
    suite=base.Suite(levels.SUITE, _scores) if resolved in whole else None,
  )


def _percent(level: str, mean_return: float) -> float | None:
  if levels.find(level) is None:
    return None
  return scores.human_normalized(level, mean_return)


def _scores(level_returns: Mapping[str, Sequence[float]]) -> dict[str, float]:
  """The original's two figures, under its names."""
  return {
    'no_cap': scores.compute_human_normalized_score(level_returns, None),
    'cap_100': scores.compute_human_normalized_score(
      level_returns, _CAP_PERCENT
    ),
  }
