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
"""Times both methods of V-trace against each other.

    python scripts/benchmark.py vtrace --unroll_lengths=20,100,1000

One line for each unroll length: the median milliseconds of a compiled call with
each method, the seconds of its first call, which traces it, and `ratio`, the
median over the rounds of sequential / associative. Above 1, 'associative' is
the faster one. Each round times both, so that whatever else the machine does
meets both alike.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from absl import flags

METHODS = ('sequential', 'associative')


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this part."""
  flags.DEFINE_list(
    'unroll_lengths',
    ['20', '100', '1000'],
    'Numbers of steps T. Unit: agent steps.',
    flag_values=flag_values,
  )
  flags.register_validator(
    'unroll_lengths',
    lambda lengths: all(x.isdecimal() and int(x) > 0 for x in lengths),
    'must be positive integers, separated by commas.',
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'batch_size', 32, 'Columns B.', lower_bound=1, flag_values=flag_values
  )
  flags.DEFINE_integer(
    'rounds',
    100,
    'How often both are timed, after ten times for warming up.',
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_bool(
    'jit_compile', False, 'Compile with XLA.', flag_values=flag_values
  )


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields one comparison for each unroll length."""
  yield from measure_lengths(
    list(map(int, flag_values.unroll_lengths)),
    flag_values.batch_size,
    flag_values.rounds,
    flag_values.jit_compile,
  )


def measure_lengths(
  unroll_lengths: list[int],
  batch_size: int,
  rounds: int,
  jit_compile: bool = False,
) -> Iterator[dict[str, Any]]:
  """Yields one comparison for each unroll length."""
  # Imports and starts what is slow only once.
  _compare(1, 1, 1, jit_compile)
  for unroll_length in unroll_lengths:
    yield {
      'benchmark': 'vtrace',
      'unroll_length': unroll_length,
      'batch_size': batch_size,
      'jit_compile': jit_compile,
      'rounds': rounds,
      **_compare(unroll_length, batch_size, rounds, jit_compile),
    }


def _compare(unroll_length, batch_size, rounds, jit_compile):
  import tensorflow as tf

  shape = (unroll_length, batch_size)
  log_rhos, rewards, values = tf.random.stateless_normal(
    (3, *shape), seed=(1, 2)
  )
  discounts = tf.fill(shape, 0.99)
  calls = {
    method: _call(
      method, (log_rhos, discounts, rewards, values, values[0]), jit_compile
    )
    for method in METHODS
  }
  first_secs = {method: _secs(call) for method, call in calls.items()}
  for _ in range(10):
    for call in calls.values():
      call()
  secs = [
    {method: _secs(call) for method, call in calls.items()}
    for _ in range(rounds)
  ]
  results: dict[str, Any] = {
    'device': tf.DeviceSpec.from_string(
      calls['sequential']().device
    ).device_type
  }
  for method in METHODS:
    median = statistics.median(each[method] for each in secs)
    results[f'{method}_ms'] = round(1000 * median, 4)
    results[f'{method}_first_secs'] = round(first_secs[method], 3)
  ratio = statistics.median(x['sequential'] / x['associative'] for x in secs)
  return {**results, 'ratio': round(ratio, 3)}


def _call(method, arguments, jit_compile) -> Callable[[], Any]:
  import tensorflow as tf

  from scalable_agent import vtrace_tf

  @tf.function(jit_compile=jit_compile or None)
  def targets(*arguments):
    return vtrace_tf.from_importance_weights(*arguments, method=method)

  def call():
    vs, _ = targets(*arguments)
    vs.numpy()  # Waits for the device.
    return vs

  return call


def _secs(call: Callable[[], Any]) -> float:
  start = time.perf_counter()
  call()
  return time.perf_counter() - start
