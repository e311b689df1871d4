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
r"""Draws the learning curves of runs: mean return against frames.

    python scripts/plot.py /tmp/pong /tmp/other --output=/tmp/curve.png

Thin lines are the means of single intervals, thick ones run over the last
--window episodes. Needs `pip install '.[plots]'`.
"""

import csv
import os
from collections.abc import Sequence

import config_flags
import numpy as np
from absl import app, flags

flags.DEFINE_string('output', 'curve.png', 'The picture: .png or .svg.')
flags.DEFINE_integer(
  'window', 100, 'Length of the running mean. Unit: episodes.', lower_bound=1
)

_RETURN = '/episode_return'
_COUNT = '/num_episodes'


def read(logdir: str) -> dict[str, np.ndarray]:
  """Per level `[N, 3]`: frames, mean return of an interval, its episodes.

  Raises:
    ValueError: there is no table of metrics, or no episode ended.
  """
  path = os.path.join(logdir, 'metrics.csv')
  if not os.path.exists(path):
    raise ValueError(f'{path} is missing; name the directory of a run.')
  with open(path, encoding='utf-8', newline='') as file:
    rows = list(csv.DictReader(file))
  curves = {}
  for name in rows[0] if rows else ():
    if name.endswith(_RETURN):
      level = name.removesuffix(_RETURN)
      points, before = [], 0.0
      for row in rows:
        if row[name]:
          count = float(row[level + _COUNT])
          points.append(
            (
              float(row['env_frames']),
              float(row[name]),
              max(count - before, 1.0),
            )
          )
          before = count
      curves[level] = np.array(points)
  if not curves:
    raise ValueError(f'No episode ended in {logdir}; train longer.')
  return curves


def running_mean(curve: np.ndarray, window: int) -> np.ndarray:
  """`[N]`, over the newest intervals that hold `window` episodes together."""
  means = []
  for end in range(1, len(curve) + 1):
    start = end - 1
    while start > 0 and curve[start:end, 2].sum() < window:
      start -= 1
    part = curve[start:end]
    means.append(np.average(part[:, 1], weights=part[:, 2]))
  return np.array(means)


def main(argv: Sequence[str]) -> None:
  """Draws and saves."""
  if len(argv) < 2:
    config_flags.fail('no run is named; give the directories of runs.')
  try:
    runs = {logdir: read(logdir) for logdir in argv[1:]}
  except ValueError as error:
    config_flags.fail(str(error))
  import matplotlib

  matplotlib.use('Agg')
  import matplotlib.pyplot as plt

  figure, axes = plt.subplots(figsize=(7, 4), layout='constrained')
  for logdir, curves in runs.items():
    for level, curve in curves.items():
      millions = curve[:, 0] / 1e6
      name = os.path.basename(os.path.normpath(logdir))
      label = level if len(runs) == 1 else f'{level} ({name})'
      (line,) = axes.plot(
        millions, running_mean(curve, flags.FLAGS.window), label=label, lw=2
      )
      axes.plot(millions, curve[:, 1], color=line.get_color(), alpha=0.25, lw=1)
  axes.set_xlabel('environment frames (millions)')
  axes.set_ylabel('episode return')
  axes.grid(alpha=0.3)
  axes.legend(frameon=False)
  figure.savefig(flags.FLAGS.output, dpi=120)
  print(f'Wrote {flags.FLAGS.output}.')


if __name__ == '__main__':
  app.run(main, flags_parser=config_flags.parse)
