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
"""Documents rot where nothing reads them: links, anchors, commands, flags."""

import pathlib
import re
import shlex

import command_runner
import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / 'README.md', ROOT / 'CONTRIBUTING.md']
PAGES += sorted((ROOT / 'docs').glob('*.md'))
PRESETS = sorted((ROOT / 'scripts' / 'presets').glob('*.flags'))


def name_of(path: pathlib.Path) -> str:
  return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
  """`text` without code blocks and code spans."""
  text = re.sub(r'^```.*?^```', '', text, flags=re.DOTALL | re.MULTILINE)
  return re.sub(r'`[^`\n]*`', '', text)


def links(text: str) -> list[str]:
  """Targets of the links in a page, those to other sites left out."""
  # The text between the brackets may be a code span, now empty.
  found = re.findall(r'\]\(([^)\s]+)\)', without_code(text))
  return [t for t in found if not re.match(r'[a-z]+:', t)]


def anchors(text: str) -> set[str]:
  """What GitHub makes of the headings of a page."""
  headings = re.findall(r'^#+ (.*)$', text, flags=re.MULTILINE)
  kept = [re.sub(r'[^\w\- ]', '', heading.lower()) for heading in headings]
  return {heading.replace(' ', '-') for heading in kept}


def problem_with(page: pathlib.Path, target: str) -> str | None:
  """What is wrong with the link `target` in `page`, if anything."""
  path, _, anchor = target.partition('#')
  linked = (page.parent / path).resolve() if path else page
  if not linked.exists():
    return f'{target}: there is no such file'
  if not linked.is_relative_to(ROOT):
    return f'{target}: outside the repository'
  if anchor and anchor not in anchors(linked.read_text()):
    return f'{target}: there is no such heading'
  return None


def commands(text: str) -> list[list[str]]:
  """Our scripts' command lines in a page or a flag file, word by word.

  In code blocks and code spans, or behind `#`; a backslash joins lines.
  """
  text = re.sub(r'^# ?', '', text, flags=re.MULTILINE)
  text = re.sub(r'\\\n\s*', ' ', text)
  found = re.findall(r'\b(?:python|bash) scripts/\w+\.\w+[^`\n|]*', text)
  return [shlex.split(command, comments=True) for command in found]


def problem_with_command(words: list[str]) -> str | None:
  """What is wrong with a command line, if anything."""
  program, script, *arguments = words
  path = ROOT / script
  if not path.exists():
    return f'there is no {script}'
  if program == 'bash':
    flags = [a.partition('=')[0] for a in arguments if a.startswith('--')]
    unknown = [flag for flag in flags if flag not in path.read_text()]
    return f'{script} knows no {", ".join(unknown)}' if unknown else None
  # absl's own flag: parse and check everything, run nothing.
  check = [] if '--help' in arguments else ['--only_check_args']
  result = command_runner.run(script, *arguments, *check)
  # After --help absl ends with 1.
  is_right = result.code == 0 or (not check and result.stdout)
  return None if is_right else result.stderr


@pytest.mark.parametrize('page', PAGES, ids=name_of)
def test_links_lead_somewhere(page):
  problems = [problem_with(page, target) for target in links(page.read_text())]
  assert not [problem for problem in problems if problem]


def test_every_page_is_in_the_index():
  index = ROOT / 'docs' / 'index.md'
  linked = {(index.parent / t).resolve() for t in links(index.read_text())}
  assert linked >= set(PAGES) - {index}


@pytest.mark.parametrize('page', [*PAGES, *PRESETS], ids=name_of)
def test_commands_are_right(page):
  problems = {
    ' '.join(words): problem_with_command(words)
    for words in commands(page.read_text())
  }
  assert not {k: v for k, v in problems.items() if v}


def test_the_two_commands_are_in_the_readme():
  found = [words[1] for words in commands((ROOT / 'README.md').read_text())]
  assert {'scripts/quickstart.sh', 'scripts/check.sh'} <= set(found)


@pytest.mark.parametrize(
  ('target', 'problem'),
  [
    ('docs/index.md', None),
    ('docs/architecture.md#layers', None),
    ('docs/architecture.md#no-such-thing', 'no such heading'),
    ('docs/no_such_page.md', 'no such file'),
    ('../main_is_not_here', 'no such file'),
    ('..', 'outside the repository'),
  ],
)
def test_the_link_test_sees_what_it_should(target, problem):
  found = problem_with(ROOT / 'README.md', target)
  assert (found or 'None').endswith(str(problem))


@pytest.mark.parametrize(
  ('text', 'problem'),
  [
    ('`python scripts/train.py --seed=2`', None),
    ('```\npython scripts/train.py \\\n  --seed=2\n```', None),
    ('`bash scripts/check.sh -m slow`', None),
    ('`python scripts/no_such.py`', 'there is no scripts/no_such.py'),
    ('`bash scripts/check.sh --fast`', 'check.sh knows no --fast'),
    ('`python scripts/train.py --sed=2`', "Unknown command line flag 'sed'"),
    ('`python scripts/train.py \\\n --batch_size=0`', '--batch_size is 0'),
    ('`python scripts/train.py --flagfile=no`', 'Unable to open flagfile'),
  ],
  ids=lambda value: None if value is None else str(value)[-40:],
)
def test_the_command_test_sees_what_it_should(text, problem):
  (words,) = commands(text)
  assert str(problem) in (problem_with_command(words) or 'None')
