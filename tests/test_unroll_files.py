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
"""Unrolls on disk: what is written is read; what is damaged is not."""

import numpy as np
import pytest
import tensorflow as tf
import tree
from doubles import CountingPolicy, ScriptedEnvironments, play

from scalable_agent import actor, dataset, unroll_files, unroll_records

T = 5
LEVELS = ('first', 'scripted')


def make_unrolls(num_unrolls, num_envs=2, **kwargs):
  one = actor.Actor(
    ScriptedEnvironments(num_envs=num_envs, **kwargs),
    CountingPolicy(num_envs),
    T,
    [1] * num_envs,
  )
  return play(one, num_unrolls)


def column(unroll, index):
  return dataset.slice_columns(unroll, index, index + 1)


EXAMPLE = column(make_unrolls(1)[0], 0)
SPEC = ScriptedEnvironments().spec


def reader(folder, **kwargs):
  return unroll_files.UnrollReader(
    str(folder), EXAMPLE, SPEC.action, LEVELS, **kwargs
  )


def write(folder, unrolls, max_bytes=2**30):
  writer = unroll_files.UnrollWriter(str(folder), LEVELS, max_bytes)
  for unroll in unrolls:
    writer.write(unroll)
  writer.close()
  return writer


def decode(record, example=EXAMPLE, level_names=LEVELS):
  return unroll_records.decode(record, example, SPEC.action, level_names)


def take(iterator, count):
  return [next(iterator) for _ in range(count)]


def assert_same(one, other):
  tree.map_structure(np.testing.assert_array_equal, one, other)
  tree.map_structure(lambda a, b: a.dtype == b.dtype or 1 / 0, one, other)


def key(unroll):
  """What tells the columns of `make_unrolls` apart."""
  return int(unroll.agent_outputs.action[1, 0])


def test_a_column_comes_back_as_it_was():
  unroll = make_unrolls(1, ends_by='truncation')[0]
  record = unroll_records.encode(unroll, 1, LEVELS)
  back = decode(record)
  assert_same(back, column(unroll, 1))
  assert back.truncation_values.any()


def test_the_layout_is_the_documented_one():
  # Read as somebody would who has TensorFlow and the description only.
  unroll = make_unrolls(1)[0]
  record = unroll_records.encode(unroll, 0, LEVELS)
  features = tf.train.Example.FromString(record).features.feature
  assert features['schema'].int64_list.value == [1]
  assert features['level'].bytes_list.value == [b'scripted']
  assert features['env_outputs/reward/dtype'].bytes_list.value == [b'<f4']
  assert features['env_outputs/observation/shape'].int64_list.value == [6, 2]
  rewards = np.frombuffer(
    features['env_outputs/reward'].bytes_list.value[0], '<f4'
  )
  np.testing.assert_array_equal(rewards, unroll.env_outputs.reward[:, 0])
  state = np.frombuffer(features['core_state/0'].bytes_list.value[0], '<f4')
  np.testing.assert_array_equal(state, unroll.core_state[0][:1].ravel())


def test_levels_go_by_name():
  record = unroll_records.encode(make_unrolls(1)[0], 0, LEVELS)
  back = decode(record, level_names=('scripted', 'other'))
  assert back.level.tolist() == [0]


def test_text_observations_come_back():
  unroll = column(make_unrolls(1)[0], 0)
  words = np.array([['go', 'to', 'the', 'red', 'ball', 'ä']], object).T
  words = np.vectorize(tf.compat.as_bytes, otypes=[object])(words)
  env = unroll.env_outputs._replace(observation={'INSTR': words})
  unroll = unroll._replace(env_outputs=env)
  record = unroll_records.encode(unroll, 0, LEVELS)
  back = decode(record, unroll)
  np.testing.assert_array_equal(back.env_outputs.observation['INSTR'], words)


def test_each_pass_gives_every_column_once_in_another_order(tmp_path):
  unrolls = make_unrolls(8, num_envs=1)
  write(tmp_path, unrolls)
  iterator = iter(reader(tmp_path, num_shuffled=4))
  passes = [[key(u) for u in take(iterator, 8)] for _ in range(2)]
  expected = sorted(key(u) for u in unrolls)
  assert [sorted(p) for p in passes] == [expected, expected]
  assert passes[0] != passes[1]
  again = iter(reader(tmp_path, num_shuffled=4))
  assert [key(u) for u in take(again, 8)] == passes[0]


def test_a_second_recording_is_added_to_the_first(tmp_path):
  for _ in range(2):
    write(tmp_path, make_unrolls(1))
  assert len(list(tmp_path.iterdir())) == 2


