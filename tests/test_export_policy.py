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
"""An exported policy is the agent's own, and needs TensorFlow alone."""

import json
import pathlib
import subprocess
import sys

import export_policy
import numpy as np
import pytest
import tensorflow as tf
import tree
from dm_env import specs

from scalable_agent import (
  checkpoint,
  config,
  learner,
  run_record,
  structs,
  tasks,
)
from scalable_agent.envs import catch
from scalable_agent.nets import agent as agent_lib

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLE = ROOT / 'scripts' / 'examples' / 'play_policy.py'
RUNS = {
  'catch': ('catch', {}),
  'lstm': ('catch', {'core': 'lstm'}),
  'frames': ('atari/pong', {'torso': 'shallow'}),
  'box': ('gym/Pendulum-v1', {}),
}


def make_run(logdir, level_name, agent_settings):
  """A run directory with fresh weights; returns the agent too."""
  settings = config.Config(
    task=config.TaskConfig(level_name=level_name),
    agent=config.AgentConfig(**agent_settings),
    run=config.RunConfig(logdir=str(logdir)),
  )
  task = tasks.make_task(settings, 'test')
  agent = agent_lib.Agent(
    task.spec(), settings.agent, frame_stack=task.frame_stack, seed=3
  )
  own = learner.Learner(agent, settings.learner, 1)
  own.env_frames = 1234
  arrays, counters = own.state()
  run_record.record_start(str(logdir), settings, ['train.py'])
  checkpoint.Checkpointer(str(logdir)).save(arrays, {'learner': counters})
  return agent, task.spec()


@pytest.fixture(name='run', scope='module', params=RUNS)
def fixture_run(request, tmp_path_factory):
  """Agent, its environments' spec, and the directory of its SavedModel."""
  directory = tmp_path_factory.mktemp(request.param)
  agent, spec = make_run(directory / 'run', *RUNS[request.param])
  export_policy.export(str(directory / 'run'), str(directory / 'policy'))
  return agent, spec, directory / 'policy'


def random_slots(spec, random, num_slots, batch_size):
  """Inputs of `step` by name, and as the agent takes them."""
  for t in range(num_slots):
    done = np.full(batch_size, t == 0) | (random.uniform(size=batch_size) < 0.4)
    leaf = spec.observation
    shape = (batch_size, *leaf.shape)
    observation = (255 * random.uniform(size=shape)).astype(leaf.dtype)
    actions = structs.no_actions(spec.action, batch_size)
    if actions.dtype == np.int32:
      actions[:] = random.integers(0, spec.action.num_values, actions.shape)
    yield {
      'action': actions,
      'reward': random.standard_normal(batch_size).astype(np.float32),
      'done': done,
      'first': done & (random.uniform(size=batch_size) < 0.8),
      'observation': observation,
    }


def test_steps_are_those_of_the_agent(run):
  agent, spec, directory = run
  policy = tf.saved_model.load(str(directory))
  step = policy.signatures['step']
  named = policy.signatures['initial_state'](batch_size=tf.constant(3))
  state = agent.initial_state(3)
  assert all(name.startswith('core_state_') for name in named)
  for slot in random_slots(spec, np.random.default_rng(1), 5, 3):
    output = step(
      **{name: tf.constant(value) for name, value in slot.items()},
      **named,
      seed=tf.constant([1, 2]),
    )
    net, state = agent.step(
      slot['action'],
      structs.EnvOutput(
        slot['reward'], (), slot['done'], slot['first'], (), slot['observation']
      ),
      state,
    )
    named = {name: output[name] for name in named}
    for ours, theirs in (
      (net.policy_logits, output['policy_logits']),
      (net.baseline, output['baseline']),
      *zip(
        tree.flatten(state), [named[n] for n in sorted(named)], strict=False
      ),
    ):
      np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    distribution = agent.distribution(net.policy_logits)
    np.testing.assert_allclose(
      output['greedy_action'], distribution.mode(), rtol=1e-4, atol=1e-5
    )


def test_no_operation_asks_for_xla(run):
  _, _, directory = run
  policy = tf.saved_model.load(str(directory))
  graph = policy.signatures['step'].graph.as_graph_def()
  for function in graph.library.function:
    assert not function.attr['_XlaMustCompile'].b, function.signature.name


@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_onnx_gives_the_same(run, tmp_path):
  pytest.importorskip('tf2onnx')
  runtime = pytest.importorskip('onnxruntime')
  agent, spec, directory = run
  from exporting import saved_policy

  path = tmp_path / 'policy.onnx'
  saved_policy.SavedPolicy(agent, spec).save_onnx(str(path))
  session = runtime.InferenceSession(str(path))
  names = [output.name for output in session.get_outputs()]
  policy = tf.saved_model.load(str(directory))
  state = policy.signatures['initial_state'](batch_size=tf.constant(3))
  for slot in random_slots(spec, np.random.default_rng(2), 4, 3):
    expected = policy.signatures['step'](
      **{name: tf.constant(value) for name, value in slot.items()},
      **state,
      seed=tf.constant([1, 2]),
    )
    given = {**slot, **{name: value.numpy() for name, value in state.items()}}
    given = {i.name: given[i.name] for i in session.get_inputs()}
    for name, value in zip(names, session.run(None, given), strict=True):
      np.testing.assert_allclose(
        value, expected[name.removeprefix('next_')], rtol=1e-4, atol=1e-5
      )
    state = {name: expected[name] for name in state}


