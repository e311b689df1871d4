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
"""What the sections of `config` are made of: fields that explain themselves."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any


def option(
  default: Any,
  meaning: str,
  *,
  unit: str | None = None,
  choices: Sequence[str] | None = None,
) -> Any:
  """A dataclass field with what `--help` and the checks need to know."""
  return dataclasses.field(
    default=default,
    metadata={'meaning': meaning, 'unit': unit, 'choices': choices},
  )


class Validated:
  """Checks choices and finiteness, then what `_check` of the subclass asks."""

  def __post_init__(self):
    for field in dataclasses.fields(self):  # type: ignore[arg-type]
      choices = field.metadata['choices']
      value = getattr(self, field.name)
      if choices and value not in choices:
        raise ValueError(
          f'{field.name} is {value!r}; choose one of {", ".join(choices)}.'
        )
      if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f'{field.name} is {value}; give a finite number.')
    self._check()

  def _check(self):
    pass

  def _at_least(self, minimum, *names):
    for name in names:
      value = getattr(self, name)
      if value is not None and not value >= minimum:
        raise ValueError(f'{name} is {value}; it must be at least {minimum}.')
