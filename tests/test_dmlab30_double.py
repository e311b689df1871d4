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
"""The contract double of `deepmind_lab` keeps every rule of the real module.

Each rule was read in the real module's source (google-deepmind/lab @ b1db91a)
or seen on it. A double that were kinder would let code pass that fails there.
"""

import copy
import gc
import glob
import os
import pickle
import tempfile
import threading
import weakref

import numpy as np
import pytest
from fake_deepmind_lab import lab_double

from scalable_agent.dmlab30 import levels

SIZE = {'width': '32', 'height': '24'}
OBSERVATIONS = ['RGB_INTERLEAVED', 'INSTR']
NO_OP = np.zeros(7, np.intc)
LEVEL = 'contributed/dmlab30/rooms_watermaze'
COMPILED = 'contributed/dmlab30/explore_goal_locations_small'
TINY = ('double/turn_as_told', 'double/remember_colour', 'double/long_corridor')


@pytest.fixture(name='lab')
def fixture_lab(monkeypatch):
  return lab_double.install(monkeypatch)


@pytest.fixture(name='undefined')
def fixture_undefined(lab):
  del lab
  from deepmind_lab import _rules

  return _rules.UndefinedBehaviour


def make(lab, level=LEVEL, config=None, **kwargs):
  return lab.Lab(level, list(OBSERVATIONS), SIZE | (config or {}), **kwargs)


def action(**values):
  names = ('look', 'down', 'strafe', 'move', 'fire', 'jump', 'crouch')
  return np.array([values.get(name, 0) for name in names], np.intc)


# ---- The module.


def test_module_has_what_the_real_one_has(lab):
  public = {name for name in vars(lab) if not name.startswith('_')}
  assert public == {
    'Lab',
    'LISTABLE',
    'READABLE',
    'READ_WRITABLE',
    'WRITABLE',
    'runfiles_path',
    'set_runfiles_path',
    'version',
  }
  assert lab.version() == '1.0'
  assert os.path.isdir(lab.runfiles_path())


def test_another_runfiles_path_has_no_lab(lab, tmp_path):
  default = lab.runfiles_path()
  with pytest.raises(RuntimeError, match='too long'):
    lab.set_runfiles_path('x' * 4096)
  assert lab.set_runfiles_path(str(tmp_path)) is True
  with pytest.raises(RuntimeError, match='connect'):
    make(lab)
  lab.set_runfiles_path(default)
  make(lab).close()


def test_lab_has_the_twelve_methods_and_nothing_else(lab):
  env = make(lab)
  public = {name for name in dir(env) if not name.startswith('_')}
  assert public == {
    'action_spec',
    'close',
    'events',
    'is_running',
    'num_steps',
    'observation_spec',
    'observations',
    'properties',
    'read_property',
    'reset',
    'step',
    'write_property',
  }


@pytest.mark.parametrize(
  'use',
  [
    lambda env: setattr(env, 'level', 1),
    lambda env: env.fps(),
    pickle.dumps,
    copy.copy,
    weakref.ref,
    lambda env: type('Sub', (type(env),), {}),
    lambda env: env.__enter__(),
  ],
  ids=['attribute', 'fps', 'pickle', 'copy', 'weakref', 'subclass', 'with'],
)
def test_lab_is_a_plain_c_object(lab, use):
  with pytest.raises((AttributeError, TypeError)):
    use(make(lab))


# ---- The constructor.


