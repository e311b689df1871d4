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
"""The architecture of docs/architecture.md, read from the imports."""

import ast
import functools
import graphlib
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / 'scalable_agent'

# Every module and package, lowest layer first. Scripts stand above them all.
LAYERS = (
  {
    'config',
    'console',
    'cores',
    'distributed_config',
    'files',
    'learner_config',
    'metrics',
    'options',
    'run_record',
    'structs',
    'task_config',
    'timing',
  },
  {
    'atari',
    'corrections',
    'dmlab30',
    'envs',
    'loss_scale',
    'losses',
    'nets',
    'optimizers',
    'recurrence',
    'shapes',
    'vtrace_tf',
  },
  {
    'actor',
    'checkpoint',
    'dataset',
    'episodes',
    'evaluate',
    'inference',
    'interval_metrics',
    'learner',
    'params',
    'queues',
    'replay',
    'suites',
    'tasks',
    'unroll_files',
    'unroll_records',
    'video',
    'wire',
  },
  {'runtime'},
  {'reports', 'tuning'},
)

# Who may import whom within a layer.
NEIGHBOURS = {
  'atari': {'envs'},
  'config': {'distributed_config', 'learner_config', 'options', 'task_config'},
  'console': {'files', 'metrics'},
  'corrections': {'losses', 'shapes', 'vtrace_tf'},
  'dataset': {'queues'},
  'distributed_config': {'options'},
  'dmlab30': {'envs'},
  'interval_metrics': {'queues'},
  'learner': {'checkpoint'},
  'learner_config': {'options'},
  'losses': {'shapes'},
  'metrics': {'files'},
  'replay': {'dataset'},
  'run_record': {'config', 'files'},
  'task_config': {'options'},
  'tasks': {'suites'},
  'tuning': {'reports'},
  'unroll_files': {'unroll_records'},
  'video': {'evaluate'},
  'vtrace_tf': {'recurrence', 'shapes'},
}

# Who may import what from outside, relative to the root; all others may not.
ONLY_IN = {
  'absl.app': ('scripts/',),
  'absl.flags': ('scripts/',),
  'ale_py': ('scalable_agent/atari/',),
  'deepmind_lab': ('scalable_agent/dmlab30/environment.py',),
  'PIL': ('scalable_agent/wire.py',),
  'lz4': ('scalable_agent/wire.py',),
  'ray': (
    'scripts/benchmarks/_transport.py',
    'scalable_agent/runtime/distributed.py',
    'scalable_agent/runtime/learner_launch.py',
    'scalable_agent/tuning/ray_tune.py',
  ),
}
# Loaded by environment processes, which must start in a blink and stay small.
WITHOUT_TENSORFLOW = (
  'scalable_agent/atari/',
  'scalable_agent/config.py',
  'scalable_agent/console.py',
  'scalable_agent/cores.py',
  'scalable_agent/distributed_config.py',
  'scalable_agent/dmlab30/',
  'scalable_agent/envs/',
  'scalable_agent/files.py',
  'scalable_agent/learner_config.py',
  'scalable_agent/metrics.py',
  'scalable_agent/options.py',
  'scalable_agent/run_record.py',
  'scalable_agent/structs.py',
  'scalable_agent/task_config.py',
  'scalable_agent/timing.py',
  'scripts/config_flags.py',
)
TENSORFLOW = ('keras', 'tensorflow', 'tensorflow_probability', 'tf_keras')

# Not counting the licence.
MAX_MODULE_LINES = 350
# Not counting the docstring.
MAX_FUNCTION_LINES = 40
MAX_WIRING_LINES = 80
# Functions that put parts together: long, and without branches to get lost in.
WIRING = {
  'scalable_agent/atari/vector.py:__init__',
  'scalable_agent/nets/agent.py:unroll',
  'scalable_agent/runtime/run.py:__init__',
  'scalable_agent/runtime/testing.py:run_test',
  'scripts/benchmarks/pipeline.py:_run',
}

HEADER = (ROOT / 'scalable_agent' / '__init__.py').read_text().split('"""')[0]


def relative(path: pathlib.Path) -> str:
  return path.relative_to(ROOT).as_posix()


def python_files(*folders: str) -> list[pathlib.Path]:
  return sorted(f for d in folders for f in (ROOT / d).rglob('*.py'))


@functools.cache
def parse(path: pathlib.Path) -> ast.Module:
  return ast.parse(path.read_text())


