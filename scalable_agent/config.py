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
"""Every setting of a run: default, meaning, unit and source, once.

Frozen dataclasses, validated on construction. `scripts/` turns each field into
an absl flag of the same name; nothing else in the library knows about flags.
Defaults are those of the original's `experiment.py` where it has the setting.
"""

import dataclasses

from scalable_agent import distributed_config, options, task_config

REWARD_CLIPPINGS = ('abs_one', 'soft_asymmetric', 'none')
TORSOS = ('auto', 'deep', 'shallow', 'nature', 'mlp')
CORES = ('auto', 'lstm', 'none')
CORRECTIONS = ('vtrace', 'one_step', 'epsilon', 'none')
INFERENCES = ('auto', 'direct', 'batched')
# Wider actors gain nothing from sharing a forward pass with others.
_DIRECT_FROM_ENVS = 8
BACKENDS = ('auto', 'vector', 'process', 'serial')
PRECISIONS = ('float32', 'mixed_float16', 'mixed_bfloat16')
ENCODINGS = distributed_config.ENCODINGS
DEVICES = ('auto', 'cpu', 'gpu', 'tpu')
RUNTIMES = ('local', 'ray', 'sync')

option = options.option
TaskConfig = task_config.TaskConfig
DmlabConfig = task_config.DmlabConfig
DistributedConfig = distributed_config.DistributedConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class ActorConfig(options.Validated):
  """Who acts, and what happens when an environment fails."""

  num_actors: int = option(4, 'Number of actors (threads).')
  envs_per_actor: int = option(
    1, 'Environments that one actor steps together. 1 is the original.'
  )
  inference: str = option(
    'auto',
    'Direct: each actor runs its own forward pass. Batched: one pass for all '
    "actors (the original's dynamic batching). Auto: direct from 8 "
    'environments per actor on.',
    choices=INFERENCES,
  )
  env_backend: str = option(
    'auto',
    'Vector: C++ threads (Atari). Process: one process per environment. '
    'Serial: a plain loop. Auto: what suits the level.',
    choices=BACKENDS,
  )
  env_threads: int | None = option(
    None, "Threads of one actor's vector environment. None: one per core."
  )
  on_env_error: str = option(
    'abort',
    'When an environment raises, dies, hangs or gives nonsense: end the run, '
    'or restart the environment.',
    choices=('abort', 'restart'),
  )
  max_restarts: int = option(
    10,
    'Restarts per actor, its environments together, before the next failure '
    'ends the run after all.',
  )
  env_timeout_secs: float = option(
    600.0, 'An environment silent for so long has failed.', unit='seconds'
  )
  policy_lag: int = option(
    0,
    'Actors see the weights of so many updates ago: an artificial lag, to '
    'study corrections. It adds to the lag that there is anyway.',
    unit='updates',
  )
  queue_capacity: int = option(
    1,
    'Unrolls of an actor that wait for the learner. Larger helps bursty '
    'environments and makes the data older.',
    unit='unrolls',
  )

  @property
  def infers_directly(self) -> bool:
    """Whether each actor runs its own forward pass."""
    if self.inference == 'auto':
      return self.envs_per_actor >= _DIRECT_FROM_ENVS
    return self.inference == 'direct'

  def _check(self):
    self._at_least(1, 'num_actors', 'envs_per_actor', 'env_threads')
    self._at_least(1, 'queue_capacity')
    self._at_least(0, 'max_restarts', 'policy_lag')
    if not self.env_timeout_secs > 0:
      raise ValueError(
        f'env_timeout_secs is {self.env_timeout_secs}; it must be above 0.'
      )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig(options.Validated):
  """The network."""

  torso: str = option(
    'auto',
    "Deep: 15 convolutions, residual. Shallow: two. Nature: DQN's three. MLP: "
    'for vectors. Auto: deep for images, MLP for the rest.',
    choices=TORSOS,
  )
  core: str = option(
    'auto',
    'LSTM of 256 units, or none (feed-forward). Auto: LSTM for DMLab, none '
    'for the rest, as in the paper.',
    choices=CORES,
  )
  use_last_action: bool | None = option(
    None,
    'Feed the last action to the core. None: with an LSTM only, as in the '
    'paper.',
  )
  use_last_reward: bool | None = option(
    None,
    'Feed the last reward, clipped to [-1, 1], to the core. None: with an LSTM '
    'only, as in the paper.',
  )
  standardize_images: bool = option(
    False,
    'Show the torso each image minus its own mean, over its own deviation. '
    'Learning starts sooner where little moves in front of a background that '
    'does not; off in the paper.',
  )
  precision: str = option(
    'float32',
    'Arithmetic of torso and core; heads, V-trace and loss stay float32.',
    choices=PRECISIONS,
  )


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
    'Share of each batch that comes from there; 1: all, and nothing is played. '
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig(options.Validated):
  """Where a run lives, how it reports, and on what it computes."""

  logdir: str = option(
    '/tmp/agent',
    'Run directory: checkpoints, metrics, settings. A run found there is '
    'continued.',
  )
  seed: int = option(1, 'Seed of everything random.')
  runtime: str = option(
    'local',
    "Local: actors are threads of the learner's process. Ray: processes on the "
    'machines of a Ray cluster. Sync: threads, and acting waits for every '
    "update (batched A2C, the paper's comparator).",
    choices=RUNTIMES,
  )
  sync_every: str = option(
    'step',
    'With --runtime=sync: all environments wait for the slowest at every step, '
    'or only at the end of every unroll (trajectory).',
    choices=('step', 'trajectory'),
  )
  learner_device: str = option(
    'auto', 'Where the learner computes.', choices=DEVICES
  )
  num_learners: int = option(
    1,
    'Learners on this host, each with a batch of its own; gradients are summed '
    'over all. Each takes a GPU, or all share the CPU.',
  )
  inference_device: str = option(
    'auto', 'Where actors run the network.', choices=DEVICES
  )
  threads_per_operation: int = option(
    0,
    'Threads among which TensorFlow divides an operation on the CPU. 0: one '
    'where there are as many actors with networks of their own as cores, which '
    'keep these busy; otherwise all cores.',
    unit='threads',
  )
  checkpoint_secs: float = option(
    600.0, 'Time between checkpoints.', unit='seconds'
  )
  checkpoints_kept: int = option(3, 'Newest checkpoints that are kept.')
  summary_secs: float = option(
    30.0, 'Time between lines in metrics.csv and TensorBoard.', unit='seconds'
  )
  record_unrolls: str = option(
    '', 'Folder to which all fresh unrolls are written, too; empty: none.'
  )
  record_gib: float = option(
    10.0, 'Most that a start of the run writes there.', unit='GiB'
  )

  def _check(self):
    self._at_least(1, 'checkpoints_kept', 'num_learners')
    self._at_least(
      0,
      'seed',
      'threads_per_operation',
      'checkpoint_secs',
      'summary_secs',
      'record_gib',
    )
    if not self.logdir:
      raise ValueError('logdir is empty; name a directory for the run.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """A whole run."""

  task: TaskConfig = dataclasses.field(default_factory=TaskConfig)
  dmlab: DmlabConfig = dataclasses.field(default_factory=DmlabConfig)
  actor: ActorConfig = dataclasses.field(default_factory=ActorConfig)
  agent: AgentConfig = dataclasses.field(default_factory=AgentConfig)
  learner: LearnerConfig = dataclasses.field(default_factory=LearnerConfig)
  run: RunConfig = dataclasses.field(default_factory=RunConfig)
  distributed: DistributedConfig = dataclasses.field(
    default_factory=DistributedConfig
  )