@pytest.mark.parametrize(
  ('kind', 'match', 'args', 'kwargs'),
  [
    (TypeError, 'missing', (), {}),
    (TypeError, 'must be str, not bytes', (b'lt_chasm', []), {}),
    (TypeError, 'must be list, not tuple', (LEVEL, ('INSTR',)), {}),
    (TypeError, 'must be list, not None', (LEVEL, None), {}),
    (TypeError, 'must be dict, not list', (LEVEL, [], [('width', '32')]), {}),
    (TypeError, 'must be dict, not None', (LEVEL, [], None), {}),
    (TypeError, 'bad argument type', (LEVEL, [], {'width': 32}), {}),
    (TypeError, 'bad argument type', (LEVEL, [], {b'width': '32'}), {}),
    (TypeError, 'bad argument type', (LEVEL, [b'INSTR'], {}), {}),
    (TypeError, 'must be str, not None', (LEVEL, []), {'renderer': None}),
    (TypeError, 'must be str, not None', (LEVEL, []), {'temp_folder': None}),
    (TypeError, 'unexpected', (LEVEL, []), {'seed': 1}),
    (RuntimeError, 'set renderer', (LEVEL, []), {'renderer': 'sdl'}),
    (RuntimeError, 'Level not found', ('no/such/level', []), {}),
    (RuntimeError, 'Missing level', ('', []), {}),
    (ValueError, "Unknown observation 'X'", (LEVEL, ['X']), {}),
    (ValueError, 'Unknown', ('tests/empty_room_test', ['INSTR']), {}),
    (ValueError, 'embedded null', ('lt_chasm\0', []), {}),
  ],
)
def test_constructor_refuses(lab, kind, match, args, kwargs):
  with pytest.raises(kind, match=match):
    lab.Lab(*args, **kwargs)


@pytest.mark.parametrize(
  ('key', 'value'),
  [
    ('width', '97'),
    ('height', '0'),
    ('width', 'wide'),
    ('width', '96 '),
    ('height', '09'),
    ('mixerSeed', '-1'),
    ('mixerSeed', str(2**32)),
    ('mixerSeed', '1.5'),
    ('minimalUI', 'True'),
    ('use_pbos', '1'),
    ('vmMode', 'fast'),
    ('fps', 'many'),
    ('gpuDeviceIndex', 'first'),
    ('playerName', 'x' * 256),
  ],
)
def test_engine_refuses_setting(lab, key, value):
  with pytest.raises(RuntimeError, match=f"apply setting '{key} = "):
    make(lab, config={key: value})


@pytest.mark.parametrize(
  ('key', 'value'),
  [
    ('width', '0x20'),
    ('mixerSeed', '0x600D5EED'),
    ('mixerSeed', str(2**32 - 1)),
    ('minimalUI', 'true'),
    ('fps', '30'),
    ('logLevel', 'WARN'),
    ('datasetPath', '/nowhere'),
    ('episodeLengthSeconds', '1'),
  ],
)
def test_engine_or_level_takes_setting(lab, key, value):
  env = make(lab, config={key: value})
  assert env.reset(seed=1)


def test_default_size_is_320_by_240(lab):
  env = lab.Lab(LEVEL, ['RGB_INTERLEAVED'])
  env.reset(seed=1)
  assert env.observations()['RGB_INTERLEAVED'].shape == (240, 320, 3)


def test_level_refuses_settings_that_it_does_not_know(lab):
  with pytest.raises(RuntimeError, match='Invalid setting: "difficulty"'):
    make(lab, config={'difficulty': '2'})
  make(lab, 'double/long_corridor', {'difficulty': '2'}).reset(seed=1)
  # The real level hands them to its generator, which errors at the start.
  env = make(
    lab, 'contributed/dmlab30/rooms_keys_doors_puzzle', {'difficulty': '2'}
  )
  with pytest.raises(RuntimeError, match='Failed to start'):
    env.reset(seed=1)


@pytest.mark.parametrize('family', ['collect_good_objects', 'exploit_deferred'])
def test_held_out_level_wants_to_be_allowed(lab, family):
  [name] = [n for n in levels.TEST_NAMES if family in n]
  with pytest.raises(RuntimeError, match='only be used during evaluation'):
    make(lab, levels.FOLDER + name)
  make(lab, levels.FOLDER + name, {'allowHoldOutLevels': 'true'}).reset(seed=1)


def test_two_psychlab_levels_want_a_dataset_at_the_start(lab):
  for level in levels.LEVELS:
    if level.test_name.startswith('psychlab'):
      env = make(lab, levels.lab_name(level.train_name))
      if level.needs_dataset:
        with pytest.raises(RuntimeError, match='datasets'):
          env.reset(seed=1)
        env = make(
          lab, levels.lab_name(level.train_name), {'datasetPath': 'dummy'}
        )
      env.reset(seed=1)


def test_every_level_of_the_suite_exists_and_lasts_as_long(lab):
  scripts = {n: s for n, s in _scripts(lab).items() if 'dmlab30' in n}
  assert set(scripts) == {levels.FOLDER + name for name in levels.ALL_NAMES}
  for name, script in scripts.items():
    level = levels.find(name.removeprefix(levels.FOLDER))
    assert script.seconds == level.episode_seconds
    assert script.compiles == level.compiles_maps
    assert script.dataset == level.needs_dataset
    assert script.held_out == (name.endswith('_test'))


