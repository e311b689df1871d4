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
"""Shows what the operations of an update of the network take.

    python scripts/benchmark.py profile --torso=shallow --secs=5

TensorFlow's profiler watches updates from one batch. One line for each kind of
operation that takes a hundredth or more: its milliseconds per update, its share
in those of all operations, and how often it ran. Operations run beside each
other, so their sum is larger than `update_ms`, which the profiler makes larger,
too.
"""

import collections
import glob
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from absl import flags

from benchmarks import _stages

define_flags = _stages.define_flags


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields one line for each kind of operation, the slowest first."""
  stages = _stages.from_flags(flag_values)
  own = stages.make_learner()
  batch = stages.batch_on_device()
  for _ in range(3):
    own.update(batch)
  secs, num_calls, events = _watch(lambda: own.update(batch), stages.secs)
  total = sum(event_secs for _, event_secs in events)
  by_kind = collections.defaultdict(list)
  for kind, event_secs in events:
    by_kind[kind].append(event_secs)
  for kind in sorted(by_kind, key=lambda kind: -sum(by_kind[kind])):
    share = sum(by_kind[kind]) / total
    if share >= 0.01:
      yield _stages.line(
        'profile',
        stages,
        {
          'operation': kind,
          'ms': round(1e3 * sum(by_kind[kind]) / num_calls, 3),
          'share': round(share, 3),
          'times': len(by_kind[kind]) / num_calls,
          'update_ms': round(1e3 * secs / num_calls, 2),
        },
      )


def _watch(call, secs):
  """Seconds, number of calls, and `(kind, seconds)` of every operation."""
  import tensorflow as tf

  with tempfile.TemporaryDirectory() as folder:
    tf.profiler.experimental.start(folder)
    start = time.perf_counter()
    num_calls = 0
    while time.perf_counter() - start < secs:
      call()
      num_calls += 1
    took = time.perf_counter() - start
    tf.profiler.experimental.stop()
    (path,) = glob.glob(f'{folder}/**/*.xplane.pb', recursive=True)
    return took, num_calls, list(_operations(path))


def _operations(path):
  """`(kind, seconds)` of the operations in a profile."""
  from tensorflow.tsl.profiler.protobuf import xplane_pb2

  space = xplane_pb2.XSpace()
  with open(path, 'rb') as file:
    space.ParseFromString(file.read())
  for plane in space.planes:
    for line in plane.lines:
      for event in line.events:
        # Named `scope/name:Kind`; the runtime's own events hold `::`.
        name = plane.event_metadata[event.metadata_id].name
        _, colon, kind = name.partition(':')
        if colon and kind.removeprefix('_').isalnum():
          yield kind, event.duration_ps / 1e12