def test_the_cap_is_kept_and_said(tmp_path, caplog):
  one = len(unroll_records.encode(make_unrolls(1)[0], 0, LEVELS))
  writer = write(tmp_path, make_unrolls(4), max_bytes=3 * one)
  assert writer.num_records == 3
  assert 'all that record_gib allows' in caplog.text


def damaged(unroll, **leaves):
  env = unroll.env_outputs._replace(**leaves)
  return unroll_records.encode(unroll._replace(env_outputs=env), 0, LEVELS)


def change(array, value):
  changed = array.copy()
  changed[2, 0] = value
  return changed


def unusable_records():
  unroll = make_unrolls(1)[0]
  env = unroll.env_outputs
  good = unroll_records.encode(unroll, 0, LEVELS)
  other = tf.train.Example.FromString(good)
  other.features.feature['schema'].int64_list.value[:] = [2]
  short = tf.train.Example.FromString(good)
  del short.features.feature['agent_outputs/policy_logits']
  lies = tf.train.Example.FromString(good)
  lies.features.feature['env_outputs/reward'].bytes_list.value[:] = [b'1234']
  action = change(unroll.agent_outputs.action, 100)
  agent = unroll.agent_outputs._replace(action=action)
  return {
    'is no tf.train.Example': b'not a record',
    'schema is [2]': other.SerializeToString(),
    "level is 'mars'": unroll_records.encode(unroll, 0, ('x', 'mars')),
    'policy_logits is missing': short.SerializeToString(),
    'reward has 4 bytes': lies.SerializeToString(),
    'reward holds NaN': damaged(unroll, reward=change(env.reward, np.nan)),
    'truncated must imply first': damaged(
      unroll, truncated=~np.zeros_like(env.truncated)
    ),
    'observation is <f8': damaged(
      unroll, observation=env.observation.astype(np.float64)
    ),
    'observation is <f4 [6, 1]': damaged(
      unroll, observation=env.observation[..., :1]
    ),
    'actions from 0 to 100; the last one is 99': unroll_records.encode(
      unroll._replace(agent_outputs=agent), 0, LEVELS
    ),
  }


@pytest.mark.parametrize('message', unusable_records())
def test_what_does_not_fit_is_refused_with_its_reason(message):
  with pytest.raises(unroll_records.UnusableRecordError) as raised:
    decode(unusable_records()[message])
  assert message in str(raised.value)


def test_unusable_records_are_counted_named_and_left_out(tmp_path, caplog):
  good = make_unrolls(3, num_envs=1)
  path = tmp_path / 'unrolls-00000-1.tfrecord'
  bad = list(unusable_records().values())
  with tf.io.TFRecordWriter(str(path)) as writer:
    for unroll in good:
      writer.write(unroll_records.encode(unroll, 0, LEVELS))
      for record in bad:
        writer.write(record)
  source = reader(tmp_path, num_shuffled=0)
  got = take(iter(source), 3)
  assert sorted(map(key, got)) == sorted(map(key, good))
  assert source.num_skipped.total() >= 2 * len(bad)
  assert source.num_skipped['other shape'] >= 2 * 4
  assert f'record 1 of {path}' in caplog.text
  assert caplog.text.count('unknown level') <= 1


@pytest.mark.parametrize('damage', ['cut', 'flipped'])
def test_a_damaged_file_gives_what_comes_before_the_damage(
  tmp_path, damage, caplog
):
  unrolls = make_unrolls(4, num_envs=1)
  write(tmp_path, unrolls)
  (path,) = tmp_path.iterdir()
  content = bytearray(path.read_bytes())
  place = int(len(content) * 0.6)
  if damage == 'cut':
    del content[place:]
  else:
    content[place] ^= 1
  path.write_bytes(content)
  source = reader(tmp_path, num_shuffled=8)
  got = take(iter(source), 2)
  assert sorted(map(key, got)) == [key(u) for u in unrolls[:2]]
  assert source.num_skipped == {'damaged': 1}
  assert 'record 2 of' in caplog.text


def test_nothing_usable_is_an_error_and_not_a_wait(tmp_path):
  with pytest.raises(ValueError, match='holds no files unrolls-'):
    reader(tmp_path)
  with tf.io.TFRecordWriter(str(tmp_path / 'unrolls-0.tfrecord')) as writer:
    writer.write(b'nonsense')
  with pytest.raises(ValueError, match=r'can be used \(1 foreign\)'):
    reader(tmp_path)
