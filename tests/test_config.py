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
import json
import math
from typing import get_args

import pytest

from scalable_agent import config

SECTIONS = [field.type for field in dataclasses.fields(config.Config)]
FIELDS = [
  pytest.param(section, field, id=f'{section.__name__}.{field.name}')
  for section in SECTIONS
  for field in dataclasses.fields(section)
]

# The defaults of the original's flags (experiment.py of
# google-deepmind/scalable_agent), under its names.
ORIGINAL = {
  'batch_size': 2,
  'baseline_cost': 0.5,
  'dataset_path': '',
  'decay': 0.99,
  'discounting': 0.99,
  'entropy_cost': 0.00025,
  'epsilon': 0.1,
  'learning_rate': 0.00048,
  'level_name': 'explore_goal_locations_small',
  'logdir': '/tmp/agent',
  'momentum': 0.0,
  'num_actors': 4,
  'reward_clipping': 'abs_one',
  'seed': 1,
  'total_environment_frames': 10**9,
  'unroll_length': 100,
}


def all_settings(settings: config.Config) -> dict:
  sections = dataclasses.asdict(settings).values()
  return {name: value for s in sections for name, value in s.items()}


def test_defaults_are_the_original_s():
  settings = all_settings(config.Config())
  assert {name: settings[name] for name in ORIGINAL} == ORIGINAL


def test_no_two_sections_share_a_name():
  names = [field.name for s in SECTIONS for field in dataclasses.fields(s)]
  assert len(names) == len(set(names))


@pytest.mark.parametrize(('section', 'field'), FIELDS)
def test_every_setting_says_what_it_means(section, field):
  assert len(field.metadata['meaning']) > 10
  if field.default is None:
    assert 'None:' in field.metadata['meaning']


@pytest.mark.parametrize(('section', 'field'), FIELDS)
def test_names_that_promise_a_unit_have_one(section, field):
  unit = field.metadata['unit']
  if field.name.endswith('_secs'):
    assert unit == 'seconds'
  if field.name.endswith('_frames') or field.name == 'num_action_repeats':
    assert unit == 'frames'


@pytest.mark.parametrize('section', SECTIONS, ids=lambda s: s.__name__)
def test_settings_cannot_be_changed(section):
  settings = section()
  name = dataclasses.fields(section)[0].name
  with pytest.raises(dataclasses.FrozenInstanceError):
    setattr(settings, name, 1)


def test_settings_survive_json():
  settings = config.Config(
    learner=config.LearnerConfig(clip_gradient_norm=40.0)
  )
  saved = json.loads(json.dumps(dataclasses.asdict(settings)))
  again = config.Config(
    **{f.name: f.type(**saved[f.name]) for f in dataclasses.fields(settings)}
  )
  assert again == settings


