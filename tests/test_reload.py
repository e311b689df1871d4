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
"""An agent that was saved acts the same in another process."""

import pathlib
import subprocess
import sys

import numpy as np
import test_learner

from scalable_agent import checkpoint

_RELOAD = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import test_learner
from scalable_agent import checkpoint, learner
own = test_learner.make(seed=9)
saved = checkpoint.Checkpointer(sys.argv[2]).restore_required()
learner.load_agent(own.agent, saved.arrays)
batch = test_learner.make_batch(own.agent, seed=5)
net, state = own.agent.unroll(
  batch.agent_outputs.action, batch.env_outputs, batch.core_state)
np.savez(sys.argv[3], net.policy_logits, net.baseline, state.lstm.c)
"""


def test_outputs_are_the_same_in_a_fresh_process(tmp_path):
  own = test_learner.make(seed=0)
  own.update(test_learner.make_batch(own.agent, seed=1))
  checkpoint.Checkpointer(tmp_path).save(*own.state())
  batch = test_learner.make_batch(own.agent, seed=5)
  net, state = own.agent.unroll(
    batch.agent_outputs.action, batch.env_outputs, batch.core_state
  )
  outputs = tmp_path / 'outputs.npz'
  tests = pathlib.Path(__file__).parent
  subprocess.run(
    [sys.executable, '-c', _RELOAD, tests, tmp_path, outputs], check=True
  )
  with np.load(outputs) as reloaded:
    for expected, name in zip(
      (net.policy_logits, net.baseline, state.lstm.c),
      reloaded.files,
      strict=True,
    ):
      np.testing.assert_allclose(reloaded[name], expected, rtol=0, atol=1e-6)
