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
"""The rule of population based training, as the IMPALA paper applies it.

Espeholt et al. 2018 (arXiv 1802.01561), appendix F: once a member's turn comes,
it is compared with one other member, drawn at random. If that one's fitness is
better by more than 5 percentage points (absolute), weights and hyperparameters
are copied. Whether or not they are, each hyperparameter is then changed with
probability 0.33, by a factor of 1.2 or 1 / 1.2. Fitness is the mean capped
human-normalized score. Nothing of that happens during a burn-in of 20 million
frames, and a member's turn comes after 5,000 episodes (figure 5's caption and
appendix F; population of 24).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

# Table D.1's three, which the paper's DMLab-30 runs adapt.
MUTATED = ('learning_rate', 'entropy_cost', 'epsilon')


class Rule(NamedTuple):
  """Constants of the paper.

  burn_in_frames: of a member, before its first turn.
  episodes: of a member, from one turn to the next.
  margin: how much better, in units of the fitness, the other one must be.
  probability: that a hyperparameter changes.
  factor: by which it is multiplied or divided.
  mutated: names of the hyperparameters that change.
  """

  burn_in_frames: int = 20_000_000
  episodes: int = 5000
  margin: float = 5.0
  probability: float = 0.33
  factor: float = 1.2
  mutated: tuple[str, ...] = MUTATED


def is_due(
  rule: Rule, env_frames: int, episodes: int, last_episodes: int
) -> bool:
  """Whether it is a member's turn.

  Args:
    rule: the constants.
    env_frames: that the member has trained.
    episodes: that the member has finished.
    last_episodes: the same at its last turn; 0 before its first.
  """
  return (
    env_frames >= rule.burn_in_frames
    and episodes - last_episodes >= rule.episodes
  )


def copies(rule: Rule, own_fitness: float, other_fitness: float) -> bool:
  """Whether the other one is so much better that it is copied."""
  return other_fitness - own_fitness > rule.margin


def mutate(
  rule: Rule, settings: Mapping[str, float], rng: np.random.Generator
) -> dict[str, float]:
  """Settings of which each mutated one has changed with the probability."""
  mutated = dict(settings)
  for name in rule.mutated:
    if rng.random() < rule.probability:
      up = rng.random() < 0.5
      mutated[name] *= rule.factor if up else 1 / rule.factor
  return mutated
