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
import numpy as np
import psutil
import pytest
import tree

from scalable_agent import config, dataset, queues, replay, structs

T = 2


def make_unroll(names):
  """Each column holds its own name everywhere."""
  names = np.asarray(names)
  num_columns = len(names)

  def slots(dtype, *inner):
    shape = (T + 1, num_columns, *inner)
    column = names.reshape(1, num_columns, *[1] * len(inner))
    return np.broadcast_to(column, shape).astype(dtype)

  return structs.Unroll(
    level=names.astype(np.int32),
    version=names.astype(np.int64),
    core_state=(np.repeat(names[:, None], 3, axis=1).astype(np.float32),),
    env_outputs=structs.EnvOutput(
      reward=slots(np.float32),
      info=structs.EpisodeInfo(slots(np.float32), slots(np.int32)),
      done=slots(bool),
      first=slots(bool),
      truncated=slots(bool),
      observation={
        'frame': slots(np.uint8, 4, 5),
        'text': slots(str).astype(object),
      },
    ),
    agent_outputs=structs.AgentOutput(
      slots(np.int32), slots(np.float32, 6), slots(np.float32)
    ),
    truncation_values=slots(np.float32),
  )


def make_buffer(capacity, num_sampled=1, seed=0):
  example = make_unroll([0])
  return replay.ReplayBuffer(example, capacity, num_sampled, seed)


def assert_same(unroll, expected):
  tree.map_structure(np.testing.assert_array_equal, unroll, expected)


def kept(buffer):
  """Names of the columns inside, seen through many samples."""
  return {int(n) for _ in range(300) for n in buffer.sample().version}


def test_samples_are_whole_columns_as_they_were():
  buffer = make_buffer(4, num_sampled=5)
  buffer.add(make_unroll([3, 7]))
  sample = buffer.sample()
  assert set(sample.version) == {3, 7}
  assert_same(sample, make_unroll(sample.version))


def test_what_is_kept_is_a_copy():
  buffer = make_buffer(1)
  unroll = make_unroll([3])
  buffer.add(unroll)
  unroll.version.fill(9)
  unroll.env_outputs.observation['frame'].fill(9)
  assert_same(buffer.sample(), make_unroll([3]))


@pytest.mark.parametrize('width', [1, 2, 3, 5])
def test_the_oldest_make_room(width):
  buffer = make_buffer(5)
  for start in range(0, 30, width):
    buffer.add(make_unroll(np.arange(start, start + width)))
  newest = start + width
  assert buffer.num_kept == 5
  assert kept(buffer) == set(range(newest - 5, newest))


def test_more_than_fit_leaves_the_last():
  buffer = make_buffer(3)
  buffer.add(make_unroll(np.arange(8)))
  assert kept(buffer) == {5, 6, 7}
  buffer.add(make_unroll([8]))
  assert kept(buffer) == {6, 7, 8}


def test_samples_are_uniform_and_seeded():
  draws = []
  for seed in (1, 1, 2):
    buffer = make_buffer(4, num_sampled=4000, seed=seed)
    buffer.add(make_unroll(np.arange(4)))
    draws.append(buffer.sample().version)
  np.testing.assert_array_equal(draws[0], draws[1])
  assert (draws[0] != draws[2]).any()
  shares = np.bincount(draws[0]) / 4000
  np.testing.assert_allclose(shares, 0.25, atol=0.03)


def test_a_batch_is_the_fresh_columns_and_then_replayed_ones():
  buffer = make_buffer(10, num_sampled=2)
  first = buffer.complete(make_unroll([1, 2, 3]))
  # Nothing else is there yet.
  assert list(first.version[:3]) == [1, 2, 3]
  assert set(first.version[3:]) <= {1, 2, 3}
  later = [buffer.complete(make_unroll([4, 5, 6])) for _ in range(30)]
  for batch in later:
    assert_same(batch, make_unroll(batch.version))
    assert list(batch.version[:3]) == [4, 5, 6]
  assert {1, 2, 3} & {n for batch in later for n in batch.version[3:]}


def test_batches_of_the_pipeline_are_completed():
  queue = queues.UnrollQueue(8)
  buffer = make_buffer(10, num_sampled=2)
  for name in range(6):
    queue.put(make_unroll([name]))
  example = make_unroll([0])
  batches = iter(
    dataset.make_dataset(
      queue, 4, lambda _: None, example, None, 2, buffer.complete
    )
  )
  found = [next(batches).version.numpy() for _ in range(3)]
  queue.close()
  assert [list(v[:2]) for v in found] == [[0, 1], [2, 3], [4, 5]]
  assert all(len(v) == 4 for v in found)


def test_memory_is_checked_before_anything_starts(monkeypatch):
  column = sum(x.nbytes for x in tree.flatten(make_unroll([0])))
  assert make_buffer(100).max_bytes == 100 * column

  class Little:
    available = 99 * column

  monkeypatch.setattr(psutil, 'virtual_memory', lambda: Little)
  with pytest.raises(ValueError, match=r'replay_capacity is 100; so many .*'):
    make_buffer(100)
  text = str(make_buffer(80, num_sampled=16))
  assert text.startswith('Replay: 16 columns of each batch, from the newest 80')


@pytest.mark.parametrize(
  ('fraction', 'batch_size', 'num_fresh'),
  [(0.0, 32, 32), (0.5, 32, 16), (0.5, 2, 1), (0.25, 10, 8), (0.9, 10, 1)],
)
def test_the_share_of_a_batch(fraction, batch_size, num_fresh):
  settings = config.LearnerConfig(
    batch_size=batch_size, replay_fraction=fraction
  )
  assert settings.num_fresh == num_fresh


@pytest.mark.parametrize(
  ('fraction', 'batch_size'), [(1.0, 32), (-0.1, 32), (0.5, 1), (0.01, 32)]
)
def test_a_share_that_leaves_nothing_is_refused(fraction, batch_size):
  with pytest.raises(ValueError, match='leave at least one column to replay'):
    config.LearnerConfig(batch_size=batch_size, replay_fraction=fraction)
