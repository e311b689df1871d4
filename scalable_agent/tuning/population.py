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
"""A population of trials: whose turn it is, who copies whom, what is noted."""

import json
import os
from collections.abc import Sequence

import numpy as np

from scalable_agent import files
from scalable_agent.tuning import pbt, trials

HISTORY_FILE = 'history.jsonl'


class Population:
  """Applies the rule to trials, which are told by their index.

  All that must outlive this process is in the directories of the trials and in
  the history, a JSON object per turn.
  """

  def __init__(
    self,
    folder: str,
    paths: Sequence[str],
    base: Sequence[str],
    rule: pbt.Rule,
    window: int,
    total_frames: int,
    seed: int,
  ):
    """Looks how far the trials are.

    Args:
      folder: of the sweep, for the history.
      paths: directories of the trials.
      base: flags that all trials have.
      rule: the constants.
      window: episodes per level of which a fitness is a mean.
      total_frames: of a trial, after which it has no more turns.
      seed: of who is compared with whom and of what changes.
    """
    self._history = os.path.join(folder, HISTORY_FILE)
    self._paths, self._base = paths, base
    self._rule, self._seed = rule, seed
    self._total_frames = total_frames
    self._progress = [trials.progress(path, window) for path in paths]

  def consider(self, index: int, progress: trials.Progress) -> bool:
    """Gives a trial its turn if it is due.

    Args:
      index: of the trial.
      progress: how far it is now.

    Returns:
      Whether it must start anew, with other weights or settings.
    """
    self._progress[index] = progress
    state = self._state(index)
    rivals = [
      other
      for other, its in enumerate(self._progress)
      if other != index and np.isfinite(its.fitness)
    ]
    if progress.env_frames >= self._total_frames:
      return False
    if not rivals or not np.isfinite(progress.fitness):
      return False
    if not pbt.is_due(
      self._rule, progress.env_frames, progress.episodes, state.last_episodes
    ):
      return False
    return self._take_turn(index, rivals, state)

  def _take_turn(
    self, index: int, rivals: Sequence[int], state: trials.State
  ) -> bool:
    # A turn that is repeated after a crash comes out the same.
    rng = np.random.default_rng([self._seed, index, state.turns])
    other = int(rng.choice(rivals))
    own, its = self._progress[index], self._progress[other]
    copied = pbt.copies(self._rule, own.fitness, its.fitness) and trials.offer(
      self._paths[other], self._paths[index]
    )
    parent = self._state(other) if copied else state
    before = {name: float(state.settings[name]) for name in self._rule.mutated}
    numbers = {name: float(parent.settings[name]) for name in before}
    after = pbt.mutate(self._rule, numbers, rng)
    record = {
      'trial': index,
      'turn': state.turns,
      'env_frames': own.env_frames,
      'episodes': own.episodes,
      'fitness': own.fitness,
      'compared_with': other,
      'its_fitness': its.fitness,
      'copied': copied,
      'before': before,
      'after': after,
    }
    files.append(self._history, (json.dumps(record) + '\n').encode())
    trials.write_state(
      self._paths[index],
      self._base,
      trials.State(
        {**state.settings, **trials.as_text(after)},
        state.turns + 1,
        own.episodes,
      ),
    )
    return copied or after != before

  def _state(self, index: int) -> trials.State:
    return trials.read_state(self._paths[index])
