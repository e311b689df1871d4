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
"""The agent: sizes, inputs, state, precision, saving, and its error texts."""

import numpy as np
import pytest
import tensorflow as tf
import tree
from dm_env import specs

from scalable_agent import config, structs
from scalable_agent.nets import agent as agent_lib

T, B = 6, 3
DMLAB = {
  'RGB_INTERLEAVED': specs.Array((72, 96, 3), np.uint8),
  'INSTR': specs.StringArray(()),
}
SMALL_LAB = {**DMLAB, 'RGB_INTERLEAVED': specs.Array((20, 24, 3), np.uint8)}
ATARI = specs.Array((84, 84), np.uint8)
SMALL_ATARI = specs.Array((20, 24), np.uint8)
VECTOR = specs.Array((4,), np.float32)
MIXED = {
  'camera': specs.Array((20, 20, 3), np.uint8),
  'body': {'speed': specs.Array((), np.float64), 'q': VECTOR},
}
PADDLE = specs.DiscreteArray(6)
BUTTONS = specs.BoundedArray((2,), np.int32, minimum=0, maximum=[1, 2])
STEERING = specs.BoundedArray((2,), np.float32, minimum=-1, maximum=[1, 3])


def make_agent(observation, action=PADDLE, frame_stack=1, seed=0, **settings):
  return agent_lib.Agent(
    structs.EnvironmentSpec(observation, action),
    config.AgentConfig(**settings),
    frame_stack=frame_stack,
    seed=seed,
  )


def random_values(spec, random, axes):
  """Values that `spec` allows, with `axes` before its own."""
  shape = (*axes, *spec.shape)
  if isinstance(spec, specs.StringArray):
    words = np.array(['', 'red ball', 'go to the door'], object)
    return words[random.randint(3, size=shape)]
  if isinstance(spec, specs.DiscreteArray):
    return random.randint(spec.num_values, size=shape).astype(np.int32)
  if isinstance(spec, specs.BoundedArray) and spec.dtype == np.int32:
    return random.randint(spec.maximum + 1, size=shape).astype(np.int32)
  if spec.dtype == np.uint8:
    return random.randint(256, size=shape).astype(np.uint8)
  return random.uniform(-1, 1, size=shape).astype(spec.dtype)


def make_inputs(observation, action=PADDLE, seed=0, axes=(T, B), end=0.3):
  """Actions and slots of random play; a game ends with probability `end`."""
  random = np.random.RandomState(seed)
  first = random.uniform(size=axes) < end
  env_outputs = structs.EnvOutput(
    reward=random.standard_normal(axes).astype(np.float32),
    info=None,
    done=first | (random.uniform(size=axes) < end),
    first=first,
    truncated=None,
    observation=tree.map_structure(
      lambda spec: random_values(spec, random, axes), observation
    ),
  )
  return random_values(action, random, axes), env_outputs


def at(nest, index):
  """Slots `index` of a nest of sequences."""
  return tree.map_structure(lambda x: None if x is None else x[index], nest)


def assert_equal(actual, expected, atol=1e-6):
  tree.map_structure(
    lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-5, atol=atol),
    actual,
    expected,
  )


# --- Sizes -------------------------------------------------------------------


@pytest.mark.parametrize(
  ('observation', 'num_actions', 'frame_stack', 'torso', 'expected'),
  [
    (DMLAB, 9, 1, 'deep', 1_628_010),
    (DMLAB, 9, 1, 'shallow', 1_230_426),
    (ATARI, 18, 4, 'deep', 1_094_115),
    # DQN's, 1,693,362 by hand, and a baseline of 513.
    (ATARI, 18, 4, 'nature', 1_693_875),
  ],
  ids=['deep DMLab', 'shallow DMLab', 'deep Atari', 'nature Atari'],
)
def test_number_of_parameters(
  observation, num_actions, frame_stack, torso, expected
):
  agent = make_agent(
    observation, specs.DiscreteArray(num_actions), frame_stack, torso=torso
  )
  assert agent.count_params() == expected
  assert sum(v.numpy().size for v in agent.trainable_variables) == expected


