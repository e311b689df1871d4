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
"""The runtime of one machine: actors are threads of the learner's process."""

import numpy as np
import tensorflow as tf

from scalable_agent import checkpoint, config, inference, structs, tasks
from scalable_agent.runtime import actor_groups, actor_threads, run
from scalable_agent.runtime import hosts as hosts_lib


def make_run(
  settings: config.Config,
  task: tasks.Task,
  spec: structs.EnvironmentSpec,
  saved: checkpoint.Saved | None = None,
  hosts: hosts_lib.Hosts | None = None,
) -> run.Run:
  """A run whose actors are on this machine; see `run.Run`."""
  return run.Run(settings, task, spec, make_actors, saved, hosts)


def make_actors(parts: actor_groups.Parts) -> actor_threads.ActorThreads:
  """Actor threads, with policies of their own or a shared one."""
  return actor_threads.ActorThreads(parts, make_policies(parts))


def make_policies(parts: actor_groups.Parts) -> list[structs.Policy]:
  """A policy for each actor, as `--inference` says."""
  settings = parts.settings.actor
  entropy = np.random.SeedSequence((parts.settings.run.seed, parts.start, 1))
  seeds = entropy.generate_state(settings.num_actors).astype(np.int32)
  with tf.device(parts.inference_device):
    if settings.infers_directly:
      return [
        inference.DirectPolicy(
          parts.make_agent(), parts.store, settings.envs_per_actor, seed
        )
        for seed in seeds
      ]
    batcher = inference.InferenceBatcher(
      parts.make_agent(),
      parts.store,
      settings.envs_per_actor,
      settings.num_actors,
      seeds[0],
    )
    return [batcher.client() for _ in seeds]
