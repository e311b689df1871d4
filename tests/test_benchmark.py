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
"""`scripts/benchmark.py`: its parts, its command line, and figures."""

import importlib
import json
import sys

import benchmark
import numpy as np
import pytest
from absl import flags
from benchmarks import _peak, _report
from dm_env import specs

from scalable_agent import config, structs
from scalable_agent.nets import agent


@pytest.fixture
def command_line(monkeypatch):
  """Runs the script in this process, with flags of its own."""
  monkeypatch.setattr(flags, 'FLAGS', flags.FlagValues())
  monkeypatch.setattr(sys.modules['__main__'], '__doc__', '')

  def run(*arguments):
    benchmark.main(benchmark.parse(['benchmark.py', *arguments]))

  return run


@pytest.mark.parametrize('name', benchmark.parts())
def test_each_part_explains_itself_and_has_flags_with_help(name):
  part = importlib.import_module(f'benchmarks.{name}')
  values = flags.FlagValues()

  part.define_flags(values)

  assert f'scripts/benchmark.py {name}' in part.__doc__
  assert all(values[flag].help for flag in values)
  assert callable(part.measure)


def test_vtrace_prints_one_comparison_a_line(command_line, capsys):
  command_line('vtrace', '--unroll_lengths=2,3', '--batch_size=2', '--rounds=3')

  lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
  assert [line['unroll_length'] for line in lines] == [2, 3]
  for line in lines:
    assert line['benchmark'] == 'vtrace'
    assert (line['batch_size'], line['rounds']) == (2, 3)
    assert line['device'] == 'CPU'
    assert line['sequential_ms'] > 0
    assert line['associative_ms'] > 0
    assert 0.01 < line['ratio'] < 100


# Catch in the shortest runs that give a figure: no time is judged.
SMOKE = [
  '--level_name=catch',
  '--envs_per_actor=4',
  '--batch_size=4',
  '--unroll_length=5',
  '--secs=0.1',
]
SMOKE_TRAINING = ['--train_secs=2', '--warm_up_secs=0']


def test_all_measures_every_part_and_shows_a_table(
  command_line, capsys, tmp_path
):
  path = tmp_path / 'measured.json'
  arguments = [*SMOKE, *SMOKE_TRAINING, '--networks=mlp+lstm', '--envs=1,4']
  command_line('all', *arguments, f'--json={path}')

  measured = json.loads(path.read_text())
  kinds = [m['benchmark'] for m in measured]
  alone = [f'train: {stage} alone' for stage in ('env', 'inference', 'learner')]
  assert kinds == [
    'env',
    *['inference'] * 2,
    'pipeline',
    *['vtrace'] * 3,
    'learner',
    *alone,
    'train',
  ]
  assert [m['envs_per_actor'] for m in measured[1:3]] == [1, 4]
  assert measured[-1]['core'] == 'lstm'
  for measurement in measured:
    figures = {k: v for k, v in measurement.items() if isinstance(v, float)}
    assert len(figures) >= 2, measurement
    assert all(np.isfinite(v) for v in figures.values()), measurement
  table = capsys.readouterr().out.split('measured')[-1]
  assert 'interpreter_share' in table
  assert 'share_of_ideal' in table


def test_scaling_prints_a_line_for_each_width(command_line, capsys):
  command_line('scaling', *SMOKE, *SMOKE_TRAINING, '--torso=mlp', '--envs=1,4')

  lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
  assert [line['envs_per_actor'] for line in lines] == [1, 4]
  # Two actors of one environment fill no batch of four.
  assert [line['batch_size'] for line in lines] == [2, 4]
  for line in lines:
    assert line['steps_per_sec'] > 0
    assert line['queue_arrivals_per_sec'] > 0


@pytest.mark.slow
def test_distributed_measures_transport_training_and_clusters(
  command_line, capsys
):
  pytest.importorskip('ray')
  few = ['--workers=1', '--simulated_workers=10,100']
  command_line('distributed', *SMOKE, *SMOKE_TRAINING, '--torso=mlp', *few)

  lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
  kinds = [line['benchmark'].partition(': ')[2] for line in lines]
  cluster = 'simulated cluster'
  assert kinds == ['weights', 'unroll', '', cluster, cluster]
  assert lines[0]['all_have_it_ms'] > 0
  assert lines[2]['ray_over_local'] > 0
  # The stages were timed in this very run.
  assert 0.5 < lines[2]['simulated_ratio'] < 2
  assert [line['num_actors'] for line in lines[3:]] == [10, 100]


