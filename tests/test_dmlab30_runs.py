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
"""DMLab-30 through the real command line, on the double of DeepMind Lab."""

import csv
import math
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from fake_deepmind_lab import lab_double

from scalable_agent import run_record, tasks
from scalable_agent.dmlab30 import environment, levels, scores
from scalable_agent.dmlab30 import settings as settings_lib
from scalable_agent.runtime import testing

ROOT = pathlib.Path(__file__).parents[1]
TWO = ('double/turn_as_told', 'double/long_corridor')
SMALL = (
  '--torso=shallow',
  '--width=32',
  '--height=24',
  '--unroll_length=5',
  '--summary_secs=0',
)


def run(*arguments, lab=True, episode_seconds=0.2, timeout=300):
  done = subprocess.run(
    [sys.executable, ROOT / 'scripts' / 'train.py', *map(str, arguments)],
    env=lab_double.environ(episode_seconds) if lab else None,
    capture_output=True,
    text=True,
    timeout=timeout,
    check=False,
  )
  return done.returncode, done.stdout, done.stderr


def table(path):
  with open(path, newline='') as file:
    return list(csv.DictReader(file))


def test_two_levels_are_trained_tested_and_tested_on(tmp_path):
  names = f'--level_name={",".join(TWO)}'
  code, out, err = run(
    *SMALL,
    names,
    f'--logdir={tmp_path}',
    '--num_actors=3',
    f'--level_weights={TWO[0]}=2',
    '--action_set=extended',
    '--total_environment_frames=1200',
  )
  assert code == 0, err
  assert 'Trained 1,200 frames' in out
  last = table(tmp_path / 'metrics.csv')[-1]
  for name in TWO:
    assert float(last[f'{name}/num_episodes']) > 0
    assert float(last[f'{name}/num_frames']) == 4 * float(
      last[f'{name}/num_steps']
    )
  assert not any(column.startswith('dmlab30/') for column in last)
  rows = table(tmp_path / 'metrics.csv')
  for row in rows:
    if row[f'{TWO[0]}/episode_frames']:
      # 12 frames an episode, 4 a step.
      assert float(row[f'{TWO[0]}/episode_frames']) == 12

  test = ('--mode=test', f'--logdir={tmp_path}', '--test_num_episodes=2')
  code, out, err = run(*test)
  assert code == 0, err
  assert out.count('2 episodes)') == 2
  path = tmp_path / 'test.csv'
  rows = table(path)
  assert [row['level'] for row in rows] == list(TWO)
  assert [row['human_normalized_percent'] for row in rows] == ['', '']

  # Interrupted after its first level, it goes on with the second.
  path.write_text(''.join(path.read_text().splitlines(True)[:2]))
  code, out, err = run(*test)
  assert code == 0, err
  assert out.count('(played before)') == 1
  again = table(path)
  assert again[0] == rows[0]
  assert again[1]['level'] == TWO[1]


@pytest.mark.slow
def test_all_thirty_levels_are_trained_and_scored(tmp_path):
  code, out, err = run(
    *SMALL,
    '--level_name=dmlab30',
    f'--logdir={tmp_path}',
    '--dataset_path=dummy',
    '--num_actors=2',
    '--envs_per_actor=15',
    '--batch_size=30',
    '--total_environment_frames=3000',
    '--reward_clipping=soft_asymmetric',
  )
  assert code == 0, err
  assert 'Trained 3,000 frames' in out
  rows = table(tmp_path / 'metrics.csv')
  for name in levels.TRAIN_NAMES:
    assert float(rows[-1][f'{name}/num_episodes']) > 0
  found = [row for row in rows if row['dmlab30/training_no_cap']]
  assert found
  for row in found:
    no_cap = float(row['dmlab30/training_no_cap'])
    cap_100 = float(row['dmlab30/training_cap_100'])
    assert math.isfinite(no_cap)
    assert cap_100 <= no_cap

  code, out, err = run(
    '--mode=test', f'--logdir={tmp_path}', '--test_num_episodes=1'
  )
  assert code == 0, err
  rows = table(tmp_path / 'test.csv')
  assert [row['level'] for row in rows] == list(levels.TEST_NAMES)
  percents = [float(row['human_normalized_percent']) for row in rows]
  for row, percent in zip(rows, percents, strict=True):
    mean = float(row['mean_return'])
    assert percent == pytest.approx(
      scores.human_normalized(row['level'], mean), abs=1e-6
    )
  last = {line.split()[0]: line.split()[-1] for line in out.splitlines()[-3:]}
  assert float(last['dmlab30/test_no_cap']) == pytest.approx(
    sum(percents) / 30, abs=0.06
  )
  assert float(last['dmlab30/test_cap_100']) == pytest.approx(
    sum(min(percent, 100) for percent in percents) / 30, abs=0.06
  )


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (['--level_name=rooms_watermaz'], 'did you mean rooms_watermaze'),
    (['--width=98'], 'width is 98; DeepMind Lab draws sizes'),
    (['--level_name=psychlab_continuous_recognition'], 'dataset_path is empty'),
    (['--level_name=dmlab30', '--dataset_path=dummy'], 'fewer than the 30'),
    (
      ['--level_name=rooms_collect_good_objects_test'],
      "train on 'rooms_collect_good_objects_train'",
    ),
    (['--level_weights=rooms_watermaze=2'], 'has a weight and is not played'),
    (['--level_weights=twice'], "level_weights has 'twice'; write"),
    (['--curriculum=difficulty'], "Curriculum 'difficulty' is not"),
    (['--lab_setting=fast'], "Lab setting 'fast' is not name=value"),
    (['--level_cache_gib=0'], 'level_cache_gib is 0'),
    (['--env_backend=vector'], 'has no vector environment'),
  ],
  ids=lambda v: v[0] if isinstance(v, list) else '',
)
def test_a_mistake_is_one_sentence_and_starts_nothing(
  tmp_path, arguments, message
):
  logdir = tmp_path / 'run'
  code, _, err = run(f'--logdir={logdir}', *arguments)
  assert code == 2
  assert message in err
  assert len(err.splitlines()) == 1
  assert not logdir.exists()