def _scripts(lab):
  del lab
  from deepmind_lab import _scripts

  return _scripts.SCRIPTS


def test_level_directory_comes_before_the_name(lab):
  config = SIZE | {'levelDirectory': 'contributed/dmlab30'}
  lab.Lab('rooms_watermaze', [], config).reset(seed=1)
  with pytest.raises(RuntimeError, match='not found'):
    lab.Lab(LEVEL, [], config)


# ---- Life and death.


def test_life_of_an_episode(lab):
  env = make(lab, 'double/turn_as_told')
  assert env.is_running() is False
  for call in (env.observations, env.events, lambda: env.step(NO_OP)):
    with pytest.raises(RuntimeError, match='wrong status'):
      call()
  assert env.reset(seed=1) is True
  assert env.is_running() is True
  assert env.num_steps() == 0
  assert type(env.step(NO_OP, num_steps=4)) is float
  assert env.num_steps() == 4
  # 10 seconds are 600 frames; frames asked for count even past the end.
  env.step(NO_OP, 595)
  assert env.is_running()
  env.step(NO_OP, 60)
  assert not env.is_running()
  assert env.num_steps() == 659
  for call in (env.observations, lambda: env.step(NO_OP)):
    with pytest.raises(RuntimeError, match='wrong status'):
      call()
  assert isinstance(env.events(), list)
  env.reset(seed=1)
  assert env.is_running()
  assert env.num_steps() == 0


def test_seekavoid_ends_at_exactly_1200_frames(lab):
  env = make(lab, 'seekavoid_arena_01')
  env.reset(seed=1)
  env.step(NO_OP, 1199)
  assert env.is_running()
  env.step(NO_OP)
  assert not env.is_running()


def test_close_works_once(lab, undefined):
  env = make(lab)
  env.reset(seed=1)
  assert env.close() is True
  assert env.close() is False
  assert env.is_running() is False
  for call in (env.observations, env.events, lambda: env.step(NO_OP)):
    with pytest.raises(RuntimeError, match='wrong status'):
      call()
  for call in (env.reset, env.num_steps, env.action_spec, env.observation_spec):
    with pytest.raises(undefined):
      call()


def test_undefined_behaviour_is_no_ordinary_exception(undefined):
  assert not issubclass(undefined, Exception)


# ---- Seeds.


@pytest.mark.parametrize('seed', [np.int64(3), '3', 3.0], ids=repr)
def test_seed_is_a_python_int(lab, seed):
  with pytest.raises(ValueError, match="'seed' must be int or None, was"):
    make(lab).reset(seed=seed)


def test_episode_may_be_any_index_but_no_float(lab):
  env = make(lab)
  env.reset(episode=np.int64(3), seed=1)
  for wrong in (1.0, None, '1'):
    with pytest.raises(TypeError):
      env.reset(episode=wrong, seed=1)


def first_frame(lab, seed, level=LEVEL, config=None):
  env = make(lab, level, config)
  env.reset(seed=seed)
  env.step(action(look=20, move=1), num_steps=4)
  return env.observations()['RGB_INTERLEAVED']


def test_seeds_decide_the_frames(lab):
  for level in (LEVEL, *TINY):
    one = first_frame(lab, 11, level)
    np.testing.assert_array_equal(one, first_frame(lab, 11, level))
    assert (one != first_frame(lab, 12, level)).any()
  assert (
    first_frame(lab, 11) != first_frame(lab, 11, config={'mixerSeed': '1'})
  ).any()
  assert (first_frame(lab, 11) != first_frame(lab, 11, COMPILED)).any()


def test_negative_seed_is_moved_up_and_a_long_one_is_cut(lab, undefined):
  np.testing.assert_array_equal(
    first_frame(lab, -1), first_frame(lab, 2**31 - 1)
  )
  with pytest.raises(undefined, match='32 bits'):
    make(lab).reset(seed=2**31)


def test_without_a_seed_episodes_differ(lab):
  frames = {first_frame(lab, None).tobytes() for _ in range(4)}
  assert len(frames) == 4


