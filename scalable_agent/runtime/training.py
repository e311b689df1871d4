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
"""A training run in its directory: resume, record, train, say how it went.

TensorFlow is imported late: what is wrong with the settings is said at once.
"""

import os
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scalable_agent import (
  checkpoint,
  config,
  console,
  interval_metrics,
  metrics,
  run_record,
  tasks,
)
from scalable_agent.runtime import devices, ray_settings

if TYPE_CHECKING:
  from scalable_agent.runtime import run as run_lib

CSV_FILE = 'metrics.csv'


class SettingsError(ValueError):
  """The settings do not fit the task, the machine or the checkpoint."""


def train(
  settings: config.Config,
  command: Sequence[str] | None = None,
  stop_after_secs: float | None = None,
) -> int:
  """Trains in `settings.run.logdir`, continuing what is found there.

  Args:
    settings: of the run.
    command: the command line, for the record; None: `sys.argv`.
    stop_after_secs: end the run after so long; None: when the frames are used
      up.

  Returns:
    Exit code: 0, or 128 and the number of the signal that ended the run.

  Raises:
    SettingsError: nothing was started and nothing was written.
    workers.WorkerFailedError: something failed while running.
  """
  logdir = settings.run.logdir
  try:
    saved = checkpoint.Checkpointer(logdir).restore()
    env_frames = _trained_frames(saved)
    if env_frames >= settings.learner.total_environment_frames:
      print(
        f'{logdir} has trained {env_frames:,} frames, all that were asked for; '
        'raise --total_environment_frames to go on.'
      )
      return 0
    run, writer = _build(settings, saved)
  except ValueError as error:
    raise SettingsError(str(error)) from error
  if saved is not None:
    print(f'Resumed at frame {env_frames:,} from {saved.path}.')
  if run.replay_buffer is not None:
    print(run.replay_buffer)
  run_record.record_start(logdir, settings, command or sys.argv, env_frames)
  progress = console.ConsoleWriter(settings.learner.total_environment_frames)
  try:
    outcome = run.run(writer, progress, stop_after_secs)
  finally:
    progress.close()
    writer.close()
  _say_how_it_went(outcome, logdir)
  return 0 if outcome.signum is None else 128 + outcome.signum


def _trained_frames(saved: checkpoint.Saved | None) -> int:
  return 0 if saved is None else saved.counters['learner']['env_frames']


def _build(settings, saved):
  """The run and its writer. The fast checks of the settings come first."""
  task = tasks.make_task(settings)
  spec = task.spec()
  devices.prepare()
  run = runtime_for(settings).make_run(settings, task, spec, saved)
  logdir, env_frames = settings.run.logdir, _trained_frames(saved)
  writer = metrics.MultiWriter(
    [
      metrics.CsvWriter(os.path.join(logdir, CSV_FILE), env_frames),
      metrics.TensorBoardWriter(logdir, env_frames),
    ]
  )
  return run, writer


def runtime_for(settings: config.Config) -> types.ModuleType:
  """The module that makes runs of the kind that is asked for.

  Raises:
    ValueError: it needs what is not installed.
  """
  if settings.run.runtime == 'local':
    from scalable_agent.runtime import local

    return local
  if settings.run.runtime == 'sync':
    from scalable_agent.runtime import synchronous

    return synchronous
  ray_settings.prepare(settings.distributed)
  try:
    from scalable_agent.runtime import distributed
  except ImportError as error:
    raise ValueError(
      f'runtime is ray, but Ray cannot be imported ({error}); install it with '
      "`pip install '.[ray]'`, or choose local."
    ) from error
  return distributed


def _say_how_it_went(outcome: 'run_lib.Outcome', logdir: str) -> None:
  print(
    f'Trained {outcome.env_frames:,} frames, in this start '
    f'{outcome.rates["frames_per_sec"]:,.0f} frames/s.'
  )
  for level, mean_return in outcome.mean_returns.items():
    print(f'  {level}: mean return of the last 100 episodes {mean_return:.2f}')
  print(interval_metrics.bottleneck(outcome.rates))
  print(f'Checkpoints, {CSV_FILE} and TensorBoard files are in {logdir}.')
