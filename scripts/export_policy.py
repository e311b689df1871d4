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
"""Writes the policy of a run as a SavedModel, for other programs.

    python scripts/export_policy.py --logdir=/tmp/catch --output=/tmp/policy

The newest checkpoint becomes a TensorFlow SavedModel with two signatures:
`initial_state` gives the state of fresh episodes, `step` consumes what the
environment said and gives actions and the next state. `policy.json` beside it
describes their inputs and outputs, and how the environment was prepared. With
--onnx, `policy.onnx` is `step` for ONNX runtimes. See docs/porting.md.
"""

import importlib.util
import json
import os
from collections.abc import Sequence
from typing import Any

import config_flags
from absl import app, flags, logging

from scalable_agent import checkpoint, run_record, tasks
from scalable_agent.runtime import devices

FORMAT_VERSION = 1
DESCRIPTION_FILE = 'policy.json'
ONNX_FILE = 'policy.onnx'

# What of the environment's preparation the policy depends on.
_PREPARATION = """level_name num_action_repeats width height frame_stack
  grayscale max_pool full_action_set""".split()


def define_flags() -> None:
  """Defines this script's flags."""
  flags.DEFINE_string(
    'logdir', None, 'Directory of the run. Required.', required=True
  )
  flags.DEFINE_string(
    'output', None, 'Directory for the SavedModel. Required.', required=True
  )
  flags.DEFINE_boolean(
    'onnx', False, "Write policy.onnx too; needs `pip install '.[onnx]'`."
  )


def main(argv: Sequence[str]) -> None:
  """Exports and says what."""
  if len(argv) > 1:
    config_flags.fail(
      f'{argv[1]!r} is not a flag; flags look like --name=value.'
    )
  output = flags.FLAGS.output
  if os.path.isdir(output) and os.listdir(output):
    config_flags.fail(f'{output} is not empty; name a new directory.')
  try:
    described = export(flags.FLAGS.logdir, output, flags.FLAGS.onnx)
  except (ValueError, OSError) as error:
    config_flags.fail(str(error))
  print(f'Wrote {described["checkpoint"]} as a SavedModel to {output}.')
  for name, signature in described['signatures'].items():
    print(f'{name}: {", ".join(signature["inputs"])}')
    print(f'  -> {", ".join(signature["outputs"])}')


def export(logdir: str, output: str, onnx: bool = False) -> dict[str, Any]:
  """Writes the SavedModel and its description, which is returned.

  Raises:
    ValueError: there is no run in `logdir`, its checkpoint does not fit, or
      ONNX is asked for and not possible.
    FileNotFoundError: the run has no checkpoint.
  """
  if onnx and importlib.util.find_spec('tf2onnx') is None:
    raise ValueError(
      "--onnx needs tf2onnx, which is not installed; pip install '.[onnx]'."
    )
  settings = run_record.load_config(logdir)
  saved = checkpoint.Checkpointer(logdir).restore_required()
  task = tasks.make_task(settings, 'test')
  spec = task.spec()
  devices.prepare()
  # Only now: they load TensorFlow.
  from exporting import saved_policy

  from scalable_agent import learner
  from scalable_agent.nets import agent as agent_lib

  agent = agent_lib.Agent(spec, settings.agent, frame_stack=task.frame_stack)
  learner.load_agent(agent, saved.arrays)
  policy = saved_policy.SavedPolicy(agent, spec)
  logging.set_verbosity(logging.WARNING)  # Names are changed, says INFO.
  policy.save(output)
  if onnx:
    policy.save_onnx(os.path.join(output, ONNX_FILE))
  described = {
    'format_version': FORMAT_VERSION,
    'checkpoint': saved.path,
    'env_frames': saved.counters['learner']['env_frames'],
    'frames_per_step': spec.frames_per_step,
    'preparation': {
      name: getattr(settings.task, name) for name in _PREPARATION
    },
    'actions': policy.describe_actions(),
    'signatures': policy.describe(),
  }
  with open(
    os.path.join(output, DESCRIPTION_FILE), 'w', encoding='utf-8'
  ) as file:
    json.dump(described, file, indent=2)
    file.write('\n')
  return described


if __name__ == '__main__':
  define_flags()
  app.run(main, flags_parser=config_flags.parse)
