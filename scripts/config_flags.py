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
"""The command line of every script: one absl flag per field of `config`.

    from absl import app
    import config_flags

    config_flags.define()

    if __name__ == '__main__':
      config_flags.run(main)  # main(config: config.Config)

A script imports TensorFlow inside `main`, so a mistyped flag is answered at
once. Mistakes are one sentence on stderr and exit code 2.
"""

import dataclasses
import importlib
import os
import pkgutil
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from absl import app, flags

from scalable_agent import config as config_lib

# The flags belong to the script that calls `define`, so its --help shows them.
flags.disclaim_key_flags()

SECTIONS: dict[str, type] = {
  field.name: typing.cast(type, field.type)
  for field in dataclasses.fields(config_lib.Config)
}

_TRUE = ('true', 't', '1', 'yes')
_FALSE = ('false', 'f', '0', 'no')


def _boolean(text: str) -> bool:
  if text.lower() in _TRUE:
    return True
  if text.lower() in _FALSE:
    return False
  raise ValueError(text)


_KINDS: dict[type, tuple[Callable[[str], Any], str]] = {
  bool: (_boolean, 'true or false'),
  float: (float, 'a number'),
  int: (int, 'an integer'),
  str: (str, 'a string'),
}


class _Parser(flags.ArgumentParser):
  """Reads a flag's text as the type of its field; `none` where that may be."""

  def __init__(self, annotation: Any, choices: Sequence[str] | None):
    kinds = [k for k in _members(annotation) if k is not types.NoneType]
    self._kind = kinds[0]
    self._optional = types.NoneType in _members(annotation)
    self.syntactic_help = _KINDS[self._kind][1]
    if choices:
      self.syntactic_help = f'one of {", ".join(choices)}'
    if self._optional:
      self.syntactic_help += ', or none'

  def parse(self, argument: Any) -> Any:
    """Returns the value; raises ValueError saying what was expected."""
    if argument is None or isinstance(argument, self._kind):
      return argument
    text = str(argument)
    if self._optional and text.lower() == 'none':
      return None
    try:
      return _KINDS[self._kind][0](text)
    except ValueError:
      raise ValueError(f'give {self.syntactic_help}.') from None

  def flag_type(self) -> str:
    """Returns the type's name, for --helpxml."""
    return self._kind.__name__


def _members(annotation: Any) -> tuple[Any, ...]:
  """`int | None` gives `(int, NoneType)`, `int` gives `(int,)`."""
  return typing.get_args(annotation) or (annotation,)


def _help(field: dataclasses.Field) -> str:
  parts = [field.metadata['meaning']]
  if field.metadata['unit']:
    parts.append(f'Unit: {field.metadata["unit"]}.')
  if field.default is None:
    parts.append('Default: none.')
  return ' '.join(parts)


