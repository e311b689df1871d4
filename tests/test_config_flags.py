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
import dataclasses
import pathlib
import re
import subprocess
import sys

import command_runner
import config_flags
import pytest
from absl import flags

from scalable_agent import config

ROOT = pathlib.Path(__file__).parents[1]
SCRIPTS = ROOT / 'scripts'
PRESETS = sorted((SCRIPTS / 'presets').glob('*.flags'))
FIELDS = [
  field
  for section in dataclasses.fields(config.Config)
  for field in dataclasses.fields(section.type)
]

# The flags of the original (experiment.py of google-deepmind/scalable_agent)
# that a run on this machine has; --mode and --test_num_episodes are the
# scripts' own.
ORIGINAL_NAMES = """
  batch_size baseline_cost dataset_path decay discounting entropy_cost epsilon
  height learning_rate level_name logdir momentum num_action_repeats num_actors
  reward_clipping seed total_environment_frames unroll_length width
""".split()

# A script as all others, small enough to see what happens.
SCRIPT = """
import sys
import config_flags
from absl import flags
config_flags.define()
flags.DEFINE_boolean('greedy', False, 'Of the script itself.')
def main(config):
  print(config)
  print('tensorflow' in sys.modules)
if __name__ == '__main__':
  config_flags.run(main)
"""


@pytest.fixture(name='script', scope='module')
def fixture_script(tmp_path_factory) -> pathlib.Path:
  path = tmp_path_factory.mktemp('scripts') / 'play.py'
  path.write_text(SCRIPT)
  return path


def run_script(path, *arguments):
  return subprocess.run(
    [sys.executable, str(path), *arguments],
    capture_output=True,
    env={'PYTHONPATH': f'{SCRIPTS}:{ROOT}', 'PATH': ''},
    text=True,
  )


def parse(*arguments: str) -> config.Config:
  """The configuration that `arguments` make, apart from the global flags."""
  values = flags.FlagValues()
  config_flags.define(values)
  values(['program', *arguments])
  return config_flags.build(values)


def help_of(path: pathlib.Path, *words: str) -> dict[str, str]:
  """What `--help` says of each flag, on one line."""
  text = command_runner.run(str(path), *words, '--help').stdout
  entries = re.split(r'\n  --(?=[a-z\[])', text)[1:]
  helps = {}
  for entry in entries:
    names, _, about = entry.partition(':')
    name = names.split(',')[-1].replace('[no]', '').strip(' -')
    helps[name] = ' '.join(about.split())
  return helps


def test_flags_have_the_names_and_defaults_of_the_settings():
  values = flags.FlagValues()
  config_flags.define(values)
  defaults = {name: values[name].default for name in values}
  assert defaults == {field.name: field.default for field in FIELDS}
  values.mark_as_parsed()
  assert config_flags.build(values) == config.Config()


def test_the_original_s_flags_exist():
  values = flags.FlagValues()
  config_flags.define(values)
  assert set(ORIGINAL_NAMES) <= set(values)


@pytest.mark.parametrize(
  ('argument', 'section', 'name', 'value'),
  [
    ('--num_actors=48', 'actor', 'num_actors', 48),
    ('--total_environment_frames=10000000000', 'learner', None, 10**10),
    ('--learning_rate=3e-4', 'learner', 'learning_rate', 3e-4),
    ('--clip_gradient_norm=40', 'learner', 'clip_gradient_norm', 40.0),
    ('--clip_gradient_norm=none', 'learner', 'clip_gradient_norm', None),
    ('--width=None', 'task', 'width', None),
    ('--lambda_=0.9', 'learner', 'lambda_', 0.9),
    ('--nograyscale', 'task', 'grayscale', False),
    ('--grayscale=false', 'task', 'grayscale', False),
    ('--use_last_action', 'agent', 'use_last_action', True),
    ('--nouse_last_action', 'agent', 'use_last_action', False),
    ('--use_last_action=none', 'agent', 'use_last_action', None),
    ('--core=none', 'agent', 'core', 'none'),
    ('--dataset_path=none', 'task', 'dataset_path', 'none'),
  ],
  ids=lambda value: value if str(value).startswith('--') else '',
)
def test_flag_sets_its_setting(argument, section, name, value):
  name = name or argument[2:].partition('=')[0]
  assert getattr(getattr(parse(argument), section), name) == value


