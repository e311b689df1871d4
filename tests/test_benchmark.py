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
import pytest
from absl import flags


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


@pytest.mark.parametrize(
  ('arguments', 'said'),
  [
    ([], "'' is no part; choose one of"),
    (['vtraze'], "'vtraze' is no part; choose one of"),
    (['vtrace', '--round=1'], "'round'. Did you mean: rounds"),
    (['vtrace', '--unroll_lengths=20,0'], 'must be positive integers'),
    (['vtrace', '--batch_size=0'], 'batch_size'),
    (['vtrace', 'train'], "'train' is not a flag"),
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