def test_episode_counts_up_unless_given(lab):
  env = make(lab, 'double/turn_as_told')
  told = []
  for episode in (-1, -1, 7, -1):
    env.reset(episode, 1)
    told.append(env.events()[0][1][0])
  assert told == ['EPISODE 0', 'EPISODE 1', 'EPISODE 7', 'EPISODE 8']


# ---- Actions.


@pytest.mark.parametrize(
  ('kind', 'wrong'),
  [
    (TypeError, [0] * 7),
    (TypeError, None),
    (ValueError, np.zeros(7, np.int64)),
    (ValueError, np.zeros(7, np.float32)),
    (ValueError, np.zeros(6, np.intc)),
    (ValueError, np.zeros((1, 7), np.intc)),
    (ValueError, np.zeros((), np.intc)),
  ],
  ids=['list', 'none', 'int64', 'float32', 'six', 'two-dims', 'no-dims'],
)
def test_action_is_seven_c_ints(lab, kind, wrong):
  env = make(lab)
  env.reset(seed=1)
  with pytest.raises(kind):
    env.step(wrong)
  with pytest.raises(TypeError):
    env.step(NO_OP, num_steps=4.0)
  env.step(np.zeros(7, np.int32))  # The same type as np.intc on Linux.


@pytest.mark.parametrize(
  'wrong',
  [
    np.zeros((7, 2), np.intc)[:, 0],
    np.zeros(7, np.dtype(np.intc).newbyteorder()),
    action(look=513),
    action(move=2),
    action(fire=-1),
  ],
  ids=['strided', 'byte-order', 'look', 'move', 'fire'],
)
def test_what_the_real_module_misreads_is_undefined(lab, undefined, wrong):
  env = make(lab)
  env.reset(seed=1)
  with pytest.raises(undefined):
    env.step(wrong)


def test_action_spec(lab):
  env = make(lab)
  assert [(a['name'], a['min'], a['max']) for a in env.action_spec()] == [
    ('LOOK_LEFT_RIGHT_PIXELS_PER_FRAME', -512, 512),
    ('LOOK_DOWN_UP_PIXELS_PER_FRAME', -512, 512),
    ('STRAFE_LEFT_RIGHT', -1, 1),
    ('MOVE_BACK_FORWARD', -1, 1),
    ('FIRE', 0, 1),
    ('JUMP', 0, 1),
    ('CROUCH', 0, 1),
  ]
  assert all(type(a['min']) is int for a in env.action_spec())


def test_gadgets_add_actions(lab):
  env = make(lab, config={'gadgetSelect': 'true', 'gadgetSwitch': 'true'})
  assert [(a['name'], a['min'], a['max']) for a in env.action_spec()[7:]] == [
    ('SELECT_GADGET', 0, 10),
    ('SWITCH_GADGET', -1, 1),
  ]
  env.reset(seed=1)
  with pytest.raises(ValueError, match=r'shape \(9\)'):
    env.step(NO_OP)
  env.step(np.zeros(9, np.intc))


@pytest.mark.parametrize('level', TINY)
def test_repeating_an_action_is_holding_it(lab, level):
  once, held = make(lab, level), make(lab, level)
  rewards = []
  for env, calls, frames in ((once, 4, 1), (held, 1, 4)):
    env.reset(seed=5)
    total = []
    for turn in (20, 20, 20, 0, -20, -20, -20, 20):
      move = action(look=turn, move=1)
      total.append(sum(env.step(move, frames) for _ in range(calls)))
    rewards.append(total)
  assert rewards[0] == rewards[1]
  assert any(rewards[0])
  np.testing.assert_array_equal(
    once.observations()['RGB_INTERLEAVED'],
    held.observations()['RGB_INTERLEAVED'],
  )


@pytest.mark.parametrize('num_steps', [1, 4])
def test_reward_of_the_last_frame_arrives_with_it(lab, num_steps):
  # Answers fall on the frames 1, 5 and 9 of 9; rewards come a frame later.
  env = make(lab, 'double/turn_as_told', {'episodeLengthSeconds': '0.15'})
  env.reset(seed=3)
  rewards = []
  while env.is_running():
    right = env.observations()['INSTR'] == 'turn right'
    rewards.append(env.step(action(look=60 if right else -60), num_steps))
  expected = {1: [0, 1, 0, 0, 0, 1, 0, 0, 1], 4: [1, 1, 1]}
  assert rewards == expected[num_steps]
  assert env.num_steps() == {1: 9, 4: 12}[num_steps]


