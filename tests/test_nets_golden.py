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
"""The deep DMLab agent computes what the original computed on TensorFlow 1."""

import json
import pathlib
import zlib

import numpy as np
import pytest
import tensorflow as tf
from dm_env import specs

from scalable_agent import config, structs
from scalable_agent.nets import agent as agent_lib

GOLDEN = pathlib.Path(__file__).parent / 'golden'
VOCABULARY = (
  '',
  'go to the red ball',
  'pick up the large blue object',
  'left',
  'the small pink cake please now',
)


def make_agent():
  """The agent with the golden weights. The original's order is ours."""
  observation = {
    'RGB_INTERLEAVED': specs.Array((72, 96, 3), np.uint8),
    'INSTR': specs.StringArray(()),
  }
  spec = structs.EnvironmentSpec(observation, specs.DiscreteArray(9), 4)
  agent = agent_lib.Agent(spec, config.AgentConfig())
  originals = json.loads((GOLDEN / 'agent_variables.json').read_text())
  for variable, original in zip(
    agent.trainable_variables, originals, strict=True
  ):
    name, shape = original['name'], original['shape']
    seed = zlib.crc32(name.encode()) & 0x7FFFFFFF
    scale = np.prod(shape[:-1]) ** -0.5 if len(shape) > 1 else 0.05
    values = scale * np.random.RandomState(seed).standard_normal(shape)
    assert tuple(variable.shape) == tuple(shape), name
    variable.assign(values.astype(np.float32))
  return agent


def make_inputs(num_slots=8, batch_size=3):
  """Drawn in the order of the golden run."""
  random = np.random.RandomState(42)
  axes = (num_slots, batch_size)
  frames = random.randint(0, 256, (*axes, 72, 96, 3)).astype(np.uint8)
  instructions = np.array(
    [
      [VOCABULARY[random.randint(0, 5)] for _ in range(batch_size)]
      for _ in range(num_slots)
    ],
    object,
  )
  reward = (3 * random.standard_normal(axes)).astype(np.float32)
  done = random.uniform(size=axes) < 0.25
  actions = random.randint(0, 9, axes).astype(np.int32)
  random.standard_normal((*axes, 9))  # The behaviour policy's logits.
  c, h = (
    random.standard_normal((batch_size, 256)).astype(np.float32)
    for _ in range(2)
  )
  env_outputs = structs.EnvOutput(
    reward=reward,
    info=(),
    done=done,
    first=done,
    truncated=np.zeros(axes, bool),
    observation={'RGB_INTERLEAVED': frames, 'INSTR': instructions},
  )
  state = agent_lib.CoreState(lstm=(c, h), frames=())
  return actions, env_outputs, state


@pytest.fixture(scope='module')
def agent():
  return make_agent()


@pytest.mark.parametrize('name', ['agent_abs_one', 'agent_soft_asymmetric'])
@pytest.mark.parametrize('graph', [False, True], ids=['eager', 'graph'])
def test_forward_pass_equals_the_original(agent, name, graph):
  unroll = tf.function(agent.unroll) if graph else agent.unroll
  output, state = unroll(*make_inputs())
  golden = np.load(GOLDEN / f'{name}.npz')
  for key, actual in (
    ('policy_logits', output.policy_logits),
    ('baseline', output.baseline),
    ('final_c', state.lstm.c),
    ('final_h', state.lstm.h),
  ):
    # Values are of the order of 0.1 to 1; 1e-6 is the rounding of float32 in
    # sums of 3,456 terms, which is more than 1e-5 of those close to zero.
    np.testing.assert_allclose(
      actual, golden[key], rtol=1e-5, atol=1e-6, err_msg=key
    )
