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
"""Tests for wire: what goes in comes out, or an error says why not."""

import builtins
import pickle

import numpy as np
import pytest
import tree

from scalable_agent import config, dataset, structs, tasks, wire
from scalable_agent.nets import agent as agent_lib
from scalable_agent.runtime import rollout_worker

SLOTS, WIDTH = 6, 3


def picture(rng, height, width, channels=None):
  """Smooth, as pictures are: a random plane per channel."""
  y, x = np.mgrid[0:height, 0:width] / max(height, width)
  planes = [
    127 + 60 * np.sin(rng.uniform(3) * x + rng.uniform(3) * y)
    for _ in range(channels or 1)
  ]
  return np.stack(planes, -1) if channels else planes[0]


def make_unroll(width=WIDTH, seed=0):
  """An unroll with images of both kinds, text, and an empty array."""
  rng = np.random.RandomState(seed)
  shape = (SLOTS, width)

  def images(*leading, channels=None):
    many = [picture(rng, 20, 28, channels) for _ in range(np.prod(leading))]
    return np.array(many).reshape(*leading, *many[0].shape).astype(np.uint8)

  def normal(*inner):
    return rng.standard_normal((*shape, *inner)).astype(np.float32)

  return structs.Unroll(
    level=np.arange(width, dtype=np.int32),
    version=np.full(width, 2**40, np.int64),
    core_state={
      'frames': images(width, 3),
      'lstm': normal(4)[0],
      'none': np.empty((width, 0), np.float32),
    },
    env_outputs=structs.EnvOutput(
      reward=normal(),
      info=structs.EpisodeInfo(normal(), rng.randint(9, size=shape)),
      done=rng.uniform(size=shape) < 0.5,
      first=np.zeros(shape, bool),
      truncated=np.zeros(shape, bool),
      observation={
        'gray': images(*shape),
        'colour': images(*shape, channels=3),
        'layers': images(*shape, channels=2),
        'text': rng.choice(np.array([b'go', b'stop', b'']), shape),
        'vector': normal(5),
      },
    ),
    agent_outputs=structs.AgentOutput(
      action=rng.randint(4, size=shape).astype(np.int32),
      policy_logits=normal(4),
      baseline=normal(),
    ),
    truncation_values=normal(),
  )


def assert_same(left, right):
  for x, y in zip(tree.flatten(left), tree.flatten(right), strict=True):
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize('encoding', ['raw', 'lz4'])
@pytest.mark.parametrize('width', [1, 4])
def test_lossless_encodings_give_back_every_bit(encoding, width):
  unroll = make_unroll(width)
  data = wire.make_encoder(encoding)(unroll)
  assert_same(wire.decode(data, make_unroll(1, seed=1)), unroll)


def test_arrays_need_not_lie_in_one_piece():
  unroll = make_unroll()
  scattered = tree.map_structure(np.asfortranarray, unroll)
  for encoding in ('raw', 'lz4'):
    data = wire.make_encoder(encoding)(scattered)
    assert_same(wire.decode(data, unroll), unroll)


def test_jpeg_changes_images_a_little_and_nothing_else():
  unroll = make_unroll()
  data = wire.make_encoder('jpeg', 95)(unroll)
  back = wire.decode(data, make_unroll(1))
  for part in (unroll, back):
    observation = part.env_outputs.observation
    part.core_state['seen'] = [observation.pop('gray')]
    part.core_state['seen'] += [observation.pop('colour')]
    part.core_state['seen'] += [part.core_state.pop('frames')]
  lossy = zip(
    back.core_state.pop('seen'), unroll.core_state.pop('seen'), strict=True
  )
  for got, true in lossy:
    error = np.abs(got.astype(int) - true)
    assert 0 < error.max() <= 8
    assert error.mean() < 1.5
  assert_same(back, unroll)


def test_lower_quality_is_smaller_and_further_off():
  unroll = make_unroll()
  sizes, errors = [], []
  for quality in (95, 50, 5):
    data = wire.make_encoder('jpeg', quality)(unroll)
    back = wire.decode(data, unroll)
    sizes.append(len(data))
    true = unroll.env_outputs.observation['gray'].astype(int)
    errors.append(np.abs(back.env_outputs.observation['gray'] - true).mean())
  assert sizes == sorted(sizes, reverse=True)
  assert errors == sorted(errors)


