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
"""Tests of the seeds of environments and episodes (case B43)."""

import itertools

import pytest

from scalable_agent.envs import seeds


def first_seeds(base_seed):
  return [
    seeds.environment_seed(base_seed, actor, environment, restart)
    for actor in range(40)
    for environment in range(40)
    for restart in range(4)
  ]


def test_seeds_of_environments_are_distinct_and_come_again():
  found = first_seeds(1)
  assert len(set(found)) == len(found)
  assert found == first_seeds(1)
  assert all(0 <= seed < 2**31 - 1 and type(seed) is int for seed in found)


def test_extreme_indices_meet_no_other():
  corners = list(itertools.product((0, 16_382), (0, 1023), (0, 127)))
  assert len({seeds.environment_seed(7, *corner) for corner in corners}) == 8


def test_other_base_seed_other_seeds():
  assert not set(first_seeds(1)) & set(first_seeds(2))


@pytest.mark.parametrize(
  ('actor', 'environment', 'text'),
  [(16_383, 0, 'actor is 16383'), (0, 1024, 'environment is 1024')],
)
def test_too_many_are_refused(actor, environment, text):
  with pytest.raises(ValueError, match=text):
    seeds.environment_seed(1, actor, environment)


def test_seeds_of_episodes_are_distinct_and_come_again():
  def take(seed):
    return list(itertools.islice(seeds.episode_seeds(seed), 1000))

  assert take(5) == take(5)
  together = take(5) + take(6)
  assert len(set(together)) == 2000
  assert all(0 <= seed < 2**31 - 1 and type(seed) is int for seed in together)