@pytest.mark.parametrize(
  ('settings', 'num_inputs'),
  [
    ({'core': 'none'}, None),
    ({'core': 'lstm'}, 256 + 1 + 6),
    ({'core': 'lstm', 'use_last_action': False}, 256 + 1),
    ({'core': 'lstm', 'use_last_reward': False}, 256 + 6),
    ({}, None),
  ],
  ids=str,
)
def test_what_the_core_is_fed(settings, num_inputs):
  agent = make_agent(VECTOR, **settings)
  if num_inputs is None:
    assert agent.core is None
    assert agent.policy_logits.kernel.shape == (256, 6)
  else:
    assert agent.core.kernel.shape == (num_inputs + 256, 4 * 256)


def test_last_action_and_reward_without_a_core_feed_the_heads():
  agent = make_agent(VECTOR, use_last_action=True, use_last_reward=True)
  assert agent.core is None
  assert agent.policy_logits.kernel.shape == (256 + 1 + 6, 6)


def test_an_instruction_brings_the_encoder_and_the_core():
  agent = make_agent(SMALL_LAB)
  assert agent.instruction_encoder is not None
  assert agent.core is not None
  assert make_agent(SMALL_ATARI).instruction_encoder is None
  assert make_agent(SMALL_LAB, core='none').core is None


def test_unused_parts_do_not_exist():
  agent = make_agent(MIXED)
  assert len(agent.image_torsos) == 1
  assert agent.vector_torso is not None
  assert make_agent(VECTOR).image_torsos == ()
  assert make_agent(SMALL_ATARI).vector_torso is None
  flat = make_agent(MIXED, torso='mlp')
  assert flat.image_torsos == ()
  assert flat.vector_torso.linear_0.kernel.shape[0] == 20 * 20 * 3 + 5


# --- State and time ----------------------------------------------------------

# Observation, action, frame stack, settings.
AGENTS = {
  'lab deep': (SMALL_LAB, PADDLE, 1, {}),
  'lab shallow': (SMALL_LAB, PADDLE, 1, {'torso': 'shallow'}),
  'atari': (SMALL_ATARI, PADDLE, 4, {'torso': 'shallow'}),
  'atari lstm': (SMALL_ATARI, PADDLE, 4, {'torso': 'shallow', 'core': 'lstm'}),
  'atari mlp': (SMALL_ATARI, BUTTONS, 3, {'torso': 'mlp', 'core': 'lstm'}),
  'mixed': (MIXED, STEERING, 1, {'core': 'lstm'}),
  'mixed stacked': (MIXED, STEERING, 2, {'use_last_action': True}),
  'vector': (VECTOR, BUTTONS, 1, {}),
}
each_agent = pytest.mark.parametrize('kind', AGENTS.values(), ids=AGENTS.keys())


@each_agent
def test_step_by_step_equals_the_unroll(kind):
  observation, action, frame_stack, settings = kind
  agent = make_agent(observation, action, frame_stack, **settings)
  actions, env_outputs = make_inputs(observation, action)
  state = agent.initial_state(B)
  output, last = agent.unroll(actions, env_outputs, state)
  assert output.policy_logits.shape == (T, B, agent.policy_logits.bias.shape[0])
  assert output.baseline.shape == (T, B)
  step = tf.function(agent.step)
  for t in range(T):
    stepped, state = step(actions[t], at(env_outputs, t), state)
    assert_equal(stepped, at(output, t))
  assert_equal(state, last)
  assert step.experimental_get_tracing_count() == 1


@each_agent
def test_state_before_slot_0_reproduces_what_was_acted(kind):
  """The learner unrolls again from the stored state and gets the same."""
  observation, action, frame_stack, settings = kind
  agent = make_agent(observation, action, frame_stack, **settings)
  actions, env_outputs = make_inputs(observation, action, end=0.1)
  whole, _ = agent.unroll(actions, env_outputs, agent.initial_state(B))
  _, middle = agent.unroll(
    actions[:2], at(env_outputs, slice(2)), agent.initial_state(B)
  )
  again, _ = agent.unroll(actions[2:], at(env_outputs, slice(2, None)), middle)
  assert_equal(again, at(whole, slice(2, None)))


