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
"""Tests for scripts/train.py and scripts/evaluate.py: real processes."""

import csv
import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from scalable_agent import checkpoint

ROOT = pathlib.Path(__file__).parents[1]
TINY = (
  '--level_name=catch',
  '--torso=mlp',
  '--num_actors=2',
  '--batch_size=2',
  '--unroll_length=5',
)


def start(script, *arguments):
  return subprocess.Popen(
    [sys.executable, ROOT / 'scripts' / script, *map(str, arguments)],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def finish(process, timeout=300):
  try:
    out, err = process.communicate(timeout=timeout)
  finally:
    process.kill()
  return process.returncode, out, err


def run(script, *arguments):
  return finish(start(script, *arguments))


def wait_for(condition, timeout=90):
  deadline = time.monotonic() + timeout
  while not condition():
    assert time.monotonic() < deadline, 'waited in vain'
    time.sleep(0.05)


def children_of(pid):
  found = subprocess.run(
    ['ps', '-o', 'pid=', '--ppid', str(pid)],
    capture_output=True,
    text=True,
    check=False,
  )
  return [int(line) for line in found.stdout.split()]


def is_alive(pid):
  state = pathlib.Path(f'/proc/{pid}/stat')
  try:
    return state.read_text().rpartition(')')[2].split()[0] != 'Z'
  except OSError:
    return False


def test_train_resume_and_test_from_the_command_line(tmp_path):
  logdir = f'--logdir={tmp_path}/run'
  code, out, err = run(
    'train.py', *TINY, logdir, '--total_environment_frames=200'
  )
  assert code == 0, err
  assert 'Trained 200 frames' in out
  assert 'bottleneck' in out or 'balanced' in out
  folder = tmp_path / 'run'
  names = {p.name for p in folder.iterdir()}
  assert {'config.json', 'starts.json', 'metrics.csv'} <= names
  assert any(n.startswith('events.out.tfevents') for n in names)
  assert any(n.startswith('checkpoint-') for n in names)

  code, out, err = run(
    'train.py', *TINY, logdir, '--total_environment_frames=400'
  )
  assert code == 0, err
  assert 'Resumed at frame 200' in out
  assert 'Trained 400 frames' in out
  with open(folder / 'metrics.csv', newline='') as file:
    frames = [int(row['env_frames']) for row in csv.DictReader(file)]
  assert frames == [200, 400]
  assert len(json.loads((folder / 'starts.json').read_text())) == 2

  start_secs = time.monotonic()
  code, out, err = run(
    'train.py', *TINY, logdir, '--total_environment_frames=400'
  )
  assert (code, 'all that were asked for' in out) == (0, True)
  assert time.monotonic() - start_secs < 30

  film = tmp_path / 'film.gif'
  code, out, err = run(
    'evaluate.py', logdir, '--test_num_episodes=5', f'--video={film}'
  )
  assert code == 0, err
  assert 'catch: mean return' in out
  assert film.read_bytes()[:3] == b'GIF'
  with open(folder / 'test.csv', newline='') as file:
    (row,) = csv.DictReader(file)
  assert (row['env_frames'], row['episodes']) == ('400', '5')

  code, out, err = run('train.py', '--mode=test', logdir)
  assert code == 0, err
  assert '10 episodes' in out


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (['--level_name=atari/pongg'], "no Atari game 'pongg'"),
    (['--level_name=nowhere'], "level_name is 'nowhere'"),
    (['--batch_size=0'], 'batch_size is 0; it must be at least 1'),
    (['--torso=deeper'], 'torso'),
    (['--no_such_flag=1'], 'no_such_flag'),
    (['--level_name=catch', '--torso=deep'], "torso is 'deep'"),
    (['--level_name=atari57', '--num_actors=2'], 'fewer than the 57 levels'),
    (
      ['--level_name=catch', '--learner_device=gpu'],
      'TensorFlow sees no GPU here',
    ),
    (
      ['--level_name=gym/CartPole-v1', '--gym_import=no_such_module'],
      'no_such_module',
    ),
  ],
  ids=lambda v: v[-1] if isinstance(v, list) else '',
)
def test_a_wrong_setting_is_one_sentence_and_leaves_nothing(
  tmp_path, arguments, message
):
  logdir = tmp_path / 'run'
  code, _, err = run('train.py', f'--logdir={logdir}', *arguments)
  assert code == 2
  last = err.strip().splitlines()[-1]
  assert last.startswith('train.py: ')
  assert message in last
  assert 'Traceback' not in err
  assert not logdir.exists()


