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
"""Stages `network_*`, `instruction` and `initial_weights`."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree
from dm_env import specs

from porting import kit, recorder
from scalable_agent import config, structs
from scalable_agent.nets import agent as agent_lib
from scalable_agent.nets import instruction, observations

VOCABULARY = (
  '',
  'go to the red ball',
  'pick up the large blue object',
  'left',
  'the small pink cake please now',
)
_CASE = 'unroll'


class Network(NamedTuple):
  """What an agent is made from."""

  about: str
  observation: Any
  num_actions: int
  settings: dict[str, Any]
  frame_stack: int = 1

  def make(self, seed: int = 0) -> agent_lib.Agent:
    """The agent, freshly initialised."""
    spec = structs.EnvironmentSpec(
      self.observation, specs.DiscreteArray(self.num_actions), 4
    )
    return agent_lib.Agent(
      spec, config.AgentConfig(**self.settings), self.frame_stack, seed
    )


_ATARI = specs.Array((84, 84), np.uint8)
_LAB = {'RGB_INTERLEAVED': specs.Array((72, 96, 3), np.uint8)}
_INSTRUCTION = {'INSTR': specs.StringArray(())}

NETWORKS = {
  'shallow': Network(
    'Two convolutions without padding, on four stacked Atari frames; no core.',
    _ATARI,
    6,
    {'torso': 'shallow', 'core': 'none'},
    4,
  ),
  'deep': Network(
    'The residual network of 15 convolutions, on four stacked Atari frames; no '
    'core.',
    _ATARI,
    6,
    {'torso': 'deep', 'core': 'none'},
    4,
  ),
  'shallow_lstm': Network(
    'Two convolutions and the LSTM, with last reward and last action, on '
    'DeepMind Lab frames.',
    _LAB,
    9,
    {'torso': 'shallow', 'core': 'lstm'},
  ),
  'deep_lstm_instruction': Network(
    "The original's network: residual torso, instruction encoder, LSTM, with "
    'last reward and last action, on DeepMind Lab frames.',
    {**_LAB, **_INSTRUCTION},
    9,
    {'torso': 'deep', 'core': 'lstm'},
  ),
  'mlp': Network(
    'Two linear layers, for observations that are numbers; no core.',
    specs.Array((4,), np.float32),
    2,
    {'torso': 'mlp', 'core': 'none'},
  ),
}


def draw_weights(
  agent: agent_lib.Agent, random: np.random.Generator
) -> dict[str, np.ndarray]:
  """Gives all variables values, biases too; returns them by path."""
  weights = {}
  for variable in agent.trainable_variables:
    shape = tuple(variable.shape)
    scale = np.prod(shape[:-1]) ** -0.5 if len(shape) > 1 else 0.05
    if 'embeddings' in variable.path:
      scale = 1.0
    value = (scale * random.standard_normal(shape)).astype(np.float32)
    variable.assign(value)
    weights[variable.path] = value
  return weights


def draw_slots(
  network: Network, random: np.random.Generator, num_slots: int, batch_size: int
) -> tuple[np.ndarray, structs.EnvOutput]:
  """Actions and environment outputs of `[T, B]` slots.

  Half of the first slots begin an episode, and some later ones.
  """
  shape = (num_slots, batch_size)
  done = random.uniform(size=shape) < 0.25
  done[0, 0] = True
  done[0, 1:] = False
  done[1, 1] = True
  zeros = np.zeros(shape, np.float32)
  env_outputs = structs.EnvOutput(
    reward=(3 * random.standard_normal(shape)).astype(np.float32),
    info=structs.EpisodeInfo(zeros, zeros.astype(np.int32)),
    done=done,
    first=done,
    truncated=np.zeros(shape, bool),
    observation=tree.map_structure(
      lambda spec: _draw_observation(spec, random, shape), network.observation
    ),
  )
  actions = random.integers(0, network.num_actions, shape).astype(np.int32)
  return actions, env_outputs


def _draw_observation(spec, random, shape):
  if isinstance(spec, specs.StringArray):
    chosen = random.integers(0, len(VOCABULARY), shape)
    return np.array(VOCABULARY, object)[chosen]
  if spec.dtype == np.uint8:
    return random.integers(0, 256, (*shape, *spec.shape)).astype(np.uint8)
  return random.standard_normal((*shape, *spec.shape)).astype(np.float32)


def draw_core_state(agent, random, batch_size):
  """A core state as it may be in the middle of an episode."""

  def draw(array):
    if array.dtype == tf.uint8:
      return random.integers(0, 256, array.shape).astype(np.uint8)
    return (0.5 * random.standard_normal(array.shape)).astype(np.float32)

  return tree.map_structure(draw, agent.initial_state(batch_size))


def named_state(core_state: agent_lib.CoreState) -> dict[str, np.ndarray]:
  """The leaves of a core state that are there, by name."""
  named = {}
  if core_state.lstm != ():
    named = {'core_state/c': core_state.lstm[0]}
    named['core_state/h'] = core_state.lstm[1]
  if not isinstance(core_state.frames, tuple):
    named['core_state/frames'] = core_state.frames
  return named


def named_slots(
  actions: np.ndarray, env_outputs: structs.EnvOutput
) -> dict[str, np.ndarray]:
  """What a network consumes of slots, by name."""
  named = {
    'actions': actions,
    'rewards': env_outputs.reward,
    'done': env_outputs.done,
    'first': env_outputs.first,
  }
  for path, leaf in tree.flatten_with_path(env_outputs.observation):
    name = observations.name_of(path) if path else 'observation'
    named[f'observation/{name}'] = leaf
  return named


SLOTS_MEANING = 'of the slots, [T, B, ...]; action, reward and done led to x_t'


def network_stages(seed: int) -> list[kit.Stage]:
  """Each network, layer by layer."""
  return [
    _network_stage(name, network, np.random.default_rng((seed, 3000 + index)))
    for index, (name, network) in enumerate(NETWORKS.items())
  ]


def _network_stage(name, network, random, num_slots=3, batch_size=2):
  stage = kit.Stage(
    f'network_{name}',
    f'{network.about} One unroll of {num_slots} slots and {batch_size} '
    'columns; layers put out [T * B, ...], the core [T, B, ...].',
    tolerance=1e-4,
  )
  agent = network.make()
  weights = draw_weights(agent, random)
  actions, env_outputs = draw_slots(network, random, num_slots, batch_size)
  state = draw_core_state(agent, random, batch_size)
  with recorder.layer_outputs() as layers:
    output, next_state = agent.unroll(actions, env_outputs, state)
  stage.add_case(
    _CASE,
    **network.settings,
    frame_stack=network.frame_stack,
    num_actions=network.num_actions,
  )
  stage.add(_CASE, 'weight', weights, 'HWIO for convolutions, [in, out] else')
  stage.add(_CASE, 'input', named_slots(actions, env_outputs), SLOTS_MEANING)
  stage.add(_CASE, 'input', named_state(state), 'before slot 0')
  stage.add(
    _CASE,
    'output',
    {f'layers/{path}': value for path, value in layers.items()},
    'of the layer, before its ReLU',
  )
  stage.add(
    _CASE,
    'output',
    output._asdict(),
    {
      'policy_logits': 'of the policy for the next slot, [T, B, A]',
      'baseline': 'value of x_t, [T, B]',
    },
  )
  stage.add(_CASE, 'output', named_state(next_state), 'after the last slot')
  return stage


def instruction_stage() -> kit.Stage:
  """Words to buckets. The encoder's layers are in the network's stage."""
  stage = kit.Stage(
    'instruction',
    """The bucket of each word: Fingerprint64 of FarmHash, modulo 1000. An
    instruction is split at spaces; an empty one has no word at all, and its
    features are zeros.""",
    tolerance=0.0,
  )
  words = sorted({word for text in VOCABULARY for word in text.split()})
  words += ['', 'unfathomable', 'incomprehensible']
  stage.add_case('words', num_buckets=instruction.NUM_HASH_BUCKETS)
  stage.add('words', 'input', {'words': words}, 'strings, [N]')
  buckets = tf.strings.to_hash_bucket_fast(words, instruction.NUM_HASH_BUCKETS)
  stage.add('words', 'output', {'buckets': buckets}, 'of each word, [N]')
  return stage


def initial_weights_stage(seed: int) -> kit.Stage:
  """How far initial weights spread."""
  stage = kit.Stage(
    'initial_weights',
    """Standard deviation of the initial values of each variable. Convolutions
    and linear layers: truncated normal of 1 / sqrt(fan-in), cut at two
    deviations and not scaled up again, which leaves 0.88 of it; biases zero;
    embeddings standard normal; LSTM kernels Glorot uniform. A candidate's
    numbers are random too, hence the tolerances: four standard errors.""",
    tolerance=0.05,
  )
  stage.add_case('fresh', network='deep_lstm_instruction')
  for variable in (
    NETWORKS['deep_lstm_instruction'].make(seed).trainable_variables
  ):
    size = int(np.prod(variable.shape))
    stage.add(
      'fresh',
      'output',
      {f'stddev/{variable.path}': np.std(variable.numpy())},
      f'of the values of {variable.path}, {list(variable.shape)}',
      tolerance=round(4 * size**-0.5, 4),
    )
  return stage
