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
"""The three losses of the agent, and what is done to rewards. Pure functions.

Espeholt et al. 2018, section 4.2, and the original's `experiment.py`. Losses
are **sums** over time and batch, not means: twice the batch is twice the
gradient. The total is

    policy gradient + baseline_cost * baseline + entropy_cost * entropy

`compute_*` have the original's names and take logits of a softmax policy; the
others take TensorFlow Probability distributions, for any action space. The
arithmetic is float32 whatever comes in.
"""

import math
from typing import Any

import tensorflow as tf
import tensorflow_probability as tfp

from scalable_agent import shapes
from scalable_agent.config import REWARD_CLIPPINGS


def compute_policy_gradient_loss(
  logits: Any, actions: Any, advantages: Any
) -> tf.Tensor:
  """Policy-gradient loss of a softmax policy.

  Args:
    logits: `[T, B, A]`.
    actions: `[T, B]` integers from 0 to A - 1.
    advantages: `[T, B]`, taken as constants.

  Returns:
    Scalar float32, `-sum(advantages * log pi(actions))`.
  """
  log_probs = shapes.categorical_log_probs(logits, actions, 'logits')
  return _weighted_sum(-log_probs, advantages)


def policy_gradient_loss(
  distribution: Any, actions: Any, advantages: Any, epsilon: float = 0.0
) -> tf.Tensor:
  """Policy-gradient loss of a policy of any kind.

  Args:
    distribution: TensorFlow Probability distribution of batch shape `[T, B]`.
    actions: `[T, B, *event]`.
    advantages: `[T, B]`, taken as constants.
    epsilon: added to the probabilities (densities) of the actions, which keeps
      their logarithm from running away.

  Returns:
    Scalar float32, `-sum(advantages * log(pi(actions) + epsilon))`.
  """
  log_probs = shapes.log_probs(distribution, actions, 'distribution')
  if epsilon:
    log_epsilon = tf.fill(tf.shape(log_probs), math.log(epsilon))
    log_probs = tfp.math.log_add_exp(log_probs, log_epsilon)
  return _weighted_sum(-log_probs, advantages)


def compute_baseline_loss(advantages: Any) -> tf.Tensor:
  """Squared error of the baseline.

  Args:
    advantages: `[T, B]`, the targets `vs` minus the baseline, of one shape.

  Returns:
    Scalar float32, `0.5 * sum(advantages ** 2)`.
  """
  return 0.5 * tf.reduce_sum(tf.square(shapes.to_float(advantages)))


def compute_entropy_loss(logits: Any) -> tf.Tensor:
  """Negative entropy of a softmax policy: to minimize it is to explore.

  Args:
    logits: `[T, B, A]`. An action of logit -inf is one that does not exist.

  Returns:
    Scalar float32, `sum(pi * log pi)`.
  """
  logits = shapes.to_float(logits)
  policy, log_policy = tf.nn.softmax(logits), tf.nn.log_softmax(logits)
  # 0 * log 0 is 0, and so is its gradient; selected, since 0 * -inf is NaN.
  log_policy = tf.where(policy > 0.0, log_policy, 0.0)
  return tf.reduce_sum(policy * log_policy)


def entropy_loss(distribution: Any) -> tf.Tensor:
  """Negative entropy of a policy of any kind: to minimize it is to explore.

  Args:
    distribution: TensorFlow Probability distribution that knows its entropy.

  Returns:
    Scalar float32, `-sum(entropy)`.
  """
  return -tf.reduce_sum(shapes.to_float(distribution.entropy()))


def clip_rewards(rewards: Any, reward_clipping: str) -> tf.Tensor:
  """Rewards as the learner sees them.

  Args:
    rewards: any shape, the raw rewards.
    reward_clipping: 'abs_one' clips to [-1, 1]; 'soft_asymmetric' squeezes to
      (-1.5, 5) with `5 tanh(r / 5)`, of which losses count 0.3; 'none' changes
      nothing.

  Returns:
    float32 of the same shape.
  """
  rewards = shapes.to_float(rewards)
  if reward_clipping == 'none':
    return rewards
  if reward_clipping == 'abs_one':
    return tf.clip_by_value(rewards, -1.0, 1.0)
  if reward_clipping == 'soft_asymmetric':
    # The original's code; the paper's figure D.1 prints another formula, with
    # tanh(r) for tanh(r / 5).
    squeezed = tf.tanh(rewards / 5.0)
    return 5.0 * tf.where(rewards < 0.0, 0.3 * squeezed, squeezed)
  raise ValueError(
    f'reward_clipping is {reward_clipping!r}; choose one of '
    f'{", ".join(REWARD_CLIPPINGS)}.'
  )


def _weighted_sum(losses, advantages):
  advantages = shapes.require(
    shapes.to_float(advantages),
    'advantages',
    shapes.shape_of(losses),
    'the shape of the log-probabilities of the actions',
  )
  return tf.reduce_sum(losses * tf.stop_gradient(advantages))