def imports(tree: ast.AST) -> set[str]:
  """Dotted names of all that `tree` imports, wherever the import stands."""
  names = set()
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      names |= {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
      prefix = '.' * node.level + (node.module or '')
      names |= {f'{prefix}.{alias.name}' for alias in node.names}
  return names


def is_part_of(name: str, module: str) -> bool:
  return name == module or name.startswith(f'{module}.')


def own_parts(tree: ast.AST) -> set[str]:
  """First components below `scalable_agent` of what `tree` imports."""
  return {
    name.split('.')[1]
    for name in imports(tree)
    if is_part_of(name, 'scalable_agent') and '.' in name
  }


def part_of(path: pathlib.Path) -> str:
  """`nets` for scalable_agent/nets/lstm.py, `actor` for .../actor.py."""
  return path.relative_to(PACKAGE).parts[0].removesuffix('.py')


def layer_of(part: str) -> int:
  for index, parts in enumerate(LAYERS):
    if part in parts:
      return index
  raise LookupError(f'{part} is in no layer; add it to LAYERS and to the docs.')


def forbidden_imports(part: str, imported: set[str]) -> set[str]:
  """Those of the parts `imported` that `part` may not know of."""
  return {
    other
    for other in imported - {part}
    if layer_of(other) > layer_of(part)
    or (
      layer_of(other) == layer_of(part)
      and other not in NEIGHBOURS.get(part, ())
    )
  }


MODULES = [p for p in python_files('scalable_agent') if p.parent != PACKAGE]
MODULES += [p for p in PACKAGE.glob('*.py') if p.name != '__init__.py']
ALL_FILES = python_files('scalable_agent', 'scripts', 'tests')


@pytest.mark.parametrize('path', sorted(MODULES), ids=relative)
def test_module_knows_lower_layers_only(path):
  assert not forbidden_imports(part_of(path), own_parts(parse(path)))


def test_neighbours_form_no_circle():
  graphlib.TopologicalSorter(NEIGHBOURS).prepare()


def test_neighbours_are_still_used():
  used: dict[str, set[str]] = {}
  for path in MODULES:
    used.setdefault(part_of(path), set()).update(own_parts(parse(path)))
  for part, others in NEIGHBOURS.items():
    assert others <= used[part], part


def test_the_documentation_names_every_part_in_its_layer():
  text = (ROOT / 'docs' / 'architecture.md').read_text()
  rows = [row.split('|') for row in text.splitlines() if row.startswith('|')]
  for name, parts in zip(
    ('ground', 'parts', 'pipeline', 'runtime', 'reports'), LAYERS, strict=True
  ):
    (documented,) = [row[2] for row in rows if row[1].strip() == name]
    named = re.findall(r'`(\w+)/?`', documented)
    assert sorted(named) == sorted(parts), name


def test_neighbours_are_of_one_layer():
  for part, others in NEIGHBOURS.items():
    assert {layer_of(other) for other in others} == {layer_of(part)}


@pytest.mark.parametrize(
  ('source', 'forbidden'),
  [
    ('from scalable_agent import runtime', {'runtime'}),
    ('import scalable_agent.learner as l', {'learner'}),
    ('def f():\n  from scalable_agent.runtime import local', {'runtime'}),
    ('from scalable_agent.atari import games', {'atari'}),
    ('from scalable_agent import structs, config', set()),
    ('from scalable_agent.nets import lstm', set()),
  ],
  ids=['above', 'plain', 'in function', 'beside', 'below', 'own package'],
)
def test_the_layer_test_sees_what_it_should(source, forbidden):
  assert forbidden_imports('nets', own_parts(ast.parse(source))) == forbidden


def test_no_relative_imports():
  for path in ALL_FILES:
    assert not [n for n in imports(parse(path)) if n.startswith('.')], path


@pytest.mark.parametrize('module', ONLY_IN)
def test_imported_in_its_own_room_only(module):
  users = {
    relative(path)
    for path in python_files('scalable_agent', 'scripts')
    if any(is_part_of(name, module) for name in imports(parse(path)))
  }
  assert {user for user in users if not user.startswith(ONLY_IN[module])} == (
    set()
  )


def test_environment_side_does_not_name_tensorflow():
  for path in python_files('scalable_agent', 'scripts'):
    if relative(path).startswith(WITHOUT_TENSORFLOW):
      named = {name.split('.')[0] for name in imports(parse(path))}
      assert not named & set(TENSORFLOW), path


def test_environment_side_does_not_load_tensorflow():
  """Not even through what it imports."""
  lines = ['import sys']
  for path in python_files('scalable_agent'):
    if relative(path).startswith(WITHOUT_TENSORFLOW):
      module = relative(path).removesuffix('.py').removesuffix('/__init__')
      lines.append(f'import {module.replace("/", ".")}')
  lines.append(f'sys.exit(str([m for m in {TENSORFLOW} if m in sys.modules]))')
  result = subprocess.run(
    [sys.executable, '-c', '\n'.join(lines)],
    capture_output=True,
    cwd=ROOT,
    text=True,
  )
  assert result.stderr.strip() == '[]'


def test_top_package_holds_the_version_and_nothing_else():
  docstring, version = parse(PACKAGE / '__init__.py').body
  assert isinstance(docstring, ast.Expr)
  assert [ast.unparse(target) for target in version.targets] == ['__version__']


def test_every_file_has_the_licence():
  assert 'Apache License, Version 2.0' in HEADER
  for path in ALL_FILES:
    assert path.read_text().startswith(HEADER), path
  for path in (ROOT / 'scripts').glob('*.sh'):
    text = path.read_text().removeprefix('#!/usr/bin/env bash\n')
    assert text.startswith(HEADER), path


@pytest.mark.parametrize(
  'path', python_files('scalable_agent', 'scripts'), ids=relative
)
def test_module_is_short_enough(path):
  num_lines = len(path.read_text().removeprefix(HEADER).splitlines())
  assert num_lines <= MAX_MODULE_LINES


def functions(path: pathlib.Path) -> dict[str, int]:
  """Lines of each function of `path`, not counting its docstring."""
  lengths = {}
  for node in ast.walk(parse(path)):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
      length = node.end_lineno - node.lineno + 1
      if ast.get_docstring(node) is not None:
        length -= node.body[0].end_lineno - node.body[0].lineno + 1
      lengths[f'{relative(path)}:{node.name}'] = length
  return lengths


@pytest.mark.parametrize(
  'path', python_files('scalable_agent', 'scripts'), ids=relative
)
def test_functions_are_short_enough(path):
  too_long = {
    name: length
    for name, length in functions(path).items()
    if length > (MAX_WIRING_LINES if name in WIRING else MAX_FUNCTION_LINES)
  }
  assert not too_long


def test_wiring_functions_exist():
  known = set()
  for path in python_files('scalable_agent', 'scripts'):
    known |= set(functions(path))
  assert known >= WIRING
