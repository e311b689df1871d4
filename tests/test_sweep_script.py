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
"""Sweeps on Ray Tune: trials fail alone, take turns, and survive a crash."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from scalable_agent import checkpoint
from scalable_agent.reports import sweeps
from scalable_agent.tuning import sweep

ROOT = pathlib.Path(__file__).parents[1]

# Stands for scripts/train.py: trains at once, and the better the higher its
# learning rate; fails where that is 3.
TRAIN = """
import json, os, re, sys
from scalable_agent import checkpoint, metrics
text = open(sys.argv[1].partition('=')[2]).read()
rate = float(re.search('learning_rate=(.*)', text)[1])
logdir = re.search('logdir=(.*)', text)[1]
if rate == 3:
  sys.exit('no such thing as 3')
saver = checkpoint.Checkpointer(logdir)
saved = saver.restore()
done = saved.counters['learner']['env_frames'] if saved else 0
writer = metrics.CsvWriter(os.path.join(logdir, 'metrics.csv'), done)
with open(os.path.join(logdir, 'config.json'), 'w') as file:
  json.dump({'task': {'level_name': 'catch'}}, file)
for frames in range(done + 100, 501, 100):
  writer.write(frames, {
    'frames_per_sec': 9, 'catch/episode_return': rate,
    'catch/num_episodes': frames})
  saver.save({'w': [rate]}, {'learner': {'env_frames': frames}})
"""
PLAN = """
import sys
from scalable_agent import config
from scalable_agent.runtime import ray_settings
ray_settings.prepare(config.DistributedConfig())
from scalable_agent.tuning import ray_tune
paths, script = sys.argv[2:], sys.argv[1]
plan = ray_tune.Plan(paths, [sys.executable, script], 1, 1, 0, 2, None)
print('errors', sorted(ray_tune.run(plan, None).items()))
"""


def environment():
  return {**os.environ, 'PYTHONPATH': f'{ROOT}:{ROOT / "scripts"}'}


def test_a_trial_that_fails_does_not_end_the_others(tmp_path):
  script = tmp_path / 'train.py'
  script.write_text(TRAIN)
  folder = str(tmp_path / 'sweep')
  paths = sweep.prepare(
    folder, [], [{'learning_rate': str(rate)} for rate in (1, 3, 2)]
  )
  result = subprocess.run(
    [sys.executable, '-c', PLAN, str(script), *paths],
    env=environment(),
    capture_output=True,
    text=True,
  )
  assert 'errors [(1, ' in result.stdout, result.stdout + result.stderr
  assert 'exit code 1: no such thing as 3' in result.stdout
  rows = sweep.rows(paths, {1: 'why'}, 500, window=1)
  assert [(row.trial, row.status) for row in rows] == [
    ('trial_2', 'done'),
    ('trial_0', 'done'),
    ('trial_1', 'failed'),
  ]


COMMAND = """
  --level_name=catch --total_environment_frames=40000 --num_actors=1
  --envs_per_actor=16 --batch_size=16 --unroll_length=10 --summary_secs=0.5
  --checkpoint_secs=1 --num_samples=3 --draw=learning_rate=choice:1e-6:0.002
  --draw=entropy_cost=choice:0.01 --draw=epsilon=choice:0.001 --pbt
  --pbt_burn_in_frames=4000 --pbt_episodes=1000 --pbt_margin=0.05
  --cpus_per_trial=0.5
""".split()


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path):
  folder = tmp_path / 'sweep'
  command = [sys.executable, str(ROOT / 'scripts' / 'sweep.py'), *COMMAND]
  result = subprocess.run(
    [*command, f'--logdir={folder}', '--sweep_address=127.0.0.1:1'],
    env=environment(),
    capture_output=True,
    text=True,
  )
  assert result.returncode == 2
  assert "sweep_address is '127.0.0.1:1', where no Ray cluster" in result.stderr
  assert 'Traceback' not in result.stderr
  assert not folder.exists()


@pytest.mark.slow
@pytest.mark.filterwarnings(
  'ignore::ResourceWarning',
  'ignore::pytest.PytestUnraisableExceptionWarning',
)
def test_trials_run_on_a_cluster_that_is_there(tmp_path):
  from ray import cluster_utils

  made = cluster_utils.Cluster(
    initialize_head=True,
    head_node_args={
      'node_ip_address': '127.0.0.1',
      'object_store_memory': 80 * 2**20,
      'num_gpus': 0,
      'num_cpus': 1,
      'include_dashboard': False,
    },
  )
  command = [sys.executable, str(ROOT / 'scripts' / 'sweep.py'), *COMMAND]
  try:
    result = subprocess.run(
      [
        *command,
        '--nopbt',
        '--total_environment_frames=4000',
        f'--logdir={tmp_path}',
        f'--sweep_address={made.address}',
      ],
      env=environment(),
      capture_output=True,
      text=True,
    )
  finally:
    made.shutdown()
  assert result.returncode == 0, result.stdout + result.stderr
  assert len(list(tmp_path.glob('trial_*/checkpoint-*.npz'))) >= 3


@pytest.mark.slow
def test_a_population_is_killed_and_resumed(tmp_path):
  folder = str(tmp_path / 'pbt')
  command = [sys.executable, str(ROOT / 'scripts' / 'sweep.py'), *COMMAND]
  command.append(f'--logdir={folder}')
  with subprocess.Popen(command, env=environment()) as driver:
    end = time.monotonic() + 600
    while len(sweeps.read_history(folder)) < 3:
      assert driver.poll() is None
      assert time.monotonic() < end
      time.sleep(0.2)
    driver.send_signal(signal.SIGKILL)
  before = sweeps.read_history(folder)
  result = subprocess.run(
    command, env=environment(), capture_output=True, text=True
  )
  assert result.returncode == 0, result.stderr
  with open(os.path.join(folder, 'sweep.csv')) as file:
    rows = list(csv.DictReader(file))
  assert [row['status'] for row in rows] == ['done'] * 3
  turns = sweeps.read_history(folder)
  assert len(turns) > len(before)
  assert any(turn.copied for turn in turns)
  for index in range(3):
    path = os.path.join(folder, f'trial_{index}')
    saved = checkpoint.Checkpointer(path).restore()
    assert saved.counters['learner']['env_frames'] >= 40000
    with open(os.path.join(path, 'metrics.csv')) as file:
      frames = [int(row['env_frames']) for row in csv.DictReader(file)]
    assert np.all(np.diff(frames) > 0)
    with open(os.path.join(path, 'starts.json')) as file:
      assert len(json.load(file)) > 1
