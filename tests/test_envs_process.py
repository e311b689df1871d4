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
"""Tests of environments in processes: what they are, and how they end."""

import functools
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import scripted_environment
from dm_env import specs

from scalable_agent import structs
from scalable_agent.envs import base, batches, catch, process, seeds

Scripted = scripted_environment.Scripted
ACTIONS = np.zeros(2, np.int32)


def is_alive(pid):
  """Whether process `pid` runs (a zombie does not)."""
  try:
    state = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1]
  except FileNotFoundError:
    return False
  return state.split()[0] not in 'ZX'


def wait_until(condition, timeout_secs=20.0):
  deadline = time.monotonic() + timeout_secs
  while not condition():
    assert time.monotonic() < deadline, 'waited too long'
    time.sleep(0.02)


@pytest.fixture
def start():
  """Makes environments and closes them in the end."""
  made = []

  def make(*factories, **kwargs):
    names = [f'level {i}' for i in range(len(factories))]
    made.append(process.ProcessEnvironments(factories, names, **kwargs))
    return made[-1]

  yield make
  for environments in made:
    environments.close()


def test_same_stream_as_in_a_loop(start):
  processes = start(*[catch.Catch] * 3, base_seed=4)
  loop = batches.SerialEnvironments(
    [catch.Catch] * 3, ['catch'] * 3, base_seed=4
  )
  assert isinstance(processes, structs.Environments)
  random = np.random.default_rng(0)
  np.testing.assert_equal(processes.initial(), loop.initial())
  for _ in range(60):
    actions = random.integers(3, size=3).astype(np.int32)
    np.testing.assert_equal(processes.step(actions), loop.step(actions))


def test_final_observations_come_through(start):
  environments = start(Scripted(ends_by='truncation'), Scripted())
  environments.initial()
  for _ in range(3):
    slot = environments.step(ACTIONS)
  np.testing.assert_array_equal(slot.truncated, [True, False])
  np.testing.assert_array_equal(environments.final_observation()[0, 1:], [0, 3])


def test_nested_observations_and_text_come_through(start):
  spec = {
    'INSTR': specs.StringArray(()),
    'frame': specs.Array((2, 3), np.uint8),
    'velocity': specs.Array((3,), np.float64),
  }
  observation = {
    'INSTR': 'go to the red ball',
    'frame': np.arange(6, dtype=np.uint8).reshape(2, 3),
    'velocity': np.array([0.5, 1, 2]),
  }
  environments = start(
    functools.partial(
      scripted_environment.Showing, spec=spec, observation=observation
    )
  )
  seen = environments.initial().observation
  assert seen['INSTR'].tolist() == [b'go to the red ball']
  np.testing.assert_array_equal(seen['frame'][0], observation['frame'])
  np.testing.assert_array_equal(seen['velocity'][0], observation['velocity'])
  assert seen['velocity'].dtype == np.float32


class Doubles(scripted_environment.Showing):
  """Shows twice the last action."""

  def __init__(self, seed, action_spec):
    super().__init__(seed, specs.Array((2,), np.float32), None)
    self._action_spec = action_spec
    self._observation = np.zeros(2, np.float32)

  def step(self, action):
    self._observation = (2 * action).astype(np.float32)
    return super().step(action)

  def action_spec(self):
    return self._action_spec


@pytest.mark.parametrize(
  ('spec', 'actions'),
  [
    (specs.BoundedArray((2,), np.float32, -1, 1), np.float32([[0.25, -0.5]])),
    (specs.BoundedArray((2,), np.int32, 0, [3, 4]), np.int32([[2, 3]])),
  ],
  ids=['box', 'multi-discrete'],
)
def test_actions_of_every_kind_arrive(start, spec, actions):
  environments = start(functools.partial(Doubles, action_spec=spec))
  environments.initial()
  slot = environments.step(actions)
  np.testing.assert_array_equal(slot.observation, 2 * actions)


def test_processes_are_new_interpreters_without_tensorflow(start):
  """B53, A3.5, A4.9: not even when this one has it loaded."""
  sys.modules.setdefault('tensorflow', None)
  try:
    facts = scripted_environment.ProcessFacts
    seen = start(facts, facts).initial().observation
  finally:
    if sys.modules['tensorflow'] is None:
      del sys.modules['tensorflow']
  assert len({os.getpid(), *seen['pid'].tolist()}) == 3
  np.testing.assert_array_equal(seen['tensorflow'], [0, 0])
  np.testing.assert_array_equal(seen['threads'], [1, 1])
  # Ctrl-C in a terminal goes to the group of the parent only.
  assert os.getpgrp() not in seen['group']


def test_close_leaves_nothing_behind():
  facts = scripted_environment.ProcessFacts
  before = set(os.listdir('/dev/shm')), num_open_files()
  environments = process.ProcessEnvironments([facts] * 2, ['facts'] * 2)
  pids = environments.initial().observation['pid'].tolist()
  assert all(map(is_alive, pids))
  started = time.monotonic()
  environments.close()
  environments.close()
  assert time.monotonic() - started < 10
  assert not any(map(is_alive, pids))
  del environments
  assert (set(os.listdir('/dev/shm')), num_open_files()) == before


def num_open_files():
  return len(os.listdir('/proc/self/fd'))


