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
"""Runs a command and asks it to end when the process that started this ends.

    python -m scalable_agent.tuning.guard COMMAND [ARGUMENT...]

Standard input is a pipe of the starter. When it is closed, on purpose or
because the starter was killed, the command gets SIGTERM: a run then saves and
leaves.
"""

import os
import subprocess
import sys
import threading


def main() -> int:
  """Returns the command's exit code; 128 and the number of a fatal signal."""
  lock = int(os.environ.pop('SCALABLE_AGENT_TRIAL_LOCK'))
  # The command holds the lock too: it is free when both are gone.
  with subprocess.Popen(
    sys.argv[1:], stdin=subprocess.DEVNULL, pass_fds=[lock]
  ) as process:

    def end_together():
      sys.stdin.buffer.read()
      process.terminate()

    threading.Thread(target=end_together, daemon=True).start()
    code = process.wait()
  return code if code >= 0 else 128 - code


if __name__ == '__main__':
  # At once: the thread may still read standard input.
  os._exit(main())
