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
import csv
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from tensorboard.backend.event_processing import plugin_event_accumulator

from scalable_agent import metrics


def read_csv(path: pathlib.Path) -> list[dict[str, str]]:
  with open(path, newline='') as file:
    return list(csv.DictReader(file))


def read_events(
  logdir: pathlib.Path,
) -> plugin_event_accumulator.EventAccumulator:
  events = plugin_event_accumulator.EventAccumulator(
    str(logdir), size_guidance={plugin_event_accumulator.TENSORS: 0}
  )
  return events.Reload()


def scalar_points(logdir: pathlib.Path, tag: str) -> list[tuple[int, float]]:
  return [
    (event.step, float(np.asarray(event.tensor_proto.float_val)[0]))
    for event in read_events(logdir).Tensors(tag)
  ]


class Recorder:
  """Keeps what it is told; may fail when closed."""

  def __init__(self, close_error: Exception | None = None):
    self.rows: list = []
    self.closed = False
    self._close_error = close_error

  def write(self, env_frames, metrics):
    self.rows.append((env_frames, dict(metrics)))

  def close(self):
    self.closed = True
    if self._close_error:
      raise self._close_error


def test_csv_has_a_row_per_write_at_once(tmp_path):
  path = tmp_path / 'new' / 'metrics.csv'
  writer = metrics.CsvWriter(str(path))
  writer.write(40, {'loss': 0.5, 'updates': 1.0})
  assert read_csv(path) == [{'env_frames': '40', 'loss': '0.5', 'updates': '1'}]
  writer.write(80, {'loss': np.float32(0.1), 'updates': 2.0})
  assert read_csv(path)[1] == {
    'env_frames': '80',
    'loss': '0.100000001',
    'updates': '2',
  }


def test_csv_keeps_large_counters_exact(tmp_path):
  path = tmp_path / 'metrics.csv'
  metrics.CsvWriter(str(path)).write(11_400_000_001, {'n': 11_400_000_001.0})
  row = {'env_frames': '11400000001', 'n': '11400000001'}
  assert read_csv(path) == [row]


def test_csv_takes_new_columns_without_losing_rows(tmp_path):
  path = tmp_path / 'metrics.csv'
  writer = metrics.CsvWriter(str(path))
  writer.write(1, {'loss': 5.0})
  writer.write(2, {'loss': 4.0, 'atari/pong/episode_return': -21.0})
  writer.write(3, {'atari/pong/episode_return': -20.0})
  name = 'atari/pong/episode_return'
  assert read_csv(path) == [
    {'env_frames': '1', 'loss': '5', name: ''},
    {'env_frames': '2', 'loss': '4', name: '-21'},
    {'env_frames': '3', 'loss': '', name: '-20'},
  ]


def test_csv_leaves_histograms_out(tmp_path):
  path = tmp_path / 'metrics.csv'
  writer = metrics.CsvWriter(str(path))
  writer.write(1, {'loss': np.float64(5), 'log_rho': np.zeros(3)})
  assert read_csv(path) == [{'env_frames': '1', 'loss': '5'}]


def test_csv_shows_what_is_not_finite(tmp_path):
  path = tmp_path / 'metrics.csv'
  writer = metrics.CsvWriter(str(path))
  writer.write(1, {'a': float('nan'), 'b': float('-inf')})
  assert read_csv(path) == [{'env_frames': '1', 'a': 'nan', 'b': '-inf'}]


def test_csv_resumes_without_doubling_back(tmp_path):
  path = tmp_path / 'metrics.csv'
  writer = metrics.CsvWriter(str(path))
  for env_frames in (100, 200, 300):
    writer.write(env_frames, {'loss': float(env_frames)})
  writer = metrics.CsvWriter(str(path), resume_frames=200)
  assert [row['env_frames'] for row in read_csv(path)] == ['100', '200']
  writer.write(250, {'loss': 250.0, 'lag': 1.0})
  frames = [int(row['env_frames']) for row in read_csv(path)]
  assert frames == [100, 200, 250]
  assert read_csv(path)[0] == {'env_frames': '100', 'loss': '100', 'lag': ''}


def test_csv_starts_anew_where_nothing_is_resumed(tmp_path):
  path = tmp_path / 'metrics.csv'
  metrics.CsvWriter(str(path)).write(100, {'loss': 1.0})
  metrics.CsvWriter(str(path))
  assert read_csv(path) == []


