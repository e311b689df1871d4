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
"""What each encoding of unrolls costs, saves, and does to V-trace's rho.

    python scripts/benchmark.py wire --level_name=atari/pong --num_unrolls=10

One line for each encoding. Unrolls are real: an actor plays, with the newest
weights of the run in --logdir if there is one there, else with fresh ones.
Learner and actor have the same weights, so that rho is 1 where the learner
sees what the actor saw; `log_rho` tells how far from it rho is with what was
decoded, and `argmax_kept` how often the likeliest action stays the same.

Times are of the processor, per agent step. `gain_below_mb_per_sec` is the
speed of a link below which the bytes that are saved take longer than encoding
and decoding.
"""

import statistics
import time
from collections.abc import Iterator
from typing import Any

import config_flags
import numpy as np
from absl import flags

from benchmarks import _stages
from scalable_agent import structs, wire


def define_flags(flag_values: flags.FlagValues) -> None:
  """All settings of a run, and what to measure."""
  _stages.define_flags(flag_values)
  flags.DEFINE_integer(
    'num_unrolls',
    10,
    'How many unrolls are encoded and decoded.',
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'skip_unrolls',
    10,
    'Unrolls between two that are used, so that these differ.',
    lower_bound=0,
    flag_values=flag_values,
  )
  flags.DEFINE_list(
    'jpeg_qualities',
    ['50', '75', '90', '95', '100'],
    'Qualities of JPEG, 1 to 100.',
    flag_values=flag_values,
  )


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields one line for each encoding."""
  settings = config_flags.build(flag_values)
  stages = _stages.Stages(settings, flag_values.secs)
  agent, env_frames = _agent(stages)
  unrolls = _play(
    stages, agent, flag_values.num_unrolls, flag_values.skip_unrolls
  )
  kinds: list[tuple[str, int | None]] = [('raw', None), ('lz4', None)]
  kinds += [('jpeg', int(quality)) for quality in flag_values.jpeg_qualities]
  for encoding, quality in kinds:
    yield {
      'benchmark': 'wire',
      'level_name': settings.task.level_name,
      'weights_of_frame': env_frames,
      'unroll_length': settings.learner.unroll_length,
      'envs_per_actor': settings.actor.envs_per_actor,
      'encoding': encoding,
      'jpeg_quality': quality,
      **_cost(unrolls, encoding, quality),
      **_rhos(agent, unrolls, encoding, quality),
    }


def _agent(stages):
  """The network, and the frames that its weights were trained on."""
  from scalable_agent import checkpoint, learner
  from scalable_agent.nets import agent as agent_lib

  settings = stages.settings
  agent = agent_lib.Agent(
    stages.spec, settings.agent, frame_stack=stages.task.frame_stack
  )
  saved = checkpoint.Checkpointer(settings.run.logdir).restore()
  if saved is None:
    return agent, 0
  learner.load_agent(agent, saved.arrays)
  return agent, saved.counters['learner']['env_frames']


def _play(stages, agent, num_unrolls, skip) -> list[structs.Unroll]:
  """Unrolls of one actor, `skip` of which are played and left out each time."""
  from scalable_agent import actor, inference, params
  from scalable_agent.nets import agent as agent_lib

  settings = stages.settings
  store = params.ParamStore()
  store.publish(0, [v.numpy() for v in agent.trainable_variables])
  own = agent_lib.Agent(
    stages.spec, settings.agent, frame_stack=stages.task.frame_stack
  )
  policy = inference.DirectPolicy(
    own, store, settings.actor.envs_per_actor, seed=0
  )
  with stages.environments() as environments:
    one = actor.Actor(environments, policy, settings.learner.unroll_length)
    unrolls = []
    for _ in range(num_unrolls):
      for _ in range(skip):
        one.unroll()
      unrolls.append(one.unroll())
    return unrolls


def _cost(unrolls: list[structs.Unroll], encoding, quality) -> dict[str, float]:
  """Bytes and processor time, per agent step."""
  encode = wire.make_encoder(encoding, quality or 1)
  sizes, encode_secs, decode_secs = [], [], []
  for unroll in unrolls:
    start = time.process_time()
    data = encode(unroll)
    encoded = time.process_time()
    wire.decode(data, unroll)
    decode_secs.append(time.process_time() - encoded)
    encode_secs.append(encoded - start)
    sizes.append(len(data))
  raw = len(wire.make_encoder('raw')(unrolls[0]))
  size = statistics.mean(sizes)
  steps = (len(unrolls[0].env_outputs.reward) - 1) * len(unrolls[0].level)
  spent = statistics.median(encode_secs) + statistics.median(decode_secs)
  return {
    'bytes_per_step': round(size / steps, 1),
    'share_of_raw': round(size / raw, 4),
    'encode_us_per_step': round(
      1e6 * statistics.median(encode_secs) / steps, 2
    ),
    'decode_us_per_step': round(
      1e6 * statistics.median(decode_secs) / steps, 2
    ),
    'gain_below_mb_per_sec': round(max(raw - size, 0) / spent / 1e6, 1),
  }


def _rhos(agent, unrolls, encoding, quality) -> dict[str, float]:
  """How far rho is from 1 when the learner sees what was decoded."""
  encode = wire.make_encoder(encoding, quality or 1)
  log_rhos, kept = [], []
  for unroll in unrolls:
    decoded = wire.decode(encode(unroll), unroll)
    net, _ = agent.unroll(
      decoded.agent_outputs.action, decoded.env_outputs, decoded.core_state
    )
    target, behaviour = (
      agent.distribution(logits)
      for logits in (
        net.policy_logits[:-1],
        decoded.agent_outputs.policy_logits[1:],
      )
    )
    action = decoded.agent_outputs.action[1:]
    log_rhos.append(target.log_prob(action) - behaviour.log_prob(action))
    likeliest = [
      np.argmax(logits, -1)
      for logits in (
        net.policy_logits[:-1],
        decoded.agent_outputs.policy_logits[1:],
      )
    ]
    kept.append(np.mean(likeliest[0] == likeliest[1]))
  values = np.ravel(log_rhos)
  low, high = np.quantile(values, (0.01, 0.99))
  return {
    'log_rho_mean_abs': float(f'{np.abs(values).mean():.3g}'),
    'log_rho_p1': float(f'{low:.3g}'),
    'log_rho_p99': float(f'{high:.3g}'),
    'log_rho_max_abs': float(f'{np.abs(values).max():.3g}'),
    'argmax_kept': round(float(np.mean(kept)), 4),
  }
