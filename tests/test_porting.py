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
"""The porting kit, passed by an implementation that knows nothing but it."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import export_golden
import numpy as np
import numpy_port
import pytest
import verify_port
from porting import compare, kit, mistakes, reference

ROOT = pathlib.Path(__file__).parents[1]
SCRIPT = ROOT / 'scripts' / 'verify_port.py'
DOCUMENT = (ROOT / 'docs' / 'porting.md').read_text()
# Of another seed than the document's: nothing may hang on the numbers.
SEED = 7
STREAM_COLUMNS = """
  observation reward done first truncated episode_return episode_step action
  baseline truncation_values
""".split()


@pytest.fixture(name='directory', scope='module')
def fixture_directory(tmp_path_factory) -> pathlib.Path:
  directory = tmp_path_factory.mktemp('porting') / 'kit'
  export_golden.export(str(directory), seed=1)
  return directory


@pytest.fixture(name='stages', scope='module')
def fixture_stages(directory) -> dict[str, kit.Stage]:
  return kit.read(str(directory))


@pytest.fixture(name='candidate', scope='module')
def fixture_candidate(directory) -> pathlib.Path:
  """What the port in `numpy_port.py` makes, in a process of its own."""
  candidate = directory.parent / 'candidate'
  program = [
    'import runpy, sys',
    "sys.modules['scalable_agent'] = sys.modules['tensorflow'] = None",
    f'sys.argv = ["", {str(directory)!r}, {str(candidate)!r}]',
    f'runpy.run_path({numpy_port.__file__!r}, run_name="__main__")',
  ]
  subprocess.run(
    [sys.executable, '-c', '\n'.join(program)],
    check=True,
    env={'PYTHONPATH': str(ROOT / 'scripts')},
  )
  return candidate


@pytest.fixture(name='copy')
def fixture_copy(candidate, tmp_path):
  """The candidate, to be spoilt."""
  copy = tmp_path / 'copy'
  shutil.copytree(candidate, copy)
  return copy


def verify(*arguments):
  return subprocess.run(
    [sys.executable, str(SCRIPT), *map(str, arguments)],
    capture_output=True,
    env={'PYTHONPATH': f'{ROOT / "scripts"}:{ROOT}'},
    text=True,
  )


def spoil(directory, stage, key, change):
  arrays = kit.read_arrays(str(directory), stage)
  arrays[key] = change(arrays[key])
  kit.write_arrays(str(directory), stage, arrays)


def test_an_independent_port_agrees_in_every_stage(
  directory, candidate, stages
):
  result = verify(directory, candidate, '--require_all')
  assert result.returncode == 0, result.stdout + result.stderr
  lines = result.stdout.splitlines()
  assert [line.split()[:2] for line in lines] == [
    [name, 'agrees'] for name in stages
  ]


def test_the_same_seed_gives_the_same_files_and_another_seed_others(
  directory, stages
):
  """Of the stages that take no time; the rest draws in the same way."""
  from porting import heads_stage, math_stages, optimizer_stage

  makers = [
    math_stages.vtrace_stage,
    math_stages.losses_stage,
    heads_stage.heads_stage,
    optimizer_stage.optimizer_stage,
  ]
  for make in makers:
    again, other = make(1), make(SEED)
    saved = stages[again.name]
    assert again.arrays.keys() == saved.arrays.keys()
    for key, array in again.arrays.items():
      np.testing.assert_array_equal(array, saved.arrays[key], strict=True)
    assert any(
      np.any(other.arrays[key] != array) for key, array in again.arrays.items()
    )


def test_files_hold_what_their_json_says_without_pickles(directory):
  listed = json.loads((directory / 'kit.json').read_text())
  assert listed['format_version'] == kit.FORMAT_VERSION
  for stage in listed['stages']:
    described = json.loads((directory / f'{stage}.json').read_text())['arrays']
    with np.load(directory / f'{stage}.npz', allow_pickle=False) as file:
      assert set(file.files) == set(described)
      for key, about in described.items():
        assert list(file[key].shape) == about['shape']
        assert str(file[key].dtype) == about['dtype']
        assert about['meaning']
        assert file[key].dtype.kind in 'biufU'


@pytest.mark.parametrize('case', ['off_policy', 'ends_and_truncations', 'long'])
def test_recursion_equals_the_double_sum(stages, case):
  stage = stages['vtrace']
  given = {**stage.cases[case], **stage.part(case, 'input')}
  vs, _ = reference.vtrace(**given)
  del given['clip_pg_rho_threshold']
  np.testing.assert_allclose(
    vs, reference.vtrace_by_definition(**given), rtol=1e-6, atol=1e-9
  )


@pytest.mark.parametrize('number', range(1, len(mistakes.MISTAKES) + 1))
def test_every_mistake_is_found_and_named(stages, number):
  mistake = mistakes.MISTAKES[number - 1]
  stage = stages[mistake.stage]
  made = np.asarray(mistake.compute(stage)).astype(np.float32)
  verdict = compare.compare(stage, {mistake.key: made}, 1.0)
  (difference,) = verdict.differences
  assert difference.mistake == number


def test_the_document_shows_the_values_that_reveal_mistakes(stages):
  shown = re.findall(r'^\| \d+ \| .*`.*', DOCUMENT, re.M)
  made = verify_port.table_of_mistakes(stages)[2:]
  assert len(shown) == len(made)
  for ours, theirs in zip(shown, made, strict=True):
    (*words, right, wrong), (*made_words, made_right, made_wrong) = (
      [cell.strip() for cell in line.strip('|').split('|')]
      for line in (ours, theirs)
    )
    assert words == made_words
    # Other machines round otherwise.
    np.testing.assert_allclose(
      [float(right), float(wrong)],
      [float(made_right), float(made_wrong)],
      rtol=1e-3,
    )


def table_of_the_stream(stage):
  """Two unrolls of the first environment, as the document shows them."""
  arrays = stage.part('counting', 'output')
  columns = [name for name in STREAM_COLUMNS if name in arrays]
  rows = [f'| unroll | slot | {" | ".join(columns)} |']
  rows.append('|' + '--:|' * (len(columns) + 2))
  for u, t in np.ndindex(2, arrays['done'].shape[1]):
    cells = [cell(arrays[name][u, t, 0]) for name in columns]
    rows.append(f'| {u} | {t} | {" | ".join(cells)} |')
  return '\n'.join(rows)


def cell(value):
  if value.dtype == bool:
    return 'yes' if value else ''
  return ', '.join(f'{x:g}' for x in np.atleast_1d(value))


def test_the_document_shows_the_stream(stages):
  assert table_of_the_stream(stages['stream']) in DOCUMENT


def test_the_document_names_every_stage_and_array(stages):
  for stage in stages.values():
    assert f'`{stage.name}`' in DOCUMENT
    for key in stage.names('input', 'output'):
      short = key.split('/', 2)[2]
      # What stands for a variable or a layer is told once for all of them.
      short = re.sub(r'^(layers/agent|\w+)/.*', r'\1/', short)
      assert f'`{short}' in DOCUMENT, (stage.name, short)


def test_first_difference_is_told_and_costs_the_exit_code(directory, copy):
  key = 'off_policy/output/vs'

  def change(array):
    array[2, 1] += 0.5
    return array

  spoil(copy, 'vtrace', key, change)
  result = verify(directory, copy, '--stages=vtrace,losses')
  assert result.returncode == 1
  assert 'vtrace                         DIFFERS' in result.stdout
  assert f'1 differ, first {key}' in result.stdout
  assert f'{key} [2, 1] is ' in result.stdout
  assert 'losses                         agrees' in result.stdout
  loose = verify(
    directory, copy, '--stages=vtrace', '--tolerance_factor=1000000'
  )
  assert loose.returncode == 0


def test_missing_stages_and_arrays_are_named(directory, copy):
  (copy / 'losses.npz').unlink()
  arrays = kit.read_arrays(str(copy), 'vtrace')
  del arrays['long/output/vs']
  kit.write_arrays(str(copy), 'vtrace', arrays)
  arguments = directory, copy, '--stages=vtrace,losses'
  result = verify(*arguments)
  assert result.returncode == 0
  assert 'losses                         missing' in result.stdout
  assert 'not given: 1, first long/output/vs' in result.stdout
  assert verify(*arguments, '--require_all').returncode == 1


@pytest.mark.parametrize(
  ('key', 'change', 'text'),
  [
    ('on_policy/output/vs', np.transpose, 'has shape (2, 5), must have (5, 2)'),
    ('on_policy/output/vs', lambda x: x * np.nan, '[0, 0] is nan'),
    ('on_policy/output/vs', lambda x: x.astype(str), 'has dtype <U'),
  ],
  ids=['shape', 'nan', 'dtype'],
)
def test_what_is_no_number_of_the_shape_differs(
  stages, candidate, key, change, text
):
  arrays = kit.read_arrays(str(candidate), 'vtrace')
  arrays[key] = change(arrays[key])
  (difference,) = compare.compare(stages['vtrace'], arrays, 1.0).differences
  assert text in difference.text


@pytest.mark.parametrize(
  ('arguments', 'text'),
  [
    (('KIT',), '1 directories are named; give the kit, then the candidate.'),
    (('nowhere', 'KIT'), 'nowhere/kit.json is missing; name a kit that'),
    (('KIT', 'nowhere'), 'nowhere has none of vtrace.npz, losses.npz'),
    (('KIT', 'KIT', '--stages=vtrac'), "--stages has 'vtrac'; choose among"),
    (('KIT', 'BAD'), 'vtrace.npz is no archive of plain arrays'),
    (('KIT', 'ALIEN'), "vtrace.npz has 'vs', which is no output of this stage"),
    (('KIT', 'EMPTY'), 'vtrace.npz holds no output; write arrays named as in'),
    (('OLD', 'KIT'), 'has format version 0, and this program reads 1'),
    (('OTHER', 'KIT'), 'kit.json is not of a porting kit'),
    (('BROKEN', 'KIT'), 'kit.json cannot be read as JSON'),
  ],
)
def test_wrong_input_is_answered_in_one_sentence(
  directory, tmp_path, arguments, text
):
  places = {'KIT': directory}
  for name, content in {
    'OLD': json.dumps({'format': kit.FORMAT, 'format_version': 0}),
    'OTHER': '{}',
    'BROKEN': '{',
  }.items():
    places[name] = tmp_path / name
    places[name].mkdir()
    (places[name] / 'kit.json').write_text(content)
  for name, arrays in {'ALIEN': {'vs': np.ones(2)}, 'EMPTY': {}}.items():
    places[name] = tmp_path / name
    kit.write_arrays(str(places[name]), 'vtrace', arrays)
  places['BAD'] = tmp_path / 'BAD'
  places['BAD'].mkdir()
  np.save(places['BAD'] / 'vtrace.npy', np.ones(2))
  (places['BAD'] / 'vtrace.npy').rename(places['BAD'] / 'vtrace.npz')
  result = verify(*(places.get(a, a) for a in arguments))
  assert result.returncode == 2
  assert text in result.stderr
  assert len(result.stderr.splitlines()) == 1


def test_export_refuses_a_directory_that_is_used(tmp_path):
  (tmp_path / 'mine.txt').write_text('mine')
  result = subprocess.run(
    [
      sys.executable,
      ROOT / 'scripts' / 'export_golden.py',
      '--output',
      tmp_path,
    ],
    capture_output=True,
    env={'PYTHONPATH': f'{ROOT / "scripts"}:{ROOT}'},
    text=True,
  )
  assert result.returncode == 2
  assert 'is not empty; name a new directory.' in result.stderr
