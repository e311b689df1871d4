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

import contextlib
import os
import sys
import types
from collections.abc import Iterator, Sequence
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
from scalable_agent.runtime import devices, ray_settings, workers
from scalable_agent.runtime import hosts as hosts_lib

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
  with contextlib.ExitStack() as stack:
    try:
      hosts = stack.enter_context(_hosts(settings, stop_after_secs))
      # What the chief finds it shares with all.
      saved = hosts.is_chief and checkpoint.Checkpointer(logdir).restore()
      env_frames = _trained_frames(saved)
      is_done = env_frames >= settings.learner.total_environment_frames
      # With several, the others must hear of it: all start, and end at once.
      if is_done and not hosts.several:
        print(
          f'{logdir} has trained {env_frames:,} frames, all that were asked '
          'for; raise --total_environment_frames to go on.'
        )
        return 0
      run = _build(settings, saved or None, hosts)
    except (ValueError, hosts_lib.PeerError) as error:
      raise SettingsError(str(error)) from error
    writer, progress = _reports(settings, env_frames, hosts)
    if hosts.is_chief:
      if saved:
        print(f'Resumed at frame {env_frames:,} from {saved.path}.')
      run_record.record_start(logdir, settings, command or sys.argv, env_frames)
    if run.experience.replay_buffer is not None:
      print(run.experience.replay_buffer)
    outcome = _run(run, writer, progress, stop_after_secs)
    if outcome is None:
      return 1
    _say_how_it_went(outcome, logdir, hosts)
  return 0 if outcome.signum is None else 128 + outcome.signum


@contextlib.contextmanager
def _hosts(settings, stop_after_secs) -> Iterator[hosts_lib.Hosts]:
  """All learners of the run, those included that are started for it."""
  hosts = hosts_lib.from_environment()
  if hosts.several or settings.distributed.num_learner_hosts == 1:
    yield hosts
    return
  devices.prepare()
  runtime_for(settings)
  from scalable_agent.runtime import learner_launch

  with learner_launch.learners(settings, stop_after_secs) as hosts:
    yield hosts


def _run(run, writer, progress, stop_after_secs):
  """The outcome; None, with a sentence, if another host has spoilt it."""
  try:
    return run.run(writer, progress, stop_after_secs)
  except workers.WorkerFailedError as error:
    if not isinstance(error.__cause__, hosts_lib.PeerError):
      raise
    print(error.__cause__, file=sys.stderr)
    return None
  finally:
    progress.close()
    writer.close()


def _trained_frames(saved) -> int:
  return 0 if not saved else saved.counters['learner']['env_frames']


def _build(settings, saved, hosts):
  """The run. The fast checks of the settings come first."""
  task = tasks.make_task(settings)
  spec = task.spec()
  devices.prepare()
  devices.set_threads(settings)
  return runtime_for(settings).make_run(
    settings, task, spec, saved, hosts=hosts
  )


def _reports(settings, env_frames, hosts):
  """Where metrics and progress go; nowhere from hosts other than the chief."""
  if not hosts.is_chief:
    return metrics.NullWriter(), metrics.NullWriter()
  logdir = settings.run.logdir
  writer = metrics.MultiWriter(
    [
      metrics.CsvWriter(os.path.join(logdir, CSV_FILE), env_frames),
      metrics.TensorBoardWriter(logdir, env_frames),
    ]
  )
  total = settings.learner.total_environment_frames
  return writer, console.ConsoleWriter(total)


def runtime_for(settings: config.Config) -> types.ModuleType:
  """The module that makes runs of the kind that is asked for.

  Raises:
    ValueError: it needs what is not installed.
  """
  if settings.learner.only_recorded:
    from scalable_agent.runtime import recorded

    return recorded
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


def _say_how_it_went(
  outcome: 'run_lib.Outcome', logdir: str, hosts: hosts_lib.Hosts
) -> None:
  if outcome.ended_by is not None:
    print(outcome.ended_by)
  print(
    f'Trained {outcome.env_frames:,} frames, in this start '
    f'{outcome.rates["frames_per_sec"]:,.0f} frames/s.'
  )
  for level, mean_return in outcome.mean_returns.items():
    print(f'  {level}: mean return of the last 100 episodes {mean_return:.2f}')
  print(interval_metrics.bottleneck(outcome.rates))
  if hosts.is_chief:
    print(f'Checkpoints, {CSV_FILE} and TensorBoard files are in {logdir}.')
