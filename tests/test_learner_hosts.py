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
"""Learners in several processes, which find one another through TF_CONFIG."""

import json
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import learner_host
import numpy as np
import pytest
import test_learner
from test_train_script import children_of

from scalable_agent import checkpoint, dataset
from scalable_agent.runtime import hosts

ROOT = pathlib.Path(__file__).parents[1]
CATCH = (
  '--level_name=catch',
  '--torso=mlp',
  '--num_actors=1',
  '--envs_per_actor=8',
  '--batch_size=8',
  '--unroll_length=10',
)


def free_ports(count):
  """Ports of the loopback that nobody uses at the moment."""
  sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(count)]
  ports = [s.getsockname()[1] for s in sockets]
  for s in sockets:
    s.close()
  return ports


def start(commands):
  """A process for each command line, all learners of one cluster."""
  addresses = [f'127.0.0.1:{port}' for port in free_ports(len(commands))]
  path = os.pathsep.join(map(str, (ROOT, ROOT / 'scripts', ROOT / 'tests')))
  processes = []
  for index, command in enumerate(commands):
    task = {'type': 'worker', 'index': index}
    given = {'cluster': {'worker': addresses}, 'task': task}
    environ = {'TF_CONFIG': json.dumps(given), 'PYTHONPATH': path}
    processes.append(
      subprocess.Popen(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
      )
    )
  return processes


def finish(processes, timeout=240):
  """Exit codes and outputs; nothing is left behind."""
  deadline = time.monotonic() + timeout
  try:
    outputs = [
      p.communicate(timeout=max(1, deadline - time.monotonic()))[0]
      for p in processes
    ]
  finally:
    for process in processes:
      process.kill()
      process.wait()
  return [p.returncode for p in processes], outputs


def train(logdir, *flags):
  return ['scripts/train.py', *CATCH, f'--logdir={logdir}', *flags]


def updates_of(logdir):
  saved = checkpoint.Checkpointer(logdir).restore()
  return saved.counters['learner']['num_updates'] if saved else 0


def wait_for_updates(processes, logdir, timeout=240):
  deadline = time.monotonic() + timeout
  while not updates_of(logdir):
    assert time.monotonic() < deadline, 'waited in vain'
    for process in processes:
      assert process.poll() is None, process.communicate()
    time.sleep(0.2)


def test_two_hosts_are_one_learner_with_both_batches(tmp_path):
  paths = [tmp_path / f'{index}.npz' for index in (0, 1)]
  codes, outputs = finish(
    start([['tests/learner_host.py', path] for path in paths])
  )
  assert codes == [0, 0], outputs
  one = test_learner.make(batch_size=4, reward_clipping='none')
  for pair in zip(
    *(learner_host.batches(one.agent, index) for index in (0, 1)), strict=True
  ):
    metrics = one.update(dataset.concatenate(pair))
  for index, path in enumerate(paths):
    found = np.load(path)
    for i, weights in enumerate(one.weights()):
      np.testing.assert_allclose(
        found[f'arr_{i}'], weights, rtol=1e-5, atol=1e-5
      )
    np.testing.assert_allclose(
      found['total_loss'], metrics['total_loss'], rtol=1e-4
    )
    np.testing.assert_allclose(found['rho'], metrics['rho_max'], rtol=1e-4)
    # A NaN of host 1 is skipped by both.
    assert found['num_skipped'] == 1
    assert found['unmoved']
    assert found['env_frames'] == one.env_frames + one.frames_per_batch
    np.testing.assert_array_equal(found['from_chief'], [7, 8])
    assert 'The LearnerConfig of learner 1 (127.0.0.1:' in str(found['refused'])
    assert 'is not that of learner 0' in str(found['refused'])
    assert (found['together'], found['apart']) == (True, False)
    assert found['signum'] == 15
    ended_by = str(found['ended_by'])
    assert ('got signal 15, so all' in ended_by) == (index == 0), ended_by


@pytest.mark.slow
def test_a_signal_to_one_ends_all_and_the_chief_saves(tmp_path):
  flags = ('--checkpoint_secs=0', '--summary_secs=0')
  chief_dir, other_dir = tmp_path / 'chief', tmp_path / 'other'
  processes = start([train(chief_dir, *flags), train(other_dir, *flags)])
  try:
    wait_for_updates(processes, chief_dir)
    processes[1].send_signal(signal.SIGTERM)
    sent = time.monotonic()
    codes, outputs = finish(processes, timeout=60)
  finally:
    finish(processes)
  assert codes == [143, 143], outputs
  assert time.monotonic() - sent < 20
  assert 'got signal 15, so all learners have stopped.' in outputs[0]
  assert 'Traceback' not in ''.join(outputs)
  # Who is not the chief writes nothing anywhere.
  assert not other_dir.exists()
  counters = checkpoint.Checkpointer(chief_dir).restore().counters['learner']
  assert counters['env_frames'] == counters['num_updates'] * 2 * 8 * 10


