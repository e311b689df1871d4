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
"""Tests of the checker of environments, and of the example in the docs."""

import functools
import os
import pathlib
import re
import subprocess
import sys

import dm_env
import numpy as np
import pytest
import scripted_environment
from dm_env import specs

from scalable_agent.envs import catch, conformance, observations

ROOT = pathlib.Path(__file__).parents[1]
Scripted = scripted_environment.Scripted


def findings(factory, **kwargs):
  """Texts of all findings by verdict."""
  found = {'ok': [], 'note': [], 'FAIL': []}
  for verdict, text in conformance.check(factory, 'mine', **kwargs):
    found[verdict].append(text)
  return found


def test_good_environment_passes_everything():
  found = findings(catch.Catch)
  assert not found['FAIL']
  assert not found['note']
  assert len(found['ok']) == 9
  assert 'it shows float32[10, 5]' in found['ok'][0]
  assert any(
    '3 episodes of 9 to 9 steps; 3 terminated, 0 truncated' in text
    for text in found['ok']
  )
  assert found['ok'][-1] == 'it plays the same in a process of its own'


@pytest.mark.parametrize(
  ('faults', 'text'),
  [
    ({-1: 'raise'}, 'it cannot be made: KeyError'),
    ({0: 'shape'}, r'has shape (2,), declared is (3,)'),
    ({2: 'dtype'}, 'is of type float64, declared is float32'),
    ({2: 'nan'}, 'the reward is nan'),
    ({1: 'nan observation'}, 'NaN or infinity'),
    ({2: 'raise'}, 'KeyError'),
    ({1: 'nested'}, 'is a dict'),
    ({9: 'close'}, 'OSError: cannot close'),
  ],
  ids=lambda value: str(value),
)
def test_faults_are_found(faults, text):
  found = findings(Scripted(faults={None: faults}))
  assert len(found['FAIL']) == 1
  assert text in found['FAIL'][0]


class Changed(catch.Catch):
  """Catch with one thing changed."""

  def __init__(self, seed, change):
    self._change = change
    self._steps = 0
    super().__init__(0 if change == 'same seeds' else seed)
    if change == 'unseeded':
      self._random = np.random.default_rng()

  def step(self, action):
    self._steps += 1
    timestep = super().step(0 if self._change == 'actions' else action)
    if self._change == 'endless' and timestep.last():
      self.reset()
      return dm_env.transition(0.0, timestep.observation)
    if self._change == 'reset' and self._steps > 4:
      return dm_env.restart(timestep.observation)
    return timestep

  def observation_spec(self):
    spec = super().observation_spec()
    return spec.replace(maximum=0.5) if self._change == 'bounds' else spec

  def action_spec(self):
    if self._change == 'actions':
      return specs.BoundedArray((2,), np.int32, 1, 3)
    if self._change == 'scalar':
      return specs.BoundedArray((), np.float32, 1, 3)
    return super().action_spec()


@pytest.mark.parametrize(
  ('change', 'verdict', 'text'),
  [
    ('unseeded', 'FAIL', 'the same seed and actions gave another episode'),
    ('same seeds', 'note', 'another seed changes nothing'),
    ('endless', 'note', 'no episode ended'),
    ('bounds', 'note', "'board' leaves its declared bounds"),
    ('actions', 'FAIL', 'actions begin at'),
    ('scalar', 'FAIL', 'give a DiscreteArray'),
    ('reset', 'FAIL', 'only reset() may'),
  ],
)
def test_what_is_odd_is_found(change, verdict, text):
  found = findings(functools.partial(Changed, change=change), max_steps=100)
  assert any(text in finding for finding in found[verdict])
  assert bool(found['FAIL']) == (verdict == 'FAIL')


def test_what_cannot_go_to_a_process_is_found():
  found = findings(lambda seed: catch.Catch(seed))
  assert len(found['FAIL']) == 1
  assert 'it cannot be made in a process' in found['FAIL'][0]
  found = findings(OtherPlace(os.getpid()))
  assert found['FAIL'] == ['it plays another episode in a process of its own']


