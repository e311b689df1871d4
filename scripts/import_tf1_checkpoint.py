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
"""Turns a TensorFlow 1 checkpoint of the original into one of this project.

    python scripts/import_tf1_checkpoint.py \
      --tf1_checkpoint=/tmp/agent/model.ckpt-1000000 --logdir=/tmp/imported

Weights, optimizer slots and the frame counter are taken over; training with the
same --logdir goes on from there. --width, --height, --num_action_repeats,
--batch_size and --unroll_length are those of the original run.
"""

import os

import config_flags
from absl import flags

from scalable_agent import checkpoint, config, episodes

flags.DEFINE_string(
  'tf1_checkpoint',
  None,
  "The original's checkpoint: a prefix such as model.ckpt-1000, or the "
  'directory that holds it. Required.',
  required=True,
)
config_flags.define()


def main(settings: config.Config) -> None:
  """Imports; prints what was imported to where."""
  logdir = settings.run.logdir
  checkpointer = checkpoint.Checkpointer(
    logdir, keep=settings.run.checkpoints_kept
  )
  try:
    if checkpointer.latest() is not None:
      raise ValueError(
        f'{logdir} has checkpoints already; name a new directory.'
      )
    path = import_checkpoint(flags.FLAGS.tf1_checkpoint, settings, checkpointer)
  except (ValueError, OSError) as error:
    config_flags.fail(str(error))
  saved = checkpoint.read(path)
  print(
    f'Imported {len(saved.arrays)} arrays at frame '
    f'{saved.counters["learner"]["env_frames"]:,} into {path}.'
  )


def import_checkpoint(
  tf1_checkpoint: str,
  settings: config.Config,
  checkpointer: checkpoint.Checkpointer,
) -> str:
  """Reads the original's checkpoint and saves ours; returns its path."""
  import tensorflow as tf

  from scalable_agent.nets import tf1_weights

  learner = _make_learner(settings)
  env_frames = tf.Variable(0, dtype=tf.int64)
  checkpoint.assign_all(
    tf1_weights.variables_by_original_name(
      learner.agent.trainable_variables, learner.optimizer.slots, env_frames
    ),
    tf1_weights.read(tf1_checkpoint),
  )
  learner.env_frames = int(env_frames.numpy())
  learner.num_updates = learner.env_frames // learner.frames_per_batch
  arrays, counters = learner.state()
  return checkpointer.save(
    arrays,
    {
      'learner': counters,
      'episodes': episodes.EpisodeLog([]).state(),
      'num_starts': 0,
    },
  )


def _make_learner(settings):
  """A learner for DeepMind Lab; unset settings are the original's."""
  from scalable_agent import learner
  from scalable_agent.dmlab30 import environment
  from scalable_agent.dmlab30 import settings as lab_settings
  from scalable_agent.nets import agent

  lab = lab_settings.LabSettings(
    width=settings.task.width or 96,
    height=settings.task.height or 72,
    num_action_repeats=settings.task.num_action_repeats or 4,
  )
  spec = environment.LabFactory('explore_goal_locations_small', lab).spec
  return learner.Learner(
    agent.Agent(spec, settings.agent), settings.learner, spec.frames_per_step
  )


if __name__ == '__main__':
  # TensorFlow's own log says nothing that concerns the user here.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
  config_flags.run(main)