WRONG = [
  (config.TaskConfig, 'level_name', '', 'name what to play'),
  (config.TaskConfig, 'num_action_repeats', 0, 'must be at least 1'),
  (config.TaskConfig, 'width', 0, 'must be at least 1'),
  (config.TaskConfig, 'height', -1, 'must be at least 1'),
  (config.TaskConfig, 'frame_stack', 0, 'must be at least 1'),
  (config.TaskConfig, 'max_episode_frames', 0, 'must be at least 1'),
  (config.TaskConfig, 'noop_max', -1, 'must be at least 0'),
  (config.TaskConfig, 'sticky_actions', 1.0, 'a probability below 1'),
  (config.TaskConfig, 'sticky_actions', -0.1, 'a probability below 1'),
  (config.ActorConfig, 'num_actors', 0, 'must be at least 1'),
  (config.ActorConfig, 'envs_per_actor', 0, 'must be at least 1'),
  (config.ActorConfig, 'env_threads', 0, 'must be at least 1'),
  (config.ActorConfig, 'queue_capacity', 0, 'must be at least 1'),
  (config.ActorConfig, 'max_restarts', -1, 'must be at least 0'),
  (config.ActorConfig, 'env_timeout_secs', 0.0, 'must be above 0'),
  (config.ActorConfig, 'inference', 'magic', 'one of auto, direct, batched'),
  (config.ActorConfig, 'env_backend', 'magic', 'one of auto, vector, process'),
  (config.ActorConfig, 'on_env_error', 'cry', 'one of abort, restart'),
  (
    config.AgentConfig,
    'torso',
    'wide',
    'one of auto, deep, shallow, nature, mlp',
  ),
  (config.AgentConfig, 'core', 'gru', 'one of auto, lstm, none'),
  (config.AgentConfig, 'precision', 'float8', 'one of float32, mixed_float16'),
  (config.LearnerConfig, 'batch_size', 0, 'must be at least 1'),
  (config.LearnerConfig, 'unroll_length', 0, 'must be at least 1'),
  (config.LearnerConfig, 'total_environment_frames', 0, 'at least 1'),
  (config.LearnerConfig, 'entropy_cost', -1.0, 'must be at least 0'),
  (config.LearnerConfig, 'baseline_cost', -1.0, 'must be at least 0'),
  (config.LearnerConfig, 'learning_rate', -1.0, 'must be at least 0'),
  (config.LearnerConfig, 'momentum', -1.0, 'must be at least 0'),
  (config.LearnerConfig, 'epsilon', -1.0, 'must be at least 0'),
  (config.LearnerConfig, 'discounting', 1.1, r'must be in \[0, 1\]'),
  (config.LearnerConfig, 'decay', -0.1, r'must be in \[0, 1\]'),
  (config.LearnerConfig, 'lambda_', 1.1, r'must be in \[0, 1\]'),
  (config.LearnerConfig, 'clip_gradient_norm', 0.0, 'or None for no clipping'),
  (config.LearnerConfig, 'clip_rho_threshold', -1.0, 'must be at least 0'),
  (config.LearnerConfig, 'clip_pg_rho_threshold', -1.0, 'must be at least 0'),
  (config.LearnerConfig, 'clip_c_threshold', -1.0, 'must be at least 0'),
  (config.LearnerConfig, 'reward_clipping', 'sign', 'one of abs_one, soft_as'),
  (config.LearnerConfig, 'on_nonfinite', 'cry', 'one of abort, skip'),
  (config.RunConfig, 'logdir', '', 'name a directory'),
  (config.RunConfig, 'seed', -1, 'must be at least 0'),
  (config.RunConfig, 'learner_device', 'npu', 'one of auto, cpu, gpu, tpu'),
  (config.RunConfig, 'inference_device', 'npu', 'one of auto, cpu, gpu, tpu'),
  (config.RunConfig, 'checkpoint_secs', -1.0, 'must be at least 0'),
  (config.RunConfig, 'checkpoints_kept', 0, 'must be at least 1'),
  (config.RunConfig, 'summary_secs', -1.0, 'must be at least 0'),
]


@pytest.mark.parametrize(
  ('section', 'name', 'value', 'message'),
  WRONG,
  ids=[f'{name}={value}' for _, name, value, _ in WRONG],
)
def test_wrong_value_is_refused_by_name(section, name, value, message):
  with pytest.raises(ValueError, match=f'{name}.*{message}'):
    section(**{name: value})


@pytest.mark.parametrize('value', [math.nan, math.inf])
@pytest.mark.parametrize(
  ('section', 'field'),
  [
    p
    for p in FIELDS
    if float in (p.values[1].type, *get_args(p.values[1].type))
  ],
)
def test_numbers_are_finite(section, field, value):
  with pytest.raises(ValueError, match=f'{field.name} is {value}; give a fini'):
    section(**{field.name: value})


@pytest.mark.parametrize(
  ('section', 'name', 'value'),
  [
    (config.TaskConfig, 'noop_max', 0),
    (config.TaskConfig, 'sticky_actions', 0.25),
    (config.LearnerConfig, 'discounting', 0.0),
    (config.LearnerConfig, 'discounting', 1.0),
    (config.LearnerConfig, 'learning_rate', 0.0),
    (config.LearnerConfig, 'lambda_', 0.0),
    (config.RunConfig, 'summary_secs', 0.0),
  ],
  ids=lambda value: str(value),
)
def test_borders_are_allowed(section, name, value):
  assert getattr(section(**{name: value}), name) == value


@pytest.mark.parametrize(
  ('text', 'expected'),
  [
    ('', {}),
    ('simulator=1', {'simulator': 1.0}),
    ('simulator=1, licence = 0.5,', {'simulator': 1.0, 'licence': 0.5}),
  ],
)
def test_resources_of_workers_are_read(text, expected):
  distributed = config.DistributedConfig(worker_resources=text)
  assert distributed.resources() == expected


@pytest.mark.parametrize(
  ('field', 'value', 'message'),
  [
    ('worker_resources', 'simulator', "has 'simulator'; write name=amount"),
    ('worker_resources', 'simulator=0', 'a number above 0'),
    ('worker_resources', '=1', 'write name=amount'),
    ('worker_resources', 'simulator=nan', 'a number above 0'),
    ('worker_memory_gib', 0.0, 'must be above 0, or None'),
    ('unrolls_in_flight', 3, 'must be 1 or 2'),
    ('ray_address', 'ray://head:10001', 'run the command on a machine of the'),
  ],
)
def test_wrong_settings_of_workers_are_refused(field, value, message):
  with pytest.raises(ValueError, match=message):
    config.DistributedConfig(**{field: value})
