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
"""Settings of the learner: batches, losses, corrections, optimizer."""

import dataclasses

from scalable_agent import options

REWARD_CLIPPINGS = ('abs_one', 'soft_asymmetric', 'none')
CORRECTIONS = ('vtrace', 'one_step', 'epsilon', 'none')

option = options.option


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnerConfig(options.Validated):
  """How the learner updates."""

  batch_size: int = option(2, 'Unrolls (columns) per update and learner.')
  updates_per_batch: int = option(
    1,
    'Updates on each batch before the next one; V-trace corrects for the '
    'weights having moved. 1 is the paper.',
  )
  unroll_length: int = option(100, 'Length of an unroll.', unit='agent steps')
  total_environment_frames: int = option(
    10**9, 'Frames to train for, over all levels.', unit='frames'
  )
  entropy_cost: float = option(0.00025, 'Weight of the entropy loss.')
  baseline_cost: float = option(0.5, 'Weight of the baseline loss.')
  discounting: float = option(0.99, 'Discount gamma.', unit='per agent step')
  reward_clipping: str = option(
    'abs_one',
    'Reward transform of the learner: [-1, 1], 5 tanh(r/5) with losses times '
    '0.3, or none.',
    choices=REWARD_CLIPPINGS,
  )
  learning_rate: float = option(
    0.00048, 'Learning rate at frame 0; falls linearly to 0 at the last frame.'
  )
  decay: float = option(0.99, 'RMSProp: decay of the mean square.')
  momentum: float = option(0.0, 'RMSProp: momentum.')
  epsilon: float = option(0.1, 'RMSProp: epsilon, inside the square root.')
  clip_gradient_norm: float | None = option(
    None,
    'Clip the global norm of the gradients. None: off, as the original; the '
    "paper's Atari runs use 40.",
  )
  replay_fraction: float = option(
    0.0,
    'Share of each batch that is drawn from a replay buffer; the ablation of '
    'the paper has 0.5. Replayed unrolls count no frames.',
  )
  replay_capacity: int = option(
    10_000, 'Columns that the replay buffer keeps.', unit='unrolls'
  )
  correction: str = option(
    'vtrace',
    'What is done about data of an older policy: V-trace, an importance weight '
    'on the policy gradient alone, log(pi + 1e-6) in it, or nothing.',
    choices=CORRECTIONS,
  )
  clip_rho_threshold: float = option(1.0, "V-trace's rho bar.")
  clip_pg_rho_threshold: float = option(
    1.0, 'Clip of rho in the policy gradient.'
  )
  clip_c_threshold: float = option(1.0, "V-trace's c bar.")
  lambda_: float = option(1.0, "V-trace's lambda (Remark 2 of the paper).")
  xla: bool = option(
    False,
    'Compile the whole update with XLA. On CPUs that took twice as long; on a '
    'GPU, measure it: scripts/benchmark.py learner --device=gpu '
    '--xla_modes=off,on.',
  )
  on_nonfinite: str = option(
    'abort',
    'When a reward, a loss or a gradient is NaN or infinite: end the run, or '
    'skip that update and count it.',
    choices=('abort', 'skip'),
  )

  from_unrolls: str = option(
    '',
    'Folder of recorded unrolls (--record_unrolls) to learn from; empty: none.',
  )
  from_unrolls_fraction: float = option(
    1.0,
    'Share of each batch that comes from there; 1: all, and nothing is played, '
    'whatever runtime says. '
    'Below 1 recorded unrolls count no frames.',
  )

  @property
  def only_recorded(self) -> bool:
    """Whether nothing is played: all unrolls come from files."""
    return bool(self.from_unrolls) and self.from_unrolls_fraction == 1

  @property
  def num_fresh(self) -> int:
    """Columns of a batch that count: neither replayed nor mixed in from files.

    Where nothing is played, all of them.
    """
    share = self.replay_fraction
    if self.from_unrolls and not self.only_recorded:
      share = self.from_unrolls_fraction
    return self.batch_size - round(self.batch_size * share)

  def _check(self):
    self._at_least(1, 'batch_size', 'updates_per_batch', 'unroll_length')
    self._at_least(1, 'total_environment_frames')
    self._at_least(0, 'entropy_cost', 'baseline_cost', 'learning_rate')
    self._at_least(0, 'momentum', 'epsilon', 'clip_rho_threshold')
    self._at_least(0, 'clip_pg_rho_threshold', 'clip_c_threshold')
    self._at_least(1, 'replay_capacity')
    self._check_mixture('replay_fraction', 'replay')
    if self.from_unrolls:
      if self.replay_fraction:
        raise ValueError(
          f'replay_fraction is {self.replay_fraction} and from_unrolls is '
          f'{self.from_unrolls!r}; use one of the two.'
        )
      if not self.only_recorded:
        self._check_mixture('from_unrolls_fraction', 'recorded unrolls')
    if not 0 <= self.lambda_ <= 1:
      raise ValueError(f'lambda_ is {self.lambda_}; it must be in [0, 1].')
    if not 0 <= self.discounting <= 1 or not 0 <= self.decay <= 1:
      raise ValueError(
        f'discounting is {self.discounting} and decay {self.decay}; both must '
        'be in [0, 1].'
      )
    if self.clip_gradient_norm is not None and self.clip_gradient_norm <= 0:
      raise ValueError(
        f'clip_gradient_norm is {self.clip_gradient_norm}; it must be above 0, '
        'or None for no clipping.'
      )

  def _check_mixture(self, name, what):
    share = getattr(self, name)
    if not 0 <= share < 1 or (
      share and not 0 < self.num_fresh < self.batch_size
    ):
      raise ValueError(
        f'{name} is {share}, of batches of {self.batch_size}; it must be 0, or '
        f'leave at least one column to {what} and one to fresh unrolls.'
      )
