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
"""Sweeps and populations: what is drawn, the paper's rule, directories."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import config_flags
import numpy as np
import pytest

from scalable_agent import checkpoint, config, metrics
from scalable_agent.reports import sweeps
from scalable_agent.tuning import pbt, population, space, sweep, trials

D1 = dict(map(space.parse_draw, space.TABLE_D1))


def test_table_d1_is_drawn_log_uniformly_and_by_choice():
  drawn = space.combinations(D1, {}, 4000, seed=1)
  rates = np.log([float(d['learning_rate']) for d in drawn])
  costs = np.log([float(d['entropy_cost']) for d in drawn])
  for values, low, high in ((rates, 5e-6, 5e-3), (costs, 5e-5, 1e-2)):
    shares = (values - math.log(low)) / (math.log(high) - math.log(low))
    assert shares.min() >= 0
    assert shares.max() <= 1
    # Uniform in the logarithm: a tenth in each tenth.
    counts = np.histogram(shares, 10, (0, 1))[0]
    assert abs(counts - 400).max() < 80
  epsilons = [d['epsilon'] for d in drawn]
  assert {float(e) for e in epsilons} == {0.1, 1e-3, 1e-5, 1e-7}
  for value in set(epsilons):
    assert abs(epsilons.count(value) - 1000) < 130
  assert abs(np.corrcoef(rates, costs)[0, 1]) < 0.06


def test_draws_are_made_beforehand_from_one_seed():
  assert space.NUM_SAMPLES == 24
  first = space.combinations(D1, {}, 24, seed=1)
  assert first == space.combinations(D1, {}, 24, seed=1)
  assert first[:5] == space.combinations(D1, {}, 5, seed=1)
  assert first != space.combinations(D1, {}, 24, seed=2)


def test_every_draw_is_made_at_every_point_of_the_grid():
  found = space.combinations(
    {'a': space.LogUniform(1.0, 2.0)}, {'b': ('1', '2'), 'c': ('x', 'y')}, 3, 1
  )
  assert len(found) == 12
  assert [(f['b'], f['c']) for f in found[::3]] == [
    ('1', 'x'),
    ('1', 'y'),
    ('2', 'x'),
    ('2', 'y'),
  ]
  assert {f['a'] for f in found[:3]} == {f['a'] for f in found[9:]}
  assert space.combinations({}, {'b': ('1', '2')}, 24, 1) == [
    {'b': '1'},
    {'b': '2'},
  ]


@pytest.mark.parametrize(
  'text',
  [
    'learning_rate',
    'learning_rate=log_uniform:1',
    'learning_rate=log_uniform:2:1',
    'learning_rate=log_uniform:0:1',
    'learning_rate=log_uniform:a:b',
    'learning_rate=uniform:1:2',
    '=choice:1',
    'epsilon=choice:',
    'epsilon=choice:1::2',
  ],
)
def test_what_is_no_draw_is_refused(text):
  with pytest.raises(ValueError, match='says not what to draw'):
    space.parse_draw(text)


def test_what_is_no_grid_is_refused():
  for text in ('seed', 'seed=', '=1', 'seed=1,,2'):
    with pytest.raises(ValueError, match='no part of a grid'):
      space.parse_grid(text)
  with pytest.raises(ValueError, match='both drawn and in the grid'):
    space.combinations(D1, {'epsilon': ('1',)}, 1, 1)


def test_rule_has_the_paper_s_constants():
  """Appendix F, and section 5.3.1."""
  assert pbt.Rule() == pbt.Rule(
    burn_in_frames=20_000_000,
    episodes=5000,
    margin=5.0,
    probability=0.33,
    factor=1.2,
    mutated=('learning_rate', 'entropy_cost', 'epsilon'),
  )


@pytest.mark.parametrize(
  ('own', 'other', 'copied'),
  [
    (40.0, 45.1, True),
    (40.0, 45.0, False),
    # Absolute, not relative: 10 % better than 40 is not enough.
    (40.0, 44.0, False),
    (1.0, 3.0, False),
    (-3.0, 2.5, True),
    (50.0, 10.0, False),
  ],
)
def test_more_than_five_percent_absolute_is_copied(own, other, copied):
  assert pbt.copies(pbt.Rule(), own, other) is copied


@pytest.mark.parametrize(
  ('frames', 'episodes', 'last', 'due'),
  [
    (20_000_000, 5000, 0, True),
    (19_999_999, 9000, 0, False),
    (30_000_000, 9999, 5000, False),
    (30_000_000, 10_000, 5000, True),
  ],
)
def test_a_turn_comes_after_burn_in_and_5000_episodes(
  frames, episodes, last, due
):
  assert pbt.is_due(pbt.Rule(), frames, episodes, last) is due


def test_mutation_is_by_a_fifth_up_or_down_a_third_of_the_time():
  rng = np.random.default_rng(5)
  before = {'learning_rate': 1.0, 'entropy_cost': 2.0, 'epsilon': 3.0, 'x': 4.0}
  after = [pbt.mutate(pbt.Rule(), before, rng) for _ in range(6000)]
  assert all(a['x'] == 4.0 for a in after)
  changes = {
    name: np.array([a[name] / before[name] for a in after])
    for name in pbt.MUTATED
  }
  for ratios in changes.values():
    values, counts = np.unique(np.round(ratios, 9), return_counts=True)
    np.testing.assert_allclose(values, [1 / 1.2, 1, 1.2])
    shares = counts / len(after)
    np.testing.assert_allclose(shares, [0.165, 0.67, 0.165], atol=0.02)
  # Each on its own.
  together = np.mean([all(a[n] != before[n] for n in changes) for a in after])
  assert together == pytest.approx(0.33**3, abs=0.012)


SETTINGS = {'learning_rate': '0.001', 'entropy_cost': '0.01', 'epsilon': '0.1'}
RULE = pbt.Rule(burn_in_frames=0, episodes=10, margin=0.1)


def make_trials(tmp_path, count):
  folder = str(tmp_path / 'sweep')
  chosen = [
    {**SETTINGS, 'learning_rate': str(index + 1)} for index in range(count)
  ]
  return folder, sweep.prepare(folder, ['--level_name=catch'], chosen)


def play(path, returns):
  """What a run leaves behind of its returns: a table and settings."""
  writer = metrics.CsvWriter(os.path.join(path, 'metrics.csv'))
  for index, value in enumerate(returns, 1):
    row = {'catch/episode_return': value, 'catch/num_episodes': 10 * index}
    writer.write(100 * index, {**row, 'frames_per_sec': 10})
  with open(os.path.join(path, 'config.json'), 'w') as file:
    json.dump({'task': {'level_name': 'catch'}}, file)


def save(path, weight, frames):
  checkpoint.Checkpointer(path).save(
    {'net/w': np.array([weight]), 'slots/w': np.array([weight, weight])},
    {'learner': {'env_frames': frames}, 'episodes': {'n': frames}},
  )


def members_of(folder, paths):
  return population.Population(
    folder,
    paths,
    ['--level_name=catch'],
    RULE,
    window=10,
    total_frames=5000,
    seed=1,
  )


def test_a_worse_trial_takes_weights_slots_and_settings(tmp_path):
  folder, paths = make_trials(tmp_path, 2)
  for path, value, frames in zip(paths, (0.2, 0.9), (100, 200), strict=True):
    play(path, [value])
    save(path, value, frames)
  members = members_of(folder, paths)
  assert members.consider(0, trials.progress(paths[0], 10))
  trials.adopt(paths[0])
  saved = checkpoint.Checkpointer(paths[0]).restore()
  np.testing.assert_array_equal(saved.arrays['net/w'], [0.9])
  np.testing.assert_array_equal(saved.arrays['slots/w'], [0.9, 0.9])
  # Its own count of frames and episodes goes on.
  assert saved.counters['learner']['env_frames'] == 100
  (turn,) = sweeps.read_history(folder)
  assert (turn.trial, turn.compared_with, turn.copied) == (0, 1, True)
  assert (turn.fitness, turn.its_fitness) == (0.2, 0.9)
  assert turn.before['learning_rate'] == 1
  # The other's setting, then perhaps a mutation.
  assert round(turn.after['learning_rate'], 9) in (2, 2.4, round(2 / 1.2, 9))
  state = trials.read_state(paths[0])
  assert (state.turns, state.last_episodes) == (1, 10)
  assert float(state.settings['learning_rate']) == turn.after['learning_rate']
  with open(os.path.join(paths[0], trials.FLAGS_FILE)) as file:
    flags = file.read()
  assert f'--learning_rate={turn.after["learning_rate"]}\n' in flags


def test_a_better_trial_keeps_its_weights_and_may_mutate(tmp_path):
  folder, paths = make_trials(tmp_path, 2)
  for path, value in zip(paths, (0.9, 0.85), strict=True):
    play(path, [value] * 40)
    save(path, value, 4000)
  members = members_of(folder, paths)
  restarts = 0
  for episodes in range(10, 400, 10):
    progress = trials.Progress(10 * episodes, episodes, 0.9)
    restarts += members.consider(0, progress)
  turns = sweeps.read_history(folder)
  assert len(turns) == 39
  assert not any(turn.copied for turn in turns)
  # 1 - 0.67 ** 3 of the turns change something.
  assert restarts == sum(turn.before != turn.after for turn in turns)
  assert 18 <= restarts <= 36
  assert not os.path.exists(os.path.join(paths[0], 'adopted.npz'))


def test_no_turn_without_a_rival_or_before_it_is_due(tmp_path):
  folder, paths = make_trials(tmp_path, 2)
  play(paths[0], [0.1])
  members = members_of(folder, paths)
  assert not members.consider(0, trials.progress(paths[0], 10))
  members.consider(1, trials.Progress(100, 5, 0.9))
  assert not sweeps.read_history(folder)


def test_no_turn_at_the_end(tmp_path):
  folder, paths = make_trials(tmp_path, 2)
  play(paths[1], [0.9])
  members = members_of(folder, paths)
  assert not members.consider(0, trials.Progress(5000, 900, 0.1))
  assert not sweeps.read_history(folder)


def test_an_interrupted_turn_comes_out_the_same(tmp_path):
  folder, paths = make_trials(tmp_path, 3)
  for path in paths:
    play(path, [0.5])
  state = trials.read_state(paths[1])
  for _ in range(2):
    members_of(folder, paths).consider(1, trials.progress(paths[1], 10))
    trials.write_state(paths[1], [], state)
  with open(os.path.join(folder, population.HISTORY_FILE)) as file:
    first, second = file.read().splitlines()
  assert first == second
  assert len(sweeps.read_history(folder)) == 1


def test_a_trial_without_a_checkpoint_cannot_be_copied(tmp_path):
  folder, paths = make_trials(tmp_path, 2)
  for path, value in zip(paths, (0.1, 0.9), strict=True):
    play(path, [value])
  members_of(folder, paths).consider(0, trials.progress(paths[0], 10))
  (turn,) = sweeps.read_history(folder)
  assert not turn.copied


def test_progress_is_capped_and_human_normalized(tmp_path):
  path = str(tmp_path / 'run')
  assert math.isnan(trials.progress(path, 10).fitness)
  writer = metrics.CsvWriter(os.path.join(path, 'metrics.csv'))
  writer.write(
    400,
    {
      # 100 % of human is 14.6, random is -20.7; 30.5 and 1.7 in Breakout.
      'atari/pong/episode_return': (14.6 - 20.7) / 2,
      'atari/pong/num_episodes': 10,
      'atari/breakout/episode_return': 300.0,
      'atari/breakout/num_episodes': 4,
    },
  )
  with open(os.path.join(path, 'config.json'), 'w') as file:
    json.dump({}, file)
  found = trials.progress(path, 10)
  assert found == trials.Progress(400, 14, pytest.approx(75))


def test_a_folder_is_of_one_sweep(tmp_path):
  paths = make_trials(tmp_path, 2)[1]
  assert [os.path.basename(path) for path in paths] == ['trial_0', 'trial_1']
  trials.write_state(paths[0], [], trials.State({'learning_rate': '7'}, 3, 9))
  assert make_trials(tmp_path, 2)[1] == paths
  assert trials.read_state(paths[0]).settings == {'learning_rate': '7'}
  with pytest.raises(ValueError, match='holds a sweep of other settings'):
    make_trials(tmp_path, 3)


def test_table_has_the_best_first_and_the_reasons(tmp_path):
  folder, paths = make_trials(tmp_path, 3)
  play(paths[0], [0.1])
  play(paths[1], [0.2, 0.9])
  found = sweep.rows(paths, {2: 'it broke'}, 200, window=10)
  assert [(row.trial, row.status) for row in found] == [
    ('trial_1', 'done'),
    ('trial_0', 'unfinished'),
    ('trial_2', 'failed'),
  ]
  assert found[0].returns == {'catch': 0.9}
  table = sweeps.read_table(os.path.dirname(sweep.write_table(folder, found)))
  assert table.columns[:6] == [
    'trial',
    'status',
    'env_frames',
    'episodes',
    'fitness',
    'catch',
  ]
  assert table.rows[0][5:8] == [0.9, 2, 0.01]
  assert table.rows[2][-1] == 'it broke'
  assert 'it broke' in sweep.lines(found)[3]


def test_flags_make_the_same_settings():
  chosen = config.Config(
    task=config.TaskConfig(level_name='atari57', grayscale=False),
    learner=config.LearnerConfig(learning_rate=1 / 3, clip_gradient_norm=None),
    agent=config.AgentConfig(use_last_action=True, core='none'),
  )
  words = config_flags.as_flags(chosen)
  assert '--grayscale=False' in words
  values = config_flags.flags.FlagValues()
  config_flags.define(values)
  values(['', *words])
  assert config_flags.build(values) == chosen
  config_flags.check(words)
  with pytest.raises(ValueError, match='no_such_flag'):
    config_flags.check(['--no_such_flag=1'])
  with pytest.raises(ValueError, match='batch_size is 0'):
    config_flags.check(['--batch_size=0'])


# A training script that says what it does with its flags and with SIGTERM.
TRAIN = """
import signal, sys, time
path = sys.argv[1].partition('=')[2]
def leave(*_):
  time.sleep(0.3)
  print('saved', flush=True)
  sys.exit(143)