# ---- Observations.


def test_specs_are_of_all_observations(lab):
  spec = {s['name']: s for s in make(lab).observation_spec()}
  assert set(OBSERVATIONS) < set(spec)
  assert spec['RGB_INTERLEAVED']['shape'] == (24, 32, 3)
  assert spec['RGB_INTERLEAVED']['dtype'] is np.uint8
  assert spec['INSTR'] == {'name': 'INSTR', 'shape': (), 'dtype': str}
  assert spec['VEL.TRANS']['dtype'] is np.float64
  assert spec['DEBUG.PLAYERS.ID']['shape'] == (0,)


def test_every_observation_is_as_its_spec_says(lab):
  for level in (LEVEL, 'contributed/dmlab30/language_select_located_object'):
    specs = make(lab, level).observation_spec()
    env = lab.Lab(level, [s['name'] for s in specs], SIZE)
    env.reset(seed=1)
    seen = env.observations()
    for spec in specs:
      value = seen[spec['name']]
      if spec['dtype'] is str:
        assert type(value) is str
      else:
        assert value.dtype == spec['dtype']
        assert all(
          want in (0, have)
          for want, have in zip(spec['shape'], value.shape, strict=True)
        ), spec


def test_pixel_formats_show_one_picture(lab):
  names = ['RGB_INTERLEAVED', 'RGB', 'BGR_INTERLEAVED', 'RGBD_INTERLEAVED']
  env = lab.Lab(LEVEL, names, SIZE)
  env.reset(seed=1)
  rgb, planar, bgr, rgbd = (env.observations()[name] for name in names)
  np.testing.assert_array_equal(planar.transpose(1, 2, 0), rgb)
  np.testing.assert_array_equal(bgr[..., ::-1], rgb)
  np.testing.assert_array_equal(rgbd[..., :3], rgb)


def test_only_what_was_asked_for_and_a_fresh_copy_each_time(lab):
  env = make(lab)
  env.reset(seed=1)
  first = env.observations()
  assert list(first) == OBSERVATIONS
  first['RGB_INTERLEAVED'][:] = 0
  assert env.observations()['RGB_INTERLEAVED'].any()


def test_only_language_levels_give_instructions(lab):
  for level in levels.LEVELS:
    env = make(lab, levels.lab_name(level.train_name), {'datasetPath': 'dummy'})
    env.reset(seed=1)
    assert bool(env.observations()['INSTR']) == level.needs_language


def test_events_are_of_the_last_call(lab):
  env = make(lab, 'double/turn_as_told', {'episodeLengthSeconds': '0.1'})
  env.reset(episode=1, seed=1)
  assert env.events() == [('TEXT', ['EPISODE 1'])]
  env.step(NO_OP)
  assert env.events() == []
  env.step(NO_OP, 60)
  assert env.events() == [('LOG', ['Episode ended'])]


# ---- Properties.


def test_properties(lab):
  env = make(lab, 'double/long_corridor', {'fps': '30'})
  assert env.properties() == {'params': lab.LISTABLE, 'engine': lab.LISTABLE}
  assert env.properties('params')['params.difficulty'] == lab.READ_WRITABLE
  assert env.read_property('engine.fps') == '30'
  env.write_property('params.difficulty', '2')
  assert env.read_property('params.difficulty') == '2'
  for kind, call in (
    (TypeError, lambda: env.write_property('engine.fps', '60')),
    (TypeError, lambda: env.write_property('params', '1')),
    (TypeError, lambda: env.write_property('params.difficulty', 'hard')),
    (TypeError, lambda: env.read_property('params')),
    (TypeError, lambda: env.properties('params.difficulty')),
    (KeyError, lambda: env.read_property('params.colour')),
    (KeyError, lambda: env.properties('nothing')),
  ):
    with pytest.raises(kind):
      call()


# ---- The level cache.


