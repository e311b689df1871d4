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
"""The Python in `docs/algorithm.md` runs, and says the truth."""

import pathlib
import re

DOCUMENT = pathlib.Path(__file__).parents[1] / 'docs' / 'algorithm.md'


def test_the_document_is_one_program_that_runs():
  text = DOCUMENT.read_text()
  # Blank lines for prose, so that a failure shows the document's line.
  program, position = '', 0
  for block in re.finditer(r'^```python\n(.*?)^```$', text, re.M | re.S):
    program += '\n' * text.count('\n', position, block.start(1))
    program += block[1]
    position = block.end(1)

  assert program.count('assert') > 10
  exec(compile(program, str(DOCUMENT), 'exec'), {})