@each_agent
def test_after_a_reset_nothing_of_the_past_is_left(kind):
  observation, action, frame_stack, settings = kind
  agent = make_agent(observation, action, frame_stack, **settings)
  actions, env_outputs = make_inputs(observation, action, end=0)
  _, used = agent.unroll(actions, env_outputs, agent.initial_state(B))
  starts = np.zeros((T, B), bool)
  starts[0] = True
  env_outputs = env_outputs._replace(done=starts, first=starts)
  expected = agent.unroll(actions, env_outputs, agent.initial_state(B))
  assert_equal(agent.unroll(actions, env_outputs, used), expected)
  # Without the flags the past would be seen, if there is a memory at all.
  going_on = env_outputs._replace(done=starts & False, first=starts & False)
  output, _ = agent.unroll(actions, going_on, used)
  has_memory = agent.core is not None or frame_stack > 1
  assert has_memory == np.any(output.baseline != expected[0].baseline)


def test_a_lost_life_resets_the_core_but_not_the_frames():
  agent = make_agent(SMALL_ATARI, frame_stack=4, torso='shallow', core='lstm')
  actions, env_outputs = make_inputs(SMALL_ATARI, end=0)
  _, used = agent.unroll(actions, env_outputs, agent.initial_state(B))
  one = at(env_outputs, slice(1))
  life_lost = one._replace(done=np.ones((1, B), bool))
  actual = agent.unroll(actions[:1], life_lost, used)
  fresh_core = agent.initial_state(B)._replace(frames=used.frames)
  assert_equal(actual, agent.unroll(actions[:1], one, fresh_core))
  np.testing.assert_array_equal(
    actual[1].frames[:, :-1], used.frames[:, 1:].numpy()
  )


def test_columns_do_not_mix():
  agent = make_agent(SMALL_LAB, torso='shallow')
  actions, env_outputs = make_inputs(SMALL_LAB)
  state = agent.initial_state(B)
  whole, _ = agent.unroll(actions, env_outputs, state)
  for b in range(B):
    column = (slice(None), slice(b, b + 1))
    alone, _ = agent.unroll(
      actions[column], at(env_outputs, column), agent.initial_state(1)
    )
    assert_equal(alone, at(whole, column))


def test_one_trace_serves_all_calls_of_a_shape():
  agent = make_agent(SMALL_LAB, torso='shallow')
  unroll = tf.function(agent.unroll)
  state = agent.initial_state(B)
  for seed in range(4):
    _, state = unroll(*make_inputs(SMALL_LAB, seed=seed), state)
  assert unroll.experimental_get_tracing_count() == 1


def test_batch_size_may_be_unknown_while_tracing():
  agent = make_agent(SMALL_LAB, torso='shallow')
  actions, env_outputs = make_inputs(SMALL_LAB)
  env_outputs = env_outputs._replace(info=(), truncated=())
  state = agent.initial_state(B)
  spec = tree.map_structure(
    lambda x: tf.TensorSpec([T, None, *x.shape[2:]], x.dtype),
    tree.map_structure(tf.constant, (actions, env_outputs)),
  )
  state_spec = tree.map_structure(
    lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), state
  )
  unroll = tf.function(agent.unroll, input_signature=[*spec, state_spec])
  assert_equal(
    unroll(actions, env_outputs, state),
    agent.unroll(actions, env_outputs, state),
  )


def test_learner_graph_does_not_grow_with_the_unroll():
  agent = make_agent(SMALL_LAB, torso='shallow')

  def num_nodes(num_steps):
    actions, env_outputs = make_inputs(SMALL_LAB, axes=(num_steps, 2))
    env_outputs = env_outputs._replace(info=(), truncated=())

    @tf.function
    def update(actions, env_outputs, state):
      with tf.GradientTape() as tape:
        output, _ = agent.unroll(actions, env_outputs, state)
        loss = tf.reduce_sum(output.baseline)
      return tape.gradient(loss, agent.trainable_variables)

    inputs = tree.map_structure(
      tf.constant, (actions, env_outputs, agent.initial_state(2))
    )
    graph = update.get_concrete_function(*inputs).graph
    return len(graph.as_graph_def().node)

  assert num_nodes(101) < num_nodes(6) + 20


