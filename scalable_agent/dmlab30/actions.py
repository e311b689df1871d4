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
"""Action sets: what the agent's actions mean to DeepMind Lab.

A Lab action has seven whole numbers: look left/right and down/up in pixels per
frame, strafe, move, fire, jump, crouch.
"""

import numpy as np
from dm_env import specs

from scalable_agent import task_config

NAMES = (
  'LOOK_LEFT_RIGHT_PIXELS_PER_FRAME',
  'LOOK_DOWN_UP_PIXELS_PER_FRAME',
  'STRAFE_LEFT_RIGHT',
  'MOVE_BACK_FORWARD',
  'FIRE',
  'JUMP',
  'CROUCH',
)
MINIMUM = (-512, -512, -1, -1, 0, 0, 0)
MAXIMUM = (512, 512, 1, 1, 1, 1, 1)

# Table D.2 of the paper; `DEFAULT_ACTION_SET` of the original.
PAPER = (
  (0, 0, 0, 1, 0, 0, 0),  # Forward.
  (0, 0, 0, -1, 0, 0, 0),  # Backward.
  (0, 0, -1, 0, 0, 0, 0),  # Strafe left.
  (0, 0, 1, 0, 0, 0, 0),  # Strafe right.
  (-20, 0, 0, 0, 0, 0, 0),  # Look left.
  (20, 0, 0, 0, 0, 0, 0),  # Look right.
  (-20, 0, 0, 1, 0, 0, 0),  # Look left and forward.
  (20, 0, 0, 1, 0, 0, 0),  # Look right and forward.
  (0, 0, 0, 0, 1, 0, 0),  # Fire.
)

# Of PopArt and R2D2, with small and large turns and looking up and down;
# values from Sample Factory's `EXTENDED_ACTION_SET`.
EXTENDED = (
  (0, 0, 0, 1, 0, 0, 0),  # Forward.
  (0, 0, 0, -1, 0, 0, 0),  # Backward.
  (0, 0, -1, 0, 0, 0, 0),  # Strafe left.
  (0, 0, 1, 0, 0, 0, 0),  # Strafe right.
  (-10, 0, 0, 0, 0, 0, 0),  # Small look left.
  (10, 0, 0, 0, 0, 0, 0),  # Small look right.
  (-60, 0, 0, 0, 0, 0, 0),  # Large look left.
  (60, 0, 0, 0, 0, 0, 0),  # Large look right.
  (0, 10, 0, 0, 0, 0, 0),  # Look down.
  (0, -10, 0, 0, 0, 0, 0),  # Look up.
  (-10, 0, 0, 1, 0, 0, 0),  # Small look left and forward.
  (10, 0, 0, 1, 0, 0, 0),  # Small look right and forward.
  (-60, 0, 0, 1, 0, 0, 0),  # Large look left and forward.
  (60, 0, 0, 1, 0, 0, 0),  # Large look right and forward.
  (0, 0, 0, 0, 1, 0, 0),  # Fire.
)

# 9 actions, 15 actions, or the seven numbers themselves.
ACTION_SETS = task_config.LAB_ACTION_SETS


class Actions:
  """Translates the actions of one action set."""

  def __init__(self, action_set: str):
    if action_set not in ACTION_SETS:
      raise ValueError(
        f'action_set is {action_set!r}; choose one of {", ".join(ACTION_SETS)}.'
      )
    rows = {'paper': PAPER, 'extended': EXTENDED}.get(action_set)
    self._rows = None if rows is None else np.array(rows, np.intc)
    self._minimum = np.array(MINIMUM, np.intc)
    self._largest = np.array(MAXIMUM, np.intc) - self._minimum

  @property
  def spec(self) -> specs.Array:
    """`DiscreteArray`; for `raw` whole numbers `[7]` from 0, not from -512."""
    if self._rows is not None:
      return specs.DiscreteArray(len(self._rows), np.int32, name='action')
    return specs.BoundedArray(
      (len(NAMES),), np.int32, 0, self._largest.astype(np.int32), name='action'
    )

  def to_lab(self, action: int | np.ndarray) -> np.ndarray:
    """The `[7]` `np.intc` array, its own memory in order, that Lab demands.

    Raises:
      ValueError: the action is not in the set.
    """
    values = np.asarray(action)
    whole = values.dtype.kind in 'iu'
    if self._rows is not None:
      if whole and values.size == 1 and 0 <= values.item() < len(self._rows):
        return self._rows[values.item()]
      raise ValueError(
        f'Action {action!r} is not one of the {len(self._rows)} actions; give '
        f'a number from 0 to {len(self._rows) - 1}.'
      )
    if not (
      whole
      and values.shape == (len(NAMES),)
      and np.all(values >= 0)
      and np.all(values <= self._largest)
    ):
      raise ValueError(
        f'Action {action!r} is not {len(NAMES)} numbers from 0 to '
        f'{self._largest.tolist()}.'
      )
    return (values + self._minimum).astype(np.intc)
