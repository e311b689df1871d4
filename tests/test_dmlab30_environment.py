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
"""DeepMind Lab as a dm_env environment, on the contract double."""

import contextlib
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import time

import dm_env
import numpy as np
import pytest
from dm_env import specs
from fake_deepmind_lab import lab_double

from scalable_agent.dmlab30 import (
  actions,
  curriculum,
  environment,
  levels,
  temp_folders,
)
from scalable_agent.dmlab30 import settings as settings_lib
from scalable_agent.envs import batches, process

INSTRUCTED = 'language_select_located_object'
SMALL = {'width': 32, 'height': 24}


@pytest.fixture(name='lab', autouse=True)
def fixture_lab(monkeypatch, tmp_path):
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  return lab_double.install(monkeypatch, episode_seconds=0.5)


def factory(level=INSTRUCTED, **kwargs):
  return environment.LabFactory(
    level, settings_lib.LabSettings(**(SMALL | kwargs))
  )


@pytest.fixture(name='calls')
def fixture_calls(lab, monkeypatch):
  """Everything that is asked of the Labs that are made, in order."""
  calls = []

  class Recorder:
    def __init__(self, *args, **kwargs):
      calls.append(('Lab', args, kwargs))
      self._lab = _lab(*args, **kwargs)

    def __getattr__(self, name):
      def call(*args, **kwargs):
        calls.append((name, args, kwargs))
        return getattr(self._lab, name)(*args, **kwargs)

      return call

  _lab = lab.Lab
  monkeypatch.setattr(lab, 'Lab', Recorder)
  return calls


def named(calls, name):
  return [call for call in calls if call[0] == name]


def play_episodes(env, number, action=0):
  """Time steps of that many whole episodes."""
  result = []
  while number:
    result.append(env.step(action))
    number -= result[-1].last()
  return result


def test_three_episodes_on_the_contract(calls):
  env = factory(num_action_repeats=3)(seed=1)
  timesteps = play_episodes(env, 3)
  env.close()
  env.close()
  # 0.5 seconds are 30 frames: 10 steps of 3 frames and the first time step.
  assert len(timesteps) == 33
  assert [t.step_type for t in timesteps[:11]] == (
    [dm_env.StepType.FIRST] + 9 * [dm_env.StepType.MID] + [dm_env.StepType.LAST]
  )
  assert [c[2] for c in named(calls, 'step')] == 30 * [{'num_steps': 3}]
  assert len(named(calls, 'close')) == 2
  assert len(named(calls, 'Lab')) == 1
  # Every observation but the last of each episode was looked at once.
  assert len(named(calls, 'observations')) == 30


def test_lab_is_made_as_the_original_makes_it(calls):
  factory('rooms_watermaze', width=96, height=72)(seed=1).close()
  [(_, args, kwargs)] = named(calls, 'Lab')
  folder = kwargs.pop('temp_folder')
  assert args == (
    'contributed/dmlab30/rooms_watermaze',
    ['RGB_INTERLEAVED', 'INSTR'],
  )
  assert kwargs == {
    'config': {'width': '96', 'height': '72', 'logLevel': 'WARN'},
    'renderer': 'software',
    'level_cache': None,
  }
  assert os.path.basename(folder).startswith(temp_folders.PREFIX)


def reset_seeds(calls, seed, number=3, **kwargs):
  del calls[:]
  env = factory(**kwargs)(seed)
  play_episodes(env, number)
  env.close()
  return [c[2]['seed'] for c in named(calls, 'reset')]


def test_episode_seeds_are_those_of_the_original(calls):
  expected = np.random.RandomState(7)
  seeds = reset_seeds(calls, 7)
  assert seeds == [expected.randint(0, 2**31 - 1) for _ in range(3)]
  assert all(type(seed) is int for seed in seeds)
  assert len(set(seeds)) == 3


def test_episode_seeds_repeat_with_the_seed_and_differ_without(calls):
  assert reset_seeds(calls, 1) == reset_seeds(calls, 1)
  assert not set(reset_seeds(calls, 1)) & set(reset_seeds(calls, 2))
  assert reset_seeds(calls, np.int64(1)) == reset_seeds(calls, 1)


def test_few_level_seeds_come_again(calls):
  seeds = reset_seeds(calls, 1, number=40, num_level_seeds=4)
  assert set(seeds) == {0, 1, 2, 3}


@pytest.mark.parametrize('seed', [-1, 2**32, 1.5, True, None, '1'])
def test_seed_is_a_whole_number(seed):
  with pytest.raises(ValueError, match='seed is'):
    factory()(seed)
  assert not os.listdir(tempfile.gettempdir())


