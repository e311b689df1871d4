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
"""Level settings that follow an environment's own progress.

A curriculum is any picklable function of `Progress` that returns level
settings, text to text, as Lab's `config`. It is asked before each episode. Lab
takes settings only when it is made, so a *changed* setting costs a new Lab (a
few seconds): let settings change in stages.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Progress(NamedTuple):
  """What one environment has played so far.

  episodes: finished episodes.
  frames: simulator frames.
  """

  episodes: int = 0
  frames: int = 0


Curriculum = Callable[[Progress], Mapping[str, str]]


@dataclasses.dataclass(frozen=True)
class Linear:
  """One numeric setting that goes linearly from `first` to `last`, in stages.

  setting: its name in the level script.
  first, last: its value at the start and from the end of the schedule on.
  over: length of the schedule, in `unit`, counted by each environment alone:
    10,000 episodes of a run with 20 environments are 500 of each.
  unit: `episodes` or `frames`.
  stages: number of steps from `first` to `last`.
  """

  setting: str
  first: float = 0.5
  last: float = 2.0
  over: int = 10_000
  unit: str = 'episodes'
  stages: int = 15

  def __post_init__(self):
    if self.unit not in Progress._fields:
      raise ValueError(f'unit is {self.unit!r}; choose episodes or frames.')
    if self.over < 1 or self.stages < 1:
      raise ValueError(
        f'over is {self.over} and stages {self.stages}; both start at 1.'
      )

  def __call__(self, progress: Progress) -> Mapping[str, str]:
    """The setting at that progress."""
    done = min(getattr(progress, self.unit) / self.over, 1)
    stage = int(done * self.stages) / self.stages
    value = self.first + (self.last - self.first) * stage
    return {self.setting: f'{value:.6g}'}


def parse(text: str) -> Linear:
  """A `Linear` from `setting:first:last:over[:unit]`, for command lines.

  `difficulty:0.5:2.0:10000` rises from 0.5 to 2.0 over 10,000 episodes.
  """
  parts = text.split(':')
  try:
    setting, first, last, over, *unit = parts
    return Linear(setting, float(first), float(last), int(over), *unit)
  except (TypeError, ValueError) as error:
    raise ValueError(
      f'Curriculum {text!r} is not setting:first:last:over[:unit], such as '
      f'difficulty:0.5:2.0:10000:episodes ({error}).'
    ) from error
