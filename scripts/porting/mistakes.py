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
"""The mistakes that ports make, each with what it makes of the kit's arrays.

A mistake knows one array of a stage and computes, with NumPy and from that
stage alone, what a port that makes the mistake would put there.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from porting import kit, wrong, wrong_heads


class Mistake(NamedTuple):
  """One mistake.

  text: what is done wrong.
  stage: name of the stage that shows it.
  key: of the array that shows it.
  compute: from the stage, what the array then is.
  """

  text: str
  stage: str
  key: str
  compute: Callable[[kit.Stage], np.ndarray]


class Revealed(NamedTuple):
  """The element that shows a mistake best."""

  index: tuple[int, ...]
  right: float
  wrong: float


def reveal(mistake: Mistake, stage: kit.Stage) -> Revealed:
  """Where right and wrong lie furthest apart."""
  right = np.asarray(stage.arrays[mistake.key], np.float64)
  made = np.asarray(mistake.compute(stage), np.float64)
  flat = int(np.argmax(np.abs(made - right)))
  index = tuple(int(i) for i in np.unravel_index(flat, right.shape))
  return Revealed(index, float(right[index]), float(made[index]))


MISTAKES = tuple(
  Mistake(text, stage, key, compute)
  for text, stage, key, compute in (
    (
      'Importance weights are ignored (on-policy targets).',
      'vtrace',
      'off_policy/output/vs',
      wrong.vtrace('off_policy', 0, log_rhos=np.zeros((5, 2))),
    ),
    (
      'The advantage takes V(x_{t+1}) where v_{t+1} belongs.',
      'vtrace',
      'off_policy/output/pg_advantages',
      wrong.advantages_of_values,
    ),
    (
      'c is clipped at rho bar instead of its own threshold.',
      'vtrace',
      'rho_bar/output/vs',
      wrong.vtrace('rho_bar', 0, clip_c_threshold=2.5),
    ),
    (
      'The advantage is clipped at rho bar instead of its own threshold.',
      'vtrace',
      'rho_bar/output/pg_advantages',
      wrong.vtrace('rho_bar', 1, clip_pg_rho_threshold=2.5),
    ),
    (
      'lambda is forgotten.',
      'vtrace',
      'lambda/output/vs',
      wrong.vtrace('lambda', 0, lambda_=1.0),
    ),
    (
      'An end of an episode zeroes the discount one transition late.',
      'vtrace',
      'ends/output/vs',
      wrong.vtrace('ends', 0, discounts=wrong.ends_late),
    ),
    (
      'An end on the last transition is bootstrapped all the same.',
      'vtrace',
      'ends/output/vs',
      wrong.vtrace('ends', 0, discounts=wrong.no_last_end),
    ),
    (
      'A time limit counts as a death.',
      'vtrace',
      'truncations/output/vs',
      wrong.vtrace(
        'truncations', 0, discounts=wrong.deaths, truncation_values=0
      ),
    ),
    (
      'A time limit is no end: the next episode follows as if nothing was cut.',
      'vtrace',
      'truncations/output/vs',
      wrong.vtrace('truncations', 0, truncations=None),
    ),
    (
      'soft_asymmetric as printed in the paper, not as coded.',
      'losses',
      'reward_clipping/output/soft_asymmetric',
      wrong.printed_reward_clipping,
    ),
    (
      'Losses are means over time and batch, not sums.',
      'losses',
      f'{wrong.PLAIN}total_loss',
      wrong.scaled(
        f'{wrong.PLAIN}total_loss', lambda s: 1 / s.arrays[wrong.ACTIONS].size
      ),
    ),
    (
      'The baseline loss lacks its factor 0.5.',
      'losses',
      f'{wrong.PLAIN}baseline_loss',
      wrong.scaled(f'{wrong.PLAIN}baseline_loss', lambda _: 2),
    ),
    (
      'The entropy loss has the wrong sign: training collapses the policy.',
      'losses',
      f'{wrong.PLAIN}entropy_loss',
      wrong.scaled(f'{wrong.PLAIN}entropy_loss', lambda _: -1),
    ),
    (
      'Gradients flow through the targets vs.',
      'losses',
      f'{wrong.PLAIN}d_values/baseline_loss',
      wrong.gradient_through_targets,
    ),
    *wrong_heads.LISTED,
    (
      'The mean square starts at zero (Keras, PyTorch), not at one.',
      'optimizer',
      'plain/output/variables/kernel',
      wrong.rmsprop('plain', 'kernel', start=0.0),
    ),
    (
      'Epsilon is added outside the square root (PyTorch).',
      'optimizer',
      'plain/output/variables/kernel',
      wrong.rmsprop('plain', 'kernel', outside=True),
    ),
    (
      'Each gradient is clipped by its own norm, not all by the global norm.',
      'optimizer',
      'clipping/output/variables/bias',
      wrong.rmsprop('clipping', 'bias', clip_alone=True),
    ),
    (
      'Rows of the embedding that were not read move on with their momentum.',
      'optimizer',
      'sparse/output/variables/embeddings',
      wrong.rmsprop('sparse', 'embeddings'),
    ),
    (
      'The learning rate counts agent steps, without action repeats.',
      'optimizer',
      'learning_rate/output/learning_rate',
      wrong.learning_rates(lambda t, b, _: t * b),
    ),
    (
      'The learning rate counts T + 1 slots per unroll.',
      'optimizer',
      'learning_rate/output/learning_rate',
      wrong.learning_rates(lambda t, b, repeats: (t + 1) * b * repeats),
    ),
    (
      'Pixels are not divided by 255.',
      'network_shallow',
      f'{wrong.LAYER}{wrong.TORSO}conv_0',
      wrong.bytes_as_pixels,
    ),
    (
      'The newest frame of a stack comes first.',
      'network_shallow',
      f'{wrong.LAYER}{wrong.TORSO}input',
      wrong.newest_first,
    ),
    (
      'A stack still shows frames of the episode before.',
      'network_shallow',
      f'{wrong.LAYER}{wrong.TORSO}input',
      wrong.old_frames,
    ),
    (
      'Max-pooling is padded by one on both sides (PyTorch), not as SAME.',
      'network_deep',
      f'{wrong.LAYER}{wrong.TORSO}section_0/pool',
      wrong.pool_padded_alike,
    ),
    (
      'Features are flattened channels first (NCHW).',
      'network_deep',
      f'{wrong.LAYER}{wrong.TORSO}linear',
      wrong.linear_of(lambda x: np.maximum(x, 0).transpose(0, 3, 1, 2)),
    ),
    (
      'The ReLU between the last block and the linear layer is missing.',
      'network_deep',
      f'{wrong.LAYER}{wrong.TORSO}linear',
      wrong.linear_of(lambda x: x),
    ),
    (
      'LSTM gates are taken as i, f, j, o (Keras, PyTorch), not i, j, f, o.',
      'network_shallow_lstm',
      f'{wrong.LAYER}core',
      wrong.core(order='ifjo'),
    ),
    (
      'The forget bias of 1, which is not stored, is not added.',
      'network_shallow_lstm',
      f'{wrong.LAYER}core',
      wrong.core(forget_bias=0.0),
    ),
    (
      'The core is reset after it has consumed a done slot, not before.',
      'network_shallow_lstm',
      f'{wrong.LAYER}core',
      wrong.core(reset_late=True),
    ),
    (
      'The last reward is fed unclipped.',
      'network_shallow_lstm',
      f'{wrong.LAYER}core/input',
      wrong.reward_as_it_is,
    ),
    (
      'The action fed is the one chosen at x_t, not the one that led to it.',
      'network_shallow_lstm',
      f'{wrong.LAYER}core/input',
      wrong.action_not_fed,
    ),
    (
      'The instruction is read to the end of its padding.',
      'network_deep_lstm_instruction',
      f'{wrong.LAYER}instruction_encoder',
      wrong.last_of_padded,
    ),
    (
      'Words are hashed by something else (here CRC-32).',
      'instruction',
      'words/output/buckets',
      wrong.other_hash,
    ),
    (
      'Initial weights are scaled up for their truncation (VarianceScaling).',
      'initial_weights',
      wrong.LINEAR_STDDEV,
      wrong.scaled(wrong.LINEAR_STDDEV, lambda _: 1 / 0.87962566),
    ),
    (
      'Rewards are not shifted against the outputs of the network.',
      'update',
      'original/output/rewards',
      wrong.unshifted('rewards'),
    ),
    (
      'Actions and behaviour logits are not shifted.',
      'update',
      'original/output/log_rhos',
      wrong.unshifted('log_rhos'),
    ),
    (
      'A slot holds the action chosen at x_t, not the one that led to it.',
      *wrong.stream('action', lambda out: out['action'] + 1),
    ),
    (
      "Unrolls do not overlap: the next one begins after this one's last slot.",
      *wrong.stream('action', wrong.no_overlap),
    ),
    (
      'A done slot shows the last observation of the old episode.',
      *wrong.stream('observation', wrong.last_observations),
    ),
    (
      'The stored core state is the one after slot 0.',
      *wrong.stream('core_state', wrong.state_after_slot_0),
    ),
    (
      'The value at a time limit is that of the next episode.',
      *wrong.stream('truncation_values', wrong.value_of_next_episode),
    ),
  )
)
