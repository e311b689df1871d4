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
"""The agent: torsos, core and heads, one code path for 1 and for T steps."""

from typing import Any, NamedTuple

import keras
import tensorflow as tf
import tensorflow_probability as tfp
import tree

from scalable_agent import config as config_lib
from scalable_agent import structs
from scalable_agent.nets import (
  axes,
  heads,
  instruction,
  layers,
  lstm,
  observations,
  torsos,
)
from scalable_agent.nets import frame_stack as frame_stack_lib

LSTM_SIZE = 256
_IMAGE_TORSOS = {
  'deep': torsos.DeepTorso,
  'shallow': torsos.ShallowTorso,
  'nature': torsos.NatureTorso,
}


class NetOutput(NamedTuple):
  """What the network says about each slot.

  policy_logits: `[T, B, P]` float32, parameters of the policy that chooses the
    action of the next slot.
  baseline: `[T, B]` float32, value of the slot's observation.
  """

  policy_logits: tf.Tensor
  baseline: tf.Tensor


class CoreState(NamedTuple):
  """What the network remembers between slots; `()` for what it has not.

  lstm: `lstm.LSTMState` of `[B, 256]` float32; reset by `done`.
  frames: `[B, frame_stack - 1, H, W]` or with `C` uint8, the frames before the
    slot, oldest first; reset by `first`.
  """

  lstm: Any
  frames: Any


