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
"""Seeds that are never the same twice, and the same again on the next run.

`np.random.SeedSequence` turns the base seed of a run into a start and a stride
modulo the prime 2**31 - 1. Multiples of a stride modulo a prime never meet, so
seeds differ by construction, where random 31-bit numbers would soon collide.
Every seed is a Python int in [0, 2**31 - 1), which all simulators take.
"""

from collections.abc import Iterator

import numpy as np

_PRIME = 2**31 - 1
_ENVIRONMENTS = 1 << 10
_RESTARTS = 1 << 7


def _start_and_stride(*entropy: int) -> tuple[int, int]:
  start, stride = np.random.SeedSequence(entropy).generate_state(2, np.uint64)
  return int(start) % _PRIME, 1 + int(stride) % (_PRIME - 1)


def environment_seed(
  base_seed: int, actor: int, environment: int, restart: int = 0
) -> int:
  """Seed of one environment of one actor.

  Args:
    base_seed: Seed of the run.
    actor: Index of the actor, over all machines of the run.
    environment: Index of the environment within its actor, below 1024.
    restart: How often this environment was replaced so far.

  Returns:
    A seed that no other arguments give under the same `base_seed` (up to
    16,383 actors and 128 restarts of an environment, after which the seeds of
    its restarts come round again).
  """
  limits = (_PRIME // (_ENVIRONMENTS * _RESTARTS), _ENVIRONMENTS)
  for name, value, limit in zip(
    ('actor', 'environment'), (actor, environment), limits, strict=True
  ):
    if not 0 <= value < limit:
      raise ValueError(f'{name} is {value}; it must be in [0, {limit}).')
  index = (actor * _ENVIRONMENTS + environment) * _RESTARTS
  index += restart % _RESTARTS
  start, stride = _start_and_stride(base_seed)
  return (start + index * stride) % _PRIME


def episode_seeds(seed: int) -> Iterator[int]:
  """Endless seeds for the episodes of the environment that `seed` started."""
  start, stride = _start_and_stride(seed, 1)
  episode = 0
  while True:
    yield (start + episode * stride) % _PRIME
    episode += 1
