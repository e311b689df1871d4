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
"""Says stage by stage what another implementation agrees on with the kit.

    python scripts/verify_port.py /tmp/kit /tmp/candidate
    python scripts/verify_port.py /tmp/kit --list_mistakes

The first directory is a kit from scripts/export_golden.py. The second holds,
for any of its stages, a file <stage>.npz with some or all of the stage's
outputs under their names. A stage that is not there is named, and so is the
mistake that gives just the wrong values found. Needs NumPy and absl, not
TensorFlow. Exit code 1 if anything differs, 2 if something cannot be read. See
docs/porting.md.
"""

from collections.abc import Sequence

import config_flags
from absl import app, flags
from porting import compare, kit, mistakes


def define_flags() -> None:
  """Defines this script's flags."""
  flags.DEFINE_list('stages', [], 'Compare these stages only. Default: all.')
  flags.DEFINE_boolean(
    'require_all', False, 'Missing stages and arrays count as differences.'
  )
  flags.DEFINE_float(
    'tolerance_factor',
    1.0,
    'Multiplies all tolerances, which are relative.',
    lower_bound=0,
  )
  flags.DEFINE_boolean(
    'list_mistakes',
    False,
    'Print the mistakes that ports make, with the values that reveal them, as '
    'a table; compare nothing.',
  )


def main(argv: Sequence[str]) -> int:
  """Prints a verdict per stage; returns the exit code."""
  expected = 1 if flags.FLAGS.list_mistakes else 2
  if len(argv) != 1 + expected:
    config_flags.fail(
      f'{len(argv) - 1} directories are named; give '
      f'{"the kit" if expected == 1 else "the kit, then the candidate"}.'
    )
  try:
    stages = kit.read(argv[1])
    if flags.FLAGS.list_mistakes:
      print('\n'.join(table_of_mistakes(stages)))
      return 0
    return verify(_chosen(stages), argv[2])
  except ValueError as error:
    config_flags.fail(str(error))


def verify(stages: dict[str, kit.Stage], candidate: str) -> int:
  """Compares all `stages`; prints; returns the exit code."""
  read = {name: kit.read_arrays(candidate, name) for name in stages}
  if all(arrays is None for arrays in read.values()):
    raise ValueError(
      f'{candidate} has none of {", ".join(f"{name}.npz" for name in stages)}; '
      'name the directory with the arrays of the other implementation.'
    )
  code = 0
  for name, stage in stages.items():
    arrays = read[name]
    if arrays is None:
      print(f'{name:30} missing')
      code |= flags.FLAGS.require_all
      continue
    verdict = compare.compare(stage, arrays, flags.FLAGS.tolerance_factor)
    _show(verdict)
    code |= bool(verdict.differences)
    code |= flags.FLAGS.require_all and bool(verdict.absent)
  return int(code)


def table_of_mistakes(stages: dict[str, kit.Stage]) -> list[str]:
  """Lines of a Markdown table: a row per mistake."""
  lines = [
    '| # | mistake | stage | array | index | right | wrong |',
    '|--:|---|---|---|---|--:|--:|',
  ]
  for number, mistake in enumerate(mistakes.MISTAKES, 1):
    shown = mistakes.reveal(mistake, stages[mistake.stage])
    index = ', '.join(map(str, shown.index))
    lines.append(
      f'| {number} | {mistake.text} | `{mistake.stage}` | `{mistake.key}` | '
      f'[{index}] | {shown.right:.5g} | {shown.wrong:.5g} |'
    )
  return lines


def _chosen(stages):
  unknown = [name for name in flags.FLAGS.stages if name not in stages]
  if unknown:
    raise ValueError(
      f'--stages has {unknown[0]!r}; choose among {", ".join(stages)}.'
    )
  return {
    n: s for n, s in stages.items() if n in (flags.FLAGS.stages or stages)
  }


def _show(verdict):
  absolute, relative = verdict.worst_absolute, verdict.worst_relative
  state = 'DIFFERS' if verdict.differences else 'agrees'
  print(
    f'{verdict.stage:30} {state:8} {verdict.num_compared:4} arrays, worst '
    f'difference {absolute[0]:.2g}, relative {relative[0]:.2g}'
    + (f' ({relative[1]})' if relative[0] else '')
  )
  if verdict.absent:
    print(f'    not given: {len(verdict.absent)}, first {verdict.absent[0]}')
  if verdict.differences:
    first = verdict.differences[0]
    print(f'    {len(verdict.differences)} differ, first {first.key}')
    print(f'    {first.key} {first.text}')
  for difference in verdict.differences:
    if difference.mistake is not None:
      text = mistakes.MISTAKES[difference.mistake - 1].text
      print(
        f'    {difference.key} looks like mistake {difference.mistake}: {text}'
      )


if __name__ == '__main__':
  define_flags()
  app.run(main, flags_parser=config_flags.parse)
