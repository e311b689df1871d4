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
"""Trains with more and more environments, up to saturation.

    python scripts/benchmark.py scaling --envs=1,4,16,32,64 --train_secs=20

One line for each number of environments of an actor: throughput, and the
figures that explain it. `learner_wait_share` is the learner's time without
data, `actor_put_share` the actors' time before a full queue. `queue_length` Q
over `queue_arrivals_per_sec` lambda is `queue_wait_predicted_secs`, which
Little's law says is the time of an unroll in the queue; `queue_wait_secs` is
that time, measured. The batch is as wide as all actors, but at most
--batch_size.
"""

from collections.abc import Iterator
from typing import Any

from absl import flags

from benchmarks import _stages, _training
from scalable_agent.runtime import devices

_QUEUE_RATES = (
  'queue_length',
  'queue_arrivals_per_sec',
  'queue_wait_predicted_secs',
  'queue_wait_secs',
)


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of training, and the numbers of environments."""
  _stages.define_flags(flag_values)
  _training.define_flags(flag_values)
  _stages.define_widths(
    flag_values,
    (1, 2, 4, 8, 16, 32, 64, 128),
    'Numbers of environments of each actor, one run each; in place of '
    '--envs_per_actor.',
  )


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields one measurement for each number of environments."""
  stages = _stages.from_flags(flag_values)
  devices.set_threads(stages.settings)
  for num_envs in map(int, flag_values.envs):
    width = num_envs * stages.settings.actor.num_actors
    batch_size = min(width, flag_values.batch_size)
    one = stages.replace('actor', envs_per_actor=num_envs)
    one = one.replace('learner', batch_size=batch_size)
    training = _training.train(
      one, flag_values.train_secs, flag_values.warm_up_secs
    )
    rates = {
      name: round(training.rates.get(name, 0.0), 5) for name in _QUEUE_RATES
    }
    frames_per_step = one.spec.frames_per_step
    yield _stages.line(
      'scaling', one, _training.values(training, frames_per_step) | rates
    )
