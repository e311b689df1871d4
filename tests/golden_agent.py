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
"""Inputs and weights of the golden values of the original's agent.

The values in `golden/agent_*.npz` come from the original's `Agent` and
`build_learner`, run on TensorFlow 1.15.5 with Sonnet 1.36. Only results are
stored; what went in is drawn anew here from NumPy's frozen legacy generator, in
the order in which it was drawn then.
"""

import json
import pathlib
import zlib

import numpy as np

from scalable_agent import structs
from scalable_agent.dmlab30 import environment

DIRECTORY = pathlib.Path(__file__).parent / 'golden'
REWARD_CLIPPINGS = ('abs_one', 'soft_asymmetric')

# Deep agent of 9 actions on 96 x 72 pixels, action repeats 4.
SPEC = environment.LabFactory('explore_goal_locations_small').spec
T, B, NUM_ACTIONS = 7, 3, 9

_VOCABULARY = (
  '',
  'go to the red ball',
  'pick up the large blue object',
  'left',
  'the small pink cake please now',
)


def values(reward_clipping):
  """What the original computed, by key."""
  with np.load(DIRECTORY / f'agent_{reward_clipping}.npz') as file:
    return dict(file)


def weights():
  """Weights by the original's names, in its order."""
  with open(DIRECTORY / 'agent_variables.json') as file:
    listed = json.load(file)
  return {v['name']: _weight(v['name'], v['shape']) for v in listed}


def _weight(name, shape):
  random = np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
  scale = 1 / np.sqrt(np.prod(shape[:-1])) if len(shape) > 1 else 0.05
  return (scale * random.standard_normal(shape)).astype(np.float32)


def unroll():
  """The batch of 3 columns and 8 slots that everything was computed on."""
  random = np.random.RandomState(42)
  slots = (T + 1, B)
  frames = random.randint(0, 256, (*slots, 72, 96, 3)).astype(np.uint8)
  words = [_VOCABULARY[random.randint(0, 5)] for _ in range((T + 1) * B)]
  rewards = (3 * random.standard_normal(slots)).astype(np.float32)
  done = random.uniform(size=slots) < 0.25
  actions = random.randint(0, NUM_ACTIONS, slots).astype(np.int32)
  logits = random.standard_normal((*slots, NUM_ACTIONS)).astype(np.float32)
  c, h = random.standard_normal((2, B, 256)).astype(np.float32)
  zeros = np.zeros(slots, np.float32)
  return structs.Unroll(
    level=np.zeros(B, np.int32),
    version=np.zeros(B, np.int64),
    core_state=((c, h), ()),
    env_outputs=structs.EnvOutput(
      reward=rewards,
      info=structs.EpisodeInfo(zeros, zeros.astype(np.int32)),
      done=done,
      first=done,
      truncated=np.zeros(slots, bool),
      observation={
        'RGB_INTERLEAVED': frames,
        'INSTR': np.array(words, object).reshape(slots),
      },
    ),
    agent_outputs=structs.AgentOutput(actions, logits, zeros),
    truncation_values=zeros,
  )