@pytest.mark.parametrize(
  ('step', 'fault', 'text'),
  [
    (-1, 'kill', 'its process was killed by SIGKILL'),
    (-1, 'raise', 'KeyError'),
    (0, 'exit', 'its process ended with exit status 3'),
    (2, 'kill', 'its process was killed by SIGKILL'),
    (2, 'raise', 'KeyError'),
  ],
)
def test_death_is_told_and_explained(start, step, fault, text):
  """A6.1, A6.3."""
  with pytest.raises(base.BrokenEnvironmentError, match=text) as error:
    play(start, Scripted(), Scripted(faults={None: {step: fault}}))
  assert 'environment 1 of actor 0 (level 1, seed ' in str(error.value)
  if fault == 'raise':
    assert 'in _fail' in str(error.value)  # The traceback of the process.


def play(start, *factories, **kwargs):
  environments = start(*factories, **kwargs)
  environments.initial()
  return [environments.step(ACTIONS) for _ in range(2)]


@pytest.mark.parametrize('fault', ['sleep', 'spin'])
def test_silence_is_a_failure(start, fault):
  """A3.2, B46."""
  silent = Scripted(faults={None: {1: fault}})
  environments = start(Scripted(), silent, actor=7)
  environments.initial()
  # Not before: starting may take its time on a busy machine.
  environments._timeout_secs = 0.5
  with pytest.raises(
    base.BrokenEnvironmentError, match=r'not answered for 0\.5 s'
  ) as error:
    environments.step(ACTIONS)
  assert 'environment 1 of actor 7 (level 1, seed ' in str(error.value)


def test_silent_environment_is_replaced(start):
  first = seeds.environment_seed(0, 0, 1)
  silent = Scripted(faults={first: {1: 'sleep'}})
  slots = play(start, Scripted(), silent, timeout_secs=8.0, on_error='restart')
  assert [bool(slot.first[1]) for slot in slots] == [True, False]
  assert [int(slot.info.episode_step[0]) for slot in slots] == [1, 2]


def test_close_from_another_thread_ends_a_waiting_step(start):
  """A3.8: an actor stuck in `step` hears `Closed`, not a failure."""
  environments = start(
    Scripted(), Scripted(faults={None: {1: 'sleep'}}), on_error='restart'
  )
  environments.initial()
  heard = []

  def step():
    try:
      environments.step(ACTIONS)
    except BaseException as e:
      heard.append(e)

  thread = threading.Thread(target=step)
  thread.start()
  time.sleep(0.3)
  environments.close()
  thread.join(10)
  assert [type(e) for e in heard] == [structs.Closed]


def test_what_an_environment_started_ends_with_it(start, tmp_path):
  """A3.10: the tree, not only the direct child."""
  file = tmp_path / 'pid'
  environments = start(functools.partial(StartsAnother, file=str(file)))
  environments.initial()
  grandchild = int(file.read_text())
  assert is_alive(grandchild)
  environments.close()
  wait_until(lambda: not is_alive(grandchild))


class StartsAnother(scripted_environment.ProcessFacts):
  """Starts a process and forgets it."""

  def __init__(self, seed, file):
    super().__init__(seed)
    other = subprocess.Popen(['sleep', '3600'])
    pathlib.Path(file).write_text(str(other.pid))


@pytest.mark.parametrize('fault', ['none', 'sleep', 'spin'])
def test_processes_die_with_a_parent_that_is_killed(tmp_path, fault):
  """Idle ones, and such as would never look up again."""
  script = tmp_path / 'parent.py'
  script.write_text(
    textwrap.dedent(f"""
      import functools, sys
      import numpy as np
      import test_envs_process
      from scalable_agent.envs import process

      if __name__ == '__main__':
        environments = process.ProcessEnvironments(
          [functools.partial(test_envs_process.Stuck, fault={fault!r})] * 2,
          ['stuck'] * 2,
        )
        print(*environments.initial().observation['pid'], flush=True)
        environments.step(np.zeros(2, np.int32))
        print('stepped', flush=True)
        sys.stdin.read()
    """)
  )
  path = os.pathsep.join(filter(None, sys.path))
  parent = subprocess.Popen(
    [sys.executable, str(script)],
    env=os.environ | {'PYTHONPATH': path},
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  with parent:
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    if fault == 'none':
      assert parent.stdout.readline() == 'stepped\n'
    else:
      time.sleep(0.3)
    assert all(map(is_alive, pids))
    parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_alive, pids)))


class Stuck(scripted_environment.ProcessFacts):
  """Never comes back from its first step."""

  def __init__(self, seed, fault):
    super().__init__(seed)
    self._fault = fault

  def step(self, action):
    if self._fault == 'sleep':
      time.sleep(3600)
    while self._fault == 'spin':
      pass
    return super().step(action)


def test_factories_that_cannot_travel_are_refused_at_once():
  """A3.6: before any process is started."""
  with pytest.raises(ValueError, match=r'the factory of level 0, .* cannot be'):
    process.ProcessEnvironments([lambda seed: None], ['level 0'])


def test_factories_of_the_started_script_are_refused():
  factory = functools.partial(catch.Catch)
  process.check_picklable(factory, 'catch')
  local = type('Local', (), {'__module__': '__main__', '__qualname__': 'Local'})
  sys.modules['__main__'].Local = local
  try:
    with pytest.raises(ValueError, match='script that was started'):
      process.check_picklable(local, 'mine')
  finally:
    del sys.modules['__main__'].Local
