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
"""Shrinking of frames by area, to the last bit as OpenCV does it.

`ale_py` shrinks its vector environments' frames with `cv::resize` and
`INTER_AREA`. Other libraries, and other versions of the same formula, differ by
a gray level here and there, which is enough for two runs to part. Not worth
another dependency: each pixel is a weighted sum of the pixels it covers.
"""

import numpy as np

# OpenCV drops pixels that are covered by less than this.
_LEAST_COVER = 1e-3


class AreaResizer:
  """Shrinks frames of one size to another."""

  def __init__(self, source: tuple[int, int], target: tuple[int, int]):
    """Prepares the weights.

    Args:
      source: Height and width of the frames.
      target: Height and width wanted, neither larger than the source's.
    """
    self._same = source == target
    self._whole = source[0] % target[0] == 0 and source[1] % target[1] == 0
    self._target = target
    self._blocks = (source[0] // target[0], source[1] // target[1])
    self._rows = _cover(source[0], target[0])
    self._columns = _cover(source[1], target[1])

  def __call__(self, frame: np.ndarray) -> np.ndarray:
    """Shrinks `frame`, `[H, W]` or `[H, W, C]` uint8."""
    if self._same:
      return frame.copy()
    if self._whole:
      return self._mean_of_blocks(frame)
    # Columns first, then rows, each sum in float32 and from left to right: the
    # order decides the last bit.
    pixels = frame.astype(np.float32)
    pixels = _weighted(pixels.swapaxes(0, 1), *self._columns).swapaxes(0, 1)
    return np.rint(_weighted(pixels, *self._rows)).astype(np.uint8)

  def _mean_of_blocks(self, frame):
    (height, width), (rows, columns) = self._target, self._blocks
    shape = (height, rows, width, columns, *frame.shape[2:])
    sums = frame.reshape(shape).sum(axis=(1, 3), dtype=np.int32)
    if self._blocks == (2, 2):
      # This one case is computed in whole numbers, and rounds halves up.
      return ((sums + 2) >> 2).astype(np.uint8)
    scale = np.float32(1 / (rows * columns))
    return np.rint(sums.astype(np.float32) * scale).astype(np.uint8)


def _weighted(lines, indices, weights):
  """Sums over k of `weights[k] * lines[indices[k]]`, `[target, ...]`."""
  weights = weights.reshape(*weights.shape, *(1,) * (lines.ndim - 1))
  total = lines[indices[0]] * weights[0]
  for index, weight in zip(indices[1:], weights[1:], strict=True):
    total += lines[index] * weight
  return total


def _cover(source: int, target: int) -> tuple[np.ndarray, np.ndarray]:
  """Which source pixels each target pixel covers, and by what share.

  Returns:
    Indices and float32 weights, `[K, target]` both; unused weights are 0.
  """
  scale = source / target
  lists = []
  for pixel in range(target):
    start, end = pixel * scale, (pixel + 1) * scale
    cell = min(scale, source - start)
    full_end = min(int(np.floor(end)), source - 1)
    full_start = min(int(np.ceil(start)), full_end)
    covers = []
    if full_start - start > _LEAST_COVER:
      covers.append((full_start - 1, (full_start - start) / cell))
    covers += [(i, 1 / cell) for i in range(full_start, full_end)]
    if end - full_end > _LEAST_COVER:
      covers.append((full_end, min(end - full_end, 1, cell) / cell))
    lists.append(covers)
  most = max(map(len, lists))
  padded = np.array([c + [(0, 0.0)] * (most - len(c)) for c in lists])
  indices, weights = padded[..., 0].T, padded[..., 1].T
  return indices.astype(np.intp), weights.astype(np.float32)
