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
"""Loss, gradients and three updates, equal to the original's own numbers.

Where float32 forces more than 1e-5: a ReLU whose input is within rounding of
zero passes its gradient on one machine and blocks it on another. A step later
weights differ by 1e-6, and more ReLUs do; each step makes the difference some
ten times larger. Independent float64 arithmetic agrees with the original's
float32 to 2e-5 after three updates, as the learner does with division by 255
as it was then (see `exact_division`); without it, one ReLU of the first batch
flips, and 4e-4 is left. So what follows two and three updates gets 5e-5 and
1e-3; a machine's other rounding may cost that much.
"""

import golden_agent
import numpy as np
import pytest
import tensorflow as tf
import tree

from scalable_agent import checkpoint, config, learner
from scalable_agent.nets import agent, instruction, tf1_weights


@pytest.fixture
def exact_division():
  """Keeps TensorFlow from turning x / 255 into x * (1 / 255) in graphs."""
  before = tf.config.optimizer.get_experimental_options()
  tf.config.optimizer.set_experimental_options({'constant_folding': False})
  yield
  tf.config.optimizer.set_experimental_options(
    {'constant_folding': before.get('constant_folding', True)}
  )


@pytest.fixture(params=golden_agent.REWARD_CLIPPINGS)
def reward_clipping(request):
  return request.param


def make_learner(reward_clipping):
  """A learner with the golden weights; its variables by original names."""
  own = learner.Learner(
    agent.Agent(golden_agent.SPEC, config.AgentConfig()),
    config.LearnerConfig(
      batch_size=golden_agent.B,
      unroll_length=golden_agent.T,
      total_environment_frames=1_000_000,
      reward_clipping=reward_clipping,
    ),
    golden_agent.SPEC.frames_per_step,
  )
  named = tf1_weights.variables_by_original_name(
    own.agent.trainable_variables,
    own.optimizer.slots,
    tf.Variable(0, dtype=tf.int64),
  )
  weights = golden_agent.weights()
  variables = {name: named[name] for name in weights}
  checkpoint.assign_all(variables, weights)
  return own, variables


def batch():
  return tree.map_structure(tf.constant, golden_agent.unroll())


def test_gradients(reward_clipping, monkeypatch):
  # The original took the norm over a row per word read, repeated ones apart.
  monkeypatch.setattr(instruction, '_sum_repeated', tf.identity)
  own, variables = make_learner(reward_clipping)
  with tf.GradientTape() as tape:
    loss, _ = own.loss(batch())
  golden = golden_agent.values(reward_clipping)
  np.testing.assert_allclose(loss, golden['total_loss_0'], rtol=1e-5)
  gradients = tape.gradient(loss, [v.value for v in variables.values()])
  for name, gradient in zip(variables, gradients, strict=True):
    np.testing.assert_allclose(
      tf.linalg.global_norm([gradient]),
      golden[f'gradnorm|{name}'],
      rtol=1e-5,
      err_msg=name,
    )


@pytest.mark.usefixtures('exact_division')
def test_three_updates(reward_clipping):
  own, variables = make_learner(reward_clipping)
  golden = golden_agent.values(reward_clipping)
  for k, tolerance in enumerate((1e-5, 1e-5, 5e-5)):
    metrics = own.update(batch())
    for metric, key in (
      ('total_loss', f'total_loss_{k}'),
      ('learning_rate', f'learning_rate_{k}'),
    ):
      np.testing.assert_allclose(metrics[metric], golden[key], rtol=tolerance)
    assert own.env_frames == golden[f'frames_{k + 1}']
  loss, _ = own.loss(batch())
  np.testing.assert_allclose(loss, golden['total_loss_3'], rtol=1e-3)
  # Logits and values are around 1; the updates moved them by 0.8.
  unroll = batch()
  output, _ = own.agent.unroll(
    unroll.agent_outputs.action, unroll.env_outputs, unroll.core_state
  )
  for ours, key in (
    (output.policy_logits, 'policy_logits_after'),
    (output.baseline, 'baseline_after'),
  ):
    np.testing.assert_allclose(ours, golden[key], rtol=0, atol=1e-3)
  for name, variable in variables.items():
    np.testing.assert_allclose(
      np.sum(np.abs(variable.numpy()), dtype=np.float64),
      golden[f'sumabs_after|{name}'],
      rtol=1e-5,
      err_msg=name,
    )
