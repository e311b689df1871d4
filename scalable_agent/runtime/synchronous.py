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
"""Batched A2C: the paper's comparator, whose acting waits for each update.

Agent, losses, environments, queue and learner are IMPALA's; only the waiting
differs. One batch is one unroll of every environment, made with the weights of
the last update, so that data are on-policy. Section 5.1 and figure 2:

*   `--sync_every=step`: all environments are one actor's. Every step waits for
    the slowest of them, and one forward pass serves all.
*   `--sync_every=trajectory`: actors play their unrolls apart, each with a
    network of its own; the update waits for the slowest unroll.
"""

import dataclasses

from scalable_agent import checkpoint, config, params, queues, structs, tasks
from scalable_agent.runtime import actor_groups, actor_threads, local, run
from scalable_agent.runtime import hosts as hosts_lib


def make_run(
  settings: config.Config,
  task: tasks.Task,
  spec: structs.EnvironmentSpec,
  saved: checkpoint.Saved | None = None,
  hosts: hosts_lib.Hosts | None = None,
) -> run.Run:
  """A synchronous run on this machine; see `run.Run`.

  Raises:
    ValueError: a batch is not one unroll of every environment.
  """
  if settings.run.num_learners > 1:
    raise ValueError(
      f'num_learners is {settings.run.num_learners} with runtime=sync, where '
      'one batch is learned from at a time; leave it at 1, or choose local.'
    )
  chosen = _synchronous(settings)
  return run.Run(chosen, task, spec, make_actors, saved, hosts)


def make_actors(parts: actor_groups.Parts) -> 'SynchronousActors':
  """Actor threads that wait for the update that their unroll went into."""
  return SynchronousActors(parts)


class SynchronousActors(actor_threads.ActorThreads):
  """`ActorThreads` that go on only after the learner's next update."""

  def __init__(self, parts: actor_groups.Parts):
    """Starts nothing yet."""
    self._store = parts.store
    waiting = WaitingSink(parts.queue, parts.store)
    super().__init__(parts._replace(queue=waiting), local.make_policies(parts))

  def stop(self) -> None:
    """Asks all to leave; those who wait for an update leave at once."""
    super().stop()
    self._store.close()


class WaitingSink:
  """Takes an unroll, and lets go when it has been learned from."""

  def __init__(self, queue: queues.UnrollQueue, store: params.ParamStore):
    """Puts into `queue`; `store` tells of updates."""
    self._queue = queue
    self._store = store

  def put(self, unroll: structs.Unroll) -> None:
    """Blocks until the next update. Raises `Closed` once closed."""
    # The update under way needs this unroll, so it cannot be over yet.
    version = self._store.version
    self._queue.put(unroll)
    self._store.wait_for_newer(version)


def _synchronous(settings):
  """Settings with the actors that a synchronous run has."""
  actor, learner = settings.actor, settings.learner
  num_envs = actor.num_actors * actor.envs_per_actor
  if learner.num_fresh != num_envs:
    raise ValueError(
      f'runtime=sync learns from one unroll of every environment at a time, '
      f'but num_actors={actor.num_actors} with '
      f'envs_per_actor={actor.envs_per_actor} make {num_envs} environments and '
      f'a batch takes {learner.num_fresh} fresh unrolls; make batch_size '
      'fit.'
    )
  changes = {'inference': 'direct'}
  if settings.run.sync_every == 'step':
    changes |= {'num_actors': 1, 'envs_per_actor': num_envs}
  return dataclasses.replace(
    settings, actor=dataclasses.replace(actor, **changes)
  )
