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

from scalable_agent import (
  distributed_config,
  learner_config,
  options,
  task_config,
)

TORSOS = ('auto', 'deep', 'shallow', 'nature', 'mlp')
CORES = ('auto', 'lstm', 'none')
REWARD_CLIPPINGS = learner_config.REWARD_CLIPPINGS
CORRECTIONS = learner_config.CORRECTIONS
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
LearnerConfig = learner_config.LearnerConfig
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
    'where as many actors as cores, each with its network, share them with the '
    'learner; otherwise all cores.',
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
