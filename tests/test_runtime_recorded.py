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
"""Runs that record their unrolls, and runs that learn from recorded ones."""

import csv
import pathlib

import numpy as np
import pytest
from test_train_script import TINY, run

from scalable_agent import config, metrics, tasks
from scalable_agent.runtime import local, recorded

FRAMES = 400


class Last(metrics.NullWriter):
  """Keeps the newest row."""

  def write(self, env_frames, metrics):
    self.row = metrics


def settings(folder, *, run=None, **learner):
  return config.Config(
    task=config.TaskConfig(level_name='catch'),
    actor=config.ActorConfig(num_actors=1, envs_per_actor=4),
    agent=config.AgentConfig(torso='mlp'),
    learner=config.LearnerConfig(
      **{
        'batch_size': 4,
        'unroll_length': 5,
        'total_environment_frames': FRAMES,
        **learner,
      }
    ),
    run=config.RunConfig(logdir=str(folder), **(run or {})),
  )


def train(chosen, runtime=local):
  task = tasks.make_task(chosen)
  last = Last()
  made = runtime.make_run(chosen, task, task.spec())
  return made, made.run(last), last.row


@pytest.fixture(scope='module')
def recording(tmp_path_factory):
  folder = tmp_path_factory.mktemp('recording')
  chosen = settings(
    folder / 'run', run={'record_unrolls': str(folder / 'data')}
  )
  _, _, row = train(chosen)
  # Every column that was learned from; what was read ahead may be there too.
  assert FRAMES / 5 <= row['records_written'] <= FRAMES / 5 + 12
  return folder / 'data'


def test_nothing_is_played_where_all_unrolls_come_from_files(
  recording, tmp_path
):
  chosen = settings(tmp_path, from_unrolls=str(recording))
  task = tasks.make_task(chosen)
  spec = task.spec()

  def build(_):
    raise AssertionError('environments were made')

  made = recorded.make_run(chosen, task._replace(build=build), spec)
  last = Last()
  outcome = made.run(last)
  assert outcome.env_frames == FRAMES
  assert last.row['records_skipped'] == 0
  # The recorded policy's returns are not this run's.
  assert outcome.mean_returns == {}
  assert np.isfinite(last.row['total_loss'])


def test_recorded_unrolls_complete_batches_and_count_no_frames(
  recording, tmp_path
):
  chosen = settings(
    tmp_path, from_unrolls=str(recording), from_unrolls_fraction=0.75
  )
  made, outcome, row = train(chosen)
  assert outcome.env_frames == FRAMES
  # One of four columns is fresh: 5 frames each.
  assert made._learner.num_updates == FRAMES / 5
  assert 'replay_age_mean' in row
  assert outcome.mean_returns


def test_recorded_unrolls_that_do_not_fit_are_refused_before_the_start(
  recording, tmp_path
):
  chosen = settings(tmp_path, from_unrolls=str(recording), unroll_length=6)
  task = tasks.make_task(chosen)
  with pytest.raises(ValueError, match=r'can be used \(\d+ other shape\)'):
    recorded.make_run(chosen, task, task.spec())


def test_mixtures_that_leave_nothing_are_refused(tmp_path):
  with pytest.raises(ValueError, match='use one of the two'):
    settings(tmp_path, from_unrolls='x', replay_fraction=0.5)
  with pytest.raises(ValueError, match=r'from_unrolls_fraction is 0\.01'):
    settings(tmp_path, from_unrolls='x', from_unrolls_fraction=0.01)


def test_record_and_learn_from_the_command_line(tmp_path):
  data = tmp_path / 'data'
  frames = '--total_environment_frames=200'
  code, _, err = run(
    'train.py',
    *TINY,
    frames,
    f'--logdir={tmp_path}/a',
    f'--record_unrolls={data}',
  )
  assert code == 0, err
  (file,) = data.iterdir()
  content = bytearray(file.read_bytes())
  content[int(len(content) * 0.9)] ^= 1
  file.write_bytes(content)

  code, out, err = run(
    'train.py',
    *TINY,
    frames,
    f'--logdir={tmp_path}/b',
    f'--from_unrolls={data}',
  )
  assert code == 0, err
  assert 'Trained 200 frames' in out
  assert 'damaged' in err
  with open(tmp_path / 'b' / 'metrics.csv', newline='') as table:
    *_, row = csv.DictReader(table)
  assert float(row['records_skipped']) >= 1

  nowhere = pathlib.Path(tmp_path / 'c')
  code, _, err = run(
    'train.py', *TINY, f'--logdir={nowhere}', f'--from_unrolls={tmp_path}/none'
  )
  assert code == 2
  assert 'holds no files unrolls-' in err.strip().splitlines()[-1]
  assert not nowhere.exists()