def test_lz4_saves_bytes_where_images_repeat():
  unroll = tree.map_structure(lambda x: x[:1].repeat(SLOTS, 0), make_unroll())
  raw, lz4 = (len(wire.make_encoder(e)(unroll)) for e in ('raw', 'lz4'))
  assert lz4 < raw / 3


@pytest.mark.parametrize('encoding', wire.ENCODINGS)
def test_bytes_that_break_off_are_refused(encoding):
  data = wire.make_encoder(encoding)(make_unroll())
  for length in (0, 5, 100, len(data) - 7):
    with pytest.raises((ValueError, RuntimeError)):
      wire.decode(data[:length], make_unroll())


def test_pickles_are_refused():
  with pytest.raises(ValueError, match='are no unroll'):
    wire.decode(pickle.dumps(make_unroll()), make_unroll())


def test_unrolls_of_another_run_are_refused():
  unroll = make_unroll()
  data = wire.make_encoder('raw')(unroll)
  for other in (
    unroll._replace(level=unroll.level.astype(np.int64)),
    unroll._replace(core_state=()),
    unroll._replace(truncation_values=unroll.level.astype(np.float32)),
  ):
    with pytest.raises(ValueError, match='other arrays than unrolls of this'):
      wire.decode(data, other)


def test_an_unknown_encoding_is_named():
  with pytest.raises(ValueError, match="'zip'; choose raw, lz4, jpeg"):
    wire.make_encoder('zip')


@pytest.mark.parametrize(
  ('encoding', 'module', 'library'),
  [('lz4', 'lz4.frame', 'lz4'), ('jpeg', 'PIL', 'Pillow')],
)
def test_a_missing_library_is_named(monkeypatch, encoding, module, library):
  original = builtins.__import__

  def without(name, *args, **kwargs):
    if name == module:
      raise ImportError(name)
    return original(name, *args, **kwargs)

  monkeypatch.setattr(builtins, '__import__', without)
  with pytest.raises(ValueError, match=f'{library} is not installed; install'):
    wire.make_encoder(encoding)


@pytest.mark.parametrize('encoding', ['raw', 'lz4', 'jpeg'])
def test_what_a_worker_sends_fits_what_the_learner_expects(encoding):
  settings = config.Config(
    task=config.TaskConfig(level_name='atari/pong'),
    actor=config.ActorConfig(num_actors=1, envs_per_actor=2),
    agent=config.AgentConfig(torso='shallow', core='lstm'),
    learner=config.LearnerConfig(unroll_length=3),
    distributed=config.DistributedConfig(unroll_encoding=encoding),
  )
  task = tasks.make_task(settings)
  spec = task.spec()
  agent = agent_lib.Agent(spec, settings.agent, frame_stack=task.frame_stack)
  worker = rollout_worker.RolloutWorker()
  request = tasks.Request(['atari/pong'] * 2, 1, 0)
  worker.set_up(
    rollout_worker.Order(settings, tasks.make_task, spec, request, 1, ())
  )
  try:
    weights = [v.numpy() for v in agent.trainable_variables]
    _, sent = worker.unroll(7, weights)
  finally:
    worker.close()
  example = dataset.example_unroll(agent, spec, 3)
  if encoding == 'raw':
    assert_same_kind(sent, example)
    return
  assert isinstance(sent, bytes)
  unroll = wire.decode(sent, example)
  assert_same_kind(unroll, example)
  assert unroll.version.tolist() == [7, 7]
  assert unroll.env_outputs.observation.std() > 0


def assert_same_kind(unroll, example):
  """All but the number of columns agrees, as the dataset needs it."""
  signature = dataset.batch_signature(example, len(unroll.level))
  for array, expected in zip(
    tree.flatten(unroll), tree.flatten(signature), strict=True
  ):
    assert array.shape == expected.shape
    assert array.dtype == expected.dtype.as_numpy_dtype
