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

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from scalable_agent import (
  checkpoint,
  config,
  evaluate,
  structs,
  tasks,
  video,
)
from scalable_agent.runtime import devices, score_table, training

if TYPE_CHECKING:
  from scalable_agent import inference


def run_test(
  settings: config.Config,
  num_episodes: int,
  greedy: bool = False,
  video_path: str | None = None,
  afresh: bool = False,
  say: Callable[[str], None] = print,
) -> list[score_table.Row]:
  """Plays `num_episodes` of each level with the newest checkpoint.

  Returns are raw, lives end nothing, actions are sampled unless `greedy`. A row
  per level is added to `test.csv` in the run directory as soon as it is played;
  levels that are there, of the same weights and settings, are not played again.

  Args:
    settings: of the run, with its `logdir`.
    num_episodes: per level, shared out over the environments beforehand.
    greedy: take the most likely action.
    video_path: film one more episode of the first level; None: no film.
    afresh: play all levels, whatever is there.
    say: shows a line to the user.

  Returns:
    A row per level.

  Raises:
    training.SettingsError: there is no checkpoint, or it does not fit.
  """
  path = os.path.join(settings.run.logdir, score_table.FILE)
  try:
    if video_path is not None:
      video.check_path(video_path)
    player, task, table = _prepare(settings, greedy, path)
  except (ValueError, FileNotFoundError) as error:
    raise training.SettingsError(str(error)) from error
  say(
    f'Testing {player.path} ({player.env_frames:,} frames): {num_episodes} '
    f'episodes per level, {"greedy" if greedy else "sampled"} actions.'
  )
  rows = []
  for level in task.level_names:
    key = player.key(num_episodes)
    known = [r for r in table if (r.level, r.key) == (level, key)]
    if known and not afresh:
      rows.append(known[-1])
      say(f'  {known[-1].line} (played before)')
      continue
    rows.append(player.test(level, num_episodes))
    score_table.append(path, rows[-1])
    say(f'  {rows[-1].line}')
  _say_table(rows, task, path, say)
  if video_path is not None:
    episode_return = player.film(task.level_names[0], video_path)
    say(f'Filmed an episode of return {episode_return:g}: {video_path}')
  return rows


def _prepare(settings, greedy, path):
  """Checks everything; TensorFlow is loaded last."""
  saved = checkpoint.Checkpointer(settings.run.logdir).restore_required()
  task = tasks.make_task(settings, 'test')
  table = score_table.read(path)
  spec = task.spec()
  devices.prepare()
  return _Player(settings, task, spec, saved, greedy), task, table


def _say_table(rows, task, path, say):
  figures = {}
  if task.suite is not None:
    scores = task.suite.scores({r.level: [r.mean_return] for r in rows})
    figures = {f'{task.suite.name}/test_{k}': v for k, v in scores.items()}
  for line in score_table.lines(rows, figures):
    say(line)
  say(f'The table is in {path}; levels in it are not played again.')


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
    self._weights = [v.numpy() for v in agent.trainable_variables]
    self._params.publish(0, self._weights)
    self.path = saved.path
    self.env_frames = saved.counters['learner']['env_frames']
    self._policies: dict[int, inference.DirectPolicy] = {}

  def key(self, num_episodes: int) -> str:
    """Of a test with so many episodes of a level."""
    return score_table.make_key(
      self._settings, self._weights, num_episodes, self._greedy
    )

  def test(self, level: str, num_episodes: int) -> score_table.Row:
    """Plays a level and sums it up."""
    return score_table.make_row(
      self.env_frames,
      self._play(level, num_episodes),
      self._task,
      self.key(num_episodes),
    )

  def _play(self, level: str, num_episodes: int) -> evaluate.LevelResult:
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
