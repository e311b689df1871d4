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
"""Tests of environments that fail, in a loop and in processes alike."""

import functools
import threading

import dm_env
import numpy as np
import pytest
import scripted_environment
from dm_env import specs

from scalable_agent import structs
from scalable_agent.envs import base, batches, process, seeds

Scripted = scripted_environment.Scripted
NO_ACTIONS = np.zeros(2, np.int32)


def make(backend, scripts, **kwargs):
  names = [f'level {i}' for i in range(len(scripts))]
  if backend == 'serial':
    return batches.SerialEnvironments(scripts, names, **kwargs)
  return process.ProcessEnvironments(scripts, names, **kwargs)


def play(environments, num_steps):
  environments.initial()
  for _ in range(num_steps):
    environments.step(NO_ACTIONS)


def life_seed(life, environment=1):
  """Seed of an environment of actor 0 after `life` restarts."""
  return seeds.environment_seed(0, 0, environment, life)


def faulty(*faults, **kwargs):
  """Environment 1: each `(step, fault)` strikes in one life after another."""
  return Scripted(
    faults={life_seed(i): dict([fault]) for i, fault in enumerate(faults)},
    **kwargs,
  )


@pytest.fixture(params=['serial', 'process'])
def backend(request):
  return request.param


FAULTS = [
  (2, 'raise', 'KeyError: .broken simulator'),
  (0, 'raise', 'KeyError: .broken simulator'),
  (2, 'nan', 'the reward is nan'),
  (2, 'shape', r'has shape \(2,\)'),
  (3, 'inf', 'the reward is inf'),
  (2, 'dtype', 'is of type float64'),
  (1, 'nan observation', 'NaN or infinity'),
  (1, 'nested', 'is a dict'),
]
# In processes, which take their time to start, one of a kind.
CASES = [('serial', *case) for case in FAULTS]
CASES += [('process', *FAULTS[i]) for i in (0, 2)]


def name_of(case):
  backend, step, fault, _ = case
  return f'{backend}, {fault} in step {step}'


@pytest.mark.parametrize(
  ('backend', 'step', 'fault', 'text'), CASES, ids=map(name_of, CASES)
)
def test_abort_names_environment_and_cause(backend, step, fault, text):
  """A12.4, B22."""
  environments = make(backend, [Scripted(), faulty((step, fault))], actor=0)
  try:
    with pytest.raises(base.BrokenEnvironmentError, match=text) as error:
      play(environments, 3)
    name = f'environment 1 of actor 0 (level 1, seed {life_seed(0)}) failed'
    assert name in str(error.value)
  finally:
    environments.close()


RESTARTED = CASES[:4] + CASES[-2:]


@pytest.mark.parametrize(
  ('backend', 'step', 'fault', 'text'),
  RESTARTED,
  ids=map(name_of, RESTARTED),
)
def test_restart_begins_an_episode_that_is_not_logged(
  backend, step, fault, text
):
  """A6.1, A6.2: a fresh slot; the neighbour does not notice."""
  del text
  environments = make(
    backend, [Scripted(), faulty((step, fault))], on_error='restart'
  )
  reference = make('serial', [Scripted(), Scripted()])
  try:
    slots = [(environments.initial(), reference.initial())]
    for t in range(1, 8):
      slot = environments.step(NO_ACTIONS)
      slots.append((slot, reference.step(NO_ACTIONS)))
      assert slot.reward[0] == slots[-1][1].reward[0]
      assert slot.info.episode_step[0] == slots[-1][1].info.episode_step[0]
      steps_alive = t if t < step or step == 0 else t - step
      expected_step = (steps_alive - 1) % 3 + 1 if steps_alive else 0
      assert slot.info.episode_step[1] == expected_step
      assert slot.first[1] == (expected_step in (0, 3))
      assert slot.done[1] == slot.first[1]
      assert not slot.truncated[1]
      assert slot.reward[1] == expected_step  # Rewards are 1, 2, 3.
      assert slot.info.episode_return[1] == sum(range(expected_step + 1))
    assert slot.observation[1, 0] == life_seed(1) % 1000
    assert environments.num_restarts == 1
  finally:
    environments.close()


def test_cap_of_restarts_keeps_the_first_failure(backend):
  """A6.3."""
  script = faulty((1, 'raise'), (1, 'nan'), (1, 'nan'), (1, 'nan'))
  environments = make(
    backend, [Scripted(), script], on_error='restart', max_restarts=2
  )
  try:
    environments.initial()
    assert environments.step(NO_ACTIONS).first[1]
    assert environments.step(NO_ACTIONS).first[1]
    with pytest.raises(
      base.BrokenEnvironmentError, match='max_restarts=2'
    ) as e:
      environments.step(NO_ACTIONS)
    newest, first = str(e.value).split('the first was: environment 1')
    assert 'the reward is nan' in newest
    assert f'seed {life_seed(2)}' in newest
    assert f'seed {life_seed(0)}' in first
    assert 'KeyError' in first
    assert 'KeyError' in str(e.value.__cause__)
    assert environments.num_restarts == 2
  finally:
    environments.close()


