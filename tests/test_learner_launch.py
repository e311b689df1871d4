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
"""Learners that Ray starts, `train.py --num_learner_hosts=2`."""

import os
import subprocess
import sys

import pytest
from test_distributed import NODE, cluster_utils
from test_learner_hosts import CATCH
from test_train_script import ROOT

from scalable_agent import checkpoint

pytestmark = [
  pytest.mark.slow,
  pytest.mark.filterwarnings(
    'ignore::ResourceWarning',
    'ignore::pytest.PytestUnraisableExceptionWarning',
  ),
]


@pytest.fixture
def cluster():
  """A head, where the chief is, and one node more."""
  made = cluster_utils.Cluster(
    initialize_head=True,
    head_node_args={**NODE, 'num_cpus': 2, 'include_dashboard': False},
  )
  try:
    made.add_node(**NODE, num_cpus=2)
    yield made
  finally:
    made.shutdown()


def train(cluster, tmp_path, *arguments):
  return subprocess.run(
    [
      sys.executable,
      ROOT / 'scripts' / 'train.py',
      *CATCH,
      '--runtime=ray',
      f'--ray_address={cluster.address}',
      '--num_learner_hosts=2',
      '--total_environment_frames=6000',
      f'--logdir={tmp_path / "run"}',
      *arguments,
    ],
    capture_output=True,
    text=True,
    timeout=300,
    env={**os.environ, 'PYTHONPATH': str(tmp_path)},
  )


def test_two_learners_train_together(cluster, tmp_path):
  done = train(cluster, tmp_path)

  assert done.returncode == 0, done.stdout + done.stderr
  saved = checkpoint.Checkpointer(tmp_path / 'run').restore_required()
  counters = saved.counters['learner']
  # Batches of 8 columns of 10 steps, from each of two.
  assert counters['env_frames'] >= 6000
  assert counters['env_frames'] == counters['num_updates'] * 2 * 8 * 10


def test_a_learner_that_cannot_begin_ends_the_run(cluster, tmp_path):
  (tmp_path / 'only_here.py').write_text(
    'import sys\n'
    'if "default_worker" in sys.argv[0]:\n'
    '  raise RuntimeError("no simulator on this machine")\n'
  )
  done = train(
    cluster,
    tmp_path,
    '--level_name=gym/CartPole-v1',
    '--gym_import=only_here',
  )

  assert done.returncode == 2, done.stdout + done.stderr
  assert 'learner 1, which Ray has started, cannot begin' in done.stderr
  assert 'no simulator on this machine' in done.stderr
  assert not (tmp_path / 'run').exists()
