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
"""How the C module reads arguments, and what happens where it does not look."""

import operator

import numpy as np

INT_MAX = 2**31 - 1
INT_MIN = -(2**31)


class UndefinedBehaviour(BaseException):
  """The real module would crash, exit, or silently do something else here.

  Not an `Exception`: handlers for ordinary errors must not hide it.
  """


def type_name(value):
  """As the C API names a type in messages."""
  return 'None' if value is None else type(value).__name__


def c_string(value, what):
  """Format `s`: text without a zero character."""
  if not isinstance(value, str):
    raise TypeError(f'{what} must be str, not {type_name(value)}')
  if '\0' in value:
    raise ValueError('embedded null character')
  return value


def c_int(value):
  """Format `i`: what is an index, within 32 bits."""
  if isinstance(value, float):
    raise TypeError("'float' object cannot be interpreted as an integer")
  number = operator.index(value)
  if number > INT_MAX:
    raise OverflowError('signed integer is greater than maximum')
  if number < INT_MIN:
    raise OverflowError('signed integer is less than minimum')
  return number


def instance_of(value, kind, what):
  """Format `O!`."""
  if not isinstance(value, kind):
    raise TypeError(f'{what} must be {kind.__name__}, not {type_name(value)}')
  return value


def utf8(value):
  """`PyUnicode_AsUTF8`: no number, no bytes."""
  if not isinstance(value, str):
    raise TypeError('bad argument type for built-in operation')
  if '\0' in value:
    raise UndefinedBehaviour(
      f'{value!r} holds a zero character: Lab reads up to it and ignores the '
      'rest.'
    )
  return value


def seed(value):
  """A reset's seed: Python int only; negative ones are moved up."""
  if not isinstance(value, int):
    raise ValueError(
      f"'seed' must be int or None, was '{type(value).__name__}'."
    )
  if not INT_MIN <= value <= INT_MAX:
    raise UndefinedBehaviour(
      f'Seed {value} has more than 32 bits: Lab cuts the rest off.'
    )
  return value + 1 + INT_MAX if value < 0 else int(value)


def action(value, bounds):
  """The action's numbers, if C can read them where they lie."""
  if value.ndim != 1 or value.shape[0] != len(bounds):
    raise ValueError(f'action must have shape ({len(bounds)})')
  if value.dtype.num != np.dtype(np.intc).num:
    raise ValueError('action must have dtype np.intc')
  if not (value.flags.c_contiguous and value.flags.aligned):
    raise UndefinedBehaviour(
      'The action does not lie in one piece: Lab reads its memory in order and '
      'would see other numbers.'
    )
  if not value.dtype.isnative:
    raise UndefinedBehaviour('The action has another byte order than C.')
  numbers = value.tolist()
  for number, bound in zip(numbers, bounds, strict=True):
    if not bound['min'] <= number <= bound['max']:
      raise UndefinedBehaviour(
        f'{bound["name"]} is {number}, outside {bound["min"]} to '
        f'{bound["max"]}: Lab does not check.'
      )
  return numbers
