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
"""Tests for evaluate: the quota, and what it counts."""

import numpy as np
import pytest
from doubles import CountingPolicy, ScriptedEnvironments

from scalable_agent import evaluate


class UnevenEnvironments(ScriptedEnvironments):
  """Environment 0 plays short episodes of return 1, environment 1 long ones."""

  def step(self, actions):
    self._episode_length = np.array([1, 5])
    return super().step(actions)


def test_the_quota_is_fixed_so_short_episodes_are_not_favoured():
  environments = UnevenEnvironments(num_envs=2, reward=lambda *_: 1)
  result = evaluate.play(environments, CountingPolicy(2), num_episodes=6)
  # The first six to finish would be five short ones and one long one.
  assert result.returns == [1, 1, 1, 5, 5, 5]
  assert result.num_steps == [1, 1, 1, 5, 5, 5]
  assert result.level == 'scripted'


@pytest.mark.parametrize(
  ('num_episodes', 'num_envs', 'expected'),
  [(6, 3, [2, 2, 2]), (7, 3, [3, 2, 2]), (2, 3, [1, 1, 0])],
)
def test_quotas_differ_by_at_most_one(num_episodes, num_envs, expected):
  np.testing.assert_array_equal(
    evaluate.quotas(num_episodes, num_envs), expected
  )


def test_no_episodes_is_an_error():
  with pytest.raises(ValueError, match='num_episodes is 0'):
    evaluate.quotas(0, 1)


def test_every_slot_is_shown_the_first_included():
  slots = []
  evaluate.play(
    ScriptedEnvironments(episode_length=3),
    CountingPolicy(),
    num_episodes=2,
    on_slot=lambda slot: slots.append(slot.observation[0].tolist()),
  )
  assert slots == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [2, 0]]
