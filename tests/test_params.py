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
import threading

import pytest

from scalable_agent import params, structs


def fill(store, versions):
  for version in versions:
    store.publish(version, [f'weights {version}'])


def test_the_newest_weights_are_given_out_once():
  store = params.ParamStore()
  assert store.pull(-1) is None
  fill(store, [0, 1, 2])
  assert store.pull(0) == (2, ('weights 2',))
  assert store.pull(2) is None


def test_older_weights_than_published_are_refused():
  store = params.ParamStore()
  fill(store, [3])
  with pytest.raises(ValueError, match='version 2 is older than'):
    store.publish(2, [])


@pytest.mark.parametrize('lag', [1, 3])
def test_a_lag_gives_out_what_is_exactly_so_old(lag):
  store = params.ParamStore(lag)
  given = []
  for version in range(8):
    fill(store, [version])
    given.append(store.pull(-1)[0])
  assert given == [max(0, version - lag) for version in range(8)]
  # No more is kept than that takes.
  assert len(store._kept) == lag + 1
  assert store.version == 7
  assert store.pull(7 - lag) is None


def test_with_several_updates_per_batch_the_lag_is_at_least_that():
  store = params.ParamStore(lag=3)
  given = []
  for version in range(0, 10, 2):
    fill(store, [version])
    given.append(store.pull(-1)[0])
  assert given == [0, 0, 0, 2, 4]


def test_a_wait_ends_with_newer_weights_or_when_closed():
  store = params.ParamStore()
  fill(store, [0])
  store.wait_for_newer(-1)
  ended = []

  def wait(version):
    try:
      store.wait_for_newer(version)
      ended.append('newer')
    except structs.Closed:
      ended.append('closed')

  for version, end in ((0, lambda: fill(store, [1])), (1, store.close)):
    thread = threading.Thread(target=wait, args=(version,), daemon=True)
    thread.start()
    thread.join(0.05)
    assert thread.is_alive()
    end()
    thread.join(10)
  assert ended == ['newer', 'closed']