def test_two_scripts_in_one_process_share_the_flags():
  values = flags.FlagValues()
  config_flags.define(values)
  config_flags.define(values)
  assert len(list(values)) == len(FIELDS)


def test_help_tells_everything(script):
  helps = help_of(script)
  assert helps['greedy'].startswith('Of the script itself.')
  for field in FIELDS:
    text = helps[field.name]
    assert ' '.join(field.metadata['meaning'].split()) in text
    if field.metadata['unit']:
      assert f'Unit: {field.metadata["unit"]}.' in text
    if field.default is None:
      assert 'Default: none.' in text
    else:
      default = str(field.default)
      if isinstance(field.default, bool):
        default = default.lower()
      assert f"(default: '{default}')" in text


def commands() -> list[list[str]]:
  """Each script, and each part of a script that consists of parts."""
  found = []
  for path in sorted(SCRIPTS.glob('*.py')):
    if path.name != 'config_flags.py':
      parts = re.search(
        'PARTs: (.*)', command_runner.run(str(path), '--help').stdout
      )
      words = parts[1].split(', ') if parts else []
      found += [[path.name, word] for word in words] or [[path.name]]
  return found


@pytest.mark.parametrize('command', commands(), ids=' '.join)
def test_help_of_each_script_tells_meaning_and_default(command):
  path = SCRIPTS / command[0]
  helps = help_of(path, *command[1:])
  assert helps, 'no flags'
  for name, text in helps.items():
    meaning = re.sub(r'\(default: .*|\(a .*|<[^>]*>:', '', text).strip()
    assert len(meaning) > 5, name
    assert re.search(r'\(default: |Default: |[Rr]equired', text), name
  if 'config_flags.define' in path.read_text():
    assert {field.name for field in FIELDS} <= set(helps)


@pytest.mark.parametrize(
  ('argument', 'message'),
  [
    ('--num_actors=many', '--num_actors=many: give an integer.'),
    ('--num_actors=none', '--num_actors=none: give an integer.'),
    ('--width=wide', '--width=wide: give an integer, or none.'),
    ('--learning_rate=x', '--learning_rate=x: give a number.'),
    ('--grayscale=maybe', '--grayscale=maybe: give true or false.'),
    ('--learning_rate=nan', '--learning_rate is nan; give a finite number.'),
    ('--num_actors=0', '--num_actors is 0; it must be at least 1.'),
    ('--torso=wide', "--torso is 'wide'; choose one of auto, deep, shallow"),
    ('--num_actor=3', "flag 'num_actor'. Did you mean: num_actors"),
    ('--num_actors', 'Missing value for flag --num_actors'),
    ('pong', "'pong' is not a flag; flags look like --name=value."),
    ('--flagfile=nowhere', 'Unable to open flagfile'),
  ],
  ids=lambda value: value if str(value).startswith('--') else '',
)
def test_mistake_is_one_sentence_and_exit_code_two(script, argument, message):
  result = run_script(script, argument)
  assert result.returncode == 2
  assert result.stdout == ''
  assert message in result.stderr
  assert result.stderr.startswith('play.py: ')
  assert len(result.stderr.splitlines()) == 1


def test_the_command_line_is_read_without_tensorflow(script):
  result = run_script(script, '--num_actors=3')
  assert result.returncode == 0, result.stderr
  shown, has_tensorflow = result.stdout.splitlines()
  assert 'num_actors=3' in shown
  assert has_tensorflow == 'False'


@pytest.mark.parametrize(
  'arguments',
  [
    ('--flagfile={}', '--num_actors=3'),
    ('--num_actors=3', '--flagfile={}'),
    ('--num_actors=3', '--flagfile', '{}'),
  ],
  ids=['after', 'before', 'before, two words'],
)
def test_any_flag_overrides_a_flag_file(script, tmp_path, arguments):
  path = tmp_path / 'some.flags'
  path.write_text('# A comment.\n--num_actors=9\n\n--batch_size=7\n')
  result = run_script(script, *[a.format(path) for a in arguments])
  assert 'num_actors=3' in result.stdout
  assert 'batch_size=7' in result.stdout


