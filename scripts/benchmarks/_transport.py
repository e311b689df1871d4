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
"""What Ray takes to carry weights and unrolls, without environments."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def measure(
  weights: Sequence[np.ndarray],
  unroll_bytes: int,
  num_receivers: Sequence[int],
  rounds: int = 20,
) -> Iterator[dict[str, Any]]:
  """Medians over `rounds`; this process is connected to a cluster.

  Args:
    weights: of the network.
    unroll_bytes: of an unroll.
    num_receivers: how many processes take the weights, one line each.
    rounds: how often each is measured.
  """
  import ray

  @ray.remote(num_cpus=0)
  class Receiver:
    def take(self, weights):
      return float(weights[0].ravel()[0])

    def give(self, num_bytes):
      return np.ones(num_bytes, np.uint8)

  receivers = [Receiver.remote() for _ in range(max(num_receivers))]
  ray.get([r.take.remote(weights[:1]) for r in receivers])
  for number in num_receivers:
    yield _broadcast(receivers[:number], weights, rounds)
  yield _fetch(receivers[0], unroll_bytes, rounds)
  for receiver in receivers:
    ray.kill(receiver)


def _broadcast(receivers, weights, rounds):
  """One put, and as many gets as receivers."""
  import ray

  puts, gets = [], []
  for _ in range(rounds):
    start = time.perf_counter()
    reference = ray.put(list(weights))
    put = time.perf_counter()
    ray.get([r.take.remote(reference) for r in receivers])
    puts.append(put - start)
    gets.append(time.perf_counter() - put)
  return {
    'benchmark': 'distributed: weights',
    'receivers': len(receivers),
    'weights_mb': round(sum(w.nbytes for w in weights) / 1e6, 3),
    'put_ms': round(1e3 * float(np.median(puts)), 2),
    'all_have_it_ms': round(1e3 * float(np.median(gets)), 2),
  }


def _fetch(receiver, unroll_bytes, rounds):
  """An unroll is asked for, made at once, and brought here."""
  import ray

  trips, cpu_secs = [], time.process_time()
  for _ in range(rounds):
    start = time.perf_counter()
    int(ray.get(receiver.give.remote(unroll_bytes))[-1])
    trips.append(time.perf_counter() - start)
  cpu_secs = time.process_time() - cpu_secs
  trip = float(np.median(trips))
  return {
    'benchmark': 'distributed: unroll',
    'unroll_mb': round(unroll_bytes / 1e6, 3),
    'round_trip_ms': round(1e3 * trip, 2),
    'mb_per_sec': round(unroll_bytes / trip / 1e6, 1),
    'driver_core_ms': round(1e3 * cpu_secs / rounds, 2),
  }
