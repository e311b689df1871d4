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
"""Checkpoints: bit for bit, atomic, strict, and never unpickled."""

import contextlib
import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import time
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from scalable_agent import checkpoint

COUNTERS = {
  'env_frames': 400,
  'learning': {'rate': 2.88e-4, 'levels': ['catch', 'pong']},
  'random': np.random.PCG64(7).state,
}

# Saves checkpoints for ever; in each, every array is full of its number.
SAVE_FOR_EVER = """
import itertools, sys
import numpy as np
from scalable_agent import checkpoint
checkpointer = checkpoint.Checkpointer(sys.argv[1], keep=2)
saved = checkpointer.restore()
start = saved.counters['number'] + 1 if saved else 0
for number in itertools.count(start):
  arrays = {f'layer_{i}/kernel': np.full([300, 1000], number) for i in range(8)}
  checkpointer.save(arrays, {'number': number})
  if number == start:
    print('saved', flush=True)
"""

DIGEST_OF_LATEST = """
import hashlib, json, sys
from scalable_agent import checkpoint
saved = checkpoint.Checkpointer(sys.argv[1]).restore()
digests = {
  name: [str(a.dtype), list(a.shape), hashlib.sha256(a.tobytes()).hexdigest()]
  for name, a in saved.arrays.items()
}
print(json.dumps([digests, saved.counters]))
"""

RUN_INTO_FILE_SIZE_LIMIT = """
import resource, sys
import numpy as np
from scalable_agent import checkpoint
checkpointer = checkpoint.Checkpointer(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
  checkpointer.save({'big': np.zeros(100_000)}, {})
except OSError as error:
  print(error)
"""


def some_arrays():
  random = np.random.default_rng(0)
  special = np.float32([np.nan, -0.0, 1e-42, np.inf, 3.0]).view(np.uint32)
  special[0] |= 0x1234  # A NaN with a payload.
  return {
    'agent/conv/kernel': random.standard_normal((3, 3, 4, 8)).astype('f4'),
    'agent/transposed': np.asfortranarray(random.standard_normal((5, 7))),
    'special': special.view(np.float32),
    'iteration': np.int64(2**53 + 1),
    'flags': np.array([True, False]),
    'nothing': np.zeros((0, 3), np.float16),
  }


def python(code, *args, **kwargs):
  """Runs Python code in a process of its own; its stdout."""
  return subprocess.run(
    [sys.executable, '-c', code, *map(str, args)],
    check=True,
    capture_output=True,
    text=True,
    **kwargs,
  ).stdout


@pytest.fixture
def warnings(monkeypatch):
  messages = []
  monkeypatch.setattr(
    checkpoint.logging,
    'warning',
    lambda message, *args: messages.append(message % args),
  )
  return messages


def test_a_new_process_reads_the_same_bits(tmp_path):
  arrays = some_arrays()
  checkpoint.Checkpointer(tmp_path).save(arrays, COUNTERS)
  digests, counters = json.loads(python(DIGEST_OF_LATEST, tmp_path))
  assert digests == {
    name: [
      str(a.dtype),
      list(a.shape),
      hashlib.sha256(a.tobytes()).hexdigest(),
    ]
    for name, a in arrays.items()
  }
  assert counters == COUNTERS


def test_counters_take_numpy_and_refuse_the_rest(tmp_path):
  checkpointer = checkpoint.Checkpointer(tmp_path)
  given = {
    'frames': np.int64(3),
    'keys': np.arange(2),
    'share': np.float32(0.5),
  }
  checkpointer.save({}, given)
  assert checkpointer.restore().counters == {
    'frames': 3,
    'keys': [0, 1],
    'share': 0.5,
  }
  with pytest.raises(ValueError, match=r'Counters hold .* a set; give'):
    checkpointer.save({}, {'levels': {'pong'}})


def test_numpy_reads_the_file(tmp_path):
  path = checkpoint.Checkpointer(tmp_path).save(some_arrays(), COUNTERS)
  with np.load(path, allow_pickle=False) as archive:
    np.testing.assert_array_equal(archive['flags'], [True, False])


def test_keeps_the_newest(tmp_path):
  (tmp_path / 'config.json').write_text('{}')
  checkpointer = checkpoint.Checkpointer(tmp_path, keep=2)
  paths = [checkpointer.save({}, {'number': i}) for i in range(4)]
  assert sorted(map(str, tmp_path.glob('*'))) == sorted(
    [*paths[2:], str(tmp_path / 'config.json')]
  )
  assert checkpointer.latest() == paths[-1]
  assert checkpointer.restore() == ({}, {'number': 3}, paths[-1])