@pytest.mark.slow
def test_sync_compares_three_runtimes_on_two_kinds_of_steps(
  command_line, capsys
):
  arguments = ['--secs=0.1', '--unroll_length=5', '--step_ms=1']
  command_line('sync', *arguments, *SMOKE_TRAINING)

  lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
  assert [(line['steps'], line['runtime']) for line in lines] == [
    (steps, runtime)
    for steps in ('equal', 'uneven')
    for runtime in ('local', 'sync step', 'sync trajectory')
  ]
  for line in lines:
    assert line['frames_per_sec'] > 0
    assert -1 <= line['mean_return'] <= 1


def test_profile_names_operations(command_line, capsys):
  command_line('profile', *SMOKE, '--torso=mlp')

  lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
  assert any('MatMul' in line['operation'] for line in lines)
  assert 0.5 < sum(line['share'] for line in lines) < 1.01


def test_wire_shows_what_each_encoding_does(command_line, capsys, tmp_path):
  arguments = ['--num_unrolls=2', '--skip_unrolls=1', '--jpeg_qualities=50']
  command_line(
    'wire', *SMOKE, '--torso=mlp', f'--logdir={tmp_path}', *arguments
  )

  lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
  assert [line['encoding'] for line in lines] == ['raw', 'lz4', 'jpeg']
  raw, lz4, jpeg = lines
  assert raw['share_of_raw'] == 1
  assert lz4['share_of_raw'] < 0.9
  # With the same weights rho is 1 unless images have changed.
  assert raw['log_rho_max_abs'] == lz4['log_rho_max_abs'] < 1e-5
  assert raw['argmax_kept'] == lz4['argmax_kept'] == 1
  assert jpeg['jpeg_quality'] == 50


def test_compare_shows_the_ratio_to_the_same_measurement(
  command_line, capsys, tmp_path
):
  def measurement(size, speed):
    return {'benchmark': 'x', 'size': size, 'speed': speed}

  path = tmp_path / 'old.json'
  _report.write(path, [measurement(1, 2.0), measurement(2, 8.0)])
  old = _report.read(path)

  _report.show([measurement(2, 2.0), measurement(3, 7.0)], old)

  printed = capsys.readouterr().out
  assert 'speed 2 (x0.250)' in printed
  assert 'speed 7 ' in printed
  assert 'size=3' in printed


def test_flops_are_those_counted_by_hand():
  spec = structs.EnvironmentSpec(
    specs.BoundedArray((84, 84), np.uint8, 0, 255),
    specs.DiscreteArray(6),
    frames_per_step=4,
  )

  def count(**settings):
    own = agent.Agent(spec, config.AgentConfig(**settings), frame_stack=4)
    return _peak.training_flops(own, spec)

  # Two for each of kernel size x pixels; heads of 6 + 1; see the torso.
  first = 2 * (8 * 8 * 4 * 16) * 20 * 20
  second = 2 * (4 * 4 * 16 * 32) * 9 * 9
  linear, heads = 2 * (9 * 9 * 32) * 256, 2 * 256 * 7
  expected = 2 * first + 3 * (second + linear + heads)
  assert count(torso='shallow', core='none') == expected
  # Into the LSTM go features, last reward and last action.
  lstm = 2 * (256 + 1 + 6 + 256) * 4 * 256
  assert count(torso='shallow', core='lstm') == expected + 3 * lstm


@pytest.mark.parametrize(
  ('arguments', 'said'),
  [
    ([], "'' is no part; choose one of"),
    (['vtraze'], "'vtraze' is no part; choose one of"),
    (['vtrace', '--round=1'], "'round'. Did you mean: rounds"),
    (['vtrace', '--unroll_lengths=20,0'], 'must be positive integers'),
    (['vtrace', '--batch_size=0'], 'batch_size'),
    (['vtrace', 'train'], "'train' is not a flag"),
    (['inference', '--envs=1,0'], 'must be positive integers'),
    (['learner', '--precisions=float8'], 'must be some of float32'),
    (['env', '--compare=no_such.json'], 'no_such.json cannot be read'),
  ],
)
def test_mistakes_are_one_sentence(command_line, capsys, arguments, said):
  with pytest.raises(SystemExit) as exit_:
    command_line(*arguments)

  error = capsys.readouterr().err
  assert exit_.value.code == 2
  assert said in error
  assert error.count('\n') == 1


def test_help_lists_the_parts(command_line, capsys):
  with pytest.raises(SystemExit) as exit_:
    command_line('--help')

  assert exit_.value.code == 0
  assert f'PARTs: {", ".join(benchmark.parts())}' in capsys.readouterr().out
