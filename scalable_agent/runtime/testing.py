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
"""Testing the agent of a run: fair episodes, a table, a film."""

import csv
import io
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from scalable_agent import (
  checkpoint,
  config,
  evaluate,
  files,
  structs,
  tasks,
  video,
)
from scalable_agent.runtime import devices, training

if TYPE_CHECKING:
  from scalable_agent import inference

TABLE_FILE = 'test.csv'
_COLUMNS = (
  'env_frames',
  'level',
  'episodes',
  'mean_return',
  'standard_error',
  'min_return',
  'max_return',
  'mean_steps',
  'human_normalized_percent',
)


def run_test(
  settings: config.Config,
  num_episodes: int,
  greedy: bool = False,
  video_path: str | None = None,
  say: Callable[[str], None] = print,
) -> list[evaluate.LevelResult]:
  """Plays `num_episodes` of each level with the newest checkpoint.

  Returns are raw, lives end nothing, actions are sampled unless `greedy`.
  A row per level is added to `test.csv` in the run directory.

  Args:
    settings: of the run, with its `logdir`.
    num_episodes: per level, shared out over the environments beforehand.
    greedy: take the most likely action.
    video_path: film one more episode of the first level; None: no film.
    say: shows a line to the user.

  Raises:
    training.SettingsError: there is no checkpoint, or it does not fit.
  """
  try:
    saved = checkpoint.Checkpointer(settings.run.logdir).restore_required()
    if video_path is not None:
      video.check_path(video_path)
    task = tasks.make_task(settings, 'test')
    spec = task.spec()
    devices.prepare()
    player = _Player(settings, task, spec, saved, greedy)
  except (ValueError, FileNotFoundError) as error:
    raise training.SettingsError(str(error)) from error
  env_frames = saved.counters['learner']['env_frames']
  say(
    f'Testing {saved.path} ({env_frames:,} frames): {num_episodes} episodes '
    f'per level, {"greedy" if greedy else "sampled"} actions.'
  )
  results = []
  for level in task.level_names:
    results.append(player.play(level, num_episodes))
    row = _row(env_frames, results[-1], task.human_normalized)
    say(_line(row))
    _append(os.path.join(settings.run.logdir, TABLE_FILE), row)
  if video_path is not None:
    episode_return = player.film(task.level_names[0], video_path)
    say(f'Filmed an episode of return {episode_return:g}: {video_path}')
  return results


class _Player:
  """Plays levels with the weights of a checkpoint."""

  def __init__(self, settings, task, spec, saved, greedy):
    from scalable_agent import learner, params
    from scalable_agent.nets import agent as agent_lib

    self._settings = settings
    self._task = task
    self._greedy = greedy
    self._place = devices.place('auto', settings.run.inference_device)
    self._make_agent = lambda: agent_lib.Agent(
      spec, settings.agent, frame_stack=task.frame_stack
    )
    agent = self._make_agent()
    learner.load_agent(agent, saved.arrays)
    self._params = params.ParamStore()
    self._params.publish(0, [v.numpy() for v in agent.trainable_variables])
    self._policies: dict[int, inference.DirectPolicy] = {}

  def play(self, level: str, num_episodes: int) -> evaluate.LevelResult:
    """Fresh environments, closed afterwards."""
    actors = self._settings.actor
    num_envs = min(num_episodes, actors.num_actors * actors.envs_per_actor)
    environments = self._task.build(
      tasks.Request([level] * num_envs, self._settings.run.seed, 0)
    )
    try:
      return evaluate.play(environments, self._policy(num_envs), num_episodes)
    finally:
      environments.close()

  def film(self, level: str, path: str) -> float:
    """One more episode, filmed."""
    return video.film(
      self._task.factory(level),
      self._policy(1),
      level,
      path,
      self._settings.run.seed,
    )

  def _policy(self, num_envs) -> structs.Policy:
    import tensorflow as tf

    from scalable_agent import inference

    if num_envs not in self._policies:
      with tf.device(self._place.inference_device):
        self._policies[num_envs] = inference.DirectPolicy(
          self._make_agent(),
          self._params,
          num_envs,
          self._settings.run.seed,
          self._greedy,
        )
    return self._policies[num_envs]


def _row(env_frames, result, human_normalized):
  returns = np.asarray(result.returns)
  mean = returns.mean()
  error = returns.std(ddof=1) / len(returns) ** 0.5 if len(returns) > 1 else 0
  normalized = human_normalized(result.level, mean)
  values = (
    env_frames,
    result.level,
    len(returns),
    mean,
    error,
    returns.min(),
    returns.max(),
    np.mean(result.num_steps),
    '' if normalized is None else normalized,
  )
  return dict(zip(_COLUMNS, values, strict=True))


def _line(row) -> str:
  text = (
    f'  {row["level"]}: mean return {row["mean_return"]:.2f} '
    f'(standard error {row["standard_error"]:.2f}, {row["min_return"]:g} to '
    f'{row["max_return"]:g}, {row["episodes"]} episodes)'
  )
  if row['human_normalized_percent'] != '':
    text += f', human-normalized {row["human_normalized_percent"]:.1f} %'
  return text


def _append(path: str, row: dict) -> None:
  """Adds a row to the table of tests, with a head if it is new."""
  rows: Sequence[Sequence] = [list(row.values())]
  if not os.path.exists(path):
    rows = [_COLUMNS, *rows]
  text = io.StringIO()
  csv.writer(text, lineterminator='\n').writerows(rows)
  files.append(path, text.getvalue().encode())