class Agent(keras.Model):
  """The network of the paper, for any of the project's environments.

  Per slot: torso(s) of the observation, then the last reward clipped to
  [-1, 1], the last action (one-hot), the instruction; then an LSTM or nothing;
  then two linear heads, the policy's parameters and the baseline.

  `trainable_variables` are in this order, kernel before bias: each of
  `image_torsos`, `vector_torso`, `instruction_encoder` (embeddings, LSTM),
  `core`, `policy_logits`, `baseline`. Those that an agent has not are None.
  """

  def __init__(
    self,
    spec: structs.EnvironmentSpec,
    config: config_lib.AgentConfig,
    frame_stack: int = 1,
    seed: int = 0,
  ):
    """Makes the network with all its variables.

    Args:
      spec: what the environment shows and takes.
      config: which torso, core and extra inputs, and the precision.
      frame_stack: how many of the newest frames the torso sees at once; more
        than 1 needs exactly one uint8 image.
      seed: of the initial weights.
    """
    super().__init__(name='agent', dtype=config.precision)
    self._layout = observations.Layout(
      spec.observation, flatten_images=config.torso == 'mlp'
    )
    self._frame_stack = frame_stack
    self._standardize_images = config.standardize_images
    self._stacked_path = self._find_stacked()
    self._head = heads.head_for(spec.action)
    has_lstm = config.core == 'lstm' or (
      config.core == 'auto' and self._layout.has_instruction
    )
    self._use_last_action = _default(config.use_last_action, has_lstm)
    self._use_last_reward = _default(config.use_last_reward, has_lstm)
    seeds = layers.seeds_from(seed)
    with keras.name_scope(self.name):
      size = self._make_torsos(config, seeds)
      if has_lstm:
        self.core = lstm.LSTM(
          size, LSTM_SIZE, next(seeds), name='core', dtype=config.precision
        )
        size = LSTM_SIZE
      else:
        self.core = None
      # In float32 whatever the precision: half a float overflows at 65,504.
      self.policy_logits = layers.Linear(
        size, self._head.num_parameters, next(seeds), name='policy_logits'
      )
      self.baseline = layers.Linear(size, 1, next(seeds), name='baseline')
    self.built = True

  def initial_state(self, batch_size: int | tf.Tensor) -> CoreState:
    """The state before the first slot ever, of `batch_size` columns."""
    frames = ()
    if self._stacked_path is not None:
      frames = frame_stack_lib.initial_history(
        batch_size,
        self._layout.frame_shape(self._stacked_path),
        self._frame_stack,
      )
    return CoreState(
      lstm=self.core.initial_state(batch_size) if self.core else (),
      frames=frames,
    )

  # Nothing below needs AutoGraph, and without it tracing takes half the time.
  @tf.autograph.experimental.do_not_convert
  def unroll(
    self,
    actions: tf.Tensor,
    env_outputs: structs.EnvOutput,
    core_state: CoreState,
  ) -> tuple[NetOutput, CoreState]:
    """Consumes `T` slots.

    Args:
      actions: `[T, B, ...]`, those that led to `env_outputs`.
      env_outputs: of `[T, B, ...]`; `reward`, `done`, `first` and `observation`
        are read.
      core_state: before slot 0.

    Returns:
      The output for each slot, and the state after the last.
    """
    core_state = CoreState(*core_state)
    actions, reward, done, first = map(
      tf.convert_to_tensor,
      (actions, env_outputs.reward, env_outputs.done, env_outputs.first),
    )
    leaves = self._layout.checked(env_outputs.observation)
    axes.check(
      actions=actions,
      reward=reward,
      done=done,
      first=first,
      **{
        f'observation {observations.name_of(path)}': leaf
        for path, leaf in leaves.items()
      },
    )
    frames = ()
    if self._stacked_path is not None:
      leaves[self._stacked_path], frames = frame_stack_lib.stack_decoded(
        leaves[self._stacked_path],
        first,
        tf.convert_to_tensor(core_state.frames),
        self.compute_dtype,
      )
    leaves = {path: axes.fold(leaf) for path, leaf in leaves.items()}
    features = self._features(leaves, axes.fold(reward), axes.fold(actions))
    lstm_state = ()
    if self.core is not None:
      outputs, lstm_state = self.core.unroll(
        axes.unfold(features, done),
        done,
        lstm.LSTMState(*map(tf.convert_to_tensor, core_state.lstm)),
      )
      features = axes.fold(outputs)
    features = tf.cast(features, tf.float32)
    output = NetOutput(
      policy_logits=axes.unfold(self.policy_logits(features), done),
      baseline=axes.unfold(tf.squeeze(self.baseline(features), axis=-1), done),
    )
    return output, CoreState(lstm_state, frames)

  @tf.autograph.experimental.do_not_convert
  def step(
    self,
    actions: tf.Tensor,
    env_output: structs.EnvOutput,
    core_state: CoreState,
  ) -> tuple[NetOutput, CoreState]:
    """`unroll` for one slot, without the time axis: `[B, ...]`."""
    env_output = env_output._replace(
      reward=axes.add_time(env_output.reward),
      done=axes.add_time(env_output.done),
      first=axes.add_time(env_output.first),
      observation=tree.map_structure(axes.add_time, env_output.observation),
    )
    output, core_state = self.unroll(
      axes.add_time(actions), env_output, core_state
    )
    return NetOutput(*(leaf[0] for leaf in output)), core_state

  def distribution(
    self, policy_logits: tf.Tensor
  ) -> tfp.distributions.Distribution:
    """The policy over actions `[...]` with parameters `[..., P]`."""
    return self._head.distribution(tf.convert_to_tensor(policy_logits))

  def _find_stacked(self):
    """Path of the image whose frames are stacked, or None."""
    if self._frame_stack == 1:
      return None
    paths = self._layout.stackable_paths
    if len(paths) != 1:
      raise ValueError(
        f'frame_stack is {self._frame_stack}, but the observation has '
        f'{len(paths)} uint8 images; stack the frames of exactly one, or set '
        'frame_stack=1.'
      )
    return paths[0]

  def _make_torsos(self, config, seeds):
    """Makes the torsos; returns the number of features for the core."""
    image_shapes = self._layout.image_shapes(self._frame_stack)
    if config.torso in _IMAGE_TORSOS and not image_shapes:
      raise ValueError(
        f'torso is {config.torso!r}, but the observation has no image; set '
        "torso='mlp' or 'auto'."
      )
    kind = _IMAGE_TORSOS.get(config.torso, torsos.DeepTorso)
    self.image_torsos = tuple(
      kind(shape, seeds, name=f'image_torso_{i}', dtype=config.precision)
      for i, shape in enumerate(image_shapes)
    )
    size = kind.NUM_FEATURES * len(image_shapes)
    self.vector_torso = None
    vector_size = self._layout.vector_size(self._frame_stack)
    if vector_size:
      self.vector_torso = torsos.MLPTorso(
        vector_size, seeds, name='vector_torso', dtype=config.precision
      )
      size += self.vector_torso.NUM_FEATURES
    self.instruction_encoder = None
    if self._layout.has_instruction:
      self.instruction_encoder = instruction.InstructionEncoder(
        seeds, dtype=config.precision
      )
      size += instruction.NUM_FEATURES
    size += self._use_last_reward
    return size + self._use_last_action * self._head.encoded_size

  def _features(self, leaves, reward, actions):
    """`[T * B, F]`: torsos, last reward, last action, instruction."""
    inputs = self._layout.features(leaves, self.compute_dtype)
    images = inputs.images
    if self._standardize_images:
      images = [layers.standardize(image) for image in images]
    features = [
      torso(image)
      for torso, image in zip(self.image_torsos, images, strict=True)
    ]
    if self.vector_torso is not None:
      features.append(self.vector_torso(inputs.vector))
    if self._use_last_reward:
      features.append(tf.clip_by_value(reward, -1, 1)[:, tf.newaxis])
    if self._use_last_action:
      features.append(self._head.encode(actions))
    if self.instruction_encoder is not None:
      features.append(self.instruction_encoder.encode(inputs.instruction))
    return tf.concat(
      [tf.cast(feature, self.compute_dtype) for feature in features], axis=-1
    )


def _default(value, default):
  return default if value is None else value