def test_without_deepmind_lab_it_is_said_what_to_do(tmp_path):
  code, _, err = run(f'--logdir={tmp_path / "run"}', lab=False)
  assert code == 2
  assert 'deepmind_lab is not installed; build its Python package' in err
  assert len(err.splitlines()) == 1


class WithoutInstruction:
  """Environments whose instructions are blanked."""

  def __init__(self, environments):
    self._environments = environments
    self.num_envs = environments.num_envs
    self.spec = environments.spec
    self.level_names = environments.level_names

  def initial(self):
    return self._blank(self._environments.initial())

  def step(self, actions):
    return self._blank(self._environments.step(actions))

  def close(self):
    self._environments.close()

  def _blank(self, slot):
    text = np.full_like(slot.observation['INSTR'], '')
    return slot._replace(observation=slot.observation | {'INSTR': text})


def chance(level, num_episodes=20):
  """Mean return of random actions."""
  env = environment.LabFactory(
    level, settings_lib.LabSettings(width=32, height=24)
  )(seed=1)
  random, total = np.random.RandomState(2), 0.0
  for _ in range(num_episodes):
    timestep = env.reset()
    while not timestep.last():
      timestep = env.step(random.randint(9))
      total += timestep.reward
  env.close()
  return total / num_episodes


@pytest.mark.slow
def test_one_agent_learns_two_levels_and_needs_the_instruction(
  tmp_path, monkeypatch
):
  # Five minutes on two busy cores; returns were 17.8 and 102, -1.5 when blind.
  code, _, err = run(
    *SMALL[:3],
    f'--level_name={",".join(TWO)}',
    f'--logdir={tmp_path}',
    f'--level_weights={TWO[0]}=3',
    '--num_actors=2',
    '--envs_per_actor=16',
    '--batch_size=32',
    '--unroll_length=10',
    '--learning_rate=0.001',
    '--entropy_cost=0.01',
    '--epsilon=0.01',
    '--discounting=0.9',
    '--clip_gradient_norm=40',
    '--total_environment_frames=700000',
    episode_seconds=2,
    timeout=1500,
  )
  assert code == 0, err
  lab_double.install(monkeypatch, episode_seconds=2)
  chosen = run_record.load_config(str(tmp_path))
  seeing = {row.level: row.mean_return for row in testing.run_test(chosen, 32)}
  # Of 30 and of 103 at best.
  assert seeing[TWO[0]] > chance(TWO[0]) + 8
  assert seeing[TWO[1]] > chance(TWO[1]) + 80

  make_task = tasks.make_task

  def make_blind_task(*args):
    task = make_task(*args)
    return task._replace(build=lambda r: WithoutInstruction(task.build(r)))

  monkeypatch.setattr(tasks, 'make_task', make_blind_task)
  blind = testing.run_test(chosen, 32, afresh=True)
  assert blind[0].level == TWO[0]
  assert blind[0].mean_return < chance(TWO[0]) + 4