class Cache:
  """Keeps files in memory and remembers the calls."""

  def __init__(self):
    self.calls, self.files = [], {}

  def fetch(self, key, pk3_path):
    self.calls.append(('fetch', key, pk3_path))
    if key in self.files:
      with open(pk3_path, 'wb') as output:
        output.write(self.files[key])
    return key in self.files

  def write(self, key, pk3_path):
    self.calls.append(('write', key, pk3_path))
    with open(pk3_path, 'rb') as content:
      self.files[key] = content.read()


def test_cache_is_asked_first_and_told_what_was_compiled(lab):
  cache = Cache()
  for seed in (5, 5, 6):
    env = make(lab, COMPILED, level_cache=cache)
    env.reset(seed=seed)
    env.close()
  names = [c[0] for c in cache.calls]
  keys = [c[1] for c in cache.calls]
  assert names == ['fetch', 'write', 'fetch', 'fetch', 'write']
  assert keys[0] == keys[1] == keys[2] != keys[3] == keys[4]
  assert all(type(x) is str for call in cache.calls for x in call)
  name, kind, digest = keys[0].rsplit('_', 2)
  assert (name, kind, len(digest)) == (
    'explore_goal_locations_small',
    'noaas',
    32,
  )


def test_key_depends_on_all_that_makes_the_map(lab):
  cache = Cache()
  for level, config in (
    (COMPILED, {}),
    (COMPILED, {'mixerSeed': '7'}),
    (COMPILED, {'mazeWidth': '21'}),
    ('contributed/dmlab30/lasertag_one_opponent_small', {}),
  ):
    make(lab, level, config, level_cache=cache).reset(seed=5)
  assert len(cache.files) == 4
  assert 'aas' in [key.split('_')[-2] for key in cache.files]


def test_levels_without_maps_do_not_ask(lab):
  cache = Cache()
  make(lab, LEVEL, level_cache=cache).reset(seed=5)
  assert cache.calls == []


class NoWrite:
  def fetch(self, key, pk3_path):
    return False


class NoFetch:
  def write(self, key, pk3_path):
    pass


class WrongFetch(Cache):
  def fetch(self):
    return False


class BrokenFetch(Cache):
  def fetch(self, key, pk3_path):
    raise OSError('disk on fire')


class BrokenWrite(Cache):
  def write(self, key, pk3_path):
    raise OSError('disk on fire')


@pytest.mark.parametrize(
  ('cache', 'kind', 'match'),
  [
    (NoWrite, AttributeError, 'write'),
    (NoFetch, AttributeError, 'fetch'),
    (WrongFetch, TypeError, 'argument'),
    (BrokenFetch, OSError, 'disk on fire'),
    (BrokenWrite, OSError, 'disk on fire'),
  ],
)
def test_what_a_cache_raises_comes_out_of_reset(lab, cache, kind, match):
  cache = cache()
  env = make(lab, COMPILED, level_cache=cache)
  with pytest.raises(kind, match=match):
    env.reset(seed=5)
  assert not env.is_running()
  # After a failed fetch, nothing is offered.
  assert 'write' not in [c[0] for c in getattr(cache, 'calls', [])]


class Liar(Cache):
  def fetch(self, key, pk3_path):
    return True