def test_csv_drops_a_row_cut_short_by_a_kill(tmp_path):
  path = tmp_path / 'metrics.csv'
  path.write_text('env_frames,loss\n100,1\n200,2\n30')
  writer = metrics.CsvWriter(str(path), resume_frames=1000)
  writer.write(400, {'loss': 4.0})
  assert path.read_text() == 'env_frames,loss\n100,1\n200,2\n400,4\n'


def test_csv_that_is_something_else_is_refused(tmp_path):
  path = tmp_path / 'metrics.csv'
  path.write_text('name,age\nAda,36\n')
  with pytest.raises(ValueError, match='is no table of metrics; move it away'):
    metrics.CsvWriter(str(path))


def test_tensorboard_reads_scalars_and_histograms(tmp_path):
  writer = metrics.TensorBoardWriter(str(tmp_path))
  log_rhos = np.array([[-1.0, 0.0], [0.5, np.nan]], np.float32)
  writer.write(40, {'loss': 0.5, 'log_rho': log_rhos})
  writer.write(80, {'loss': 0.25})
  writer.close()
  assert scalar_points(tmp_path, 'loss') == [(40, 0.5), (80, 0.25)]
  (event,) = read_events(tmp_path).Tensors('log_rho')
  # Buckets of [left, right, count].
  buckets = np.frombuffer(event.tensor_proto.tensor_content).reshape(-1, 3)
  assert event.step == 40
  assert (buckets[0, 0], buckets[-1, 1]) == (-1.0, 0.5)
  assert buckets[:, 2].sum() == 3


def test_tensorboard_resumes_without_doubling_back(tmp_path):
  writer = metrics.TensorBoardWriter(str(tmp_path))
  for env_frames in (100, 200, 300):
    writer.write(env_frames, {'loss': float(env_frames)})
  writer = metrics.TensorBoardWriter(str(tmp_path), resume_frames=200)
  writer.write(400, {'loss': 4.0})
  points = scalar_points(tmp_path, 'loss')
  assert points == [(100, 100.0), (200, 200.0), (400, 4.0)]


# -- A disk that is full -------------------------------------------------------

_ON_A_FULL_DISK = """
import resource, signal, sys
from scalable_agent import metrics
# Writing past the limit fails like a full disk, instead of killing.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
logdir = sys.argv[1]
writer = metrics.MultiWriter([
  metrics.CsvWriter(f'{logdir}/metrics.csv'), metrics.TensorBoardWriter(logdir)
])
writer.write(0, {'loss': 0.5})
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (600, hard))
for env_frames in range(1, 100):
  writer.write(env_frames, {'loss': 0.5})
  writer.write(env_frames, {f'new_{env_frames}': 0.5})
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
writer.write(100, {'loss': 0.25})
writer.close()
"""


def test_full_disk_costs_rows_but_not_the_run(tmp_path):
  result = subprocess.run(
    [sys.executable, '-c', _ON_A_FULL_DISK, str(tmp_path)],
    capture_output=True,
    text=True,
  )
  assert result.returncode == 0, result.stderr
  # Each file has its one warning.
  assert result.stderr.count('cannot be written') == 2
  frames = [
    int(row['env_frames']) for row in read_csv(tmp_path / 'metrics.csv')
  ]
  assert frames == sorted(frames)
  assert (frames[0], frames[-1]) == (0, 100)
  assert 2 < len(frames) < 100
  points = scalar_points(tmp_path, 'loss')
  assert (points[0], points[-1]) == ((0, 0.5), (100, 0.25))
  assert len(points) < 100


def test_multi_writer_writes_to_all():
  writers = [Recorder(), Recorder()]
  metrics.MultiWriter(writers).write(4, {'loss': 1.0})
  assert [w.rows for w in writers] == [[(4, {'loss': 1.0})]] * 2


def test_multi_writer_closes_all_even_if_one_fails():
  writers = [Recorder(OSError('first')), Recorder()]
  with pytest.raises(OSError, match='first'):
    metrics.MultiWriter(writers).close()
  assert [w.closed for w in writers] == [True, True]


def test_null_writer_takes_everything():
  writer = metrics.NullWriter()
  writer.write(1, {'loss': np.nan})
  writer.close()