class OtherPlace:
  """A factory that looks where it is."""

  def __init__(self, pid):
    self._pid = pid

  def __call__(self, seed):
    return catch.Catch(seed if os.getpid() == self._pid else seed + 1)


@pytest.mark.parametrize(
  ('spec', 'low', 'high'),
  [
    (specs.DiscreteArray(3), 0, 2),
    (specs.BoundedArray((2,), np.int32, 0, [1, 4]), 0, [1, 4]),
    (specs.BoundedArray((2,), np.float32, [-1, 0], [1, 3]), [-1, 0], [1, 3]),
    (specs.BoundedArray((1,), np.float32, -np.inf, np.inf), -np.inf, np.inf),
    (specs.BoundedArray((1,), np.float32, 0, np.inf), 0, np.inf),
  ],
  ids=['discrete', 'several', 'box', 'line', 'half line'],
)
def test_random_actions_fill_their_bounds(spec, low, high):
  random = np.random.default_rng(0)
  actions = conformance.random_actions(spec, 1000, random)
  assert actions.shape == (1000, *spec.shape)
  assert actions.dtype == (np.float32 if spec.dtype.kind == 'f' else np.int32)
  assert (actions >= low).all()
  assert (actions <= high).all()
  spread = np.ptp(actions, axis=0)
  expected = np.asarray(high, float) - low
  bounded = np.isfinite(expected)
  np.testing.assert_allclose(
    np.where(bounded, spread, 0), np.where(bounded, expected, 0), rtol=0.05
  )
  assert (spread > 1).all() or spec.dtype.kind != 'f'


def run(*arguments, cwd=ROOT):
  result = subprocess.run(
    [sys.executable, str(ROOT / 'scripts' / 'check_env.py'), *arguments],
    capture_output=True,
    cwd=cwd,
    text=True,
  )
  return result.returncode, result.stdout, result.stderr


@pytest.fixture
def example(tmp_path):
  """Folder with the example of the docs as `my_envs.py`, and its lines."""
  page = (ROOT / 'docs' / 'environments.md').read_text()
  code = re.search(r'```python\n(.*?)```', page, flags=re.DOTALL)[1]
  (tmp_path / 'my_envs.py').write_text(code)
  return tmp_path, code


def test_example_of_the_docs_works(example):
  """In 20 lines, as promised; found in the folder where one stands."""
  folder, code = example
  lines = [line for line in code.splitlines() if line.strip()]
  assert len(lines) <= 20
  arguments = '--level_name=gym/Walk-v0', '--gym_import=my_envs'
  code, output, error = run(*arguments, cwd=folder)
  assert code == 0, output + error
  assert output.endswith('gym/Walk-v0 keeps the contract.\n')
  assert 'FAIL' not in output


def test_broken_environment_ends_with_exit_code_1(example):
  folder, code = example
  assert 'np.float32)\n\ngym' in code
  broken = code.replace('np.float32)\n\ngym', 'np.float64)\n\ngym')
  (folder / 'my_envs.py').write_text(broken)
  code, output, _ = run(
    '--level_name=gym/Walk-v0', '--gym_import=my_envs', cwd=folder
  )
  assert code == 1
  assert 'FAIL' in output
  assert 'declare what is given' in output
  assert 'gym/Walk-v0 breaks the contract' in output


def test_unknown_level_is_a_mistake_on_the_command_line():
  code, output, error = run('--level_name=no_such_level')
  assert code == 2
  assert not output
  assert 'no_such_level' in error
  assert 'Traceback' not in error


def test_no_tensorflow_for_a_check():
  """It answers in a blink."""
  program = 'import check_env, sys; sys.exit("tensorflow" in sys.modules)'
  subprocess.run(
    [sys.executable, '-c', program], cwd=ROOT / 'scripts', check=True
  )


def test_text_limit_of_the_docs_is_the_one_of_the_code():
  page = (ROOT / 'docs' / 'environments.md').read_text()
  assert f'{observations.MAX_TEXT_BYTES:,} bytes' in page
