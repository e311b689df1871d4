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
"""Trains for a while and compares with what the stages alone would allow.

    python scripts/benchmark.py train --torso=shallow --train_secs=60

First measures environments, inference and learner alone, as the parts of
these names do. `ideal_steps_per_sec` is the number of cores divided by the sum
of their processor time per step; `share_of_ideal` is what training reached of
it, after its first seconds. One line per stage, then one for training.
"""

import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import config_flags
from absl import flags

from benchmarks import _stages
from scalable_agent import metrics

_WARM_UP_SECS = 10.0


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of the stages, and how long to train."""
  _stages.define_flags(flag_values)
  flags.DEFINE_float(
    'train_secs',
    60.0,
    'How long training is measured. Unit: seconds.',
    lower_bound=2,
    flag_values=flag_values,
  )


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields the stages, then training."""
  stages = _stages.Stages(config_flags.build(flag_values), flag_values.secs)
  cost = 0.0
  for name in ('env', 'inference', 'learner'):
    stage = getattr(stages, name)()
    cost += stage.core_secs_per_step
    yield _stages.line(name, stages, stage.rounded())
  num_cores = len(os.sched_getaffinity(0))
  frames_per_sec, rates = _train(stages, flag_values.train_secs)
  steps_per_sec = frames_per_sec / stages.spec.frames_per_step
  yield _stages.line(
    'train',
    stages,
    {
      'num_cores': num_cores,
      'steps_per_sec': round(steps_per_sec, 1),
      'frames_per_sec': round(frames_per_sec, 1),
      'ideal_steps_per_sec': round(num_cores / cost, 1),
      'share_of_ideal': round(steps_per_sec * cost / num_cores, 3),
      'learner_wait_share': round(rates.get('learner_wait_share', 0.0), 3),
      'actor_put_share': round(rates.get('actor_put_share', 0.0), 3),
    },
  )


class _Watch(metrics.NullWriter):
  """Notes time and frames since the first update and the warm-up after it."""

  def __init__(self):
    self.notes: list[tuple[float, int]] = []
    self._start: float | None = None

  def write(self, env_frames: int, metrics: metrics.Metrics) -> None:
    """Called about once a second."""
    now = time.monotonic()
    if env_frames and self._start is None:
      self._start = now
    if self._start is not None and now - self._start >= _WARM_UP_SECS:
      self.notes.append((now, env_frames))

  def frames_per_sec(self) -> float:
    """Between the first and the last note."""
    if len(self.notes) < 2:
      raise ValueError(
        'training was too short to be measured; raise --train_secs.'
      )
    (start, first), *_, (end, last) = self.notes
    return (last - first) / (end - start)


def _train(stages, secs):
  """Frames per second, and the rates of the whole run."""
  from scalable_agent.runtime import local

  settings = stages.settings
  watch = _Watch()
  with tempfile.TemporaryDirectory() as logdir:
    run = dataclasses.replace(settings.run, logdir=logdir, checkpoint_secs=1e9)
    settings = dataclasses.replace(settings, run=run)
    outcome = local.make_run(settings, stages.task, stages.spec).run(
      metrics.NullWriter(), watch, stop_after_secs=_WARM_UP_SECS + secs
    )
  return watch.frames_per_sec(), outcome.rates