@pytest.mark.parametrize('kind', ['atari lstm', 'mixed stacked'])
def test_compiled_by_xla(kind):
  observation, action, frame_stack, settings = AGENTS[kind]
  agent = make_agent(observation, action, frame_stack, **settings)
  actions, env_outputs = make_inputs(observation, action)
  inputs = actions, env_outputs._replace(info=(), truncated=())
  inputs = tree.map_structure(tf.constant, inputs)
  state = agent.initial_state(B)
  compiled = tf.function(agent.unroll, jit_compile=True)(*inputs, state)
  assert_equal(compiled, agent.unroll(*inputs, state), atol=1e-5)


# --- Inputs ------------------------------------------------------------------


def baseline(agent, actions, env_outputs):
  state = agent.initial_state(env_outputs.done.shape[1])
  return agent.unroll(actions, env_outputs, state)[0].baseline.numpy()


def test_the_last_reward_is_clipped_to_one():
  agent = make_agent(VECTOR, core='lstm')
  actions, env_outputs = make_inputs(VECTOR)

  def rewarded(reward):
    reward = np.full((T, B), reward, np.float32)
    return baseline(agent, actions, env_outputs._replace(reward=reward))

  np.testing.assert_array_equal(rewarded(7), rewarded(1))
  np.testing.assert_array_equal(rewarded(-7), rewarded(-1))
  assert np.any(rewarded(0.5) != rewarded(1))


def expose(agent):
  """Makes the network hand its vector through: baseline = sum(observation)."""
  for layer in (agent.vector_torso.linear_0, agent.vector_torso.linear_1):
    layer.kernel.assign(np.eye(*layer.kernel.shape))
  agent.baseline.kernel.assign(np.ones(agent.baseline.kernel.shape))
  return agent


def slots(observation):
  """One slot of one column with `observation`, and nothing else."""
  flags = np.ones((1, 1), bool)
  return np.zeros((1, 1), np.int32), structs.EnvOutput(
    reward=np.zeros((1, 1), np.float32),
    info=None,
    done=flags,
    first=flags,
    truncated=None,
    observation=tree.map_structure(lambda x: x[None, None], observation),
  )


@pytest.mark.parametrize(
  ('values', 'expected'),
  [
    (np.array([0.03, 0.25, 253.0], np.float32), 253.28),
    (np.array([0.03, 0.25, 253.0], np.float64), 253.28),
    (np.array([51, 204, 255], np.uint8), 2.0),
    (np.array([[51, 204], [255, 0]], np.uint8), 2.0),
    (np.array(7, np.int64), 7.0),
    (np.array([3, 300], np.int32), 303.0),
    (np.array([True, False, True]), 2.0),
  ],
  ids=['float32', 'float64', 'uint8', 'image', 'scalar', 'int32', 'bool'],
)
def test_only_uint8_is_scaled_and_once(values, expected):
  agent = expose(
    make_agent(specs.Array(values.shape, values.dtype), torso='mlp')
  )
  np.testing.assert_allclose(
    baseline(agent, *slots(values)), [[expected]], rtol=1e-6
  )


def test_an_image_reaches_the_torso_between_0_and_1(monkeypatch):
  agent = make_agent(specs.Array((20, 20, 3), np.uint8), torso='shallow')
  seen = []
  call = type(agent.image_torsos[0]).call

  def record(self, images):
    seen.append(images.numpy())
    return call(self, images)

  monkeypatch.setattr(type(agent.image_torsos[0]), 'call', record)
  values = np.full((20, 20, 3), 51, np.uint8)
  values[0, 0, 0] = 255
  baseline(agent, *slots(values))
  np.testing.assert_allclose(seen[0][0], values / 255, rtol=1e-6)


