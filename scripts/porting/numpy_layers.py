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
"""Two layers in NumPy, with the switches that ports get wrong."""

import numpy as np


def max_pool(images: np.ndarray, before: int | None = None) -> np.ndarray:
  """3 x 3 maximum with stride 2, `[N, ceil(H / 2), ceil(W / 2), C]`.

  Args:
    images: `[N, H, W, C]`.
    before: rows and columns of padding before the image; None: as SAME has it,
      which is 0 for even sizes and 1 for odd ones.
  """
  outputs = images
  for axis in (1, 2):
    size = outputs.shape[axis]
    num = -(-size // 2)
    padding = (2 * num + 1 - size) // 2 if before is None else before
    widths = [(0, 0)] * 4
    widths[axis] = (padding, 2)
    padded = np.pad(outputs, widths, constant_values=-np.inf)
    index = 2 * np.arange(num)
    outputs = np.maximum.reduce(
      [np.take(padded, index + k, axis) for k in range(3)]
    )
  return outputs


def lstm(
  inputs: np.ndarray,
  resets: np.ndarray,
  state: tuple[np.ndarray, np.ndarray],
  kernel: np.ndarray,
  bias: np.ndarray,
  *,
  order: str = 'ijfo',
  forget_bias: float = 1.0,
  reset_late: bool = False,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
  """Outputs `[T, B, H]` of an LSTM and its last state.

  Args:
    inputs: `[T, B, I]`.
    resets: `[T, B]` bool; the state is zeroed before that step.
    state: c and h, `[B, H]` each.
    kernel: `[I + H, 4 H]`, for inputs and h side by side.
    bias: `[4 H]`.
    order: of the gates: input, new values, forget, output.
    forget_bias: added to the forget gate.
    reset_late: zero the state after the step instead of before.
  """
  c, h = state
  outputs = []
  for x, reset in zip(inputs, resets, strict=True):
    keep = ~reset[:, np.newaxis]
    if not reset_late:
      c, h = c * keep, h * keep
    gates = np.concatenate([x, h], axis=-1) @ kernel + bias
    gate = dict(zip(order, np.split(gates, 4, axis=-1), strict=True))
    c = _sigmoid(gate['f'] + forget_bias) * c
    c = c + _sigmoid(gate['i']) * np.tanh(gate['j'])
    h = _sigmoid(gate['o']) * np.tanh(c)
    outputs.append(h)
    if reset_late:
      c, h = c * keep, h * keep
  return np.stack(outputs), (c, h)


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))
