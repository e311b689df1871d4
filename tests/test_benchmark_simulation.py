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
"""The simulation of clusters, against sizes that can be worked out by hand."""

import pytest
from benchmarks import _simulation
from benchmarks._simulation import Setup, Times, simulate

STEADY = {'spread': 0.0}


def test_few_workers_give_what_they_can():
  # 0.1 s of playing and 0.02 s on the way: the worker is the bottleneck.
  times = Times(play=0.1, travel=0.02, take=0.001, update=0.01, **STEADY)
  result = simulate(Setup(5, unrolls_per_update=2), times)
  assert result.unrolls_per_sec == pytest.approx(5 / 0.121, rel=0.02)
  # 2 unrolls take the learner 0.01 s.
  assert result.learner_share == pytest.approx(0.01 / 2 * 5 / 0.121, rel=0.05)


def test_many_workers_give_what_the_learner_takes():
  times = Times(play=0.1, travel=0.02, take=0.001, update=0.04)
  result = simulate(Setup(100, unrolls_per_update=2), times)
  assert result.unrolls_per_sec == pytest.approx(2 / 0.04, rel=0.01)
  assert result.learner_share == pytest.approx(1, abs=0.01)
  # Little's law: of 100 unrolls, all but those being played wait; each update
  # takes two of them.
  playing = 50 * 0.12
  assert result.lag == pytest.approx((100 + 5 - playing) / 2, rel=0.1)


def test_an_update_is_quicker_on_two_cores():
  times = Times(play=0.1, travel=0.0, take=0.0001, update=0.04)
  setup = Setup(100, unrolls_per_update=2, update_threads=2)
  assert simulate(setup, times).unrolls_per_sec == pytest.approx(100, rel=0.02)


def test_taking_in_one_unroll_after_another_may_be_the_bottleneck():
  times = Times(play=0.1, travel=0.01, take=0.02, update=0.001, **STEADY)
  result = simulate(Setup(100, unrolls_per_update=1), times)
  assert result.unrolls_per_sec == pytest.approx(1 / 0.02, rel=0.02)


@pytest.mark.parametrize('num_cores', [1, 2])
def test_on_shared_cores_the_work_of_all_adds_up(num_cores):
  times = Times(play=0.1, travel=0.01, take=0.002, update=0.05, **STEADY)
  setup = Setup(8, 2, shared_cores=num_cores, update_threads=num_cores)
  per_unroll = 0.1 + 0.01 + 0.002 + 0.05 / 2
  rate = simulate(setup, times).unrolls_per_sec
  assert rate == pytest.approx(num_cores / per_unroll, rel=0.05)


def test_shared_cores_give_everyone_the_same_speed():
  clock = _simulation._Clock()
  cores = _simulation._Cores(clock, 1)
  ended = []
  for secs in (3.0, 1.0, 2.0):
    cores.run(secs, lambda secs=secs: ended.append((secs, clock.now)))
  while clock._due:
    clock.step()
  # 1 s for each of three; another for each of two; the last one alone.
  assert ended == [
    (1.0, pytest.approx(3.0)),
    (2.0, pytest.approx(5.0)),
    (3.0, pytest.approx(6.0)),
  ]


def test_the_lag_rises_with_workers_once_the_learner_is_saturated():
  times = Times(play=0.1, travel=0.01, take=0.001, update=0.02)
  lags = [simulate(Setup(n, 2), times).lag for n in (5, 20, 50, 200)]
  assert lags == sorted(lags)
  # The updates that five workers feed while an unroll is made.
  assert lags[0] == pytest.approx(5 / 0.111 / 2 * 0.111, rel=0.15)
  assert lags[-1] == pytest.approx(200 / 2, rel=0.1)
