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
"""Trials on Ray Tune, which finds room for them on a machine or a cluster.

Tune starts, watches and stops trials. What they have done lies in their own
directories, so a sweep is resumed from those and not from Tune's records. The
directories must be the same on all machines of a cluster.
"""

import logging
import os
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import ray
from ray import tune
from ray.tune import schedulers

from scalable_agent.tuning import population as population_lib
from scalable_agent.tuning import trials

_ENVIRONMENT = {
  # Tune would log everything that trials report, which is in metrics.csv.
  'TUNE_DISABLE_AUTO_CALLBACK_LOGGERS': '1',
  'RAY_AIR_NEW_OUTPUT': '0',
  # A trial ends by itself, when it has saved.
  'RAY_kill_child_processes_on_worker_exit': 'false',
}
_POLL_SECS = 2.0
_STOP_SECS = 120.0


class Plan(NamedTuple):
  """What is run, and where.

  paths: directories of the trials.
  train: the beginning of a trial's command: Python and scripts/train.py.
  window: episodes per level of which a fitness is a mean.
  cpus, gpus: that a trial takes; a part of a GPU is possible.
  max_concurrent: trials at once; None: as many as there is room for.
  address: of a Ray cluster; None: this machine alone.
  """

  paths: Sequence[str]
  train: Sequence[str]
  window: int
  cpus: float
  gpus: float
  max_concurrent: int | None
  address: str | None


class NoClusterError(RuntimeError):
  """Ray is not there."""


def run(
  plan: Plan, population: population_lib.Population | None
) -> dict[int, str]:
  """Trains all trials to their end; one that fails does not end the others.

  Args:
    plan: what is run.
    population: takes turns where population based training is wanted.

  Returns:
    By index of those that failed, why.

  Raises:
    NoClusterError: it cannot be joined, or started.
  """
  _connect(plan.address)
  config = {
    'index': tune.grid_search(list(range(len(plan.paths)))),
    'plan': plan._asdict(),
    'folder': os.getcwd(),
  }
  try:
    with tempfile.TemporaryDirectory() as scratch:
      results = tune.Tuner(
        tune.with_resources(_Trial, {'cpu': plan.cpus, 'gpu': plan.gpus}),
        param_space=config,
        tune_config=tune.TuneConfig(
          max_concurrent_trials=plan.max_concurrent,
          reuse_actors=False,
          scheduler=_Turns(population),
          trial_dirname_creator=lambda trial: f'{trial.config["index"]:03}',
        ),
        run_config=tune.RunConfig(storage_path=scratch, verbose=0),
      ).fit()
  finally:
    ray.shutdown()
  every = [results[index] for index in range(len(results))]
  return {
    result.config['index']: str(result.error).strip().split('\n')[-1]
    for result in every
    if result.error is not None and result.config is not None
  }


def _connect(address):
  for name, value in _ENVIRONMENT.items():
    os.environ.setdefault(name, value)
  # Tune warns that it has no records of its own, which is as it should be.
  logging.getLogger('ray.tune').setLevel(logging.ERROR)
  try:
    ray.init(
      # Without an address Ray would join whatever cluster runs here.
      address=address or 'local',
      include_dashboard=False,
      log_to_driver=False,
      runtime_env={'env_vars': {'RAY_CHDIR_TO_TRIAL_DIR': '0'}},
    )
  except Exception as error:
    raise NoClusterError(
      f'no Ray cluster could be {"joined" if address else "started"} with '
      f'sweep_address={address!r}: {error}'
    ) from error


class _Trial(tune.Trainable):
  """A run in a process of its own, watched through its files."""

  def setup(self, config: dict[str, Any]) -> None:
    """Starts or continues the run."""
    plan = Plan(**config['plan'])
    self._path, self._window = plan.paths[config['index']], plan.window
    # Flags may name files relative to where the sweep was started.
    os.chdir(config['folder'])
    self._process = trials.Process(self._path, plan.train, 2 * _STOP_SECS)

  def step(self) -> dict[str, Any]:
    """Waits a little and says how far the run is."""
    done = self._process.wait(_POLL_SECS)
    found = trials.progress(self._path, self._window)
    return {**found._asdict(), 'done': done}

  def cleanup(self) -> None:
    """Lets the run save and leave."""
    self._process.stop(_STOP_SECS)

  def save_checkpoint(self, checkpoint_dir: str) -> dict:
    """Nothing: the run saves itself."""
    return {}

  def load_checkpoint(self, checkpoint: dict | None) -> None:
    """Nothing: the run continues by itself."""


class _Turns(schedulers.FIFOScheduler):
  """Lets a population take turns, and trials take turns at the machine."""

  def __init__(self, population: population_lib.Population | None):
    super().__init__()
    self._population = population
    self._frames: dict[str, int] = {}

  def on_trial_result(self, tune_controller, trial, result):
    """Starts a trial anew whose weights or settings have changed."""
    self._frames[trial.trial_id] = result['env_frames']
    if self._population is None or result['done']:
      return self.CONTINUE
    found = trials.Progress(*(result[name] for name in trials.Progress._fields))
    if not self._population.consider(trial.config['index'], found):
      return self.CONTINUE
    tune_controller.pause_trial(trial, should_checkpoint=False)
    return self.NOOP

  def choose_trial_to_run(self, tune_controller):
    """The trial that is least far, so that a population stays together."""
    waiting = [
      trial
      for trial in tune_controller.get_trials()
      if trial.status in ('PENDING', 'PAUSED')
    ]
    frames = self._frames
    return min(
      waiting, key=lambda trial: frames.get(trial.trial_id, 0), default=None
    )
