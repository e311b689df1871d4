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
"""Compares a candidate's arrays with those of the kit, stage by stage.

Values agree if they differ by no more than the tolerance times the larger of
the reference's value and the root mean square of its array. Booleans, integers
and strings must be equal.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from porting import kit, mistakes


class Difference(NamedTuple):
  """What is wrong with one array.

  key: its name.
  text: what differs, for people.
  mistake: number, from 1, of the mistake that gives exactly this, or None.
  """

  key: str
  text: str
  mistake: int | None = None


class Verdict(NamedTuple):
  """What comparing one stage found.

  stage: its name.
  num_compared: how many arrays were compared.
  absent: names of outputs that the candidate does not have.
  worst_absolute: largest difference, and the array that has it.
  worst_relative: the same, relative to what the tolerance is relative to.
  differences: in the order in which things are computed.
  """

  stage: str
  num_compared: int
  absent: list[str]
  worst_absolute: tuple[float, str]
  worst_relative: tuple[float, str]
  differences: list[Difference]


def compare(
  stage: kit.Stage, arrays: Mapping[str, np.ndarray], tolerance_factor: float
) -> Verdict:
  """Compares the outputs among `arrays` with those of a stage.

  Raises:
    ValueError: the candidate has outputs that the stage does not have, or none.
  """
  outputs = stage.names('output')
  given = [key for key in arrays if key not in stage.names('input', 'weight')]
  unknown = [key for key in given if key not in outputs]
  if unknown:
    raise ValueError(
      f'{stage.name}.npz has {unknown[0]!r}, which is no output of this stage; '
      f'name arrays as {stage.name}.json does, such as {outputs[0]!r}.'
    )
  if not given:
    raise ValueError(
      f'{stage.name}.npz holds no output; write arrays named as in '
      f'{stage.name}.json, such as {outputs[0]!r}.'
    )
  worst_absolute = worst_relative = (0.0, '')
  differences = []
  for key in filter(arrays.__contains__, outputs):
    right, own = stage.arrays[key], np.asarray(arrays[key])
    problem = _misfit(right, own)
    if problem is None:
      absolute, relative = _errors(right, own)
      worst_absolute = max(worst_absolute, (float(absolute.max()), key))
      worst_relative = max(worst_relative, (float(relative.max()), key))
      allowed = tolerance_factor * stage.tolerance_of(key)
      if relative.max() > (allowed if right.dtype.kind == 'f' else 0):
        problem = _describe(right, own, absolute, relative, allowed)
    if problem is not None:
      number = _mistake(stage, key, own)
      differences.append(Difference(key, problem, number))
  return Verdict(
    stage.name,
    len(given),
    [key for key in outputs if key not in arrays],
    worst_absolute,
    worst_relative,
    differences,
  )


def _misfit(right, own):
  """Why the two cannot be subtracted, or None."""
  if own.shape != right.shape:
    return f'has shape {own.shape}, must have {right.shape}'
  if (own.dtype.kind in 'US') != (right.dtype.kind in 'US'):
    return f'has dtype {own.dtype}, must be like {right.dtype}'
  return None


def _errors(right, own):
  """Absolute and relative differences; what is not finite is infinitely off."""
  if right.dtype.kind in 'US':
    unequal = (right != own).astype(np.float64)
    return np.atleast_1d(unequal), np.atleast_1d(unequal)
  right, own = (np.atleast_1d(x).astype(np.float64) for x in (right, own))
  absolute = np.abs(own - right)
  absolute[np.isnan(absolute)] = np.inf
  size = np.maximum(np.abs(right), np.sqrt(np.mean(np.square(right))))
  tiny = np.finfo(np.float32).tiny
  return absolute, absolute / np.maximum(size, tiny)


def _describe(right, own, absolute, relative, allowed):
  index = np.unravel_index(int(np.argmax(relative)), relative.shape)
  place = f'[{", ".join(map(str, index))}]' if right.ndim else ''
  own, right = np.atleast_1d(own)[index], np.atleast_1d(right)[index]
  return (
    f'{place} is {own:.7g}, must be {right:.7g} (off by {absolute[index]:.2g}, '
    f'relative {relative[index]:.2g}, allowed {allowed:.2g})'
  ).strip()


def _mistake(stage, key, own):
  """Number of the mistake that makes `own`, or None."""
  for number, mistake in enumerate(mistakes.MISTAKES, 1):
    if (mistake.stage, mistake.key) == (stage.name, key):
      made = np.asarray(mistake.compute(stage))
      if made.shape == own.shape and own.dtype.kind not in 'US':
        _, relative = _errors(made, own)
        # Not tighter than the reference's own rounding.
        if relative.max() <= max(stage.tolerance_of(key), 1e-4):
          return number
  return None