@pytest.mark.slow
@pytest.mark.parametrize('victim', [0, 1])
def test_a_killed_learner_ends_the_other_with_one_sentence(tmp_path, victim):
  commands = [train(tmp_path, '--checkpoint_secs=0')] * 2
  processes = start(commands)
  try:
    wait_for_updates(processes, tmp_path)
    processes[victim].kill()
    killed = time.monotonic()
    survivor = processes[1 - victim]
    (code,), (output,) = finish([survivor], timeout=60)
    assert time.monotonic() - killed < 30
  finally:
    finish(processes)
  assert code == 1, output
  assert 'so this learner ends too' in output
  assert 'Traceback' not in output
  before = updates_of(tmp_path)
  # The same commands again go on from there.
  frames = (before + 20) * 160
  again = [*commands[0], f'--total_environment_frames={frames}']
  codes, outputs = finish(start([again, again]))
  assert codes == [0, 0], outputs
  assert 'Resumed at frame' in outputs[0]
  assert updates_of(tmp_path) == before + 20


@pytest.mark.slow
def test_a_failure_of_one_ends_the_other(tmp_path):
  flags = ('--env_backend=process', '--checkpoint_secs=0')
  processes = start([train(tmp_path, *flags)] * 2)
  try:
    wait_for_updates(processes, tmp_path)
    victim = children_of(processes[1].pid)[0]
    os.kill(victim, signal.SIGKILL)
    codes, outputs = finish(processes, timeout=60)
  finally:
    finish(processes)
  assert codes == [1, 1], outputs
  assert 'failed and ended the run; its own output says why' in outputs[0]
  assert 'Traceback' not in outputs[0]
  assert 'WorkerFailedError: actor 0 failed' in outputs[1]


@pytest.mark.slow
def test_two_hosts_learn_catch(tmp_path):
  flags = (
    '--total_environment_frames=300000',
    '--learning_rate=0.005',
    '--entropy_cost=0.01',
    '--summary_secs=5',
  )
  codes, outputs = finish(start([train(tmp_path, *flags)] * 2), timeout=1500)
  assert codes == [0, 0], outputs
  for output in outputs:
    (mean,) = re.findall(r'catch: mean return .* (\S+)', output)
    assert float(mean) > 0.9, output
  assert updates_of(tmp_path) == math.ceil(300_000 / 160)


@pytest.mark.parametrize(
  ('text', 'expected'),
  [
    ('', hosts.Hosts()),
    (
      '{"cluster": {"worker": ["a:1", "b:2"]}, '
      '"task": {"type": "worker", "index": 1}}',
      hosts.Hosts(('a:1', 'b:2'), 1),
    ),
    (
      '{"cluster": {"worker": ["b:2"], "chief": ["a:1"]}, '
      '"task": {"type": "worker", "index": 0}}',
      hosts.Hosts(('a:1', 'b:2'), 1),
    ),
  ],
  ids=['unset', 'workers', 'chief'],
)
def test_hosts_are_read_as_tensorflow_numbers_them(text, expected):
  assert hosts.from_environment({'TF_CONFIG': text}) == expected


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('{', 'TF_CONFIG cannot be read (JSONDecodeError'),
    ('{"cluster": {"worker": ["a:1"]}}', "cannot be read (KeyError: 'task')"),
    (
      '{"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, '
      '"task": {"type": "worker", "index": 0}}',
      'in a cluster of worker, ps; all tasks are learners',
    ),
    (
      '{"cluster": {"worker": ["a:1"]}, "task": {"type":"worker", "index": 1}}',
      "names task 1 of 'worker' in a cluster of worker",
    ),
  ],
)
def test_a_wrong_tf_config_is_one_sentence(text, message):
  with pytest.raises(ValueError, match='TF_CONFIG') as caught:
    hosts.from_environment({'TF_CONFIG': text})
  assert message in str(caught.value)


def test_hosts_play_other_episodes():
  seeds = {hosts.Hosts(('a', 'b', 'c'), i).seed(1) for i in range(3)}
  assert len(seeds) == 3
  assert hosts.Hosts().seed(1) == 1