def test_onnx_refuses_instructions():
  from exporting import saved_policy

  spec = structs.EnvironmentSpec(
    {'INSTR': specs.StringArray(()), 'place': specs.Array((2,), np.float32)},
    specs.DiscreteArray(3),
  )
  agent = agent_lib.Agent(spec, config.AgentConfig())
  with pytest.raises(ValueError, match='reads instructions, and ONNX has no'):
    saved_policy.SavedPolicy(agent, spec).save_onnx('nowhere.onnx')


def test_the_description_is_what_the_signatures_take(run):
  _, spec, directory = run
  described = json.loads((directory / 'policy.json').read_text())
  assert described['env_frames'] == 1234
  assert described['frames_per_step'] == spec.frames_per_step
  policy = tf.saved_model.load(str(directory))
  for name, signature in described['signatures'].items():
    function = policy.signatures[name]
    given = function.structured_input_signature[1]
    assert set(given) == set(signature['inputs'])
    assert set(function.structured_outputs) == set(signature['outputs'])
    for key, about in signature['inputs'].items():
      assert about['dtype'] == given[key].dtype.name
      assert [None if n == 'B' else n for n in about['shape']] == (
        given[key].shape.as_list()
      )
      assert about['meaning']


@pytest.fixture(name='catch_run', scope='module')
def fixture_catch_run(tmp_path_factory):
  directory = tmp_path_factory.mktemp('play')
  agent, _ = make_run(directory / 'run', 'catch', {'core': 'lstm'})
  # Logits of fresh weights hardly differ: make the policy choose.
  head = agent.policy_logits.kernel
  head.assign(20 * head)
  arrays = {v.path: v.numpy() for v in agent.trainable_variables}
  saved = checkpoint.read(directory / 'run' / 'checkpoint-00000000.npz')
  checkpoint.Checkpointer(str(directory / 'run')).save(
    {**saved.arrays, **arrays}, saved.counters
  )
  export_policy.export(str(directory / 'run'), str(directory / 'policy'))
  return agent, directory / 'policy'


def test_samples_follow_the_policy_and_the_seed(catch_run):
  _, directory = catch_run
  policy = tf.saved_model.load(str(directory))
  batch_size = 2000
  slot = {
    'action': np.zeros(batch_size, np.int32),
    'reward': np.zeros(batch_size, np.float32),
    'done': np.ones(batch_size, bool),
    'first': np.ones(batch_size, bool),
    'observation': np.ones((batch_size, 10, 5), np.float32),
  }
  state = policy.signatures['initial_state'](batch_size=tf.constant(batch_size))

  def sample(seed):
    output = policy.signatures['step'](
      **{name: tf.constant(value) for name, value in slot.items()},
      **state,
      seed=tf.constant([1, seed]),
    )
    return output['action'].numpy(), output['policy_logits'].numpy()

  actions, logits = sample(1)
  expected = np.exp(logits[0]) / np.exp(logits[0]).sum()
  share = np.bincount(actions, minlength=3) / batch_size
  np.testing.assert_allclose(share, expected, atol=0.05)
  np.testing.assert_array_equal(actions, sample(1)[0])
  assert np.any(actions != sample(2)[0])


def test_the_example_plays_without_this_package(catch_run, tmp_path):
  agent, directory = catch_run
  program = [
    'import runpy, sys',
    "sys.modules['scalable_agent'] = None",
    f'sys.argv = ["", {str(directory)!r}, "--greedy", "--num_episodes=5"]',
    f'runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")',
  ]
  result = subprocess.run(
    [sys.executable, '-c', '\n'.join(program)],
    capture_output=True,
    cwd=tmp_path,
    env={'CUDA_VISIBLE_DEVICES': ''},
    text=True,
  )
  returns = greedy_returns(agent, 5)
  assert result.stdout == (
    f'5 episodes, mean return {np.mean(returns):.2f}, last {returns[-1]:g}\n'
  ), result.stderr


def greedy_returns(agent, num_episodes):
  """What the agent gets in the project's own game."""
  env, state = catch.Catch(seed=1), agent.initial_state(1)
  timestep, action, reward = env.reset(), np.zeros(1, np.int32), 0.0
  returns, done = [0.0], True
  while True:
    flags = np.array([done])
    output, state = agent.step(
      action,
      structs.EnvOutput(
        np.array([reward], np.float32),
        (),
        flags,
        flags,
        (),
        timestep.observation[np.newaxis],
      ),
      state,
    )
    action = np.argmax(output.policy_logits, axis=-1).astype(np.int32)
    timestep = env.step(action[0])
    reward, done = timestep.reward, timestep.last()
    returns[-1] += reward
    if done and len(returns) == num_episodes:
      return returns
    if done:
      timestep = env.reset()
      returns.append(0.0)


@pytest.mark.parametrize(
  ('prepare', 'text'),
  [
    (lambda path: None, 'config.json is missing'),
    (
      lambda path: run_record.record_start(
        str(path / 'run'),
        config.Config(task=config.TaskConfig(level_name='catch')),
        ['train.py'],
      ),
      'There is no checkpoint in',
    ),
    (
      lambda path: (path / 'policy').mkdir() or (path / 'policy/x').touch(),
      'is not empty; name a new directory.',
    ),
  ],
  ids=['no run', 'no checkpoint', 'used directory'],
)
def test_mistakes_are_answered_in_one_sentence(tmp_path, prepare, text):
  prepare(tmp_path)
  result = subprocess.run(
    [
      sys.executable,
      ROOT / 'scripts' / 'export_policy.py',
      f'--logdir={tmp_path / "run"}',
      f'--output={tmp_path / "policy"}',
    ],
    capture_output=True,
    env={'PYTHONPATH': f'{ROOT / "scripts"}:{ROOT}'},
    text=True,
  )
  assert result.returncode == 2
  assert text in result.stderr
  assert len(result.stderr.splitlines()) == 1
