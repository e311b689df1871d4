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
"""An agent as a TensorFlow SavedModel that needs nothing but TensorFlow."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from dm_env import specs

from scalable_agent import structs
from scalable_agent.nets import agent as agent_lib
from scalable_agent.nets import frame_stack, observations

_NOTHING = 'core_state_none'
_OPSET = 17
_MEANINGS = {
  'batch_size': 'number of environments B',
  'action': 'that led to the observation; zeros at first',
  'reward': 'of that action, as the environment gave it; 0 at first',
  'done': 'the observation begins an episode; true at first',
  'first': 'the environment was really reset; differs from done where a lost '
  'life ends an episode in training',
  'observation': 'of each environment',
  'seed': 'two numbers, others for each step, that decide the sampled action',
}
_OUTPUT_MEANINGS = {
  'action': 'to take next, a sample of the policy',
  'greedy_action': 'the most likely one',
  'policy_logits': 'parameters of the policy',
  'baseline': 'value of the observation',
}


class SavedPolicy:
  """The two signatures of an agent.

  A core state is a dict of tensors `core_state_*` of `[B, ...]`, never empty:
  an agent without memory has `core_state_none` of `[B, 0]`, so that every
  policy is used in the same way.
  """

  def __init__(self, agent: agent_lib.Agent, spec: structs.EnvironmentSpec):
    """Traces the signatures.

    Args:
      agent: built for `spec`.
      spec: what it sees and does.
    """
    self._agent = agent
    self._observation = spec.observation
    self._action = spec.action
    inputs = _step_inputs(spec)
    state = self._named_state(agent.initial_state(1))
    inputs |= {
      name: tf.TensorSpec([None, *value.shape[1:]], value.dtype, name)
      for name, value in state.items()
    }
    self._inputs = inputs
    with _plain_operations():
      self._functions = {
        'initial_state': tf.function(
          self._initial_state,
          autograph=False,
          input_signature=[tf.TensorSpec([], tf.int32, 'batch_size')],
        ).get_concrete_function(),
        'step': tf.function(self._step, autograph=False).get_concrete_function(
          **inputs
        ),
      }

  def save(self, directory: str) -> None:
    """Writes the SavedModel: the weights, and the signatures."""
    module = tf.Module()
    module.weights = [v.value for v in self._agent.trainable_variables]
    tf.saved_model.save(
      module,
      directory,
      signatures=self._functions,
      # The policy is not trained elsewhere; gradients need not be saved.
      options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
    )

  def save_onnx(self, path: str) -> None:
    """Writes `step` as ONNX, without the sample and its seed.

    The next core state is `next_core_state_*`, for no output may be called as
    an input is; a policy without memory has none.

    Raises:
      ValueError: ONNX cannot express this policy.
    """
    if any(spec.dtype == tf.string for spec in self._inputs.values()):
      raise ValueError(
        'The policy reads instructions, and ONNX has no operation that splits '
        'or hashes text; export it without --onnx.'
      )
    # Only now: it is not needed for anything else, and may not be installed.
    import tf2onnx

    inputs = {
      name: spec
      for name, spec in self._inputs.items()
      if name not in ('seed', _NOTHING)
    }

    def choose(*values):
      outputs = self._choice(dict(zip(inputs, values, strict=True)))
      outputs.pop(_NOTHING, None)
      return {
        f'next_{name}' if name in inputs else name: value
        for name, value in outputs.items()
      }

    with _plain_operations():
      model, _ = tf2onnx.convert.from_function(
        tf.function(choose, autograph=False),
        input_signature=list(inputs.values()),
        opset=_OPSET,
      )
    with open(path, 'wb') as file:
      file.write(model.SerializeToString())

  def describe(self) -> dict[str, Any]:
    """Names, shapes, dtypes and meanings of all inputs and outputs."""
    described = {}
    for name, function in self._functions.items():
      given = {
        spec.name: spec
        for spec in tree.flatten(function.structured_input_signature)
      }
      described[name] = {
        'inputs': _describe(given, _MEANINGS),
        'outputs': _describe(function.structured_outputs, _OUTPUT_MEANINGS),
      }
    return described

  def describe_actions(self) -> dict[str, Any]:
    """What the policy chooses from."""
    action = self._action
    if isinstance(action, specs.DiscreteArray):
      return {'kind': 'discrete', 'num_values': action.num_values}
    kind = 'box' if action.dtype.kind == 'f' else 'multi_discrete'
    return {
      'kind': kind,
      'minimum': np.broadcast_to(action.minimum, action.shape).tolist(),
      'maximum': np.broadcast_to(action.maximum, action.shape).tolist(),
    }

  def _initial_state(self, batch_size):
    return self._named_state(self._agent.initial_state(batch_size), batch_size)

  def _step(self, **inputs):
    outputs = self._choice(inputs)
    distribution = self._agent.distribution(outputs['policy_logits'])
    return {'action': distribution.sample(seed=inputs['seed']), **outputs}

  def _choice(self, inputs):
    """All outputs of a step but the sample."""
    leaves = [inputs[name] for name in _observation_names(self._observation)]
    env_output = structs.EnvOutput(
      reward=inputs['reward'],
      info=(),
      done=inputs['done'],
      first=inputs['first'],
      truncated=(),
      observation=tree.unflatten_as(self._observation, leaves),
    )
    state = agent_lib.CoreState(
      lstm=(
        (inputs['core_state_c'], inputs['core_state_h'])
        if 'core_state_c' in inputs
        else ()
      ),
      frames=inputs.get('core_state_frames', ()),
    )
    net, state = self._agent.step(inputs['action'], env_output, state)
    return {
      'greedy_action': self._agent.distribution(net.policy_logits).mode(),
      'policy_logits': net.policy_logits,
      'baseline': net.baseline,
      **self._named_state(state, tf.shape(inputs['reward'])[0]),
    }

  def _named_state(self, state, batch_size=1):
    """A core state as a dict that is never empty."""
    named = {}
    if self._agent.core is not None:
      named['core_state_c'], named['core_state_h'] = state.lstm
    if not isinstance(state.frames, tuple):
      named['core_state_frames'] = state.frames
    return named or {_NOTHING: tf.zeros([batch_size, 0])}


@contextlib.contextmanager
def _plain_operations() -> Iterator[None]:
  """Traces the stack of frames without what makes it fast here.

  Who loads the policy elsewhere may have no XLA, and ONNX has no bit cast.
  """
  compiled, packed = frame_stack.stack_decoded, frame_stack._PACKED_DTYPES
  frame_stack.stack_decoded = compiled.python_function
  frame_stack._PACKED_DTYPES = {}
  try:
    yield
  finally:
    frame_stack.stack_decoded = compiled
    frame_stack._PACKED_DTYPES = packed


def _step_inputs(spec):
  """Input specs of `step`, without the core state."""
  action = spec.action
  dtype = tf.as_dtype(structs.no_actions(action, 1).dtype)
  inputs = {
    'action': tf.TensorSpec([None, *action.shape], dtype),
    'reward': tf.TensorSpec([None], tf.float32),
    'done': tf.TensorSpec([None], tf.bool),
    'first': tf.TensorSpec([None], tf.bool),
    'seed': tf.TensorSpec([2], tf.int32),
  }
  for name, leaf in zip(
    _observation_names(spec.observation),
    tree.flatten(spec.observation),
    strict=True,
  ):
    text = isinstance(leaf, specs.StringArray) or leaf.dtype.kind in 'SUO'
    dtype = tf.string if text else tf.as_dtype(leaf.dtype)
    inputs[name] = tf.TensorSpec([None, *leaf.shape], dtype)
  return {
    name: tf.TensorSpec(spec.shape, spec.dtype, name)
    for name, spec in inputs.items()
  }


def _observation_names(observation):
  """A signature's name for each leaf: `observation`, `observation_RGB`."""
  return [
    '_'.join(['observation', *observations.name_of(path).split('.')])
    if path
    else 'observation'
    for path, _ in tree.flatten_with_path(observation)
  ]


def _describe(values, meanings):
  return {
    name: {
      'shape': ['B', *value.shape[1:]]
      if value.shape.rank and name != 'seed'
      else list(value.shape),
      'dtype': value.dtype.name,
      'meaning': meanings.get(
        name.partition('_')[0] if name.startswith('observation') else name,
        'memory of the policy; pass it on to the next step',
      ),
    }
    for name, value in sorted(values.items())
  }