def test_parts_of_a_nest_come_in_the_order_of_their_keys():
  names = {'b': 2, 'a': 1, 'c': {'e': 4, 'd': 3}}
  spec = tree.map_structure(lambda _: specs.Array((), np.float32), names)
  agent = expose(make_agent(spec))
  agent.vector_torso.linear_0.kernel.assign(
    np.eye(4, 256) * [[1], [10], [100], [1000]]
  )
  values = tree.map_structure(np.float32, names)
  np.testing.assert_allclose(baseline(agent, *slots(values)), [[4321]])
  reordered = {'c': {'d': np.float32(3), 'e': np.float32(4)}}
  reordered.update(a=np.float32(1), b=np.float32(2))
  np.testing.assert_allclose(baseline(agent, *slots(reordered)), [[4321]])


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    ({'q': np.zeros(4, np.float64)}, r'q is float64 .*declares float32'),
    ({'q': np.zeros(5, np.float32)}, r'q is .*\(5,\).*declares .*\(4,\)'),
    ({'q': None}, r'has image, but its spec declares image, q;'),
    ({'z': np.zeros(4, np.float32)}, r'has image, q, z, but'),
    ({'image': np.zeros((20, 20, 3), np.float32)}, r'image is float32'),
  ],
  ids=['dtype', 'shape', 'missing', 'surplus', 'image'],
)
def test_an_observation_that_is_not_as_declared_is_refused(change, message):
  declared = {'image': specs.Array((20, 20, 3), np.uint8), 'q': VECTOR}
  agent = make_agent(declared)
  values = {k: np.zeros(s.shape, s.dtype) for k, s in declared.items()}
  values = {k: v for k, v in (values | change).items() if v is not None}
  with pytest.raises(ValueError, match=message):
    baseline(agent, *slots(values))


def test_axes_that_differ_are_refused():
  agent = make_agent(VECTOR)
  actions, env_outputs = make_inputs(VECTOR)
  state = agent.initial_state(B)
  with pytest.raises(ValueError, match=r'same axes.*actions \(5, 3\)'):
    agent.unroll(actions[:-1], env_outputs, state)
  with pytest.raises(ValueError, match=r'same axes.*reward \(6,\)'):
    agent.unroll(
      actions, env_outputs._replace(reward=env_outputs.reward[:, 0]), state
    )


@pytest.mark.parametrize(
  ('observation', 'frame_stack', 'settings', 'message'),
  [
    (VECTOR, 1, {'torso': 'deep'}, "torso is 'deep'.*no image"),
    (VECTOR, 4, {}, 'frame_stack is 4.*has 0 uint8 images'),
    (specs.Array((20, 20, 3), np.float32), 4, {}, 'has 0 uint8 images'),
    ({'a': ATARI, 'b': ATARI}, 4, {}, 'frame_stack is 4.*has 2 uint8 images'),
    (
      {'a': specs.StringArray(()), 'b': specs.StringArray(())},
      1,
      {},
      'strings at a, b; at most one',
    ),
    (specs.StringArray((2,)), 1, {}, r'at most one, of shape \[\]'),
  ],
  ids=[
    'no image',
    'none to stack',
    'floats',
    'two to stack',
    'strings',
    'string array',
  ],
)
def test_agents_that_cannot_be_are_refused(
  observation, frame_stack, settings, message
):
  with pytest.raises(ValueError, match=message):
    make_agent(observation, frame_stack=frame_stack, **settings)


# --- Policy ------------------------------------------------------------------


@pytest.mark.parametrize(
  'action', [PADDLE, BUTTONS, STEERING], ids=['one', 'several', 'real']
)
def test_policy_over_each_action_space(action):
  agent = make_agent(VECTOR, action, core='lstm')
  actions, env_outputs = make_inputs(VECTOR, action)
  output, _ = agent.unroll(actions, env_outputs, agent.initial_state(B))
  policy = agent.distribution(output.policy_logits)
  for drawn in (policy.sample(seed=[1, 2]), policy.mode()):
    assert drawn.shape == actions.shape
    assert drawn.dtype == actions.dtype
    assert policy.log_prob(drawn).shape == (T, B)
    assert np.isfinite(policy.log_prob(drawn)).all()
    for values in drawn.numpy().reshape(T * B, -1):
      action.validate(values.reshape(action.shape))
  assert policy.entropy().shape == (T, B)
  assert np.isfinite(policy.log_prob(actions)).all()


# --- Precision ---------------------------------------------------------------


@pytest.mark.parametrize('precision', ['mixed_float16', 'mixed_bfloat16'])
@pytest.mark.parametrize('kind', ['lab shallow', 'atari', 'mixed'])
def test_heads_and_state_are_float32_under_half_precision(kind, precision):
  observation, action, frame_stack, settings = AGENTS[kind]
  agent = make_agent(
    observation, action, frame_stack, precision=precision, **settings
  )
  exact = make_agent(observation, action, frame_stack, **settings)
  inputs = make_inputs(observation, action)
  output, state = agent.unroll(*inputs, agent.initial_state(B))
  expected, _ = exact.unroll(*inputs, exact.initial_state(B))
  for leaf in (*output, *tree.flatten(state.lstm)):
    assert leaf.dtype == tf.float32
  assert_equal(output, expected, atol=0.03)
  assert np.any(output.baseline != expected.baseline)
  for variable in agent.trainable_variables:
    assert variable.dtype == 'float32'


