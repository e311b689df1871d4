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
"""The learner: one update of the network from one batch of unrolls."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from scalable_agent import (
  checkpoint,
  config,
  corrections,
  loss_scale,
  losses,
  optimizers,
  structs,
)
from scalable_agent.nets import agent as agent_lib

_OPTIMIZER_PREFIX = 'optimizer/'

# How metrics of replicas become one; those not named are averaged.
_REDUCTIONS = {
  'total_loss': tf.reduce_sum,
  'policy_gradient_loss': tf.reduce_sum,
  'baseline_loss': tf.reduce_sum,
  'entropy_loss': tf.reduce_sum,
  'rho_max': tf.reduce_max,
}
# Large, so they stay where they are: metrics have those of this host only.
_LOCAL = ('log_rhos',)


class Learner:
  """Owns the weights that learn, the optimizer, and the frame counter.

  `update` is compiled once and is the only place that shifts time: slot t of
  a batch holds what led to `x_t`, the network's output at slot t belongs to
  what follows, so outputs `[:-1]` meet actions and rewards `[1:]`, and the
  last baseline is the bootstrap (`build_learner` of the original).
  """

  def __init__(
    self,
    agent: agent_lib.Agent,
    learner_config: config.LearnerConfig,
    frames_per_step: int,
    strategy: tf.distribute.Strategy | None = None,
  ):
    """Makes a learner of `agent`, which must be built in the strategy's scope.

    Args:
      agent: the network that learns.
      learner_config: losses, optimizer, schedule.
      frames_per_step: simulator frames behind one agent step.
      strategy: where to compute; None: TensorFlow's default device.

    Raises:
      ValueError: XLA is asked for where it cannot compile the update.
    """
    self.agent = agent
    self._config = learner_config
    self._strategy = strategy or tf.distribute.get_strategy()
    with self._strategy.scope():
      self.optimizer = optimizers.RMSProp(
        learning_rate=learner_config.learning_rate,
        decay=learner_config.decay,
        momentum=learner_config.momentum,
        epsilon=learner_config.epsilon,
        clip_gradient_norm=learner_config.clip_gradient_norm,
      )
      self.optimizer.build(agent.trainable_variables)
      self._loss_scale = None
      if agent.compute_dtype == 'float16':
        self._loss_scale = loss_scale.DynamicLossScale()
    self.frames_per_batch = (
      learner_config.num_fresh
      * learner_config.unroll_length
      * frames_per_step
      * self._strategy.num_replicas_in_sync
    )
    self.env_frames = 0
    self.num_updates = 0
    self.num_skipped = 0
    self._on_replica = self._replica_update
    if learner_config.xla:
      self._check_xla()
      self._on_replica = tf.function(
        self._replica_update, autograph=False, jit_compile=True
      )
    self._compiled = tf.function(self._distributed_update, autograph=False)

  def update(self, batch: structs.Unroll) -> dict[str, Any]:
    """Optimizer steps on `batch` (`[T + 1, B, ...]`); returns metrics.

    There are `updates_per_batch` of them, all at the learning rate of the
    frames before the batch; the metrics are those of the last. Losses are sums
    over time and batch, as in the original. Raises `FloatingPointError` if
    loss or gradient is not finite and the settings say to abort; weights and
    slots are as before that step then.
    """
    learning_rate = optimizers.learning_rate_at(
      self.env_frames,
      self._config.learning_rate,
      self._config.total_environment_frames,
    )
    for _ in range(self._config.updates_per_batch):
      metrics = self._compiled(batch, tf.constant(learning_rate, tf.float32))
      if not metrics.pop('finite').numpy():
        self._handle_nonfinite(batch, metrics)
      self.num_updates += 1
    self.env_frames += self.frames_per_batch
    return metrics

  def weights(self) -> list[tf.Tensor]:
    """Immutable copies of the weights, in order of `trainable_variables`."""
    return [tf.identity(v.value) for v in self.agent.trainable_variables]

  def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Everything that resuming needs: arrays by name, and counters."""
    arrays = {n: v.numpy() for n, v in self._variables_by_name().items()}
    counters = {
      'env_frames': self.env_frames,
      'num_updates': self.num_updates,
      'num_skipped': self.num_skipped,
    }
    return arrays, counters

  def load_state(
    self, arrays: Mapping[str, np.ndarray], counters: Mapping[str, int]
  ) -> None:
    """Takes over what `state` gave; raises if a variable does not match."""
    checkpoint.assign_all(self._variables_by_name(), arrays)
    self.env_frames = counters['env_frames']
    self.num_updates = counters['num_updates']
    self.num_skipped = counters['num_skipped']

  def _variables_by_name(self) -> dict[str, Any]:
    named = {v.path: v for v in self.agent.trainable_variables}
    for variable in self.optimizer.variables:
      named[_OPTIMIZER_PREFIX + variable.path] = variable
    if self._loss_scale is not None:
      named[_OPTIMIZER_PREFIX + 'loss_scale'] = self._loss_scale.factor
      named[_OPTIMIZER_PREFIX + 'num_good'] = self._loss_scale.num_good
    return named

  def _check_xla(self):
    num_replicas = self._strategy.num_replicas_in_sync
    words = self.agent.instruction_encoder is not None
    if num_replicas > 1 or words:
      found = 'instructions in words' if words else f'{num_replicas} learners'
      raise ValueError(
        f'xla is on, with {found}; it compiles neither text nor sums over '
        'several learners, so leave it off.'
      )

  def _distributed_update(self, batch, learning_rate):
    metrics = self._strategy.run(self._on_replica, (batch, learning_rate))
    if self._strategy.num_replicas_in_sync == 1:
      return metrics
    return {
      name: tf.stack(values) if name in _LOCAL else values[0]
      for name, value in metrics.items()
      if (values := self._strategy.experimental_local_results(value))
    }

  def _replica_update(self, batch, learning_rate):
    variables = self.agent.trainable_variables
    scaling = self._loss_scale
    with tf.GradientTape() as tape:
      loss, metrics = self.loss(batch)
      scaled = loss if scaling is None else scaling.scale(loss)
    gradients = tape.gradient(
      scaled, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    if scaling is not None:
      gradients = scaling.unscale(gradients)
    if self._strategy.num_replicas_in_sync > 1:
      # The loss as well: all replicas must agree on whether it is finite.
      loss, gradients, metrics = _over_replicas(loss, gradients, metrics)
    finite = tf.math.is_finite(loss) & tf.math.is_finite(
      tf.linalg.global_norm(gradients)
    )
    norm = self.optimizer.update(gradients, variables, learning_rate, ok=finite)
    if scaling is not None:
      metrics['loss_scale'] = scaling.factor.read_value()
      scaling.adapt(finite)
    metrics.update(
      gradient_norm=norm, learning_rate=learning_rate, finite=finite
    )
    return metrics

  def loss(self, batch: structs.Unroll) -> tuple[tf.Tensor, dict[str, Any]]:
    """Total loss of `batch`, a scalar, and what is worth logging."""
    settings = self._config
    net, _ = self.agent.unroll(
      batch.agent_outputs.action, batch.env_outputs, batch.core_state
    )
    bootstrap_value = net.baseline[-1]
    env, agent, truncation_values = tree.map_structure(
      lambda x: x[1:],
      (batch.env_outputs, batch.agent_outputs, batch.truncation_values),
    )
    net = tree.map_structure(lambda x: x[:-1], net)
    target = self.agent.distribution(net.policy_logits)
    returns = corrections.from_distributions(
      settings.correction,
      self.agent.distribution(agent.policy_logits),
      target,
      agent.action,
      discounts=tf.where(env.done & ~env.truncated, 0.0, settings.discounting),
      rewards=losses.clip_rewards(env.reward, settings.reward_clipping),
      values=net.baseline,
      bootstrap_value=bootstrap_value,
      clip_rho_threshold=settings.clip_rho_threshold,
      clip_pg_rho_threshold=settings.clip_pg_rho_threshold,
      clip_c_threshold=settings.clip_c_threshold,
      lambda_=settings.lambda_,
      truncations=env.truncated,
      truncation_values=truncation_values,
    )
    policy = corrections.policy_gradient_loss(
      settings.correction, target, agent.action, returns.pg_advantages
    )
    baseline = losses.compute_baseline_loss(returns.vs - net.baseline)
    entropy = losses.entropy_loss(target)
    total = (
      policy
      + settings.baseline_cost * baseline
      + settings.entropy_cost * entropy
    )
    return total, self._metrics(total, policy, baseline, entropy, returns)

  def _metrics(self, total, policy, baseline, entropy, returns):
    # Policies may be so far apart that a ratio is beyond float32: the mean of
    # the others is still worth seeing.
    rhos = tf.exp(tf.minimum(returns.log_rhos, 60.0))
    clipped = rhos > self._config.clip_rho_threshold
    num_steps = tf.cast(tf.size(rhos), tf.float32)
    return {
      'total_loss': total,
      'policy_gradient_loss': policy,
      'baseline_loss': baseline,
      'entropy_loss': entropy,
      'entropy': -entropy / num_steps,
      'rho_mean': tf.reduce_mean(rhos),
      'rho_max': tf.reduce_max(rhos),
      'rho_clipped_share': tf.reduce_mean(tf.cast(clipped, tf.float32)),
      'log_rhos': returns.log_rhos,
    }

  def _handle_nonfinite(self, batch, metrics):
    """Ends the run or counts a skipped update, as the settings say.

    That float16 overflows now and then is how the loss scale finds its size.
    """
    self.num_skipped += 1
    loss_is_fine = np.isfinite(metrics['total_loss'].numpy())
    if loss_is_fine and metrics.get('loss_scale', 1.0) > 1.0:
      return
    if self._config.on_nonfinite == 'skip':
      return
    raise FloatingPointError(
      f'Update {self.num_updates} was not finite (total loss '
      f'{metrics["total_loss"].numpy()}, gradient norm '
      f'{metrics["gradient_norm"].numpy()}); {self._blame(batch)} Weights are '
      'as before it. Clip gradients (clip_gradient_norm=40), check the scale '
      'of rewards and observations, or set on_nonfinite=skip.'
    )

  def _blame(self, batch):
    """A sentence that names what in this host's batches is not finite."""
    culprits = []
    num_local = 1
    for path, value in tree.flatten_with_path(batch):
      replicas = self._strategy.experimental_local_results(value)
      num_local = max(num_local, len(replicas))
      if not all(_is_finite(np.asarray(values)) for values in replicas):
        culprits.append('.'.join(str(p) for p in path))
    if culprits:
      return f'the batch holds NaN or infinity in {", ".join(culprits)}.'
    where = 'the batch'
    if num_local < self._strategy.num_replicas_in_sync:
      where = "this host's batches"
    return f'all data of {where} were finite.'


def _is_finite(values: np.ndarray) -> bool:
  """Whether no float is NaN or infinite; true for all other types."""
  return values.dtype.kind != 'f' or bool(np.isfinite(values).all())


def _over_replicas(loss, gradients, metrics):
  """Sums over all replicas, and metrics of all, in one exchange."""
  context = tf.distribute.get_replica_context()
  names = [name for name in metrics if name not in _LOCAL]
  # A row of a replica's own in a table of zeros: the sum holds every row.
  rows = tf.range(context.num_replicas_in_sync)[:, tf.newaxis]
  row = tf.stack([metrics[name] for name in names])[tf.newaxis]
  table = tf.where(rows == context.replica_id_in_sync_group, row, 0.0)
  loss, table, *gradients = context.all_reduce(
    tf.distribute.ReduceOp.SUM, [loss, table, *gradients]
  )
  columns = zip(names, tf.unstack(table, axis=1), strict=True)
  return (
    loss,
    gradients,
    {
      **{name: metrics[name] for name in _LOCAL},
      **{n: _REDUCTIONS.get(n, tf.reduce_mean)(c) for n, c in columns},
    },
  )


def load_agent(
  agent: agent_lib.Agent, arrays: Mapping[str, np.ndarray]
) -> None:
  """Gives `agent` the weights among the `arrays` of a `Learner`'s state."""
  weights = {
    name: array
    for name, array in arrays.items()
    if not name.startswith(_OPTIMIZER_PREFIX)
  }
  named = {v.path: v for v in agent.trainable_variables}
  checkpoint.assign_all(named, weights)
