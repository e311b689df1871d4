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
"""Finished episodes, read from the unrolls that the learner consumes."""

import collections
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scalable_agent import structs

# Episodes over which `recent_mean_return` averages.
_RECENT = 100


class Episode(NamedTuple):
  """One finished episode: raw return, length in agent steps, level."""

  level: str
  episode_return: float
  num_steps: int


def finished_episodes(
  unroll: structs.Unroll, level_names: Sequence[str]
) -> Iterator[Episode]:
  """Episodes that end within `unroll`, oldest first.

  Slot 0 is not looked at: it was slot `T` of the unroll before. An
  `episode_step` of 0 marks an episode that broke off and has no true return.
  """
  env = unroll.env_outputs
  ends = env.first[1:] & (env.info.episode_step[1:] > 0)
  for t, column in zip(*np.nonzero(ends), strict=True):
    yield Episode(
      level=level_names[unroll.level[column]],
      episode_return=float(env.info.episode_return[t + 1, column]),
      num_steps=int(env.info.episode_step[t + 1, column]),
    )


class EpisodeLog:
  """Counts episodes and steps per level; thread-safe."""

  def __init__(self, level_names: Sequence[str]):
    """Starts empty, for the levels `level_names` of the run."""
    self._level_names = tuple(level_names)
    self._lock = threading.Lock()
    self._new: list[Episode] = []
    self._recent: dict[str, collections.deque] = {
      name: collections.deque(maxlen=_RECENT) for name in self._level_names
    }
    self.num_episodes = dict.fromkeys(self._level_names, 0)
    self.num_steps = dict.fromkeys(self._level_names, 0)

  def observe(self, unroll: structs.Unroll) -> None:
    """Takes in what `unroll` says of steps and finished episodes."""
    num_steps = len(unroll.env_outputs.reward) - 1
    with self._lock:
      for index in unroll.level:
        self.num_steps[self._level_names[index]] += num_steps
      for episode in finished_episodes(unroll, self._level_names):
        self._new.append(episode)
        self._recent[episode.level].append(episode.episode_return)
        self.num_episodes[episode.level] += 1

  def take_new(self) -> list[Episode]:
    """Episodes finished since the last call."""
    with self._lock:
      new, self._new = self._new, []
    return new

  def recent_mean_returns(self) -> dict[str, float]:
    """Mean return of each level's last 100 episodes; none yet: no entry."""
    with self._lock:
      return {
        name: float(np.mean(returns))
        for name, returns in self._recent.items()
        if returns
      }

  def state(self) -> dict[str, dict[str, int]]:
    """Counters for a checkpoint."""
    with self._lock:
      return {
        'num_episodes': dict(self.num_episodes),
        'num_steps': dict(self.num_steps),
      }

  def load_state(self, state: dict[str, dict[str, int]]) -> None:
    """Continues the counters of a checkpoint for the levels still played."""
    with self._lock:
      for counts, saved in (
        (self.num_episodes, state['num_episodes']),
        (self.num_steps, state['num_steps']),
      ):
        counts.update({k: v for k, v in saved.items() if k in counts})