@pytest.mark.parametrize('precision', ['mixed_float16', 'mixed_bfloat16'])
def test_large_logits_do_not_overflow(precision):
  agent = make_agent(VECTOR, precision=precision)
  agent.policy_logits.bias.assign(70_000 + np.arange(6))
  agent.policy_logits.kernel.assign(np.zeros((256, 6)))
  actions, env_outputs = make_inputs(VECTOR)
  output, _ = agent.unroll(actions, env_outputs, agent.initial_state(B))
  np.testing.assert_array_equal(
    output.policy_logits[0, 0], 70_000 + np.arange(6)
  )
  policy = agent.distribution(output.policy_logits)
  assert np.isfinite(policy.log_prob(actions)).all()
  assert np.isfinite(policy.entropy()).all()


# --- Variables ---------------------------------------------------------------


def test_the_seed_fixes_the_weights():
  first, same, other = (make_agent(MIXED, seed=seed) for seed in (1, 1, 2))
  for a, b, c in zip(
    *(x.trainable_variables for x in (first, same, other)), strict=True
  ):
    np.testing.assert_array_equal(a, b)
    assert a.name == 'bias' or np.any(a.numpy() != c.numpy())


def test_variables_have_the_same_unique_names_in_every_agent():
  agents = [make_agent(SMALL_LAB) for _ in range(2)]
  paths = [[v.path for v in agent.trainable_variables] for agent in agents]
  assert paths[0] == paths[1]
  assert len(set(paths[0])) == len(paths[0])
  assert paths[0][:2] == [
    'agent/image_torso_0/section_0/conv/kernel',
    'agent/image_torso_0/section_0/conv/bias',
  ]
  assert paths[0][-9:] == [
    'agent/instruction_encoder/embeddings',
    'agent/instruction_encoder/lstm/kernel',
    'agent/instruction_encoder/lstm/bias',
    'agent/core/kernel',
    'agent/core/bias',
    'agent/policy_logits/kernel',
    'agent/policy_logits/bias',
    'agent/baseline/kernel',
    'agent/baseline/bias',
  ]


def test_no_variable_is_made_or_hidden_by_a_call():
  agent = make_agent(MIXED, STEERING, 2, core='lstm')
  before = [v.path for v in agent.variables]
  inputs = make_inputs(MIXED, STEERING)
  with tf.GradientTape() as tape:
    output, _ = agent.unroll(*inputs, agent.initial_state(B))
    loss = tf.reduce_sum(output.baseline) + tf.reduce_sum(output.policy_logits)
  assert [v.path for v in agent.variables] == before
  assert before == [v.path for v in agent.trainable_variables]
  watched = {id(v) for v in tape.watched_variables()}
  assert watched == {id(v.value) for v in agent.trainable_variables}
  gradients = tape.gradient(loss, agent.trainable_variables)
  assert all(np.abs(g).sum() > 0 for g in gradients)


@pytest.mark.parametrize('way', ['weights', 'checkpoint'])
def test_outputs_are_the_same_after_saving_and_loading(tmp_path, way):
  saved, loaded = (make_agent(SMALL_LAB, seed=seed) for seed in (1, 2))
  actions, env_outputs = make_inputs(SMALL_LAB)
  before = baseline(saved, actions, env_outputs)
  assert np.any(baseline(loaded, actions, env_outputs) != before)
  if way == 'weights':
    path = str(tmp_path / 'agent.weights.h5')
    saved.save_weights(path)
    loaded.load_weights(path)
  else:
    path = tf.train.Checkpoint(agent=saved).write(str(tmp_path / 'agent'))
    status = tf.train.Checkpoint(agent=loaded).read(path)
    status.assert_existing_objects_matched().assert_consumed()
  np.testing.assert_array_equal(baseline(loaded, actions, env_outputs), before)