def test_observations_are_as_declared():
  env = factory()(seed=1)
  spec = env.observation_spec()
  assert set(spec) == {'RGB_INTERLEAVED', 'INSTR'}
  assert spec['RGB_INTERLEAVED'].shape == (24, 32, 3)
  assert isinstance(spec['INSTR'], specs.StringArray)
  for timestep in play_episodes(env, 2):
    for name, leaf in spec.items():
      leaf.validate(timestep.observation[name])
    assert type(timestep.observation['INSTR']) is str
  env.close()


def test_instruction_arrives_unchanged_and_as_text(monkeypatch):
  env = factory()(seed=1)
  text = 'Pick the r\u00e9d object, then *stop*.  Twice'
  for given in (text, text.encode()):
    monkeypatch.setattr(
      env._lab,
      'observations',
      lambda given=given: {
        'INSTR': given,
        'RGB_INTERLEAVED': np.zeros((24, 32, 3), np.uint8),
      },
    )
    assert env.reset().observation['INSTR'] == text


def test_last_time_step_repeats_the_observation_before_it():
  env = factory()(seed=1)
  before, last = play_episodes(env, 1, action=5)[-2:]
  assert last.discount == 0
  for name in ('RGB_INTERLEAVED', 'INSTR'):
    np.testing.assert_array_equal(
      last.observation[name], before.observation[name]
    )
  frame = last.observation['RGB_INTERLEAVED']
  assert not np.shares_memory(frame, before.observation['RGB_INTERLEAVED'])
  assert env.step(0).first()


def test_no_two_time_steps_share_a_frame():
  env = factory()(seed=1)
  frames = [
    t.observation['RGB_INTERLEAVED'] for t in play_episodes(env, 1, action=5)
  ]
  kept = [frame.copy() for frame in frames]
  frames[0][:] = 0
  np.testing.assert_array_equal(frames[1:], kept[1:])
  assert (kept[0] != kept[3]).any()


@pytest.mark.parametrize('how', ['reset', 'step', 'reset-in-mid-episode'])
def test_episodes_begin(how):
  env = factory()(seed=1)
  if how == 'reset-in-mid-episode':
    env.reset()
    env.step(0)
  timestep = env.step(0) if how == 'step' else env.reset()
  assert timestep.first()
  assert timestep.reward is None
  assert env.step(0).mid()


def test_closed_environment_says_so():
  env = factory()(seed=1)
  env.close()
  for call in (env.reset, lambda: env.step(0)):
    with pytest.raises(RuntimeError, match='closed'):
      call()


def test_rewards_are_the_sum_over_the_repeats(calls):
  env = environment.LabFactory(
    'double/long_corridor',
    settings_lib.LabSettings(config={'episodeLengthSeconds': 20}),
  )(seed=1)
  total = sum(t.reward or 0 for t in play_episodes(env, 1))
  env.close()
  assert total == 100 + 3  # Pebbles at 10, 20 and 30; the goal is at 40.


def test_spec_of_the_factory_is_what_batches_of_it_have():
  make = factory(action_set='extended', num_action_repeats=2)
  batch = batches.SerialEnvironments([make], [INSTRUCTED])
  assert batch.spec == make.spec
  assert make.spec.frames_per_step == 2
  batch.close()


def test_render_shows_the_frame_last_seen():
  env = factory()(seed=1)
  with pytest.raises(RuntimeError, match='reset'):
    env.render()
  frame = env.reset().observation['RGB_INTERLEAVED']
  np.testing.assert_array_equal(env.render(), frame)


# ---- Actions.


@pytest.mark.parametrize(
  ('action_set', 'number', 'some'),
  [
    ('paper', 9, {0: [0, 0, 0, 1, 0, 0, 0], 7: [20, 0, 0, 1, 0, 0, 0]}),
    ('extended', 15, {6: [-60, 0, 0, 0, 0, 0, 0], 8: [0, 10, 0, 0, 0, 0, 0]}),
  ],
)
def test_action_sets(calls, action_set, number, some):
  env = factory(action_set=action_set)(seed=1)
  assert env.action_spec().num_values == number
  env.reset()
  for index, expected in some.items():
    del calls[:]
    env.step(np.int32(index))
    [(_, [lab_action], _)] = named(calls, 'step')
    assert lab_action.tolist() == expected
    assert lab_action.dtype == np.intc
    assert lab_action.flags.c_contiguous
  rows = {tuple(actions.Actions(action_set).to_lab(i)) for i in range(number)}
  assert len(rows) == number
  env.close()


def test_raw_actions_count_from_zero(calls):
  env = factory(action_set='raw')(seed=1)
  spec = env.action_spec()
  assert spec.shape == (7,)
  env.reset()
  for number, expected in (
    (spec.minimum, [-512, -512, -1, -1, 0, 0, 0]),
    (spec.maximum, [512, 512, 1, 1, 1, 1, 1]),
  ):
    del calls[:]
    # A column of a batch does not lie in one piece.
    column = np.stack([np.broadcast_to(number, (7,))] * 2, axis=1)[:, 0]
    env.step(column.astype(np.int64))
    assert named(calls, 'step')[0][1][0].tolist() == expected


