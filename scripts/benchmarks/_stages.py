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
"""The stages of training on Pong, each measured alone: what it costs in cores.

A stage's cost is processor time, over all threads, divided by agent steps. It
does not depend on how many cores there are or how busy others keep them, and
the costs of all stages together say how fast training could be at best.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import config_flags
import numpy as np
from absl import flags

from scalable_agent import config, structs, tasks

DEFAULTS = {
  'level_name': 'atari/pong',
  'torso': 'shallow',
  'num_actors': 2,
  'envs_per_actor': 32,
  'unroll_length': 20,
  'batch_size': 32,
  'clip_gradient_norm': 40.0,
}


class Cost(NamedTuple):
  """What a stage took.

  steps_per_sec: agent steps per second of wall clock, alone.
  core_secs_per_step: processor time per agent step.
  """

  steps_per_sec: float
  core_secs_per_step: float

  def rounded(self) -> dict[str, float]:
    """For a line of JSON."""
    return {
      'steps_per_sec': round(self.steps_per_sec, 1),
      'core_ms_per_step': round(1e3 * self.core_secs_per_step, 4),
    }


def define_flags(flag_values: flags.FlagValues) -> None:
  """All settings of a run, those of a shallow agent on Pong by default."""
  config_flags.define(flag_values)
  for name, value in DEFAULTS.items():
    flag_values.set_default(name, value)
  flags.DEFINE_float(
    'secs',
    10.0,
    'How long each stage is measured. Unit: seconds.',
    lower_bound=0.1,
    flag_values=flag_values,
  )
  flags.DEFINE_enum(
    'device',
    None,
    config.DEVICES,
    'Where learner and actors compute; stands for --learner_device and '
    '--inference_device. Default: none.',
    flag_values=flag_values,
  )


def define_widths(
  flag_values: flags.FlagValues, defaults: Sequence[int], meaning: str
) -> None:
  """A flag --envs, a list of numbers of environments."""
  flags.DEFINE_list(
    'envs', [str(d) for d in defaults], meaning, flag_values=flag_values
  )
  flags.register_validator(
    'envs',
    are_positive_integers,
    'must be positive integers, separated by commas.',
    flag_values=flag_values,
  )


def are_positive_integers(texts: list[str]) -> bool:
  """For flags that are lists of numbers."""
  return bool(texts) and all(t.isdecimal() and int(t) > 0 for t in texts)


def from_flags(flag_values: flags.FlagValues) -> 'Stages':
  """The stages that the flags describe."""
  stages = Stages(config_flags.build(flag_values), flag_values.secs)
  device = flag_values.device
  if device is None:
    return stages
  return stages.replace('run', learner_device=device, inference_device=device)


class Stages:
  """Makes the parts of a run one by one and measures them."""

  def __init__(self, settings: config.Config, secs: float):
    """Makes the task; nothing is measured yet."""
    self.settings = settings
    self.secs = secs
    self.task = tasks.make_task(settings)
    self.spec = self.task.spec()

  def replace(self, section: str, **values: Any) -> 'Stages':
    """The same with other settings in one section of the configuration."""
    changed = dataclasses.replace(getattr(self.settings, section), **values)
    settings = dataclasses.replace(self.settings, **{section: changed})
    return Stages(settings, self.secs)

  @property
  def learner_device(self) -> str:
    """For `tf.device`: where batches wait and the learner computes."""
    return self._placement().learner_devices[0] or '/cpu:0'

  @property
  def inference_device(self) -> str:
    """For `tf.device`: where actors compute."""
    return self._placement().inference_device

  def env(self) -> Cost:
    """One actor's environments under random actions."""
    num_envs = self.settings.actor.envs_per_actor
    random = np.random.default_rng(0)
    action = self.spec.action
    choices = getattr(action, 'num_values', None)
    actions = structs.no_actions(action, num_envs)
    with self.environments() as environments:
      environments.initial()

      def step():
        drawn = actions
        if choices is not None:
          drawn = random.integers(choices, size=num_envs, dtype=np.int32)
        environments.step(drawn)

      return self.measure(step, num_envs)

  def inference(self) -> Cost:
    """One actor's network, on real observations."""
    import tensorflow as tf

    num_envs = self.settings.actor.envs_per_actor
    policy = self.policy()
    policy.begin_unroll()
    with self.environments() as environments:
      env_output = environments.initial()
      state = [policy.initial_state()]
      actions = structs.no_actions(self.spec.action, num_envs)

      def step():
        _, state[0] = policy.step(actions, env_output, state[0])

      with tf.device(self.inference_device):
        return self.measure(step, num_envs)

  def learner(self) -> Cost:
    """Updates from one batch that stays the same."""
    own = self.make_learner()
    batch = self.batch_on_device()
    learner = self.settings.learner
    num_steps = learner.batch_size * learner.unroll_length
    return self.measure(lambda: own.update(batch), num_steps)

  def batch(self) -> structs.Unroll:
    """A batch as actors make it."""
    from scalable_agent import actor, dataset

    def unrolls(environments):
      one = actor.Actor(
        environments, self.policy(), self.settings.learner.unroll_length
      )
      while True:
        yield one.unroll()

    batch_size = self.settings.learner.batch_size
    with self.environments() as environments:
      return next(dataset.join_columns(unrolls(environments), batch_size))

  def batch_on_device(self) -> structs.Unroll:
    """`batch` as tensors where the learner computes."""
    import tensorflow as tf
    import tree

    with tf.device(self.learner_device):
      return tree.map_structure(tf.constant, self.batch())

  def policy(self) -> Any:
    """A policy of one actor, with fresh weights."""
    import tensorflow as tf

    from scalable_agent import inference, params

    with tf.device(self.inference_device):
      agent = self.make_agent()
      store = params.ParamStore()
      store.publish(0, [v.numpy() for v in agent.trainable_variables])
      num_envs = self.settings.actor.envs_per_actor
      return inference.DirectPolicy(agent, store, num_envs, seed=0)

  def make_learner(self) -> Any:
    """A learner with fresh weights."""
    from scalable_agent import learner

    strategy = self._placement().strategy
    with strategy.scope():
      return learner.Learner(
        self.make_agent(),
        self.settings.learner,
        self.spec.frames_per_step,
        strategy,
      )

  @contextlib.contextmanager
  def environments(self) -> Iterator[Any]:
    """One actor's environments, closed afterwards."""
    levels = tasks.deal(
      self.task.level_names,
      self.settings.actor.num_actors,
      self.settings.actor.envs_per_actor,
    )
    environments = self.task.build(tasks.Request(levels[0], 1, 0))
    try:
      yield environments
    finally:
      environments.close()

  def measure(self, call: Callable[[], Any], steps_per_call: int) -> Cost:
    """Calls until the time is up, after three calls that do not count."""
    for _ in range(3):
      call()
    start, start_cpu = time.perf_counter(), time.process_time()
    num_calls = 0
    while time.perf_counter() - start < self.secs:
      call()
      num_calls += 1
    secs = time.perf_counter() - start
    cpu_secs = time.process_time() - start_cpu
    num_steps = num_calls * steps_per_call
    return Cost(num_steps / secs, cpu_secs / num_steps)

  def make_agent(self) -> Any:
    """A network with fresh weights."""
    from scalable_agent.nets import agent as agent_lib

    return agent_lib.Agent(
      self.spec, self.settings.agent, frame_stack=self.task.frame_stack
    )

  def _placement(self):
    from scalable_agent.runtime import devices

    run = self.settings.run
    return devices.place(run.learner_device, run.inference_device)


def line(name: str, stages: Stages, values: dict[str, Any]) -> dict[str, Any]:
  """A measurement with what it was measured on.

  Text and whole numbers say what was measured, numbers with a point how fast.
  """
  settings = stages.settings
  return {
    'benchmark': name,
    'level_name': settings.task.level_name,
    'torso': settings.agent.torso,
    'core': settings.agent.core,
    'precision': settings.agent.precision,
    'device': settings.run.learner_device,
    'xla': 'on' if settings.learner.xla else 'off',
    'num_actors': settings.actor.num_actors,
    'envs_per_actor': settings.actor.envs_per_actor,
    'unroll_length': settings.learner.unroll_length,
    'batch_size': settings.learner.batch_size,
    **values,
  }
