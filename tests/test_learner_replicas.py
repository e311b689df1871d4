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
"""Two synchronous replicas of the learner."""

import numpy as np
import pytest
import test_learner
import tree
import two_devices

from scalable_agent import config, dataset, learner
from scalable_agent.nets import agent as agent_lib


def make(strategy, batch_size):
  settings = config.LearnerConfig(
    batch_size=batch_size,
    unroll_length=test_learner.T,
    on_nonfinite='skip',
    reward_clipping='none',
    total_environment_frames=1000,
  )
  with strategy.scope():
    agent = agent_lib.Agent(
      test_learner.SPEC, config.AgentConfig(core='lstm'), seed=0
    )
    return learner.Learner(agent, settings, 4, strategy)


def per_replica(strategy, batches):
  """One batch for each replica, as one argument."""
  flat = [tree.flatten(batch) for batch in batches]
  values = [
    strategy.experimental_distribute_values_from_function(
      lambda context, i=i: np.asarray(flat[context.replica_id_in_sync_group][i])
    )
    for i in range(len(flat[0]))
  ]
  return tree.unflatten_as(batches[0], values)


def test_two_replicas_are_one_with_both_batches():
  strategy = two_devices.mirrored()
  two = make(strategy, 2)
  one = test_learner.make(batch_size=4, reward_clipping='none')
  batches = [test_learner.make_batch(one.agent, seed) for seed in (1, 2)]
  for _ in range(3):
    together = two.update(per_replica(strategy, batches))
    alone = one.update(dataset.concatenate(batches))
    for name in ('total_loss', 'gradient_norm', 'rho_mean', 'rho_max'):
      np.testing.assert_allclose(together[name], alone[name], rtol=1e-4)
  assert two.env_frames == one.env_frames
  for left, right in zip(two.weights(), one.weights(), strict=True):
    np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('replica', [0, 1])
def test_what_one_replica_cannot_use_both_skip(replica):
  strategy = two_devices.mirrored()
  two = make(strategy, 2)
  batches = [test_learner.make_batch(two.agent, seed) for seed in (1, 2)]
  batches[replica].env_outputs.reward[2, 1] = np.nan
  before = [w.numpy() for w in two.weights()]
  two.update(per_replica(strategy, batches))
  assert two.num_skipped == 1
  for variable, value in zip(
    two.agent.trainable_variables, before, strict=True
  ):
    for copy in strategy.experimental_local_results(variable.value):
      np.testing.assert_array_equal(copy, value)