class Half(Cache):
  def fetch(self, key, pk3_path):
    found = super().fetch(key, pk3_path)
    if found:
      os.truncate(pk3_path, len(self.files[key]) // 2)
    return found


@pytest.mark.parametrize('cache', [Liar, Half])
def test_a_map_that_is_not_whole_ends_the_real_process(lab, undefined, cache):
  env = make(lab, COMPILED, level_cache=cache())
  if cache is Half:
    env.reset(seed=5)
  with pytest.raises(undefined, match='no whole map'):
    env.reset(seed=5)


# ---- Files, threads, processes.


def own_folders():
  return set(glob.glob(os.path.join(tempfile.gettempdir(), 'dmlab_temp_*')))


def test_own_temporary_folder_goes_with_close_or_the_object(
  lab, tmp_path, monkeypatch
):
  monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
  closed, dropped = make(lab), make(lab)
  assert len(own_folders()) == 2
  closed.close()
  assert len(own_folders()) == 1
  del dropped
  gc.collect()
  assert own_folders() == set()
  with pytest.raises(ValueError):
    lab.Lab(LEVEL, ['NOTHING'], SIZE)
  gc.collect()
  assert own_folders() == set()


def test_given_temporary_folder_stays(lab, tmp_path):
  folder = tmp_path / 'given'
  env = make(lab, COMPILED, temp_folder=str(folder))
  env.reset(seed=1)
  env.close()
  assert list(folder.rglob('*.pk3'))


def test_two_threads_at_once_are_undefined(lab, undefined):
  inside, go_on = threading.Event(), threading.Event()

  class Slow(Cache):
    def fetch(self, key, pk3_path):
      inside.set()
      go_on.wait(10)
      return False

  env = make(lab, COMPILED, level_cache=Slow())
  thread = threading.Thread(target=env.reset, kwargs={'seed': 1})
  thread.start()
  assert inside.wait(10)
  with pytest.raises(undefined, match='Two threads'):
    env.observation_spec()
  go_on.set()
  thread.join()
  env.step(NO_OP)  # One after the other is fine.


def test_hardware_rendering_belongs_to_one_thread(lab, undefined):
  env = make(lab, renderer='hardware')
  env.reset(seed=1)
  raised = []

  def use():
    try:
      env.step(NO_OP)
    except undefined as error:
      raised.append(error)

  thread = threading.Thread(target=use)
  thread.start()
  thread.join()
  assert len(raised) == 1
  env.step(NO_OP)


def test_several_labs_live_in_one_process(lab):
  envs = [make(lab) for _ in range(5)]
  assert [env.close() for env in envs] == [True] * 5


# ---- The tiny levels can be learned, and need what they say.


def play(lab, level, choose, frames=4, seed=1, config=None):
  """Return of an episode in which `choose(frame, instruction)` acts."""
  env = make(lab, level, config)
  env.reset(seed=seed)
  total = 0.0
  while env.is_running():
    seen = env.observations()
    move = choose(seen['RGB_INTERLEAVED'], seen['INSTR'])
    total += env.step(move, frames)
  return total


LEFT, RIGHT = action(look=-20), action(look=20)


def test_turn_as_told_is_perfect_with_the_instruction_and_chance_without(lab):
  def told(frame, instruction):
    return RIGHT if 'right' in instruction else LEFT

  # An answer takes 6 or 8 of the 600 frames.
  assert 75 <= play(lab, 'double/turn_as_told', told) <= 100
  blind = [
    play(lab, 'double/turn_as_told', lambda *_: RIGHT, seed=s)
    for s in range(20)
  ]
  assert abs(np.mean(blind)) < 10


def test_remember_colour_needs_what_was_shown_before(lab):
  def remembering():
    memory = {}

    def choose(frame, instruction):
      assert instruction == ''
      colour = tuple(int(x) for x in frame[0, 0])
      if colour[0] != colour[2] and colour[1] < 100:
        memory['move'] = RIGHT if colour[2] > colour[0] else LEFT
      green = colour[1] > 150
      return memory['move'] if green else NO_OP

    return choose

  # A trial takes 19 to 22 of the 1200 frames.
  assert 54 <= play(lab, 'double/remember_colour', remembering()) <= 64
  blind = [
    play(lab, 'double/remember_colour', lambda *_: RIGHT, seed=s)
    for s in range(20)
  ]
  assert abs(np.mean(blind)) < 6


@pytest.mark.parametrize('difficulty', ['0.5', '2.0'])
def test_long_corridor_pays_100_at_its_end_and_costs_10_a_fall(lab, difficulty):
  config = {'difficulty': difficulty}
  length = round(40 * float(difficulty))

  def run(move, frames):
    env = make(lab, 'double/long_corridor', config)
    env.reset(seed=1)
    return [env.step(move) for _ in range(frames)], env.is_running()

  rewards, running = run(action(move=1), length + 12)
  assert sorted(rewards)[-2:] == [1, 100]
  assert sum(rewards) == 100 + length // 10 - (length % 10 == 0)
  assert not running  # 0.2 seconds after the goal.
  assert min(run(action(strafe=1), 3)[0]) == -10


def test_episode_length_of_all_levels_can_be_set(monkeypatch):
  lab = lab_double.install(monkeypatch, episode_seconds=0.5)
  for level in (LEVEL, 'contributed/dmlab30/rooms_keys_doors_puzzle', *TINY):
    env = make(lab, level)
    env.reset(seed=1)
    env.step(NO_OP, 29)
    assert env.is_running()
    env.step(NO_OP)
    assert not env.is_running()