def define(flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Defines a flag for each field of `config.Config`'s sections.

  A flag has the name, the default, the unit and the meaning of its field.
  Fields that may be None take `none`, so that a preset can be undone. Two
  scripts in one process share the flags.
  """
  for section in SECTIONS.values():
    for field in dataclasses.fields(section):
      if field.name not in flag_values:
        flags.DEFINE_flag(_flag(field), flag_values)
      flags.declare_key_flag(field.name, flag_values)


def _flag(field: dataclasses.Field) -> flags.Flag:
  boolean = bool in _members(field.type)
  return flags.Flag(
    _Parser(field.type, field.metadata['choices']),
    None if boolean else flags.ArgumentSerializer(),
    field.name,
    field.default,
    _help(field),
    boolean=boolean,
  )


def build(
  flag_values: flags.FlagValues = flags.FLAGS,
  base: config_lib.Config | None = None,
) -> config_lib.Config:
  """Returns the configuration that the parsed flags ask for.

  Args:
    flag_values: the flags.
    base: settings of flags that were not given; None: their defaults.

  Raises:
    ValueError: a value is out of range; the sentence says which and why.
  """
  sections = {}
  for name, section in SECTIONS.items():
    values = {}
    for field in dataclasses.fields(section):
      flag = flag_values[field.name]
      values[field.name] = flag.value
      if base is not None and not flag.present:
        values[field.name] = getattr(getattr(base, name), field.name)
    sections[name] = section(**values)
  return config_lib.Config(**sections)


def as_flags(config: config_lib.Config) -> list[str]:
  """The words of a command line that make `config`: those not at default."""
  values = {}
  for name, section in SECTIONS.items():
    for field in dataclasses.fields(section):
      value = getattr(getattr(config, name), field.name)
      if value != field.default:
        values[field.name] = value
  return words(values)


def words(values: Mapping[str, Any]) -> list[str]:
  """Values of flags as words of a command line."""
  return [f'--{name}={value}' for name, value in values.items()]


def check(arguments: Sequence[str]) -> None:
  """Raises ValueError if a command line of these words makes no settings."""
  values = flags.FlagValues()
  define(values)
  try:
    values(['', *arguments])
  except flags.Error as error:
    raise ValueError(str(error)) from error
  build(values)


def parse(argv: Sequence[str]) -> list[str]:
  """Parses flags for `app.run(main, flags_parser=config_flags.parse)`.

  Flag files are read first, wherever they stand: any flag overrides them.

  Returns:
    The program's name and the arguments that are not flags.
  """
  try:
    return flags.FLAGS(_flag_files_first(argv))
  except flags.Error as error:
    fail(str(error).removeprefix('flag ').removeprefix('ERROR:: '))


def _flag_files_first(argv: Sequence[str]) -> list[str]:
  """Moves `--flagfile=path` and `--flagfile path` behind the program's name."""
  first, rest = list(argv[:1]), list(argv[1:])
  later = []
  while rest and rest[0] != '--':
    argument = rest.pop(0)
    name, equals, _ = argument.lstrip('-').partition('=')
    if argument.startswith('-') and name == 'flagfile' and (equals or rest):
      first.append(argument)
      if not equals:
        first.append(rest.pop(0))
    else:
      later.append(argument)
  return first + later + rest


def fail(message: str) -> NoReturn:
  """Ends the program with exit code 2 and `message` on stderr."""
  program = os.path.basename(sys.argv[0])
  print(f'{program}: {" ".join(message.split())}', file=sys.stderr)
  sys.exit(2)


def parts(package: types.ModuleType) -> list[str]:
  """Names of the parts of a script: the modules of `package`."""
  modules = pkgutil.iter_modules(package.__path__)
  return [m.name for m in modules if not m.name.startswith('_')]


def parse_part(
  argv: Sequence[str], package: types.ModuleType, doc: str | None
) -> types.ModuleType:
  """Parses the command line of a script that consists of parts.

  Args:
    argv: program, name of the part, flags of the part.
    package: its modules are the parts; each has `define_flags(flag_values)`.
    doc: what the script says of itself.

  Returns:
    The part that is named, its flags defined and parsed.
  """
  name = argv[1] if len(argv) > 1 else ''
  names = parts(package)
  if name.lstrip('-') in ('help', 'helpshort', 'helpfull'):
    print(f'{doc}\nPARTs: {", ".join(names)}')
    sys.exit(0)
  if name not in names:
    fail(f'{name!r} is no part; choose one of {", ".join(names)}.')
  part = importlib.import_module(f'{package.__name__}.{name}')
  part.define_flags(flags.FLAGS)
  # Those of modules that parts share, too.
  for module in [
    m for n, m in sys.modules.items() if n.startswith(f'{package.__name__}.')
  ]:
    flags.adopt_module_key_flags(module, flags.FLAGS)
  # What absl prints for --help.
  sys.modules['__main__'].__doc__ = part.__doc__
  surplus = parse([argv[0], *argv[2:]])[1:]
  if surplus:
    fail(f'{surplus[0]!r} is not a flag; flags look like --name=value.')
  return part


def run(main: Callable[[config_lib.Config], int | None]) -> None:
  """Reads the command line, calls `main(config)` and exits with its result."""

  def read(argv: Sequence[str]) -> config_lib.Config:
    arguments = parse(argv)[1:]
    if arguments:
      fail(f'{arguments[0]!r} is not a flag; flags look like --name=value.')
    try:
      return build()
    except ValueError as error:
      fail(f'--{error}')

  app.run(main, flags_parser=read)
