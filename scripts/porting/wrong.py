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
"""What ports put into the kit's arrays that make a mistake, in NumPy.

Each function gives one, computed from the arrays of a stage: a function from a
`kit.Stage` to an array. `mistakes` says which mistake it is.
"""

import zlib

import numpy as np

from porting import numpy_layers, reference


def vtrace(case, output, **changed):
  """V-trace of a case with other settings or inputs; callables get the case."""

  def wrong(stage):
    given = {**stage.cases[case], **stage.part(case, 'input')}
    for name, value in changed.items():
      given[name] = value(given) if callable(value) else value
    return reference.vtrace(**given)[output]

  return wrong


def _gamma(given):
  return given['discounts'].max()


def ends_late(given):
  """Discounts, one transition later."""
  late = np.roll(given['discounts'], 1, axis=0)
  late[0] = _gamma(given)
  return late


def no_last_end(given):
  """Discounts without the end of the last transition."""
  discounts = given['discounts'].copy()
  discounts[-1] = _gamma(given)
  return discounts


def deaths(given):
  """Discounts that are 0 at time limits."""
  return np.where(given['truncations'], 0, given['discounts'])


def advantages_of_values(stage):
  """Advantages over V(x_{t+1})."""
  given = stage.part('off_policy', 'input')
  following = np.append(given['values'][1:], [given['bootstrap_value']], axis=0)
  rhos = np.minimum(np.exp(given['log_rhos']), 1)
  return rhos * (
    given['rewards'] + given['discounts'] * following - given['values']
  )


def printed_reward_clipping(stage):
  """The formula in the caption of figure D.1."""
  rewards = stage.arrays['reward_clipping/input/rewards']
  squeezed = np.tanh(rewards)
  return 0.3 * np.minimum(squeezed, 0) + 5 * np.maximum(squeezed, 0)


def scaled(key, factor):
  """The array times what `factor` makes of the stage."""
  return lambda stage: stage.arrays[key] * factor(stage)


def gradient_through_targets(stage):
  """Of the baseline loss, by central differences."""
  given = stage.part('plain', 'input')
  values = given['values'].astype(np.float64)
  log_rhos = reference.action_log_probs(
    given['target_policy_logits'], given['actions']
  ) - reference.action_log_probs(
    given['behaviour_policy_logits'], given['actions']
  )
  steps = [given[n] for n in ('discounts', 'rewards')]

  def loss(values):
    vs, _ = reference.vtrace(log_rhos, *steps, values, given['bootstrap_value'])
    return 0.5 * np.sum((vs - values) ** 2)

  gradient = np.zeros_like(values)
  for index in np.ndindex(values.shape):
    shift = np.zeros_like(values)
    shift[index] = 1e-4
    gradient[index] = (loss(values + shift) - loss(values - shift)) / 2e-4
  return gradient


def rmsprop(case, name, start=1.0, outside=False, clip_alone=False):
  """Variables after each update of an RMSProp that is not TensorFlow 1's."""

  def wrong(stage):
    settings = stage.cases[case]
    value = stage.arrays[f'{case}/weight/{name}'].astype(np.float64)
    square, momentum = np.full_like(value, start), np.zeros_like(value)
    results = []
    for k, gradient in enumerate(_gradients(stage, case, name)):
      if settings['clip_gradient_norm'] is not None:
        norm = stage.arrays[f'{case}/output/gradient_norm'][k]
        norm = np.linalg.norm(gradient) if clip_alone else norm
        gradient = gradient * min(1, settings['clip_gradient_norm'] / norm)
      square = square + (1 - settings['decay']) * (gradient**2 - square)
      root = np.sqrt(square + settings['epsilon'])
      if outside:
        root = np.sqrt(square) + settings['epsilon']
      step = settings['learning_rate'] * gradient / root
      momentum = settings['momentum'] * momentum + step
      value = value - momentum
      results.append(value)
    return np.stack(results)

  return wrong


def _gradients(stage, case, name):
  given = stage.part(case, 'input')
  if case != 'sparse':
    return given[f'gradients/{name}']
  shape = stage.arrays[f'{case}/weight/{name}'].shape
  dense = np.zeros((len(given['rows']), *shape))
  for k, rows in enumerate(given['rows']):
    dense[k, rows] = given['row_gradients'][k]
  return dense


def learning_rates(frames_per_update):
  """Rates by other frames per update, of (T, B, repeats)."""

  def wrong(stage):
    case = stage.cases['learning_rate']
    frames = stage.arrays['learning_rate/input/updates'] * frames_per_update(
      case['unroll_length'], case['batch_size'], case['action_repeats']
    )
    share = 1 - frames / case['total_environment_frames']
    return case['initial'] * np.maximum(share, 0)

  return wrong


LAYER = 'unroll/output/layers/agent/'
WEIGHT = 'unroll/weight/agent/'
TORSO = 'image_torso_0/'


