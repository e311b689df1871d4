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
"""Runs one actor's network on a batch of observations.

    python scripts/benchmark.py inference --torso=shallow --envs=1,4,16,64,256

One line for each number of environments: agent steps per second, processor
milliseconds per step, and `interpreter_share`: what of a call is not the
network but Python, TensorFlow's Python layer, and handing arrays over. It is
the processor time of the same call of a compiled function that computes
nothing (`empty_call_core_ms`) over that of the real one (`call_core_ms`).
"""

import time
from collections.abc import Iterator
from typing import Any

from absl import flags

from benchmarks import _stages
from scalable_agent import structs

_CALLS_IN_TURN = 8


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of the stages, and the numbers of environments."""
  _stages.define_flags(flag_values)
  _stages.define_widths(
    flag_values,
    (1, 4, 16, 32, 64, 256),
    'Numbers of environments of one actor, one measurement each; in place of '
    '--envs_per_actor.',
  )


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields one measurement for each number of environments."""
  stages = _stages.from_flags(flag_values)
  for num_envs in map(int, flag_values.envs):
    yield measure_one(stages.replace('actor', envs_per_actor=num_envs))


def measure_one(stages: _stages.Stages) -> dict[str, Any]:
  """The measurement of one number of environments."""
  cost = stages.inference()
  call_secs, empty_secs = _in_turns(stages)
  return _stages.line(
    'inference',
    stages,
    {
      **cost.rounded(),
      'call_core_ms': round(1e3 * call_secs, 4),
      'empty_call_core_ms': round(1e3 * empty_secs, 4),
      'interpreter_share': round(empty_secs / call_secs, 3),
    },
  )


def _in_turns(stages):
  """Processor seconds of a call, and of one that computes nothing."""
  import tensorflow as tf

  from scalable_agent import inference

  policy, empty = stages.policy(), stages.policy()
  with stages.environments() as environments:
    slot = environments.initial()
  actions = structs.no_actions(stages.spec.action, len(slot.reward))
  state = policy.initial_state()

  with tf.device(stages.inference_device):
    policy.begin_unroll()
    example = tf.nest.map_structure(
      tf.constant,
      policy.compiled_step(actions, inference.consumed(slot), state),
    )
    empty.compiled_step = inference.Compiled(
      lambda *_: tf.nest.map_structure(tf.identity, example)
    )
    secs = [[], []]
    end = time.perf_counter() + stages.secs
    while time.perf_counter() < end or len(secs[0]) < 4:
      for times, one in zip(secs, (policy, empty), strict=True):
        start = time.process_time()
        for _ in range(_CALLS_IN_TURN):
          one.step(actions, slot, state)
        times.append((time.process_time() - start) / _CALLS_IN_TURN)
  # The first ones warm up.
  return (sum(times[2:]) / len(times[2:]) for times in secs)
