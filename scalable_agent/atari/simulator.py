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
"""The Arcade Learning Environment, kept quiet, and its ROMs."""

import difflib
import pathlib

import ale_py
from ale_py import roms


def rom_path(game: str) -> pathlib.Path:
  """Where the ROM of `game` lies, or ValueError naming games like it."""
  known = roms.get_all_rom_ids()
  if game not in known:
    # `MsPacman` and `mspacman` are what people try.
    plain = {name.replace('_', ''): name for name in known}
    close = difflib.get_close_matches(
      game.lower().replace('_', ''), plain, n=3, cutoff=0.6
    )
    hint = ', '.join(plain[name] for name in close) or 'pong'
    raise ValueError(
      f'there is no Atari game {game!r}; names are written as in ms_pacman. '
      f'Did you mean {hint}?'
    )
  path = roms.get_rom_path(game)
  if path is None:
    raise ValueError(f'ale_py has no ROM for {game!r}; reinstall ale-py.')
  return path


def load(game: str, seed: int, sticky_actions: float) -> ale_py.ALEInterface:
  """A simulator with the game in it, at its first frame.

  Args:
    game: Name of its ROM.
    seed: Seeds all that is random in the simulator.
    sticky_actions: Probability that a frame repeats the action before.

  Returns:
    The simulator. It prints errors only, here and in the whole process.
  """
  ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
  ale = ale_py.ALEInterface()
  ale.setFloat('repeat_action_probability', sticky_actions)
  reseed(ale, game, seed)
  return ale


def reseed(ale: ale_py.ALEInterface, game: str, seed: int):
  """Seeds `ale` and loads `game`: seeds take effect at loading only."""
  ale.setInt('random_seed', seed)
  ale.loadROM(rom_path(game))