@pytest.mark.parametrize(
  ('action_set', 'wrong'),
  [
    ('paper', -1),
    ('paper', 9),
    ('paper', 1.0),
    ('paper', [1, 2]),
    ('extended', 15),
    ('raw', np.zeros(6, int)),
    ('raw', np.zeros(7)),
    ('raw', np.full(7, 2)),
    ('raw', np.full(7, -1)),
  ],
)
def test_action_outside_the_set_is_refused(action_set, wrong):
  env = factory(action_set=action_set)(seed=1)
  env.reset()
  with pytest.raises(ValueError, match='Action'):
    env.step(wrong)


def test_level_with_other_actions_is_refused_when_made():
  with pytest.raises(ValueError, match='SELECT_GADGET') as error:
    factory(config={'gadgetSelect': True})(seed=1)
  assert not os.listdir(tempfile.gettempdir())
  del error  # Kept until here, and with it all that it points to.


# ---- Test mode.


def test_test_mode_plays_held_out_maps_with_the_originals_mixer_seed(calls):
  name = 'rooms_collect_good_objects_test'
  make = environment.LabFactory(
    name, settings_lib.LabSettings(**SMALL).for_test()
  )
  make(seed=1).close()
  [(_, _, kwargs)] = named(calls, 'Lab')
  assert kwargs['config']['allowHoldOutLevels'] == 'true'
  assert kwargs['config']['mixerSeed'] == '1611489005'  # 0x600D5EED.


def test_the_same_seed_shows_other_frames_in_test_mode():
  train = settings_lib.LabSettings(**SMALL)
  frames = [
    environment.LabFactory('rooms_watermaze', s)(1).reset().observation
    for s in (train, train, train.for_test())
  ]
  first, again, test = (f['RGB_INTERLEAVED'] for f in frames)
  np.testing.assert_array_equal(first, again)
  assert (first != test).any()


# ---- A level's settings follow progress.


def corridor(over, unit='episodes', progress=None):
  return environment.LabFactory(
    'double/long_corridor',
    settings_lib.LabSettings(**SMALL, config={'episodeLengthSeconds': 20}),
    schedule=curriculum.Linear('difficulty', 0.5, 2.0, over, unit, stages=3),
    progress=progress or curriculum.Progress(),
  )


def test_difficulty_rises_with_episodes(calls):
  env = corridor(over=6)(seed=1)
  lengths = []
  for _ in range(8):
    lengths.append(len(play_episodes(env, 1)) - 1)
  env.close()
  asked = [c[2]['config']['difficulty'] for c in named(calls, 'Lab')]
  # Settings hold for a Lab's life, so each stage has a Lab of its own.
  assert asked == ['0.5', '1', '1.5', '2']
  # 20, 40, 60, 80 frames to the goal and 12 after it, in steps of 4.
  assert lengths == [8, 8, 13, 13, 18, 18, 23, 23]
  assert len(named(calls, 'close')) == 4
  assert os.listdir(tempfile.gettempdir()) == []


def test_difficulty_rises_with_frames_and_resumes(calls):
  make = corridor(600, 'frames', curriculum.Progress(5, 400))
  env = make(seed=1)
  play_episodes(env, 1)
  assert env.progress == curriculum.Progress(6, 400 + 18 * 4)
  env.close()
  [(_, _, kwargs)] = named(calls, 'Lab')
  assert kwargs['config']['difficulty'] == '1.5'


# ---- Files and processes.


def test_temporary_folder_goes_with_the_environment(calls):
  env = factory()(seed=1)
  env.reset()
  [(_, _, kwargs)] = named(calls, 'Lab')
  assert os.path.isdir(kwargs['temp_folder'])
  env.close()
  assert os.listdir(tempfile.gettempdir()) == []


def test_temporary_folder_goes_if_lab_is_not_made():
  with pytest.raises(RuntimeError, match='Invalid setting') as error:
    factory(config={'nonsense': 1})(seed=1)
  assert os.listdir(tempfile.gettempdir()) == []
  del error  # Kept until here, and with it all that it points to.


_HOLD = """
import sys, time
from scalable_agent.dmlab30 import environment
env = environment.LabFactory('rooms_watermaze')(seed=1)
env.reset()
print('ready', flush=True)
if sys.argv[1] == 'wait':
  time.sleep(60)
"""