def bytes_as_pixels(stage):
  """The first convolution of pixels from 0 to 255."""
  bias = stage.arrays[f'{WEIGHT}{TORSO}conv_0/bias']
  return 255 * (stage.arrays[f'{LAYER}{TORSO}conv_0'] - bias) + bias


def pool_padded_alike(stage):
  """The first pooling with a border of one all around."""
  images = stage.arrays[f'{LAYER}{TORSO}section_0/conv']
  return numpy_layers.max_pool(images, before=1)


def linear_of(change):
  """The deep torso's linear layer after `change` of the last block."""

  def wrong(stage):
    images = change(stage.arrays[f'{LAYER}{TORSO}section_2/block_1'])
    weights = [
      stage.arrays[f'{WEIGHT}{TORSO}linear/{n}'] for n in ('kernel', 'bias')
    ]
    return images.reshape(len(images), -1) @ weights[0] + weights[1]

  return wrong


def core(**changed):
  """The outputs of the LSTM with a switch of `numpy_layers.lstm` turned."""

  def wrong(stage):
    given = stage.part('unroll', 'input')
    outputs, _ = numpy_layers.lstm(
      stage.arrays[f'{LAYER}core/input'],
      given['done'],
      (given['core_state/c'], given['core_state/h']),
      stage.arrays[f'{WEIGHT}core/kernel'],
      stage.arrays[f'{WEIGHT}core/bias'],
      **changed,
    )
    return outputs

  return wrong


def reward_as_it_is(stage):
  """Inputs of the core with the raw reward."""
  features = stage.arrays[f'{LAYER}core/input'].copy()
  features[..., 256] = stage.arrays['unroll/input/rewards']
  return features


def action_not_fed(stage):
  """Inputs of the core with the actions of the slots that follow."""
  features = stage.arrays[f'{LAYER}core/input'].copy()
  actions = np.roll(stage.arrays['unroll/input/actions'], -1, axis=0)
  features[..., 257:] = np.eye(features.shape[-1] - 257)[actions]
  return features


def newest_first(stage):
  """Stacks of frames in reverse."""
  return stage.arrays[f'{LAYER}{TORSO}input'][..., ::-1]


def old_frames(stage):
  """Stacks of frames across the starts of episodes."""
  given = stage.part('unroll', 'input')
  frames = given['observation/observation']
  history = np.swapaxes(given['core_state/frames'], 0, 1)
  timeline = np.concatenate([history, frames])
  stacks = [timeline[age : age + len(frames)] for age in range(4)]
  return np.stack(stacks, -1).reshape(-1, *frames.shape[2:], 4) / 255


def last_of_padded(stage):
  """The last output of the instruction LSTM, whatever the length."""
  return stage.arrays[f'{LAYER}instruction_encoder/lstm'][-1]


def other_hash(stage):
  """Buckets by CRC-32."""
  words = stage.arrays['words/input/words']
  return np.array([zlib.crc32(str(w).encode()) % 1000 for w in words])


def unshifted(name):
  """Rewards or log-ratios of slots 0 to T - 1."""

  def wrong(stage):
    given = stage.part('original', 'input')
    if name == 'rewards':
      return reference.clip_rewards(given['rewards'][:-1], 'soft_asymmetric')
    actions, logits = given['actions'], given['behaviour_policy_logits']
    target = stage.arrays['original/output/policy_logits']
    return reference.action_log_probs(
      target[:-1], actions[:-1]
    ) - reference.action_log_probs(logits[:-1], actions[:-1])

  return wrong


def stream(name, change):
  """Stage, array and computation for a mistake in the stream."""
  return (
    'stream',
    f'counting/output/{name}',
    lambda stage: change(stage.part('counting', 'output')),
  )


def no_overlap(out):
  """Actions of unrolls that share no slot."""
  num_unrolls, num_slots, num_envs = out['action'].shape
  slots = np.arange(num_unrolls * num_slots).reshape(num_unrolls, num_slots, 1)
  return np.repeat(slots, num_envs, axis=-1)


def last_observations(out):
  """Observations with the last one of each episode."""
  last = np.stack(
    [out['observation'][..., 0] - 1, out['episode_step']], axis=-1
  )
  begins = out['first'] & (out['episode_step'] > 0)
  return np.where(begins[..., np.newaxis], last, out['observation'])


def state_after_slot_0(out):
  """Core states one slot too late."""
  kept = np.where(out['done'][:, 0], 0, out['core_state'])
  return kept + out['observation'][:, 0, :, 1] + 1


def value_of_next_episode(out):
  """Values of the slot where those of the last observation belong."""
  return np.where(out['truncated'], 1.0, out['truncation_values'])


PLAIN = 'plain/output/'
ACTIONS = 'plain/input/actions'
LINEAR_STDDEV = f'fresh/output/stddev/agent/{TORSO}linear/kernel'
