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
"""One HTML page that needs nothing else: its pictures are inside."""

import base64
import html
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p { max-width: 46rem; } p.note { color: #555; }
img { max-width: 100%; height: auto; }
div.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .22rem .55rem; text-align: left; white-space: nowrap; }
th { border-bottom: 1.5px solid #555; }
td { border-bottom: 1px solid #e4e4e4; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.wide { white-space: normal; min-width: 14rem; }
"""
_WIDE = 40


class Table(NamedTuple):
  """Rows below names; numbers are set right, NaN and None are left empty.

  columns: `[C]`, their names.
  rows: `[R][C]`, text or numbers.
  """

  columns: Sequence[str]
  rows: Sequence[Sequence[Any]]


class Section(NamedTuple):
  """A part of the page.

  title: its heading.
  text: one paragraph that says what is seen; plain text.
  picture: path of a PNG; None if there is none.
  table: None if there is none.
  """

  title: str
  text: str
  picture: str | None = None
  table: Table | None = None


def render(title: str, text: str, sections: Sequence[Section]) -> str:
  """The page as text; pictures are read now and are part of it."""
  parts = [
    '<!DOCTYPE html>',
    '<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    f'<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>',
    f'<h1>{html.escape(title)}</h1><p>{html.escape(text)}</p>',
  ]
  for section in sections:
    parts.append(f'<h2>{html.escape(section.title)}</h2>')
    parts.append(f'<p class="note">{html.escape(section.text)}</p>')
    if section.picture is not None:
      parts.append(_image(section.picture, section.title))
    if section.table is not None:
      parts.append(_table(section.table))
  parts.append('</body></html>')
  return '\n'.join(parts) + '\n'


def cell(value: Any) -> str:
  """A value as tables show it: four digits, or all of a whole number."""
  if value is None or (isinstance(value, float) and math.isnan(value)):
    return ''
  if isinstance(value, float) and abs(value) >= 1000:
    return f'{value:,.0f}'
  if isinstance(value, float):
    return f'{value:.4g}'
  if isinstance(value, int) and not isinstance(value, bool):
    return f'{value:,}'
  return str(value)


def _image(path: str, title: str) -> str:
  with open(path, 'rb') as file:
    data = base64.b64encode(file.read()).decode()
  return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'


def _table(table: Table) -> str:
  numeric = [
    all(isinstance(row[i], int | float | None) for row in table.rows)
    for i in range(len(table.columns))
  ]
  head = ''.join(
    f'<th{" class=number" if is_number else ""}>{html.escape(name)}</th>'
    for name, is_number in zip(table.columns, numeric, strict=True)
  )
  lines = [f'<div class="table"><table><tr>{head}</tr>']
  for row in table.rows:
    cells = []
    for value, is_number in zip(row, numeric, strict=True):
      text = cell(value)
      kind = 'number' if is_number else 'wide' if len(text) > _WIDE else ''
      cells.append(
        f'<td{f" class={kind}" if kind else ""}>{html.escape(text)}</td>'
      )
    lines.append(f'<tr>{"".join(cells)}</tr>')
  lines.append('</table></div>')
  return '\n'.join(lines)