def test_restart_that_fails_again_is_tried_again(backend):
  script = faulty((2, 'raise'), (-1, 'raise'), (0, 'shape'))
  environments = make(backend, [Scripted(), script], on_error='restart')
  try:
    environments.initial()
    environments.step(NO_ACTIONS)
    slot = environments.step(NO_ACTIONS)
    assert slot.first[1]
    assert environments.num_restarts == 3
    assert slot.observation[1, 0] == life_seed(3) % 1000
  finally:
    environments.close()


def test_failure_in_making_is_told(backend):
  with pytest.raises((base.BrokenEnvironmentError, KeyError), match='broken'):
    make(backend, [Scripted(), faulty((-1, 'raise'))])


def test_environment_that_cannot_be_closed_keeps_no_other_from_it():
  first, second = [
    scripted_environment.ScriptedEnvironment(script, 0)
    for script in (Scripted(faults={None: {9: 'close'}}), Scripted())
  ]
  environments = make('serial', [lambda seed: first, lambda seed: second])
  environments.close()
  assert first.closed
  assert second.closed


def test_broken_environment_is_closed_before_it_is_replaced():
  made = []

  def factory(seed):
    script = Scripted(faults={} if made else {None: {1: 'raise'}})
    made.append(scripted_environment.ScriptedEnvironment(script, seed))
    return made[-1]

  environments = make('serial', [factory], on_error='restart')
  environments.initial()
  environments.step(NO_ACTIONS[:1])
  assert [one.closed for one in made] == [True, False]


def test_environments_of_one_batch_are_of_one_kind(backend):
  other = functools.partial(
    scripted_environment.Showing,
    spec=specs.Array((2,), np.float32),
    observation=np.zeros(2, np.float32),
  )
  with pytest.raises(ValueError, match='level 1 shows and takes'):
    make(backend, [Scripted(), other])


@pytest.mark.parametrize(
  ('time_step', 'text'),
  [
    (dm_env.restart(np.zeros(3, np.float32)), 'FIRST time step in the middle'),
    (
      dm_env.TimeStep(dm_env.StepType.MID, None, 1.0, np.zeros(3, np.float32)),
      'the reward is None',
    ),
    (
      dm_env.TimeStep(dm_env.StepType.MID, 1.0, None, np.zeros(3, np.float32)),
      'discount None',
    ),
  ],
  ids=['first', 'no reward', 'no discount'],
)
def test_time_steps_that_cannot_be(time_step, text):
  class Wrong(scripted_environment.ScriptedEnvironment):
    def step(self, action):
      return time_step

  environments = make('serial', [lambda seed: Wrong(Scripted(), seed)])
  environments.initial()
  with pytest.raises(base.BrokenEnvironmentError, match=text):
    environments.step(NO_ACTIONS[:1])


def test_reset_must_return_a_first_time_step():
  class Wrong(scripted_environment.ScriptedEnvironment):
    def reset(self):
      return dm_env.transition(0.0, np.zeros(3, np.float32))

  environments = make('serial', [lambda seed: Wrong(Scripted(), seed)])
  with pytest.raises(base.BrokenEnvironmentError, match='must be StepType'):
    environments.initial()


def test_unknown_policy_is_refused():
  with pytest.raises(ValueError, match="on_error is 'ignore'"):
    make('serial', [Scripted()], on_error='ignore')


def test_close_does_not_wait_for_ever_for_a_step_in_another_thread(monkeypatch):
  monkeypatch.setattr(batches, '_CLOSE_SECS', 0.1)
  entered, leave = threading.Event(), threading.Event()

  class Slow(scripted_environment.ScriptedEnvironment):
    def step(self, action):
      entered.set()
      leave.wait()
      return super().step(action)

  environments = make('serial', [lambda seed: Slow(Scripted(), seed)] * 2)
  environments.initial()
  errors = []

  def step():
    try:
      environments.step(NO_ACTIONS)
    except structs.Closed as e:
      errors.append(e)

  thread = threading.Thread(target=step)
  thread.start()
  entered.wait()
  environments.close()
  leave.set()
  thread.join(10)
  assert not thread.is_alive()
  # The second environment was not stepped any more.
  assert len(errors) == 1