def test_testing_an_empty_directory_is_an_error(tmp_path):
  for script, more in (('evaluate.py', []), ('train.py', ['--mode=test'])):
    code, _, err = run(script, f'--logdir={tmp_path}', *more)
    assert code == 2
    assert 'holds no run to load' in err


@pytest.mark.parametrize(
  ('signum', 'expected'), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_signal_saves_and_leaves_nothing_behind(tmp_path, signum, expected):
  process = start(
    'train.py', *TINY, f'--logdir={tmp_path}', '--env_backend=process'
  )
  try:
    wait_for(
      lambda: process.poll() is not None or len(children_of(process.pid)) == 2
    )
    children = children_of(process.pid)
    time.sleep(4)
    assert process.poll() is None, process.communicate()
    process.send_signal(signum)
    sent = time.monotonic()
    code, _, err = finish(process, timeout=60)
    assert code == expected, err
    assert time.monotonic() - sent < 15
    assert not any(is_alive(pid) for pid in children)
    assert len(list(tmp_path.glob('checkpoint-*.npz'))) == 1
    assert 'Traceback' not in err
  finally:
    process.kill()
    process.wait()


def kill_while_saving(process, folder):
  """Kills `process` with a checkpoint half written; returns that file."""

  def saving():
    return next(iter(folder.glob('checkpoint-*.tmp')), None)

  while True:
    wait_for(lambda: saving() is not None)
    process.send_signal(signal.SIGSTOP)
    # Stopped for good, or already past the end of the file?
    time.sleep(0.05)
    half = saving()
    if half is not None:
      process.kill()
      process.wait()
      assert half.exists()
      return half
    process.send_signal(signal.SIGCONT)


def test_after_a_kill_in_mid_save_the_run_goes_on(tmp_path):
  process = start(
    'train.py',
    *TINY,
    f'--logdir={tmp_path}',
    '--env_backend=process',
    '--checkpoint_secs=0',
    '--summary_secs=0',
  )
  try:
    wait_for(lambda: len(list(tmp_path.glob('checkpoint-*.npz'))) == 3)
    children = children_of(process.pid)
    half = kill_while_saving(process, tmp_path)
    # Environments die with their parent, however that ends.
    wait_for(lambda: not any(is_alive(pid) for pid in children), timeout=10)
  finally:
    process.kill()
    process.communicate()
  # The same command again, but with an end: 20 more updates of 10 frames.
  saved = checkpoint.Checkpointer(tmp_path).restore_required()
  resumed = saved.counters['learner']['env_frames']
  total = resumed + 200
  code, out, err = run(
    'train.py',
    *TINY,
    f'--logdir={tmp_path}',
    '--summary_secs=0',
    f'--total_environment_frames={total}',
  )
  assert code == 0, err
  assert f'Resumed at frame {resumed:,}' in out
  assert not half.exists()
  with open(tmp_path / 'metrics.csv', newline='') as file:
    rows = list(csv.DictReader(file))
  assert [int(row['env_frames']) for row in rows] == list(
    range(10, total + 1, 10)
  )
  # The rate falls on with the frames, from where the run was.
  for row in rows[-20:]:
    before = int(row['env_frames']) - 10
    expected = 0.00048 * (1 - before / total)
    assert float(row['learning_rate']) == pytest.approx(expected, rel=1e-5)
