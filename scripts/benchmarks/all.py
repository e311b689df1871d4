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
"""Measures every part, and prints one table.

    python scripts/benchmark.py all --json=new.json --compare=old.json

`--networks` says for which networks learner and training are measured. On a
machine that other programs use, prefix it with `nice -n -15` (as root), and
compare two versions by ratios of runs made in turns.
"""

import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import config_flags
from absl import flags

from benchmarks import (
  _stages,
  _training,
  inference,
  learner,
  pipeline,
  vtrace,
)

_OWN_FLAGS = ('networks', 'envs', 'json', 'compare', 'flagfile')


def define_flags(flag_values: flags.FlagValues) -> None:
  """Those of all parts."""
  _stages.define_flags(flag_values)
  _training.define_flags(flag_values)
  flags.DEFINE_list(
    'networks',
    ['shallow', 'shallow+lstm', 'nature', 'deep'],
    'Torsos, +lstm for those with a core; in place of --torso and --core.',
    flag_values=flag_values,
  )
  _stages.define_widths(
    flag_values,
    (1, 4, 16, 32, 64, 256),
    'Numbers of environments for which inference is measured.',
  )


def measure(flag_values: flags.FlagValues) -> Iterator[dict[str, Any]]:
  """Yields the measurements of all parts."""
  stages = _stages.from_flags(flag_values)
  networks = [
    stages.replace('agent', **_network(name)) for name in flag_values.networks
  ]
  yield _stages.line('env', networks[0], networks[0].env().rounded())
  for num_envs in map(int, flag_values.envs):
    one = networks[0].replace('actor', envs_per_actor=num_envs)
    yield inference.measure_one(one)
  yield pipeline.measure_one(networks[0])
  rounds = max(3, round(10 * flag_values.secs))
  yield from vtrace.measure_lengths([20, 100, 1000], 32, rounds)
  for network in networks:
    yield learner.measure_one(network)
  for name in flag_values.networks:
    yield from _train(name, flag_values)


def _network(name):
  torso, _, core = name.partition('+')
  return {'torso': torso, 'core': core or 'none'}


def _train(name, flag_values):
  """In a process of its own: it has other threads, and its own memory."""
  given = {
    flag: flag_values[flag].value
    for flag in flag_values
    if flag_values[flag].present and flag not in _OWN_FLAGS
  }
  script = pathlib.Path(__file__).parents[1] / 'benchmark.py'
  words = config_flags.words(given | _network(name))
  done = subprocess.run(
    [sys.executable, str(script), 'train', *words],
    stdout=subprocess.PIPE,
    text=True,
    check=True,
  )
  yield from map(json.loads, done.stdout.splitlines())
