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
"""Iterates V-trace in a small tabular world until nothing changes.

    python scripts/experiment.py fixed_point --output=/tmp/fixed_point

The fixed point must be the value function of the policy that section 4.1 of
the paper gives in closed form: pi_rho_bar(a|x), which is min(rho_bar mu(a|x),
pi(a|x)), normalized. Expectations are exact: all trajectories of three steps,
with their probabilities under mu, go through `vtrace_tf`. Writes
fixed_point.csv and fixed_point.png, and prints a table.
"""

import itertools
import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from absl import flags

from experiments import _grid

RHO_BARS = (0.2, 0.5, 1.0, 2.0, 5.0, float('inf'))
_NUM_STEPS = 3
_GAMMA = 0.8
_TOLERANCE = 1e-6


class World(NamedTuple):
  """A Markov decision process with two policies.

  transitions: `[X, A, X]`, probability of the next state.
  rewards: `[X, A]`.
  mu: `[X, A]`, behaviour policy.
  pi: `[X, A]`, target policy.
  """

  transitions: np.ndarray
  rewards: np.ndarray
  mu: np.ndarray
  pi: np.ndarray


class _Trajectories(NamedTuple):
  """All of `_NUM_STEPS` steps: `[T + 1, N]` states, `[T, N]` actions, `[N]`."""

  states: np.ndarray
  actions: np.ndarray
  probabilities: np.ndarray


def define_flags(flag_values: flags.FlagValues) -> None:
  """Where the results go, and which world it is."""
  flags.DEFINE_string(
    'output',
    '/tmp/experiment',
    'Folder for the table (.csv) and the picture (.png).',
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'world_seed',
    0,
    'Seed of the world of three states and two actions.',
    flag_values=flag_values,
  )


def run(flag_values: flags.FlagValues) -> Iterator[str]:
  """Iterates for each rho bar, then tells."""
  world = make_world(flag_values.world_seed)
  rows = []
  yield '| rho bar | V-trace, iterated | closed form | largest difference |'
  yield '|--:|---|---|--:|'
  for rho_bar in RHO_BARS:
    found, exact = iterate(world, rho_bar), closed_form(world, rho_bar)
    difference = np.abs(found - exact).max()
    rows.append([rho_bar, *found, *exact, difference])
    texts = [' '.join(f'{v:.4f}' for v in values) for values in (found, exact)]
    yield f'| {rho_bar:g} | {texts[0]} | {texts[1]} | {difference:.0e} |'
  output = flag_values.output
  os.makedirs(output, exist_ok=True)
  states = range(len(world.mu))
  header = ['rho_bar', *[f'iterated_{x}' for x in states]]
  header += [*[f'closed_form_{x}' for x in states], 'largest_difference']
  _grid.write_table(os.path.join(output, 'fixed_point.csv'), header, rows)
  path = os.path.join(output, 'fixed_point.png')
  _draw(world, rows, path)
  yield f'Wrote {path}.'


def make_world(seed: int, num_states: int = 3, num_actions: int = 2) -> World:
  """A random world whose policies differ much."""
  random = np.random.default_rng(seed)
  transitions = random.dirichlet(np.ones(num_states), (num_states, num_actions))
  rewards = random.normal(size=(num_states, num_actions))
  mu, pi = random.dirichlet(np.ones(num_actions), (2, num_states))
  # No action is impossible for mu, or nobody could learn about it.
  mu = 0.9 * mu + 0.1 / num_actions
  return World(transitions, rewards, mu, pi)


def value_of(world: World, policy: np.ndarray) -> np.ndarray:
  """`[X]` value function of a policy `[X, A]`, by linear algebra."""
  transitions = np.einsum('xa,xay->xy', policy, world.transitions)
  rewards = np.einsum('xa,xa->x', policy, world.rewards)
  return np.linalg.solve(np.eye(len(rewards)) - _GAMMA * transitions, rewards)


def closed_form(world: World, rho_bar: float) -> np.ndarray:
  """`[X]` value function of pi_rho_bar."""
  weights = np.minimum(rho_bar * world.mu, world.pi)
  return value_of(world, weights / weights.sum(axis=1, keepdims=True))


def iterate(world: World, rho_bar: float) -> np.ndarray:
  """`[X]` fixed point of V-trace: targets become values until they agree."""
  paths = _all_trajectories(world)
  num_states = len(world.mu)
  # All trajectories of three steps from a state stand side by side.
  weights = paths.probabilities.reshape(num_states, -1)
  targets_of = _targets(world, paths, rho_bar)
  values = np.zeros(num_states)
  while True:
    targets = targets_of(values.astype(np.float32)).numpy()
    new = (targets.reshape(num_states, -1) * weights).sum(axis=1)
    if np.abs(new - values).max() < _TOLERANCE:
      return new
    values = new


def _all_trajectories(world):
  num_states, num_actions = world.mu.shape
  step = [range(num_actions), range(num_states)]
  found = np.array(
    list(itertools.product(range(num_states), *_NUM_STEPS * step))
  ).T
  states, actions = found[0::2], found[1::2]
  probabilities = np.prod(
    world.mu[states[:-1], actions]
    * world.transitions[states[:-1], actions, states[1:]],
    axis=0,
  )
  return _Trajectories(states, actions, probabilities)


def _targets(world, paths, rho_bar):
  """`[N]` V-trace targets of the first states, by the library, of values."""
  import tensorflow as tf

  from scalable_agent import vtrace_tf

  at = paths.states[:-1], paths.actions

  @tf.function(input_signature=[tf.TensorSpec(world.mu.shape[:1])])
  def compute(values):
    return vtrace_tf.from_importance_weights(
      np.log(world.pi[at] / world.mu[at]),
      discounts=np.full(paths.actions.shape, _GAMMA),
      rewards=world.rewards[at],
      values=tf.gather(values, paths.states[:-1]),
      bootstrap_value=tf.gather(values, paths.states[-1]),
      clip_rho_threshold=None if np.isinf(rho_bar) else rho_bar,
      # The paper's theorem asks for c bar no larger than rho bar.
      clip_c_threshold=min(1.0, rho_bar),
    ).vs[0]

  return compute


def _draw(world, rows, path):
  """The closed form as lines, what was iterated as points."""
  import matplotlib

  matplotlib.use('Agg')
  from matplotlib import pyplot

  figure, axes = pyplot.subplots(figsize=(7, 4), layout='constrained')
  finite = [row for row in rows if np.isfinite(row[0])]
  line = np.geomspace(finite[0][0] / 2, 2 * finite[-1][0], 200)
  curves = np.array([closed_form(world, rho_bar) for rho_bar in line])
  mu, pi = value_of(world, world.mu), value_of(world, world.pi)
  for x, curve in enumerate(curves.T):
    axes.plot(line, curve, color=f'C{x}', label=f'state {x}: of pi_rho_bar')
    points = [row[1 + x] for row in finite]
    axes.plot([row[0] for row in finite], points, 'o', color=f'C{x}')
    axes.plot(line[0], mu[x], '<', color=f'C{x}')
    axes.plot(line[-1], pi[x], '>', color=f'C{x}')
  axes.plot([], [], 'ko', label='V-trace, iterated')
  axes.plot([], [], 'k<', label='value of mu')
  axes.plot([], [], 'k>', label='value of pi')
  axes.set_xscale('log')
  axes.set_xlabel('rho bar')
  axes.set_ylabel('value')
  axes.grid(alpha=0.3)
  figure.legend(loc='outside right upper', fontsize='small')
  figure.savefig(path, dpi=120)
