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
"""Gymnasium environments, by their id."""

import functools

from scalable_agent import config
from scalable_agent.envs import gymnasium_adapter, gymnasium_vector
from scalable_agent.suites import base

PREFIX = 'gym/'


def make_task(settings: config.Config, names: tuple[str, ...]) -> base.Task:
  """The task of these levels, each `gym/<id>`.

  Raises:
    ValueError: the settings do not fit.
  """

  def factory(name, render_mode=None):
    return functools.partial(
      gymnasium_adapter.make,
      environment_id=name.removeprefix(PREFIX),
      gym_import=settings.task.gym_import,
      num_action_repeats=settings.task.num_action_repeats or 1,
      render_mode=render_mode,
    )

  filmed = functools.partial(factory, render_mode='rgb_array')
  if settings.actor.env_backend != 'vector':
    return base.single_task(settings, names, factory)._replace(factory=filmed)
  if len(names) > 1:
    raise ValueError(
      'env_backend is vector, which plays one gym level at a time; choose '
      'serial or process for several.'
    )

  def build(request):
    return gymnasium_vector.make(
      names[0].removeprefix(PREFIX),
      request.level_names,
      gym_import=settings.task.gym_import,
      num_action_repeats=settings.task.num_action_repeats or 1,
      base_seed=request.base_seed,
      actor=request.actor,
    )

  return base.Task(names, 1, build, filmed)
