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
"""Policies: how actors run the network."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
import tree

from scalable_agent import structs
from scalable_agent.nets import agent as agent_lib

# Sizes to which a dynamic batch is padded; one trace, and one compiled
# program on accelerators, for each.
_MIN_BUCKET = 4
_batcher_ids = itertools.count()


class DirectPolicy:
  """One network of its own for one actor: best for wide actors.

  The weights stay the same within an unroll, as in the original's distributed
  mode: `begin_unroll` pulls.
  """

  def __init__(
    self,
    agent: agent_lib.Agent,
    params: structs.ParamSource,
    num_envs: int,
    seed: int,
    greedy: bool = False,
  ):
    """Makes a policy for `num_envs` environments.

    Args:
      agent: the network; its weights belong to this policy from now on.
      params: where the weights come from.
      num_envs: E, the static batch size of the one trace.
      seed: of the sampled actions.
      greedy: take the mode of the policy instead of a sample.
    """
    self._agent = agent
    self._params = params
    self._num_envs = num_envs
    self._version = -1
    self._sampler = _Sampler(agent, seed, greedy)
    self.compiled_step = Compiled(self._sampler.step)
    self._value = Compiled(_value_function(agent))

  def initial_state(self) -> structs.Nest:
    """Core state of fresh episodes, nest of `[E, ...]`."""
    return self._agent.initial_state(self._num_envs)

  def begin_unroll(self) -> int:
    """Pulls the newest weights; returns their version."""
    pulled = self._params.pull(self._version)
    if pulled is not None:
      self._version, weights = pulled
      assign_weights(self._agent, weights)
    return self._version

  def step(self, actions, env_output, core_state):
    """See `structs.Policy.step`."""
    output, core_state = self.compiled_step(
      actions, consumed(env_output), core_state
    )
    return tree.map_structure(lambda x: x.numpy(), output), core_state

  def value(self, actions, env_output, core_state):
    """See `structs.Policy.value`."""
    return self._value(actions, consumed(env_output), core_state).numpy()


class Compiled:
  """A function of nests of arrays whose shapes never change, traced once.

  `tf.function` looks at its arguments again in each call, and hands operations
  to threads of TensorFlow's; for a small network both cost more than the
  network. Here the thread that calls runs them, one after the other.
  """

  def __init__(self, function: Callable[..., structs.Nest]):
    """Traces `function` in the first call, of whichever thread."""
    self.function = function
    self._call: Callable | None = None
    self._outputs: structs.Nest = None
    self._lock = threading.Lock()

  def __call__(self, *args: structs.Nest) -> structs.Nest:
    """What `function` gives, as tensors."""
    flat = [
      x if isinstance(x, tf.Tensor) else tf.constant(x)
      for x in tree.flatten(args)
    ]
    if self._call is None:
      with self._lock:
        self._call = self._call or self._trace(args, flat)
    return tree.unflatten_as(self._outputs, self._call(flat))

  def _trace(self, args, flat):
    def flat_function(*flat):
      self._outputs = self.function(*tree.unflatten_as(args, flat))
      return tree.flatten(self._outputs)

    traced = tf.function(flat_function, autograph=False)
    concrete = traced.get_concrete_function(*flat)
    if tf.config.list_logical_devices('GPU'):
      return lambda flat: concrete(*flat)
    captured = list(concrete.captured_inputs)
    dtypes = [output.dtype for output in concrete.outputs]
    return lambda flat: tf.raw_ops.StatefulPartitionedCall(
      args=flat + captured, Tout=dtypes, f=concrete
    )


class InferenceBatcher:
  """One network for many narrow actors: requests that coincide share a pass.

  The original's dynamic batching, on TensorFlow's own batching op. Weights
  may change between two steps of an unroll; the behaviour logits of each step
  are recorded, so V-trace stays exact.
  """

  def __init__(
    self,
    agent: agent_lib.Agent,
    params: structs.ParamSource,
    num_envs: int,
    num_clients: int,
    seed: int,
    timeout_micros: int = 1000,
  ):
    """Makes a batcher.

    Args:
      agent: the network; its weights belong to the batcher from now on.
      params: where the weights come from.
      num_envs: E of each client.
      num_clients: number of actors that will ask.
      seed: of the sampled actions.
      timeout_micros: how long a request waits for company, in microseconds.
    """
    self._agent = agent
    self._params = params
    self._num_envs = num_envs
    self._version = -1
    self._pull_lock = threading.Lock()
    self._sampler = _Sampler(agent, seed, greedy=False)
    buckets = _buckets(num_envs * num_clients)
    batched = tf.nondifferentiable_batch_function(
      num_batch_threads=1,
      max_batch_size=buckets[-1],
      batch_timeout_micros=timeout_micros,
      allowed_batch_sizes=buckets,
      max_enqueued_batches=2 * num_clients,
    )
    self._step = Compiled(_over_flat(batched, self._sampler.step))
    self._value = Compiled(_value_function(agent))

  def client(self) -> 'BatchedPolicy':
    """A policy for one more actor."""
    return BatchedPolicy(self)

  def pull(self) -> int:
    """Brings the shared weights up to date; returns their version."""
    with self._pull_lock:
      pulled = self._params.pull(self._version)
      if pulled is not None:
        version, weights = pulled
        assign_weights(self._agent, weights)
        self._version = version
      return self._version


class BatchedPolicy:
  """One actor's view of an `InferenceBatcher`. See `structs.Policy`."""

  def __init__(self, batcher: InferenceBatcher):
    """Made by `InferenceBatcher.client`."""
    self._batcher = batcher

  def initial_state(self):
    """Core state of fresh episodes, nest of `[E, ...]`."""
    return self._batcher._agent.initial_state(self._batcher._num_envs)

  def begin_unroll(self):
    """Pulls the newest weights for all clients; returns their version."""
    return self._batcher.pull()

  def step(self, actions, env_output, core_state):
    """See `structs.Policy.step`."""
    output, core_state = self._batcher._step(
      actions, consumed(env_output), core_state
    )
    return tree.map_structure(lambda x: x.numpy(), output), core_state

  def value(self, actions, env_output, core_state):
    """See `structs.Policy.value`."""
    return self._batcher._value(
      actions, consumed(env_output), core_state
    ).numpy()


