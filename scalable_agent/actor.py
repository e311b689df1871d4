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
"""An actor: one batch of environments and one policy make unrolls."""

from collections.abc import Callable, Sequence

import numpy as np
import tree

from scalable_agent import structs, timing

# In bytes: what TensorFlow asks of memory that it did not allocate.
_ALIGNMENT = 64


class Actor:
  """Steps `E` environments with a policy and writes down what happens.

  Every unroll is written in place, slot by slot, into arrays of its own, so
  the environments may reuse theirs. See `structs` for the convention.
  """

  def __init__(
    self,
    environments: structs.Environments,
    policy: structs.Policy,
    unroll_length: int,
    level_indices: Sequence[int] | None = None,
  ):
    """Makes an actor; nothing is reset before the first unroll.

    Args:
      environments: what to step; the actor is its only user from now on.
      policy: chooses actions for all of them.
      unroll_length: T, in agent steps.
      level_indices: for each environment the index of its level; None: 0.
    """
    self._environments = environments
    self._policy = policy
    self._unroll_length = unroll_length
    num_envs = environments.num_envs
    self._level = np.zeros(num_envs, np.int32)
    if level_indices is not None:
      self._level[:] = level_indices
    self._next: tuple | None = None
    self.timers = timing.Timers()
    self.num_dropped_steps = 0

  def run(self, sink: structs.UnrollSink, should_stop: Callable[[], bool]):
    """Makes unrolls and puts them into `sink` until told to stop."""
    while not should_stop():
      unroll = self.unroll()
      with self.timers('put'):
        sink.put(unroll)

  def unroll(self) -> structs.Unroll:
    """Plays `T` steps and returns them as an `Unroll` of `[T + 1, E, ...]`.

    An unroll during which an environment had to be restarted is given up: its
    broken episode has no true end. Its steps are counted as dropped.
    """
    while True:
      restarts = self._environments.num_restarts
      unroll = self._play()
      if self._environments.num_restarts == restarts:
        return unroll
      self.num_dropped_steps += self._unroll_length * len(self._level)

  def _play(self) -> structs.Unroll:
    version = self._policy.begin_unroll()
    env_output, agent_output, values, core_state = self._next or self._begin()
    slots = _allocate(self._unroll_length + 1, env_output, agent_output)
    unroll = structs.Unroll(
      level=self._level,
      version=np.full(self._level.shape, version, np.int64),
      core_state=tree.map_structure(np.asarray, core_state),
      env_outputs=slots[0],
      agent_outputs=slots[1],
      truncation_values=np.zeros(
        (self._unroll_length + 1, len(self._level)), np.float32
      ),
    )
    _write(slots, 0, (env_output, agent_output))
    unroll.truncation_values[0] = values
    for t in range(1, self._unroll_length + 1):
      with self.timers('inference'):
        agent_output, core_state = self._policy.step(
          agent_output.action, env_output, core_state
        )
      with self.timers('env'):
        env_output = self._environments.step(agent_output.action)
      _write(slots, t, (env_output, agent_output))
      if env_output.truncated.any():
        values = self._final_values(agent_output, env_output, core_state)
        unroll.truncation_values[t] = values
    # The next unroll begins with this one's last slot. Its arrays are the
    # unroll's own: nobody writes to them any more.
    last = tree.map_structure(
      lambda slot: slot[-1], (*slots, unroll.truncation_values)
    )
    self._next = (*last, core_state)
    return unroll

  def _begin(self):
    """The first slot ever: reward 0, done, action 0."""
    with self.timers('env'):
      env_output = self._environments.initial()
    core_state = self._policy.initial_state()
    no_action = structs.no_actions(
      self._environments.spec.action, len(self._level)
    )
    # Shapes of logits and baseline are the policy's; it is asked once.
    asked, _ = self._policy.step(no_action, env_output, core_state)
    agent_output = structs.AgentOutput(
      action=no_action,
      policy_logits=np.zeros_like(asked.policy_logits),
      baseline=np.zeros_like(asked.baseline),
    )
    return env_output, agent_output, np.float32(0), core_state

  def _final_values(self, agent_output, env_output, core_state):
    """Baselines of the observations at which time limits struck, else 0."""
    final = env_output._replace(
      observation=self._environments.final_observation(),
      done=np.zeros_like(env_output.done),
      first=np.zeros_like(env_output.first),
    )
    values = self._policy.value(agent_output.action, final, core_state)
    return np.where(env_output.truncated, values, np.float32(0))


def _allocate(num_slots, env_output, agent_output):
  """Arrays of `[num_slots, E, ...]` for slots like those given."""
  return tree.map_structure(
    lambda x: _aligned((num_slots, *x.shape), x.dtype),
    (env_output, agent_output),
  )


def _aligned(shape, dtype):
  """`np.empty`, but where `tf.data` takes numbers over without a copy."""
  dtype = np.dtype(dtype)
  if dtype.hasobject:
    return np.empty(shape, dtype)
  num_bytes = int(np.prod(shape)) * dtype.itemsize
  memory = np.empty(num_bytes + _ALIGNMENT, np.uint8)
  start = -memory.ctypes.data % _ALIGNMENT
  return memory[start : start + num_bytes].view(dtype).reshape(shape)


def _write(slots, t, values):
  """Copies the values of one slot to index `t`."""
  for slot, value in zip(
    tree.flatten(slots), tree.flatten(values), strict=True
  ):
    slot[t] = value