signal.signal(signal.SIGTERM, leave)
print('training', flush=True)
time.sleep(float(open(path).read().split('--secs=')[1].split()[0]))
sys.exit(int(open(path).read().split('--code=')[1].split()[0]))
"""


def make_process(tmp_path, secs, code):
  script = tmp_path / 'train.py'
  script.write_text(TRAIN)
  path = str(tmp_path / 'trial')
  trials.write_state(
    path, [f'--secs={secs}', f'--code={code}'], trials.State({})
  )
  return path, [sys.executable, str(script)]


def wait_for_output(path, text):
  end = time.monotonic() + 60
  while trials.last_line(path) != text:
    assert time.monotonic() < end, trials.last_line(path)
    time.sleep(0.02)


@pytest.fixture(name='python_path', autouse=True)
def fixture_python_path(monkeypatch):
  """The guard is a module of this package, wherever the tests run."""
  monkeypatch.setenv('PYTHONPATH', os.pathsep.join(sys.path))


def test_a_run_that_ends_well_and_one_that_fails(tmp_path):
  path, train = make_process(tmp_path, 0, 0)
  process = trials.Process(path, train, 1)
  assert process.wait(60)
  process.stop(1)
  path, train = make_process(tmp_path, 0, 2)
  process = trials.Process(path, train, 1)
  with pytest.raises(trials.TrialFailedError, match='exit code 2: training'):
    process.wait(60)
  process.stop(1)


def test_a_stopped_run_saves_and_frees_its_directory(tmp_path):
  path, train = make_process(tmp_path, 60, 0)
  process = trials.Process(path, train, 1)
  wait_for_output(path, 'training')
  assert not process.wait(0.01)
  with pytest.raises(trials.TrialFailedError, match='Another process'):
    trials.Process(path, train, 0.1)
  process.stop(60)
  assert trials.last_line(path) == 'saved'
  trials.Process(path, train, 1).stop(60)


def test_a_run_saves_when_its_starter_is_killed(tmp_path):
  """The lock is free only when the run has gone."""
  path, train = make_process(tmp_path, 60, 0)
  starter = subprocess.Popen(
    [
      sys.executable,
      '-c',
      'import sys; from scalable_agent.tuning import trials\n'
      f'trials.Process({path!r}, {train!r}, 1).wait(60)',
    ]
  )
  wait_for_output(path, 'training')
  starter.send_signal(signal.SIGKILL)
  starter.wait()
  process = trials.Process(path, train, 60)
  with open(os.path.join(path, trials.OUTPUT_FILE)) as file:
    assert file.read().startswith('training\nsaved\n')
  process.stop(60)
