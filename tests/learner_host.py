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
"""One of several learners, as a process of its own; see test_learner_hosts.

    TF_CONFIG=... python tests/learner_host.py results.npz

Ten updates from batches that follow from the index of the host, one more in
which host 1 has a NaN, and what hosts tell one another.
"""

import os
import sys

os.environ['TF_ENABLE_ONEDNN_OPTS'] = '1'
os.environ['CUDA_VISIBLE_DEVICES'] = ''

import numpy as np

from scalable_agent import config
from scalable_agent.runtime import devices, hosts, peers

NUM_UPDATES = 10


def batches(agent, index):
  """Those of a host."""
  import test_learner

  for i in range(NUM_UPDATES):
    yield test_learner.make_batch(agent, seed=100 * index + i)


def refused(others, index):
  """What is said if the hosts have different settings."""
  settings = config.Config(learner=config.LearnerConfig(batch_size=2 + index))
  try:
    others.check_settings(settings)
  except ValueError as error:
    return str(error)
  return ''


def main(path):
  """Writes what there is to compare into the file `path`."""
  all_hosts = hosts.from_environment()
  # Must come before anything else starts TensorFlow.
  place = devices.place('cpu', 'cpu', 1, all_hosts)
  import test_learner

  with place.strategy.scope():
    own = test_learner.make(reward_clipping='none', on_nonfinite='skip')
  others = peers.Peers(all_hosts, place.strategy)
  for batch in batches(own.agent, all_hosts.index):
    metrics = own.update(batch)
  results = {'total_loss': metrics['total_loss'], 'rho': metrics['rho_max']}
  weights = [w.numpy() for w in own.weights()]
  if all_hosts.index == 1:
    batch.env_outputs.reward[2, 1] = np.nan
  own.update(batch)
  results['num_skipped'] = own.num_skipped
  results['env_frames'] = own.env_frames
  results['unmoved'] = all(
    (w.numpy() == before).all()
    for w, before in zip(own.weights(), weights, strict=True)
  )
  mine = np.array([7, 8]) + all_hosts.index
  (results['from_chief'],) = others.from_chief([mine])
  results['refused'] = refused(others, all_hosts.index)
  results['together'] = others.go_on(ready=True)
  others.leave(signum=15 if all_hosts.index else None, failed=False)
  results['apart'] = others.go_on(ready=all_hosts.index == 0)
  results['signum'] = others.signum
  results['ended_by'] = others.describe_end() or ''
  np.savez(path, *weights, **results)


if __name__ == '__main__':
  main(sys.argv[1])