def test_continues_numbering_beyond_eight_digits(tmp_path):
  first = tmp_path / 'checkpoint-99999999.npz'
  os.rename(checkpoint.Checkpointer(tmp_path).save({}, {'number': 0}), first)
  checkpointer = checkpoint.Checkpointer(tmp_path)
  checkpointer.save({}, {'number': 1})
  assert checkpointer.restore().counters == {'number': 1}


def test_empty_directory(tmp_path):
  for directory in (tmp_path, tmp_path / 'absent'):
    checkpointer = checkpoint.Checkpointer(directory)
    assert checkpointer.latest() is None
    assert checkpointer.restore() is None
    with pytest.raises(FileNotFoundError, match=r'no checkpoint in .*; name'):
      checkpointer.restore_required()


def cut_off(data):
  return data[: len(data) // 2]


def cut_off_last_byte(data):
  return data[:-1]


def empty(data):
  return b''


def flipped_bit(data):
  middle = len(data) // 2
  return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def foreign(data):
  buffer = io.BytesIO()
  np.savez(buffer, weights=np.ones(3))
  return buffer.getvalue()


DAMAGE = [cut_off, cut_off_last_byte, empty, flipped_bit, foreign]


@pytest.mark.parametrize('damage', DAMAGE)
def test_damaged_newest_is_skipped_and_said(tmp_path, warnings, damage):
  checkpointer = checkpoint.Checkpointer(tmp_path)
  good, bad = (checkpointer.save(some_arrays(), {'n': n}) for n in range(2))
  with open(bad, 'rb') as file:
    data = file.read()
  with open(bad, 'wb') as file:
    file.write(damage(data))
  assert checkpointer.restore().path == good
  (message,) = warnings
  assert f'{bad} is damaged' in message
  assert f'Using {good} instead' in message
  # The next one is the newest again.
  checkpointer.save({}, {'n': 2})
  assert checkpointer.restore().counters == {'n': 2}


def test_only_damaged_ones_are_an_error(tmp_path):
  checkpointer = checkpoint.Checkpointer(tmp_path)
  path = checkpointer.save({}, {})
  with open(path, 'ab') as file:
    file.write(b'x')
  with pytest.raises(checkpoint.DamagedError, match='Move them away'):
    checkpointer.restore()


def half_written(directory, size):
  """Whether there is a file of clearly less than `size` bytes."""
  with os.scandir(directory) as entries:
    for entry in entries:
      with contextlib.suppress(FileNotFoundError):  # Renamed meanwhile.
        if entry.stat().st_size < size - 1000:
          return True
  return False


@pytest.mark.parametrize('moment', ['within a write', 'any'])
def test_killed_while_saving(tmp_path, moment):
  numbers = []
  for delay in (0.0, 0.02, 0.05):
    process = subprocess.Popen(
      [sys.executable, '-c', SAVE_FOR_EVER, str(tmp_path)],
      stdout=subprocess.PIPE,
      text=True,
    )
    checkpointer = checkpoint.Checkpointer(tmp_path)
    with process:
      assert process.stdout.readline() == 'saved\n'
      time.sleep(delay)
      if moment == 'within a write':
        while not half_written(tmp_path, 8 * 300 * 1000 * 8):
          assert process.poll() is None
      assert process.poll() is None
      process.kill()
    saved = checkpointer.restore()
    assert saved.path == checkpointer.latest()
    numbers.append(saved.counters['number'])
    assert len(saved.arrays) == 8
    for array in saved.arrays.values():
      np.testing.assert_array_equal(array, numbers[-1])
  assert numbers == sorted(set(numbers))


def test_leftovers_of_a_killed_save_are_removed(tmp_path):
  leftover = tmp_path / 'checkpoint-00000003.npz.123.tmp'
  leftover.write_bytes(b'half')
  other = tmp_path / 'metrics.csv.123.tmp'
  other.write_bytes(b'other')
  checkpointer = checkpoint.Checkpointer(tmp_path)
  assert checkpointer.restore() is None
  checkpointer.save({}, {})
  assert not leftover.exists()
  assert other.exists()


@pytest.mark.parametrize('failing', ['fsync', 'replace'])
def test_full_disk_leaves_the_earlier_ones(tmp_path, monkeypatch, failing):
  checkpointer = checkpoint.Checkpointer(tmp_path, keep=1)
  path = checkpointer.save(some_arrays(), COUNTERS)

  def disk_full(*args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  with monkeypatch.context() as patch:
    patch.setattr(os, failing, disk_full)
    with pytest.raises(OSError, match=r'No space left.*earlier .* intact') as e:
      checkpointer.save(some_arrays(), {})
  assert e.value.errno == errno.ENOSPC
  assert os.listdir(tmp_path) == [os.path.basename(path)]
  assert checkpointer.restore().counters == COUNTERS


def test_write_cut_short_leaves_the_earlier_ones(tmp_path):
  checkpointer = checkpoint.Checkpointer(tmp_path)
  path = checkpointer.save({}, COUNTERS)
  output = python(RUN_INTO_FILE_SIZE_LIMIT, tmp_path)
  assert 'File too large' in output
  assert 'earlier checkpoints are intact' in output
  assert os.listdir(tmp_path) == [os.path.basename(path)]
  assert checkpointer.restore().counters == COUNTERS


def test_newer_format_is_refused_not_skipped(tmp_path, monkeypatch):
  checkpointer = checkpoint.Checkpointer(tmp_path)
  checkpointer.save({}, {})
  with monkeypatch.context() as patch:
    patch.setattr(checkpoint, 'FORMAT_VERSION', 2)
    checkpointer.save({}, {})
  with pytest.raises(
    ValueError, match=r'has format version 2.*up to 1; update'
  ):
    checkpointer.restore()


class Exploding:
  """Unpickling it runs code."""

  def __reduce__(self):
    return (pytest.fail, ('It was unpickled.',))


def test_objects_are_not_written(tmp_path):
  objects = np.array([Exploding()], dtype=object)
  with pytest.raises(ValueError, match='Array bomb is object'):
    checkpoint.Checkpointer(tmp_path).save({'bomb': objects}, {})


def test_objects_are_not_unpickled(tmp_path):
  path = checkpoint.Checkpointer(tmp_path).save({'a': np.zeros(1)}, {})
  # A pickle smuggled in, with a right checksum.
  with zipfile.ZipFile(path, 'a') as archive:
    with archive.open('bomb.npy', 'w') as member:
      np.save(member, np.array([Exploding()], dtype=object), allow_pickle=True)
  with open(path, 'rb+') as file:
    content = file.read()[:-64]
    file.seek(len(content))
    file.write(hashlib.sha256(content).hexdigest().encode())
  with pytest.raises(ValueError, match='allow_pickle=False'):
    checkpoint.read(path)


def make_variables():
  return {
    'kernel': keras.Variable(np.zeros((3, 4), np.float32)),
    'bias': tf.Variable(np.zeros(4, np.float32)),
    'iteration': tf.Variable(0, dtype=tf.int64),
  }


def matching_arrays():
  return {
    'kernel': np.ones((3, 4), np.float32),
    'bias': np.ones(4, np.float32),
    'iteration': np.int64(1),
  }


def test_assigns_all():
  variables = make_variables()
  checkpoint.assign_all(variables, matching_arrays())
  for name, array in matching_arrays().items():
    np.testing.assert_array_equal(variables[name].numpy(), array)


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'bias': None}, 'missing from it: bias'),
    ({'extra': np.zeros(1)}, 'surplus in it: extra'),
    (
      {'kernel': np.ones((4, 3), np.float32)},
      r'kernel is float32 \(4, 3\) in the checkpoint and float32 \(3, 4\) here',
    ),
    ({'bias': np.ones(4)}, r'bias is float64 \(4,\) in .* float32 \(4,\) here'),
    ({'iteration': np.ones(1, np.int64)}, r'iteration is int64 \(1,\)'),
    (
      {'bias': None, 'extra': np.zeros(1)},
      'missing from it: bias; surplus in it: extra',
    ),
    (
      {f'x{i}': np.zeros(1) for i in range(13)},
      r'surplus in it: x0, .*, x9 and 3 more\.',
    ),
  ],
  ids=['missing', 'surplus', 'shape', 'dtype', 'rank', 'both', 'many'],
)
def test_what_does_not_fit_is_named_and_nothing_assigned(changes, message):
  arrays = {
    name: array
    for name, array in (matching_arrays() | changes).items()
    if array is not None
  }
  variables = make_variables()
  with pytest.raises(ValueError, match=message):
    checkpoint.assign_all(variables, arrays)
  for variable in variables.values():
    assert not np.any(variable.numpy())


def test_keep_must_be_positive(tmp_path):
  with pytest.raises(ValueError, match='keep is 0'):
    checkpoint.Checkpointer(tmp_path, keep=0)
