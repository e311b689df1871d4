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
"""Runs on real Ray clusters of several small nodes on this machine."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import threading
import time

import pytest
import test_learning
import test_runtime_local

from scalable_agent import config, metrics, tasks
from scalable_agent.runtime import ray_settings, workers

# On the loopback address.
ray_settings.prepare(config.DistributedConfig())
ray = pytest.importorskip('ray')
cluster_utils = pytest.importorskip('ray.cluster_utils')

from scalable_agent.runtime import distributed  # noqa: E402

# Ray leaves the pipes of its processes to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
  'ignore::ResourceWarning',
  'ignore::pytest.PytestUnraisableExceptionWarning',
)

NODE = {
  'node_ip_address': '127.0.0.1',
  'object_store_memory': 80 * 2**20,
  'num_gpus': 0,
}


def ray_processes():
  """Processes of Ray that descend from this one, by id."""
  listed = subprocess.run(
    ['ps', '-eo', 'pid=,ppid=,stat=,args='],
    capture_output=True,
    text=True,
    check=True,
  ).stdout.splitlines()
  rows = [line.split(maxsplit=3) for line in listed]
  parents = {int(pid): int(parent) for pid, parent, *_ in rows}
  found = {}
  for pid, _, state, args in rows:
    ancestor = int(pid)
    while ancestor in parents and ancestor != os.getpid():
      ancestor = parents[ancestor]
    if ancestor == os.getpid() and state[0] != 'Z' and 'ray' in args:
      found[int(pid)] = args
  return found


@pytest.fixture(scope='module')
def trouble_dir(tmp_path_factory):
  folder = tmp_path_factory.mktemp('trouble')
  os.environ['TROUBLE_DIR'] = str(folder)
  yield folder
  del os.environ['TROUBLE_DIR']


@pytest.fixture(scope='module')
def cluster(trouble_dir):
  """A head without CPUs, where the learner is, and one node with two."""
  del trouble_dir
  made = cluster_utils.Cluster(
    initialize_head=True,
    head_node_args={**NODE, 'num_cpus': 0, 'include_dashboard': False},
  )
  try:
    made.add_node(**NODE, num_cpus=2)
    yield made
  finally:
    ray.shutdown()
    made.shutdown()


def settings(tmp_path, cluster, *, actor=None, learner=None, **distributed):
  return config.Config(
    task=config.TaskConfig(
      level_name='gym/Troubled-v0', gym_import='gym_troubled'
    ),
    actor=config.ActorConfig(
      **{'num_actors': 2, 'envs_per_actor': 2, **(actor or {})}
    ),
    agent=config.AgentConfig(torso='mlp'),
    learner=config.LearnerConfig(
      **{'batch_size': 4, 'unroll_length': 5, **(learner or {})}
    ),
    run=config.RunConfig(logdir=str(tmp_path), runtime='ray', summary_secs=0.2),
    distributed=config.DistributedConfig(
      ray_address=cluster.address, **distributed
    ),
  )


class Played:
  """A run in a thread, looked at from outside."""

  def __init__(self, chosen, before_start=lambda: None):
    task = tasks.make_task(chosen)
    self.run = distributed.make_run(chosen, task, task.spec())
    self.rows = self.run._actors._table.rows
    before_start()
    self.recorder = test_runtime_local.Recorder()
    self.outcome = self.error = None
    self._thread = threading.Thread(target=self._play)
    self._thread.start()

  def _play(self):
    try:
      self.outcome = self.run.run(self.recorder)
    except workers.WorkerFailedError as error:
      self.error = error

  def figure(self, name):
    rows = self.recorder.rows
    return rows[-1][1].get(name, 0.0) if rows else 0.0

  def wait_for(self, condition, timeout=90):
    deadline = time.monotonic() + timeout
    while not condition():
      assert self._thread.is_alive(), self.error
      assert time.monotonic() < deadline, self.recorder.rows[-1:]
      time.sleep(0.05)

  def wait_for_playing(self, number):
    self.wait_for(lambda: self.figure('workers_playing') == number)

  def end(self, timeout=60):
    self._thread.join(timeout)
    assert not self._thread.is_alive()
    return self.outcome


@contextlib.contextmanager
def playing(chosen, before_start=lambda: None):
  """Ends the run whatever happens, and looks that nobody is left."""
  played = Played(chosen, before_start)
  try:
    yield played
    played.run.stop()
    played.end()
  finally:
    played.run.stop()
    played._thread.join(60)
  assert not ray.is_initialized()
  wait_until_no_worker_is_left()


def wait_until_no_worker_is_left():
  deadline = time.monotonic() + 10
  while left := [a for a in ray_processes().values() if '_Process' in a]:
    assert time.monotonic() < deadline, left
    time.sleep(0.1)


def test_a_killed_worker_is_replaced_and_the_run_goes_on(tmp_path, cluster):
  with playing(settings(tmp_path, cluster)) as played:
    played.wait_for_playing(2)
    row = played.rows[0]
    pid = row.pid
    os.kill(pid, signal.SIGKILL)
    played.wait_for(lambda: played.figure('worker_losses') == 1)
    played.wait_for_playing(2)
    assert row.pid != pid
    unrolls = row.unrolls
    played.wait_for(lambda: row.unrolls > unrolls + 3)
    assert (row.losses, row.restarts) == (1, 0)
  last = played.recorder.rows[-1][1]
  # The unroll that was under way: T steps of E environments of one frame.
  assert last['frames_dropped'] >= 5 * 2
  assert last['actor_restarts'] == 1
  table = (tmp_path / 'workers.csv').read_text().splitlines()
  assert table[0].startswith('worker,node,pid,state')
  assert f',{row.pid},playing,gym/Troubled-v0,' in table[1]


@pytest.mark.slow
def test_a_machine_may_join_and_be_lost_while_training_runs(tmp_path, cluster):
  three = settings(tmp_path, cluster, actor={'num_actors': 3})
  with playing(three) as played:
    played.wait_for_playing(2)
    assert played.figure('workers_waiting') == 1
    node = cluster.add_node(**NODE, num_cpus=1)
    played.wait_for_playing(3)
    cluster.remove_node(node, allow_graceful=False)
    played.wait_for(lambda: played.figure('worker_losses') >= 1)
    played.wait_for(lambda: played.figure('workers_waiting') == 1)
    # The others play on.
    frames = played.figure('frames_trained')
    played.wait_for(lambda: played.figure('frames_trained') > frames + 100)
    assert played.figure('workers_playing') == 2


@pytest.mark.slow
def test_failing_and_hanging_environments_are_replaced(
  tmp_path, cluster, trouble_dir
):
  chosen = settings(
    tmp_path,
    cluster,
    actor={'on_env_error': 'restart', 'env_timeout_secs': 5.0},
  )
  raise_once = (trouble_dir / 'raise_when_made').touch
  with playing(chosen, raise_once) as played:
    played.wait_for(lambda: sum(row.restarts for row in played.rows) == 1)
    played.wait_for_playing(2)
    (trouble_dir / 'hang').touch()
    played.wait_for(lambda: sum(row.restarts for row in played.rows) == 2)
    played.wait_for_playing(2)
  errors = ' '.join(row.last_error for row in played.rows)
  assert 'TimeoutError: its environments (gym/Troubled-v0) have not' in errors


def test_the_first_failure_ends_the_run_with_its_traceback(
  tmp_path, cluster, trouble_dir
):
  played = Played(
    settings(tmp_path, cluster), (trouble_dir / 'raise_when_made').touch
  )
  assert played.end(90) is None
  assert isinstance(played.error, workers.WorkerFailedError)
  assert 'OSError: the simulator is in trouble' in str(played.error)
  # Where it was raised, over there.
  remote = played.error.__cause__.__cause__
  assert 'gym_troubled.py' in str(remote)
  wait_until_no_worker_is_left()


def test_catch_is_learned_on_two_workers(tmp_path, cluster):
  base = settings(
    tmp_path,
    cluster,
    actor={'envs_per_actor': 32},
    learner={
      'batch_size': 32,
      'unroll_length': 10,
      'entropy_cost': 0.01,
      'clip_gradient_norm': 40.0,
      'learning_rate': 0.002,
      'epsilon': 0.001,
      'total_environment_frames': 400_000,
    },
  )
  chosen = dataclasses.replace(base, task=config.TaskConfig(level_name='catch'))
  task = tasks.make_task(chosen)
  watch = test_learning.UntilReturn('catch', 0.5)
  watch.run = distributed.make_run(chosen, task, task.spec())
  watch.run.run(metrics.NullWriter(), watch, stop_after_secs=300)
  assert watch.best >= 0.5
