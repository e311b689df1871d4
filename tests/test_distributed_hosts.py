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
"""Two hosts, as network namespaces joined by a cable that can be pulled.

Needs root, and `ip` of iproute2. Takes some minutes: Ray gives a silent machine
more than half a minute before it takes it for dead.
"""

import contextlib
import csv
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).parents[1]
HEAD, WORKER = '10.77.0.1', '10.77.0.2'

pytestmark = [
  pytest.mark.slow,
  pytest.mark.skipif(
    os.name != 'posix' or os.geteuid() != 0,
    reason='only root may make network namespaces',
  ),
  pytest.mark.skipif(
    shutil.which('ip') is None, reason='there is no `ip` (Debian: iproute2)'
  ),
]


def ip(*arguments):
  subprocess.run(['ip', *arguments], check=True, capture_output=True, text=True)


@pytest.fixture
def hosts():
  """Two namespaces; gives a function that pulls (`down`) or plugs (`up`)."""
  pytest.importorskip('ray')
  names = [f'sa{os.getpid()}{x}' for x in 'hw']
  made = []
  try:
    try:
      for name in names:
        ip('netns', 'add', name)
        made.append(name)
      ip(
        'link',
        'add',
        'cable_h',
        'netns',
        names[0],
        'type',
        'veth',
        'peer',
        'name',
        'cable_w',
        'netns',
        names[1],
      )
      for name, end, address in zip(
        names, ('cable_h', 'cable_w'), (HEAD, WORKER), strict=True
      ):
        ip('-n', name, 'addr', 'add', f'{address}/24', 'dev', end)
        ip('-n', name, 'link', 'set', end, 'up')
        ip('-n', name, 'link', 'set', 'lo', 'up')
    except subprocess.CalledProcessError as error:
      pytest.skip(f'no network namespaces here: {error.stderr.strip()}')
    yield (
      names,
      lambda how: ip('-n', names[0], 'link', 'set', 'cable_h', how),
    )
  finally:
    for name in made:
      ip('netns', 'delete', name)


@contextlib.contextmanager
def running(host, log, *command, **more):
  """A program on a host; it is ended with all that it started."""
  environment = {
    **os.environ,
    'RAY_USAGE_STATS_ENABLED': '0',
    'RAY_AUTH_MODE': 'token',
    'RAY_AUTH_TOKEN': 'a-token-of-this-test-alone',
    'RAY_worker_niceness': '0',
    'PYTHONPATH': str(ROOT),
    **more,
  }
  with open(log, 'w') as file:
    process = subprocess.Popen(
      ['ip', 'netns', 'exec', host, sys.executable, *map(str, command)],
      stdout=file,
      stderr=file,
      env=environment,
      start_new_session=True,
    )
  try:
    yield process
  finally:
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
      process.wait(30)
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ray_start(host, log, *arguments):
  return running(
    host,
    log,
    '-m',
    'ray.scripts.scripts',
    'start',
    '--block',
    '--disable-usage-stats',
    f'--object-store-memory={80 * 2**20}',
    *arguments,
  )


class Run:
  """What a run's files say."""

  def __init__(self, folder, process):
    self._folder, self._process = folder, process

  def last(self):
    """The last row of metrics."""
    with contextlib.suppress(OSError, IndexError):
      with open(self._folder / 'metrics.csv', newline='') as file:
        return list(csv.DictReader(file))[-1]
    return {}

  def workers(self):
    """State and losses of each worker."""
    with contextlib.suppress(OSError):
      with open(self._folder / 'workers.csv', newline='') as file:
        return [(r['state'], int(r['losses'])) for r in csv.DictReader(file)]
    return []

  def frames(self):
    return float(self.last().get('frames_trained', 0))

  def wait_for(self, condition, timeout):
    start = time.monotonic()
    while not condition():
      assert self._process.poll() is None, 'the run has ended'
      waited = time.monotonic() - start
      assert waited < timeout, (self.workers(), self.last())
      time.sleep(0.5)
    return time.monotonic() - start


def test_a_cable_between_two_hosts_is_pulled_and_plugged(hosts, tmp_path):
  (head, worker), cable = hosts
  node = (
    f'--address={HEAD}:6379',
    f'--node-ip-address={WORKER}',
    '--num-cpus=2',
  )
  # Paths of sockets may not be long.
  short = pathlib.Path(tempfile.mkdtemp(prefix='sa', dir='/tmp'))
  with contextlib.ExitStack() as stack:
    stack.callback(shutil.rmtree, short)
    stack.enter_context(
      ray_start(
        head,
        tmp_path / 'head.log',
        '--head',
        f'--node-ip-address={HEAD}',
        '--port=6379',
        '--num-cpus=0',
        '--include-dashboard=false',
        f'--temp-dir={short}',
      )
    )
    time.sleep(10)
    first = stack.enter_context(
      ray_start(worker, tmp_path / 'worker.log', *node)
    )
    process = stack.enter_context(
      running(
        head,
        tmp_path / 'train.log',
        ROOT / 'scripts' / 'train.py',
        '--runtime=ray',
        f'--ray_address={HEAD}:6379',
        '--level_name=catch',
        '--num_actors=2',
        '--envs_per_actor=8',
        '--batch_size=16',
        '--unroll_length=10',
        '--torso=mlp',
        '--summary_secs=1',
        f'--logdir={tmp_path}/run',
      )
    )
    run = Run(tmp_path / 'run', process)
    run.wait_for(lambda: run.frames() > 1000, 120)
    assert run.workers() == [('playing', 0)] * 2
    told = []

    # A short cut is waited out: the connections are still there.
    cable('down')
    time.sleep(5)
    cable('up')
    frames = run.frames()
    secs = run.wait_for(lambda: run.frames() > frames + 1000, 60)
    told.append(f'5 s without cable: learning goes on {secs:.0f} s later')
    assert run.workers() == [('playing', 0)] * 2

    # A long one: the machine is taken for dead, the workers are lost.
    cable('down')
    log = tmp_path / 'train.log'
    secs = run.wait_for(lambda: 'losses: 1' in log.read_text(), 180)
    told.append(f'cable pulled: workers are lost after {secs:.0f} s')
    secs = run.wait_for(lambda: 'wait for a machine' in log.read_text(), 90)
    told.append(f'a warning that workers wait comes {secs:.0f} s later')
    cable('up')
    # Ray's processes over there find out that they are taken for dead.
    first.wait(120)
    told.append(f'over there Ray ends with exit status {first.returncode}')
    assert process.poll() is None
    frames = run.frames()
    stack.enter_context(ray_start(worker, tmp_path / 'again.log', *node))
    secs = run.wait_for(lambda: run.frames() > frames + 1000, 120)
    told.append(f'Ray is started there again: learning after {secs:.0f} s')
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
  print('\n'.join(told))
  assert list((tmp_path / 'run').glob('checkpoint-*.npz'))
  # The token of the cluster is nowhere in what is written.
  for path in tmp_path.rglob('*'):
    if path.is_file():
      assert b'a-token-of-this-test' not in path.read_bytes(), path