@contextlib.contextmanager
def holder(how):
  """A process with an environment that is being played."""
  command = [sys.executable, '-c', _HOLD, how]
  with subprocess.Popen(
    command, env=lab_double.environ(), stdout=subprocess.PIPE, text=True
  ) as child:
    assert child.stdout.readline() == 'ready\n'
    yield child
    child.kill()


def test_temporary_folder_goes_with_the_interpreter():
  with holder('leave') as child:
    assert child.wait(30) == 0
  assert os.listdir(tempfile.gettempdir()) == []


def test_folder_of_a_killed_process_goes_with_the_next_environment():
  root = tempfile.gettempdir()

  def folders():
    return [e.path for e in os.scandir(root) if e.is_dir()]

  with holder('wait'):
    with holder('wait') as dead:
      dead.kill()
      dead.wait()
      assert len(folders()) == 2
    factory()(seed=1).close()
    [left] = folders()
    assert os.listdir(left)  # In use, and untouched.
  temp_folders.remove_abandoned(root)
  assert os.listdir(root) == []


_FORK = """
import os
from scalable_agent.dmlab30 import temp_folders
folder = temp_folders.TempFolder()
child = os.fork()
if child:
  os.waitpid(child, 0)
  print(os.path.isdir(folder.path))
folder.close()
"""


def test_a_forked_process_leaves_the_folder_to_its_parent():
  told = subprocess.check_output([sys.executable, '-c', _FORK], text=True)
  assert told == 'True\n'
  assert os.listdir(tempfile.gettempdir()) == []


def test_a_strangers_folder_is_left_alone(tmp_path):
  stranger = tmp_path / (temp_folders.PREFIX + 'x')
  stranger.mkdir()
  (tmp_path / 'dmlab_temp_folder_1').mkdir()
  temp_folders.TempFolder().close()
  assert len(os.listdir(tmp_path)) == 2


def test_factory_is_small_and_picklable():
  make = corridor(over=6)
  assert pickle.loads(pickle.dumps(make)) == make
  assert len(pickle.dumps(make)) < 2000


def status_megabytes(pid):
  lines = pathlib.Path(f'/proc/{pid}/status').read_text().splitlines()
  return next(int(x.split()[1]) for x in lines if x[:6] == 'VmRSS:') / 1024


class Spy(environment.LabFactory):
  """Tells in the instruction about the process that it is in."""

  def __call__(self, seed):
    env = super().__call__(seed)
    lab = env._lab
    observations = lab.observations
    facts = f'{os.getpid()} {"tensorflow" in sys.modules}'
    lab.observations = lambda: observations() | {'INSTR': facts}
    return env


def test_one_lab_per_process_without_tensorflow_and_small():
  make = Spy('rooms_watermaze', settings_lib.LabSettings(**SMALL))
  envs = process.ProcessEnvironments([make] * 2, ['rooms_watermaze'] * 2)
  try:
    facts = [
      text.decode().split() for text in envs.initial().observation['INSTR']
    ]
    assert {fact[1] for fact in facts} == {'False'}
    pids = {int(fact[0]) for fact in facts}
    assert len(pids | {os.getpid()}) == 3
    assert max(map(status_megabytes, pids)) < 120
  finally:
    envs.close()
  assert os.listdir(tempfile.gettempdir()) == []


def test_thirty_environments_begin_differently_and_repeatably():
  names = levels.TRAIN_NAMES[:3] * 10
  makers = [factory(name) for name in names]

  def first_frames(base_seed):
    envs = batches.SerialEnvironments(makers, names, base_seed=base_seed)
    frames = envs.initial().observation['RGB_INTERLEAVED'].copy()
    envs.close()
    return frames

  one = first_frames(1)
  assert len({frame.tobytes() for frame in one}) == 30
  np.testing.assert_array_equal(one, first_frames(1))
  assert (one != first_frames(2)).any(axis=(1, 2, 3)).all()


def test_killed_environment_restarts_alone_and_elsewhere():
  make = Spy('rooms_watermaze', settings_lib.LabSettings(**SMALL))
  envs = process.ProcessEnvironments(
    [make] * 2, ['rooms_watermaze'] * 2, on_error='restart'
  )
  try:
    before = envs.initial().observation
    old = [int(text.split()[0]) for text in before['INSTR']]
    first = before['RGB_INTERLEAVED'].copy()
    os.kill(old[0], signal.SIGKILL)
    deadline = time.monotonic() + 30
    while envs.num_restarts == 0 and time.monotonic() < deadline:
      output = envs.step(np.zeros(2, np.int32))
    new = [int(text.split()[0]) for text in output.observation['INSTR']]
    assert new[0] != old[0]
    assert new[1] == old[1]
    assert output.first.tolist() == [True, False]
    assert (output.observation['RGB_INTERLEAVED'][0] != first[0]).any()
  finally:
    envs.close()
