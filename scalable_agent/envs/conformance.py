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
"""Whether an environment keeps the contract that the agent relies on."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tree
from dm_env import specs

from scalable_agent import structs
from scalable_agent.envs import base, batches, process

_SEEDING_STEPS = 50
_PROCESS_STEPS = 20


class Finding(NamedTuple):
  """One thing that was looked at.

  verdict: 'ok', 'note' for what is allowed but worth knowing, or 'FAIL'.
  text: What was found.
  """

  verdict: str
  text: str


def check(
  factory: base.Factory,
  level_name: str,
  *,
  seed: int = 1,
  num_episodes: int = 3,
  max_steps: int = 10_000,
) -> Iterator[Finding]:
  """Plays with random actions; tells step by step what it finds.

  Args:
    factory: Makes the environment.
    level_name: What messages call it.
    seed: Of the environment.
    num_episodes: Episodes to play.
    max_steps: Steps after which no end is waited for any longer.

  Yields:
    Findings. After one that is 'FAIL' the checks that build on it are left out.
  """
  try:
    environments = _Player(factory, level_name, seed)
  except Exception as e:
    yield Finding('FAIL', f'it cannot be made: {_said(e)}')
    return
  spec = environments.spec
  yield Finding('ok', f'it is made; it shows {_shown(spec.observation)}')
  actions = _check_actions(spec.action)
  yield actions
  if actions.verdict == 'FAIL':
    return
  try:
    yield from _check_episodes(environments, num_episodes, max_steps)
    environments.close()
    environments.close_inside()
    yield Finding('ok', 'it can be closed, twice')
    yield from _check_seeds(factory, level_name, seed)
  except Exception as e:
    yield Finding('FAIL', _said(e))
    return
  yield from _check_process(factory, level_name, seed)


def random_actions(
  spec: specs.Array, num_envs: int, random: np.random.Generator
) -> np.ndarray:
  """Actions `[E, ...]`: uniform where bounded, else standard normal.

  Args:
    spec: See `structs.EnvironmentSpec.action`.
    num_envs: `E`.
    random: Where they come from.
  """
  shape = (num_envs, *spec.shape)
  if spec.dtype.kind != 'f':
    return random.integers(
      spec.minimum, np.asarray(spec.maximum) + 1, shape
    ).astype(np.int32)
  low, high = spec.minimum, spec.maximum
  is_bounded = np.isfinite(low) & np.isfinite(high)
  uniform = random.uniform(
    np.where(is_bounded, low, 0), np.where(is_bounded, high, 1), shape
  )
  actions = np.where(is_bounded, uniform, random.normal(size=shape))
  return np.clip(actions, low, high).astype(np.float32)


class _Player(batches.SerialEnvironments):
  """One environment, played with random actions."""

  def __init__(self, factory, level_name, seed):
    super().__init__([factory], [level_name], base_seed=seed)
    self._random = np.random.default_rng(0)

  def play(self, num_steps) -> list[Any]:
    """The first slot and `num_steps` more, copied."""
    slots = [tree.map_structure(np.array, self.initial())]
    for _ in range(num_steps):
      slots.append(tree.map_structure(np.array, self.next()))
    return slots

  def next(self) -> structs.EnvOutput:
    """The slot after a random action."""
    return self.step(random_actions(self.spec.action, 1, self._random))

  def close_inside(self):
    """Closes the environment itself once more."""
    self._environments[0].close()


def _said(error):
  if isinstance(error, base.BrokenEnvironmentError):
    return str(error)
  return f'{type(error).__name__}: {error}'


def _shown(observation):
  leaves = tree.flatten_with_path(observation)
  return ', '.join(
    '/'.join(map(str, (*path, ''))) + f'{leaf.dtype}{list(leaf.shape)}'
    for path, leaf in leaves
  )


def _check_actions(spec) -> Finding:
  if isinstance(spec, specs.DiscreteArray):
    return Finding('ok', f'it takes one of {spec.num_values} actions')
  if not isinstance(spec, specs.BoundedArray) or len(spec.shape) != 1:
    return Finding(
      'FAIL',
      f'its action spec is {spec}; give a DiscreteArray, or a BoundedArray '
      'with one axis',
    )
  if spec.dtype.kind == 'f':
    return Finding('ok', f'it takes {spec.shape[0]} numbers')
  if np.any(spec.minimum):
    return Finding(
      'FAIL', f'its whole-number actions begin at {spec.minimum}, not at 0'
    )
  return Finding('ok', f'it takes {spec.shape[0]} choices at once')


def _check_episodes(environments, num_episodes, max_steps):
  started = time.monotonic()
  slot = environments.initial()
  yield Finding('ok', 'reset gives a first observation as declared')
  outside = _out_of_bounds(environments.spec.observation, slot.observation)
  ends, lives, lengths = {'terminated': 0, 'truncated': 0}, 0, []
  steps = 0
  while len(lengths) < num_episodes and steps < max_steps:
    slot = environments.next()
    steps += 1
    outside |= _out_of_bounds(environments.spec.observation, slot.observation)
    lives += int(slot.done[0] and not slot.first[0])
    if slot.first[0]:
      lengths.append(int(slot.info.episode_step[0]))
      ends['truncated' if slot.truncated[0] else 'terminated'] += 1
  rate = steps / (time.monotonic() - started)
  yield Finding(
    'ok',
    f'{steps} steps: observations of the declared type and shape, finite '
    f'rewards; {rate:,.0f} steps/s',
  )
  for name in sorted(outside):
    yield Finding('note', f'{name} leaves its declared bounds; it may')
  if not lengths:
    yield Finding(
      'note',
      'no episode ended, so no return would be logged; set a time limit',
    )
    return
  yield Finding(
    'ok',
    f'{len(lengths)} episodes of {min(lengths)} to {max(lengths)} steps; '
    f'{ends["terminated"]} terminated, {ends["truncated"]} truncated (by a '
    f'time limit), {lives} lives lost',
  )


def _out_of_bounds(spec, observation) -> set[str]:
  return {
    repr(leaf.name or 'observation')
    for leaf, value in zip(
      tree.flatten(spec), tree.flatten(observation), strict=True
    )
    if isinstance(leaf, specs.BoundedArray)
    and not ((value >= leaf.minimum) & (value <= leaf.maximum)).all()
  }


def _check_seeds(factory, level_name, seed):
  def stream(seed):
    player = _Player(factory, level_name, seed)
    slots = player.play(_SEEDING_STEPS)
    player.close()
    return slots

  once = stream(seed)
  if not _equal(once, stream(seed)):
    yield Finding(
      'FAIL',
      'the same seed and actions gave another episode; let all that is random '
      'come from the seed',
    )
    return
  yield Finding('ok', 'the same seed and actions give the same episode')
  if _equal(once, stream(seed + 1)):
    yield Finding('note', 'another seed changes nothing')
  else:
    yield Finding('ok', 'another seed gives another episode')


def _equal(slots, others):
  try:
    np.testing.assert_equal(slots, others)
  except AssertionError:
    return False
  return True


def _check_process(factory, level_name, seed):
  try:
    process.check_picklable(factory, level_name)
    here = _Player(factory, level_name, seed)
    there = process.ProcessEnvironments([factory], [level_name], base_seed=seed)
  except Exception as e:
    yield Finding('FAIL', f'it cannot be made in a process: {_said(e)}')
    return
  try:
    same = _equal(here.initial(), there.initial())
    random = np.random.default_rng(seed)
    for _ in range(_PROCESS_STEPS):
      actions = random_actions(here.spec.action, 1, random)
      same &= _equal(here.step(actions), there.step(actions))
  except Exception as e:
    yield Finding('FAIL', f'it fails in a process: {_said(e)}')
    return
  finally:
    here.close()
    there.close()
  if same:
    yield Finding('ok', 'it plays the same in a process of its own')
  else:
    yield Finding('FAIL', 'it plays another episode in a process of its own')