@pytest.mark.parametrize('path', PRESETS, ids=lambda path: path.stem)
def test_preset_is_read_and_shows_its_own_command(path):
  parse(f'--flagfile={path}')
  text = path.read_text()
  assert f'--flagfile=scripts/presets/{path.name}' in text


ATARI = {
  'action_repeats': 4,
  'size': (84, 84),
  'frame_stack': 4,
  'unroll_length': 20,
  'batch_size': 32,
  'reward_clipping': 'abs_one',
  'entropy_cost': 0.01,
  'learning_rate': 0.0006,
  'epsilon': 0.01,
  'clip_gradient_norm': 40.0,
  'core': 'none',
}
DMLAB = {
  'action_repeats': 4,
  'size': (96, 72),
  'unroll_length': 100,
  'batch_size': 32,
  'reward_clipping': 'abs_one',
  'entropy_cost': 0.00025,
  'learning_rate': 0.00048,
  'epsilon': 0.1,
  'clip_gradient_norm': None,
  'core': 'lstm',
}
DMLAB30 = DMLAB | {
  'reward_clipping': 'soft_asymmetric',
  'entropy_cost': 0.0033391318945337044,
  'learning_rate': 0.00031866995608948655,
}


@pytest.mark.parametrize(
  ('preset', 'torso', 'num_frames', 'num_envs', 'values'),
  [
    ('atari_shallow', 'shallow', 200 * 10**6, 64, ATARI),
    ('atari_deep', 'deep', 200 * 10**6, 64, ATARI),
    ('atari57_deep', 'deep', 57 * 200 * 10**6, 57, ATARI),
    ('dmlab_single_shallow', 'shallow', 10**9, 48, DMLAB),
    ('dmlab_single_deep', 'deep', 10**9, 48, DMLAB),
    ('dmlab30_shallow', 'shallow', 10**10, 210, DMLAB30),
    ('dmlab30_deep', 'deep', 10**10, 150, DMLAB30),
  ],
)
def test_preset_has_the_published_values(
  preset, torso, num_frames, num_envs, values
):
  settings = parse(f'--flagfile={SCRIPTS}/presets/{preset}.flags')
  task, learner = settings.task, settings.learner
  assert settings.agent.torso == torso
  assert learner.total_environment_frames == num_frames
  actor = settings.actor
  assert actor.num_actors * actor.envs_per_actor == num_envs
  found = {
    'action_repeats': task.num_action_repeats,
    'size': (task.width, task.height),
    'frame_stack': task.frame_stack,
    'core': settings.agent.core,
  } | dataclasses.asdict(learner)
  assert {name: found[name] for name in values} == values
  assert (learner.discounting, learner.baseline_cost) == (0.99, 0.5)
  assert (learner.decay, learner.momentum) == (0.99, 0.0)
  thresholds = (learner.clip_rho_threshold, learner.clip_c_threshold)
  assert (*thresholds, learner.clip_pg_rho_threshold) == (1.0, 1.0, 1.0)
  assert learner.lambda_ == 1.0
  uses_both = settings.agent.core == 'lstm'
  assert settings.agent.use_last_action is uses_both
  assert settings.agent.use_last_reward is uses_both


def test_atari_presets_are_the_paper_s_protocol():
  task = parse(f'--flagfile={SCRIPTS}/presets/atari_deep.flags').task
  assert (task.sticky_actions, task.noop_max, task.fire_on_reset) == (
    0.0,
    30,
    False,
  )
  assert (task.grayscale, task.max_pool, task.life_loss_ends_episode) == (
    True,
    True,
    True,
  )
  assert task.max_episode_frames == 108_000
  assert task.full_action_set is False
  task = parse(f'--flagfile={SCRIPTS}/presets/atari57_deep.flags').task
  assert task.full_action_set is True
