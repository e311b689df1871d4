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
"""Checkpoints of the original: imported, they act as the original did."""

import pathlib
import subprocess
import sys

import golden_agent
import numpy as np
import pytest
import tensorflow as tf

from scalable_agent import checkpoint, config, episodes, learner
from scalable_agent.nets import agent, tf1_weights

ENV_FRAMES = 84 * 11
SCRIPT = (
  pathlib.Path(__file__).parents[1] / 'scripts' / 'import_tf1_checkpoint.py'
)


def original_arrays():
  """What a checkpoint of the original holds, no two slots alike."""
  arrays = {'num_environment_frames': np.int64(ENV_FRAMES)}
  random = np.random.default_rng(0)
  for name, value in golden_agent.weights().items():
    arrays[name] = value
    for slot in ('RMSProp', 'RMSProp_1'):
      arrays[f'{name}/{slot}'] = random.random(value.shape, np.float32)
  return arrays


def write_tf1_checkpoint(directory, arrays):
  """Writes it with TensorFlow 1's saver; returns its prefix."""
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    for name, value in arrays.items():
      tf.compat.v1.get_variable(name, initializer=value, use_resource=False)
    session.run(tf.compat.v1.global_variables_initializer())
    saver = tf.compat.v1.train.Saver()
    return saver.save(session, str(directory / 'model.ckpt'), ENV_FRAMES)


def run_script(*args):
  return subprocess.run(
    [sys.executable, SCRIPT, *args],
    capture_output=True,
    text=True,
  )


def make_learner(**settings):
  return learner.Learner(
    agent.Agent(golden_agent.SPEC, config.AgentConfig(**settings)),
    config.LearnerConfig(),
    golden_agent.SPEC.frames_per_step,
  )


def assign(own, arrays):
  """Assigns arrays by the original's names; returns the frame counter."""
  env_frames = tf.Variable(0, dtype=tf.int64)
  named = tf1_weights.variables_by_original_name(
    own.agent.trainable_variables, own.optimizer.slots, env_frames
  )
  checkpoint.assign_all(named, arrays)
  return env_frames.numpy()


def test_script_imports_all(tmp_path):
  arrays = original_arrays()
  prefix = write_tf1_checkpoint(tmp_path, arrays)
  logdir = tmp_path / 'imported'
  finished = run_script(
    f'--tf1_checkpoint={prefix}',
    f'--logdir={logdir}',
    '--batch_size=3',
    '--unroll_length=7',
  )
  assert finished.returncode == 0, finished.stderr
  assert 'at frame 924 into' in finished.stdout
  saved = checkpoint.Checkpointer(logdir).restore()
  assert saved.counters['learner'] == {
    'env_frames': 924,
    'num_updates': 11,
    'num_skipped': 0,
  }
  episodes.EpisodeLog(['a']).load_state(saved.counters['episodes'])
  assert saved.counters['num_starts'] == 0
  own = make_learner()
  own.load_state(saved.arrays, saved.counters['learner'])
  check_acts_as_the_original(own.agent)
  check_slots(own, arrays)


def check_acts_as_the_original(own):
  batch = golden_agent.unroll()
  output, state = own.unroll(
    batch.agent_outputs.action, batch.env_outputs, batch.core_state
  )
  golden = golden_agent.values('abs_one')
  for ours, name in (
    (output.policy_logits, 'policy_logits'),
    (output.baseline, 'baseline'),
    (state.lstm.c, 'final_c'),
    (state.lstm.h, 'final_h'),
  ):
    # Values are around 1; the absolute tolerance is for those near 0.
    np.testing.assert_allclose(ours, golden[name], rtol=1e-5, atol=1e-6)


def check_slots(own, arrays):
  """Each variable has the slots that lay beside its value in the original."""
  for variable in own.agent.trainable_variables:
    value = variable.numpy()
    (name,) = (n for n in arrays if np.array_equal(arrays[n], value))
    for slot, suffix in (('mean_square', 'RMSProp'), ('momentum', 'RMSProp_1')):
      np.testing.assert_array_equal(
        own.optimizer.slots(variable)[slot].numpy(), arrays[f'{name}/{suffix}']
      )


def test_script_refuses_a_directory_with_checkpoints(tmp_path):
  path = checkpoint.Checkpointer(tmp_path).save({}, {})
  finished = run_script('--tf1_checkpoint=any', f'--logdir={tmp_path}')
  assert finished.returncode == 2
  assert 'has checkpoints already; name a new directory' in finished.stderr
  assert checkpoint.Checkpointer(tmp_path).latest() == path


@pytest.mark.parametrize(
  ('name', 'value', 'message'),
  [
    (
      'num_environment_frames',
      None,
      'missing from it: num_environment_frames',
    ),
    ('agent/extra/w', np.zeros(1), 'surplus in it: agent/extra/w'),
    (
      'agent/batch_apply/linear/w',
      np.zeros((10, 256), np.float32),
      r'agent/batch_apply/linear/w is float32 \(10, 256\) in the checkpoint',
    ),
  ],
  ids=['missing', 'surplus', 'misshapen'],
)
def test_what_does_not_fit_is_named(name, value, message):
  arrays = original_arrays() | {name: value}
  if value is None:
    del arrays[name]
  with pytest.raises(ValueError, match=message):
    assign(make_learner(), arrays)


def test_other_networks_are_refused():
  with pytest.raises(ValueError, match='no variable like agent/image_torso_0'):
    assign(make_learner(torso='shallow'), original_arrays())


def test_reads_prefix_and_directory(tmp_path):
  prefix = write_tf1_checkpoint(tmp_path, {'a/w': np.float32([1, 2])})
  for path in (prefix, tmp_path):
    read = tf1_weights.read(path)
    assert list(read) == ['a/w']
    np.testing.assert_array_equal(read['a/w'], [1, 2])


def test_unreadable_path_is_refused(tmp_path):
  garbage = tmp_path / 'model.ckpt'
  garbage.write_text('garbage')
  for path in (tmp_path, tmp_path / 'absent', garbage):
    with pytest.raises(ValueError, match='is no TensorFlow checkpoint'):
      tf1_weights.read(path)
