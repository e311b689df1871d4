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
import io
import re
import sys

import pytest
import rich.console
from absl import logging

from scalable_agent import console


class Clock:
  """Stands still until it is told."""

  def __init__(self):
    self.secs = 0.0

  def __call__(self) -> float:
    return self.secs


class BrokenPipe(io.StringIO):
  def write(self, text):
    raise BrokenPipeError


def make_writer(total_frames=1000, *, terminal, width=80, file=None):
  """A writer, its clock, and the file it writes to."""
  clock = Clock()
  file = file or io.StringIO()
  target = rich.console.Console(
    file=file, force_terminal=terminal, color_system=None, width=width
  )
  writer = console.ConsoleWriter(
    total_frames, console=target, clock=clock, line_secs=10.0
  )
  return writer, clock, file


def drawn(file: io.StringIO) -> list[str]:
  """The states of the live line, one after another."""
  text = re.sub(r'\x1b\[\??[0-9;]*[a-zA-Z]', '', file.getvalue())
  return [line for line in re.split('[\r\n]+', text) if line.strip()]


def last_line(total_frames, env_frames, metrics, *, width=80, secs=100.0):
  """What stands on a terminal after two writes `secs` apart."""
  writer, clock, file = make_writer(total_frames, terminal=True, width=width)
  writer.write(0, {})
  clock.secs = secs
  writer.write(env_frames, metrics)
  writer.close()
  return drawn(file)[-1]


def test_a_file_gets_plain_lines_now_and_then():
  writer, clock, file = make_writer(1000, terminal=False)
  for step in range(25):
    clock.secs = float(step)
    writer.write(40 * step, {'frames_per_sec': 40.0})
  writer.close()
  assert file.getvalue().splitlines() == [
    '  0%  0/1k frames  40/s',
    ' 40%  400/1k frames  40/s  15s left',
    ' 80%  800/1k frames  40/s  5s left',
    ' 96%  960/1k frames  40/s  1s left',
  ]


def test_a_terminal_gets_one_line():
  line = last_line(
    200_000_000,
    12_345_678,
    {
      'frames_per_sec': 5512.4,
      'atari/pong/episode_return': -18.44,
      'policy_lag_mean': 1.26,
    },
    secs=2000.0,
  )
  assert re.sub('[━╸╺]+ +', '## ', line) == (
    '  6% ## 12.3M/200M frames  5,512/s  return -18.4  lag 1.3  8h 26m left'
  )
  assert len(line) == 79


def test_metrics_not_mentioned_keep_their_value():
  writer, clock, file = make_writer(1000, terminal=True)
  writer.write(0, {'catch/episode_return': 0.5, 'policy_lag_mean': 2.0})
  clock.secs = 10.0
  writer.write(500, {'policy_lag_mean': 3.0})
  assert 'return 0.5  lag 3.0' in drawn(file)[-1]


def test_histograms_are_not_shown():
  writer, _, file = make_writer(1000, terminal=True)
  writer.write(500, {'log_rho': [0.0, 1.0], 'frames_per_sec': 3.0})
  assert drawn(file)[-1].endswith('500/1k frames  3/s')


@pytest.mark.parametrize(
  ('levels', 'shown'),
  [
    ({'atari/pong': 3.0}, 'return 3.0'),
    ({'atari/pong': 3.0, 'atari/qbert': 12_345.0}, 'pong 3.0, qbert 12,345'),
    ({'gym/[red]': 1.0, 'gym/[/]': 2.0}, '[red] 1.0, ] 2.0'),
    ({f'level_{i}': float(i) for i in range(30)}, 'return 14.5 (30 levels)'),
  ],
  ids=['one', 'two', 'not markup', 'thirty'],
)
def test_returns_of(levels, shown):
  line = last_line(
    1000, 500, {f'{k}/episode_return': v for k, v in levels.items()}
  )
  assert f'  {shown}  ' in line


@pytest.mark.parametrize('width', [120, 80, 60, 50, 40, 30, 20])
def test_the_line_never_wraps(width):
  metrics = {'frames_per_sec': 5512.0, 'policy_lag_mean': 1.0}
  metrics |= {f'a/level_{i}/episode_return': -1234.5 for i in range(3)}
  line = last_line(10**9, 10**8, metrics, width=width)
  assert len(line) <= width
  assert line.startswith(' 10%')


@pytest.mark.parametrize(
  ('width', 'shown'),
  [
    (80, '55/s  first 1.0, second 2.0, third 3.0  lag 1.0  1m 40s left'),
    (79, '55/s  return 2.0 (3 levels)  lag 1.0  1m 40s left'),
    (68, '55/s  return 2.0 (3 levels)  1m 40s left'),
    (59, '55/s  return 2.0 (3 levels)'),
    (46, 'return 2.0 (3 levels)'),
    (40, ''),
  ],
  ids=str,
)
def test_what_gives_way_on_a_narrow_terminal(width, shown):
  metrics = {'frames_per_sec': 55.0, 'policy_lag_mean': 1.0}
  for i, level in enumerate(('first', 'second', 'third')):
    metrics[f'a/{level}/episode_return'] = i + 1.0
  line = last_line(1000, 500, metrics, width=width)
  assert line.partition('500/1k frames')[2].strip() == shown


@pytest.mark.parametrize(
  ('secs', 'shown'),
  [
    (59.4, 'in 59s'),
    (125.0, 'in 2m 05s'),
    (3 * 3600 + 120, 'in 3h 02m'),
    (50 * 3600, 'in 2d 02h'),
  ],
  ids=str,
)
def test_the_end_says_how_long_it_took(secs, shown):
  assert last_line(1000, 1040, {}, secs=secs).endswith(f'  {shown}')


@pytest.mark.parametrize(
  ('count', 'shown'),
  [
    (0, '0'),
    (999, '999'),
    (1000, '1k'),
    (12_800, '12.8k'),
    (999_999, '999k'),
    (1_234_567, '1.23M'),
    (200_000_000, '200M'),
    (11_400_000_000, '11.4B'),
  ],
)
def test_counts_are_short(count, shown):
  assert f' {shown}/50B frames' in last_line(5 * 10**10, count, {})


def test_a_broken_pipe_does_not_end_the_run():
  writer, _, _ = make_writer(1000, terminal=False, file=BrokenPipe())
  writer.write(1, {})
  writer.close()


def test_without_writes_nothing_is_shown():
  writer, _, file = make_writer(terminal=False)
  writer.close()
  assert file.getvalue() == ''


def test_logs_appear_above_the_live_line(monkeypatch):
  handler = logging.get_absl_handler().python_handler
  monkeypatch.setattr(handler, 'stream', sys.stderr)
  before = sys.stderr
  writer, _, file = make_writer(terminal=True)
  writer.write(100, {})
  handler.stream.write('something happened\n')
  writer.close()
  assert handler.stream is before
  assert 'something happened' in drawn(file)
  assert drawn(file)[-1].startswith(' 10%')


def test_closing_twice_is_fine():
  writer, _, file = make_writer(terminal=True)
  writer.write(100, {})
  writer.close()
  shown = file.getvalue()
  writer.close()
  assert file.getvalue() == shown