class _Sampler:
  """One slot through the network, then an action; counts its samples."""

  def __init__(self, agent, seed, greedy):
    self._agent = agent
    self._greedy = greedy
    self._seed = seed
    self._num_samples = tf.Variable(0, dtype=tf.int32, trainable=False)

  def step(self, actions, env_output, core_state):
    """Returns `AgentOutput` and the next core state."""
    net, core_state = self._agent.step(actions, env_output, core_state)
    distribution = self._agent.distribution(net.policy_logits)
    if self._greedy:
      action = distribution.mode()
    else:
      count = self._num_samples.assign_add(1)
      seed = tf.stack([tf.constant(self._seed, tf.int32), count])
      action = distribution.sample(seed=seed)
    output = structs.AgentOutput(action, net.policy_logits, net.baseline)
    return output, core_state


def assign_weights(
  agent: agent_lib.Agent, weights: Sequence[tf.Tensor | np.ndarray]
) -> None:
  """Gives the trainable variables of `agent` the values `weights`, in order."""
  for variable, value in zip(agent.trainable_variables, weights, strict=True):
    variable.value.assign(value)


def device_scope(device: str | None) -> contextlib.AbstractContextManager:
  """`tf.device(device)`, or nothing for None."""
  return tf.device(device) if device else contextlib.nullcontext()


def _value_function(agent) -> Callable:
  def value(actions, env_output, core_state):
    net, _ = agent.step(actions, env_output, core_state)
    return net.baseline

  return value


def consumed(env_output: structs.EnvOutput) -> structs.EnvOutput:
  """Only what the network consumes: the rest need not travel."""
  return env_output._replace(info=(), truncated=())


def _buckets(largest: int) -> list[int]:
  """Powers of two from `_MIN_BUCKET` up to at least `largest`."""
  buckets = [_MIN_BUCKET]
  while buckets[-1] < largest:
    buckets.append(2 * buckets[-1])
  return buckets


def _over_flat(batched, function) -> Callable:
  """`function` through `batched`, which takes and gives flat lists only."""

  # TensorFlow keeps one batching queue per name of the op and process: without
  # a name of its own, a second batcher would run the first one's network.
  name = f'inference_batcher_{next(_batcher_ids)}'

  def call(*args):
    packed = {}

    def flat_function(*flat):
      outputs = function(*tf.nest.pack_sequence_as(args, flat))
      packed['structure'] = outputs
      return tf.nest.flatten(outputs)

    # The op traces with the shapes that it is given, but then brings batches
    # of every size: the size must not be known.
    flat = [
      tf.compat.v1.placeholder_with_default(x, [None, *x.shape[1:]])
      for x in tf.nest.flatten(args)
    ]
    with tf.name_scope(name):
      flat_outputs = batched(flat_function)(*flat)
    return tf.nest.pack_sequence_as(packed['structure'], flat_outputs)

  return call
