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
"""`train.py --runtime=ray` with a cluster of its own, from the command line."""

import glob
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import pytest
from test_train_script import ROOT, TINY, finish, is_alive, run, wait_for

pytest.importorskip('ray')


def start(folder, temporary, *arguments):
  """A run with environments in processes, and folders of its own."""
  return subprocess.Popen(
    [
      sys.executable,
      ROOT / 'scripts' / 'train.py',
      *TINY,
      '--runtime=ray',
      '--env_backend=process',
      '--summary_secs=0',
      '--checkpoint_secs=0',
      f'--logdir={folder}',
      *arguments,
    ],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    env={**os.environ, 'TMPDIR': temporary},
    text=True,
  )


def descendants(pid):
  """Ids of all processes that `pid` has started, directly or not."""
  listed = subprocess.run(
    ['ps', '-eo', 'pid=,ppid='], capture_output=True, text=True, check=True
  ).stdout.split()
  parents = dict(
    zip(map(int, listed[::2]), map(int, listed[1::2]), strict=True)
  )
  found, new = set(), {pid}
  while new:
    new = {child for child, parent in parents.items() if parent in new} - found
    found |= new
  return found


def agents(pids):
  """Those of `pids` that are agents of Ray.

  When everything is killed they look for it for a minute or two, then end.
  """
  found = set()
  for pid in pids:
    try:
      command = pathlib.Path(f'/proc/{pid}/cmdline').read_text()
    except OSError:
      continue
    if 'Agent' in command:
      found.add(pid)
  return found


def listening_addresses(pids):
  """Addresses, in hexadecimal, on which the processes accept connections."""
  inodes = set()
  for pid in pids:
    for link in glob.glob(f'/proc/{pid}/fd/*'):
      try:
        target = os.readlink(link)
      except OSError:
        continue
      if target.startswith('socket:['):
        inodes.add(target[8:-1])
  addresses = set()
  for table in ('/proc/net/tcp', '/proc/net/tcp6'):
    for line in pathlib.Path(table).read_text().splitlines()[1:]:
      fields = line.split()
      if fields[3] == '0A' and fields[9] in inodes:
        addresses.add(fields[1].partition(':')[0])
  return addresses


LOOPBACK = {
  '0100007F',  # 127.0.0.1
  '0000000000000000FFFF00000100007F',  # The same, written for IPv6.
  '00000000000000000000000001000000',  # ::1
}


@pytest.fixture
def temporary():
  # Short: the paths of sockets may not be long.
  with tempfile.TemporaryDirectory(prefix='sa', dir='/tmp') as folder:
    yield folder


def all_gone(pids):
  return lambda: not [pid for pid in pids if is_alive(pid)]


@pytest.mark.skipif(sys.platform != 'linux', reason='looks into /proc')
def test_nothing_is_left_behind_and_a_killed_run_goes_on(tmp_path, temporary):
  process = start(tmp_path, temporary)
  pids = set()
  try:
    wait_for(
      lambda: (
        process.poll() is not None or list(tmp_path.glob('checkpoint-*.npz'))
      ),
      240,
    )
    assert process.poll() is None, process.communicate()
    pids = descendants(process.pid)
    # Two workers, each with an environment process, and those of Ray.
    assert len(pids) > 6
    addresses = listening_addresses(pids | {process.pid})
    assert addresses
    assert addresses <= LOOPBACK
    waited_for = pids - agents(pids)
    process.kill()
    process.communicate()
    wait_for(all_gone(waited_for), 30)
  finally:
    process.kill()
    process.communicate()

  process = start(tmp_path, temporary)
  try:
    before = set(tmp_path.glob('checkpoint-*.npz'))
    wait_for(
      lambda: (
        process.poll() is not None
        or set(tmp_path.glob('checkpoint-*.npz')) - before
      ),
      240,
    )
    assert process.poll() is None, process.communicate()
    pids = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process, 60)
    assert code == 130, err
    assert 'Resumed at frame' in out
    assert 'Traceback' not in err
    wait_for(all_gone(pids), 30)
    # The folder of the killed one is left: nobody could clear it.
    assert len(glob.glob(f'{temporary}/ray-*')) == 1
  finally:
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != 'linux', reason='looks into /proc')
def test_the_head_dies(tmp_path, temporary):
  process = start(tmp_path, temporary)
  try:
    wait_for(
      lambda: (
        process.poll() is not None or list(tmp_path.glob('checkpoint-*.npz'))
      ),
      240,
    )
    assert process.poll() is None, process.communicate()
    pids = descendants(process.pid)
    waited_for = pids - agents(pids)
    for pid in pids:
      command = pathlib.Path(f'/proc/{pid}/cmdline').read_text()
      if command.split('\0')[0].endswith(('/raylet', '/gcs_server')):
        os.kill(pid, signal.SIGKILL)
    # Ray ends the process that is connected to it.
    code, _, _ = finish(process, 120)
    assert code not in (0, 130)
    wait_for(all_gone(waited_for), 30)
  finally:
    process.kill()
    process.communicate()
  assert list(tmp_path.glob('checkpoint-*.npz'))


def test_a_wrong_address_is_one_sentence_and_leaves_nothing(tmp_path):
  logdir = tmp_path / 'run'
  code, _, err = run(
    'train.py',
    *TINY,
    '--runtime=ray',
    '--ray_address=127.0.0.1:9',
    f'--logdir={logdir}',
  )
  assert code == 2
  assert 'where no Ray cluster answers' in err.strip().splitlines()[-1]
  assert 'Traceback' not in err
  assert not logdir.exists()


def test_without_ray_one_sentence_says_how_to_get_it(tmp_path):
  (tmp_path / 'ray.py').write_text("raise ImportError('not installed')")
  path = os.pathsep.join([str(tmp_path), os.environ.get('PYTHONPATH', '')])
  result = subprocess.run(
    [
      sys.executable,
      ROOT / 'scripts' / 'train.py',
      *TINY,
      '--runtime=ray',
      f'--logdir={tmp_path}/run',
    ],
    capture_output=True,
    env={**os.environ, 'PYTHONPATH': path},
    text=True,
  )
  assert result.returncode == 2
  last = result.stderr.strip().splitlines()[-1]
  assert "install it with `pip install '.[ray]'`" in last
