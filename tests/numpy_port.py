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
"""An implementation of IMPALA that knows nothing but the porting kit.

    PYTHONPATH=scripts python tests/numpy_port.py /tmp/kit /tmp/candidate

Reads the kit's inputs, weights and settings, computes every output in NumPy and
float64, gradients included, and writes them in the kit's layout. Neither
TensorFlow nor scalable_agent is imported. V-trace, losses and policies are
those of `scripts/porting/reference.py` and `reference_heads.py` beside it.
"""

import json
import os
import sys

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from porting import reference, reference_heads


class Node:
  """A value, and how gradients go back from it to what it came from."""

  def __init__(self, value, parents=()):
    self.value = value
    self.gradient = 0.0
    self._parents = parents  # Pairs of a node and a function of a gradient.

  def backward(self):
    """Fills the gradients of all that this node came from."""
    order, seen = [], set()

    def visit(node):
      if id(node) not in seen:
        seen.add(id(node))
        for parent, _ in node._parents:
          visit(parent)
        order.append(node)

    visit(self)
    for node in reversed(order):
      for parent, give in node._parents:
        parent.gradient = parent.gradient + give(node.gradient)


def conv(x, kernel, bias, stride=1, same=True):
  """Convolution of `[N, H, W, C]`, kernel HWIO."""
  size, padding = kernel.value.shape[0], [(0, 0)] * 4
  if same:
    padding = [
      (0, 0),
      *(same_padding(n, size, stride) for n in x.value.shape[1:3]),
      (0, 0),
    ]
  padded = np.pad(x.value, padding)
  windows = sliding_window_view(padded, (size, size), axis=(1, 2))
  windows = windows[:, ::stride, ::stride]  # [N, H', W', C, K, K].
  value = np.tensordot(windows, kernel.value, ([3, 4, 5], [2, 0, 1]))
  height, width = value.shape[1:3]

  def to_kernel(d):
    return np.tensordot(windows, d, ([0, 1, 2], [0, 1, 2])).transpose(
      1, 2, 0, 3
    )

  def to_x(d):
    d_padded = np.zeros_like(padded)
    for i in range(size):
      for j in range(size):
        d_padded[
          :, i : i + stride * height : stride, j : j + stride * width : stride
        ] += d @ kernel.value[i, j].T
    return crop(d_padded, padding)

  return Node(
    value + bias.value,
    [(x, to_x), (kernel, to_kernel), (bias, lambda d: d.sum((0, 1, 2)))],
  )


def max_pool(x):
  """Maximum over 3 x 3 with stride 2, padded as TensorFlow's SAME."""
  padding = [
    (0, 0),
    *(same_padding(n, 3, 2) for n in x.value.shape[1:3]),
    (0, 0),
  ]
  padded = np.pad(x.value, padding, constant_values=-np.inf)
  windows = sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::2, ::2]
  windows = windows.reshape(*windows.shape[:4], 9)
  height, width = windows.shape[1:3]
  best = windows.argmax(axis=-1)

  def to_x(d):
    d_padded = np.zeros_like(padded)
    for k in range(9):
      i, j = divmod(k, 3)
      part = d_padded[:, i : i + 2 * height : 2, j : j + 2 * width : 2]
      part += np.where(best == k, d, 0)
    return crop(d_padded, padding)

  return Node(windows.max(axis=-1), [(x, to_x)])


def same_padding(size, kernel, stride):
  """What SAME adds before and after; the odd one after."""
  total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
  return total // 2, total - total // 2


def crop(padded, padding):
  return padded[
    tuple(
      slice(before, n - after)
      for n, (before, after) in zip(padded.shape, padding, strict=True)
    )
  ]


def linear(x, kernel, bias):
  return Node(
    x.value @ kernel.value + bias.value,
    [
      (x, lambda d: d @ kernel.value.T),
      (kernel, lambda d: x.value.T @ d),
      (bias, lambda d: d.sum(0)),
    ],
  )


def relu(x):
  return Node(np.maximum(x.value, 0), [(x, lambda d: d * (x.value > 0))])


def add(x, y):
  return Node(x.value + y.value, [(x, lambda d: d), (y, lambda d: d)])


def reshape(x, *shape):
  return Node(x.value.reshape(shape), [(x, lambda d: d.reshape(x.value.shape))])


def concat(*nodes):
  """Along the last axis."""
  ends = np.cumsum([0, *(n.value.shape[-1] for n in nodes)])
  return Node(
    np.concatenate([n.value for n in nodes], axis=-1),
    [
      (n, lambda d, a=a, b=b: d[..., a:b])
      for n, a, b in zip(nodes, ends[:-1], ends[1:], strict=True)
    ],
  )


def gather(table, index):
  """Rows of a table."""

  def to_table(d):
    summed = np.zeros_like(table.value)
    np.add.at(summed, index, d)
    return summed

  return Node(table.value[index], [(table, to_table)])


def select(x, rows, columns):
  """`x[rows, columns]`."""

  def to_x(d):
    whole = np.zeros_like(x.value)
    whole[rows, columns] = d
    return whole

  return Node(x.value[rows, columns], [(x, to_x)])


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


def lstm(x, kernel, bias, resets, c, h):
  """`[T, B, H]` outputs; then the last c and h. No gradient to the state."""
  size_in, saved, outputs = x.value.shape[-1], [], []
  for t, reset in enumerate(resets):
    keep = 1.0 - reset[:, np.newaxis]
    past_c, past_h = c * keep, h * keep
    joined = np.concatenate([x.value[t], past_h], axis=-1)
    i, j, f, o = np.split(joined @ kernel.value + bias.value, 4, axis=-1)
    i, j, f, o = sigmoid(i), np.tanh(j), sigmoid(f + 1), sigmoid(o)
    c = f * past_c + i * j
    h = o * np.tanh(c)
    saved.append((joined, keep, past_c, c, i, j, f, o))
    outputs.append(h)
  cache = {}

  def gradients(d_outputs):
    if 'x' not in cache:
      d_x, d_kernel = np.zeros_like(x.value), np.zeros_like(kernel.value)
      d_bias, d_c, d_h = np.zeros_like(bias.value), 0.0, 0.0
      for t in reversed(range(len(saved))):
        joined, keep, past_c, c, i, j, f, o = saved[t]
        d_h = d_h + d_outputs[t]
        d_c = d_c + d_h * o * (1 - np.tanh(c) ** 2)
        d_gates = np.concatenate(
          [
            d_c * j * i * (1 - i),
            d_c * i * (1 - j**2),
            d_c * past_c * f * (1 - f),
            d_h * np.tanh(c) * o * (1 - o),
          ],
          axis=-1,
        )
        d_kernel += joined.T @ d_gates
        d_bias += d_gates.sum(0)
        d_joined = d_gates @ kernel.value.T
        d_x[t] = d_joined[:, :size_in]
        d_c, d_h = d_c * f * keep, d_joined[:, size_in:] * keep
      cache.update(x=d_x, kernel=d_kernel, bias=d_bias)
    return cache

  node = Node(
    np.stack(outputs),
    [
      (x, lambda d: gradients(d)['x']),
      (kernel, lambda d: gradients(d)['kernel']),
      (bias, lambda d: gradients(d)['bias']),
    ],
  )
  return node, (c, h)


class Network:
  """The networks of the kit, from their weights and settings."""

  def __init__(self, weights, settings):
    self.weights = {
      path: Node(value.astype(np.float64)) for path, value in weights.items()
    }
    self.settings = settings
    self.layers = {}
    self.rows_read = None

  def layer(self, function, path, x, **more):
    """A layer with a kernel and a bias; its output is kept."""
    parameters = [self.weights[f'agent/{path}/{n}'] for n in ('kernel', 'bias')]
    return self.keep(path, function(x, *parameters, **more))

  def keep(self, path, node):
    self.layers[f'layers/agent/{path}'] = node.value
    return node

  def unroll(self, inputs):
    """Nodes of logits and baselines, `[T, B, ...]`, and the last state."""
    shape = inputs['done'].shape
    features, state = [], {}
    for name, leaf in inputs.items():
      if name.startswith('observation/') and leaf.dtype.kind not in 'US':
        features.append(self.torso(leaf, inputs, state))
    if self.settings['core'] == 'lstm':
      reward = np.clip(inputs['rewards'], -1, 1).reshape(-1, 1)
      actions = np.eye(self.settings['num_actions'])[inputs['actions'].ravel()]
      features += [Node(reward.astype(np.float64)), Node(actions)]
    if 'observation/INSTR' in inputs:
      features.append(self.instructions(inputs['observation/INSTR'].ravel()))
    core = concat(*features)
    if self.settings['core'] == 'lstm':
      core, state = self.recur(reshape(core, *shape, -1), inputs)
      core = reshape(core, shape[0] * shape[1], -1)
    logits = self.layer(linear, 'policy_logits', core)
    baseline = self.layer(linear, 'baseline', core)
    return reshape(logits, *shape, -1), reshape(baseline, *shape), state

  def recur(self, x, inputs):
    self.keep('core/input', x)
    state = [inputs[f'core_state/{n}'].astype(np.float64) for n in 'ch']
    parameters = [self.weights[f'agent/core/{n}'] for n in ('kernel', 'bias')]
    outputs, (c, h) = lstm(x, *parameters, inputs['done'], *state)
    state = {'core_state/c': c, 'core_state/h': h}
    return self.keep('core', outputs), state

  def torso(self, observation, inputs, state):
    """`[T * B, 256]` features of one observation."""
    kind = self.settings['torso']
    if self.settings['frame_stack'] > 1:
      observation, frames = stack_frames(observation, inputs)
      state['core_state/frames'] = frames
    x = observation.reshape(-1, *observation.shape[2:]).astype(np.float64)
    x = Node(x / 255 if observation.dtype == np.uint8 else x)
    name = 'vector_torso' if kind == 'mlp' else 'image_torso_0'
    self.keep(f'{name}/input', x)
    x = {'mlp': self.mlp, 'shallow': self.shallow, 'deep': self.deep}[kind](
      x, name
    )
    return self.keep(name, x)

  def mlp(self, x, name):
    x = relu(self.layer(linear, f'{name}/linear_0', x))
    return relu(self.layer(linear, f'{name}/linear_1', x))

  def shallow(self, x, name):
    x = relu(self.layer(conv, f'{name}/conv_0', x, stride=4, same=False))
    x = relu(self.layer(conv, f'{name}/conv_1', x, stride=2, same=False))
    x = reshape(x, len(x.value), -1)
    return relu(self.layer(linear, f'{name}/linear', x))

  def deep(self, x, name):
    for s in range(3):
      section = f'{name}/section_{s}'
      x = max_pool(self.layer(conv, f'{section}/conv', x))
      self.keep(f'{section}/pool', x)
      for b in range(2):
        block = f'{section}/block_{b}'
        y = self.layer(conv, f'{block}/conv_0', relu(x))
        y = self.layer(conv, f'{block}/conv_1', relu(y))
        del self.layers[f'layers/agent/{block}/conv_1']
        x = self.keep(block, add(x, y))
    x = relu(x)
    x = reshape(x, len(x.value), -1)
    return relu(self.layer(linear, f'{name}/linear', x))

  def instructions(self, texts):
    """`[N, 64]`: the LSTM's output after the last word; zeros for none."""
    name = 'instruction_encoder'
    words = [[w for w in str(text).split(' ') if w] for text in texts]
    lengths = np.array([len(w) for w in words])
    num_words = max(lengths)
    buckets = np.full((num_words, len(words)), bucket(''))
    for n, line in enumerate(words):
      buckets[: len(line), n] = [bucket(w) for w in line]
    self.rows_read = np.unique(buckets)
    x = gather(self.weights[f'agent/{name}/embeddings'], buckets)
    self.keep(f'{name}/lstm/input', x)
    zeros = np.zeros((len(words), 64))
    parameters = [
      self.weights[f'agent/{name}/lstm/{n}'] for n in ('kernel', 'bias')
    ]
    resets = np.zeros(buckets.shape, bool)
    outputs, _ = lstm(x, *parameters, resets, zeros, zeros)
    self.keep(f'{name}/lstm', outputs)
    spoken = np.flatnonzero(lengths)
    last = select(outputs, lengths[spoken] - 1, spoken)
    value = zeros.copy()
    value[spoken] = last.value
    return self.keep(name, Node(value, [(last, lambda d: d[spoken])]))


def stack_frames(frames, inputs):
  """`[T, B, H, W, S]`, newest last, zeros before the episode's first."""
  first, history = (
    inputs['first'],
    list(inputs['core_state/frames'].swapaxes(0, 1)),
  )
  stacks = []
  for frame, begins in zip(frames, first, strict=True):
    keep = ~begins[:, np.newaxis, np.newaxis]
    history = [*(old * keep for old in history), frame]
    stacks.append(np.stack(history, axis=-1))
    history = history[1:]
  return np.stack(stacks), np.stack(history, axis=1)


def bucket(word, num_buckets=1000):
  """Fingerprint64 of FarmHash (google/farmhash), for up to 16 bytes."""
  text, mask = word.encode(), 2**64 - 1
  k0, k2 = 0xC3A5C85C97CB3127, 0x9AE16A3B2F90404F

  def fetch(start, size):
    return int.from_bytes(text[start : start + size], 'little')

  def rotate(x, n):
    return (x >> n | x << 64 - n) & mask

  def mix(u, v, factor):
    a = (u ^ v) * factor & mask
    a ^= a >> 47
    b = (v ^ a) * factor & mask
    b ^= b >> 47
    return b * factor & mask

  n = len(text)
  factor = k2 + 2 * n & mask
  if n > 16:
    raise NotImplementedError(f'{word!r} is longer than 16 bytes.')
  if n >= 8:
    a, b = fetch(0, 8) + k2 & mask, fetch(n - 8, 8)
    c = rotate(b, 37) * factor + a & mask
    d = (rotate(a, 25) + b) * factor & mask
    value = mix(c, d, factor)
  elif n >= 4:
    value = mix(n + (fetch(0, 4) << 3) & mask, fetch(n - 4, 4), factor)
  elif n > 0:
    y = text[0] + (text[n >> 1] << 8)
    z = n + (text[-1] << 2)
    value = y * k2 & mask ^ z * k0 & mask
    value = (value ^ value >> 47) * k2 & mask
  else:
    value = k2
  return value % num_buckets


def rmsprop(settings, weights, slots, gradients, rate, norm, rows):
  """One step in place; `rows`: those that change, by path, if not all."""
  clip = settings['clip_gradient_norm']
  scale = 1.0 if clip is None else clip / max(norm, clip)
  for path, gradient in gradients.items():
    touched = rows.get(path, slice(None))
    g = gradient[touched] * scale
    square, momentum = slots[path]
    square[touched] += (1 - settings['decay']) * (g**2 - square[touched])
    momentum[touched] = settings['momentum'] * momentum[touched] + rate * g / (
      np.sqrt(square[touched] + settings['epsilon'])
    )
    weights[path][touched] -= momentum[touched]


def fresh_slots(weights):
  return {p: (np.ones_like(w), np.zeros_like(w)) for p, w in weights.items()}


def global_norm(gradients):
  return np.sqrt(sum(np.sum(g**2) for g in gradients.values()))


def learning_rate(initial, frames, total):
  return initial * max(1 - frames / total, 0)


class Learner:
  """Updates on one batch."""

  def __init__(self, settings, weights, batch):
    self.settings, self.batch = settings, batch
    self.weights = {p: w.astype(np.float64) for p, w in weights.items()}
    self.slots = fresh_slots(self.weights)
    self.env_frames = 0

  def forward(self):
    """Outputs, V-trace and losses; and gradients by path."""
    s, batch = self.settings, self.batch
    net = Network(self.weights, s)
    logits, baseline, _ = net.unroll(batch)
    actions, done = batch['actions'][1:], batch['done'][1:]
    truncations = batch['truncated'][1:]
    given = {
      'discounts': np.where(done & ~truncations, 0, s['discounting']),
      'rewards': reference.clip_rewards(
        batch['rewards'][1:], s['reward_clipping']
      ),
      'values': baseline.value[:-1],
      'bootstrap_value': baseline.value[-1],
      'log_rhos': reference.action_log_probs(logits.value[:-1], actions)
      - reference.action_log_probs(
        batch['behaviour_policy_logits'][1:], actions
      ),
    }
    options = (
      'clip_rho_threshold clip_pg_rho_threshold clip_c_threshold lambda_'
    )
    vs, advantages = reference.vtrace(
      **given,
      **{name: s[name] for name in options.split()},
      truncations=truncations,
      truncation_values=batch['truncation_values'][1:],
    )
    losses, d_logits, d_values = reference.losses(
      logits.value[:-1],
      actions,
      given['values'],
      vs,
      advantages,
      s['baseline_cost'],
      s['entropy_cost'],
    )
    no_logits, no_value = (
      np.zeros((1, *d_logits.shape[1:])),
      np.zeros((1, d_values.shape[1])),
    )
    top = Node(
      0.0,
      [
        (logits, lambda _: np.concatenate([d_logits, no_logits])),
        (baseline, lambda _: np.concatenate([d_values, no_value])),
      ],
    )
    top.backward()
    gradients = {
      p: n.gradient + np.zeros_like(n.value) for p, n in net.weights.items()
    }
    rows = {}
    if net.rows_read is not None:
      rows['agent/instruction_encoder/embeddings'] = net.rows_read
    outputs = {'policy_logits': logits.value, 'baseline': baseline.value}
    outputs |= {**given, 'vs': vs, 'pg_advantages': advantages}
    return outputs, losses, gradients, rows

  def update(self):
    """One step; everything that the stage asks for."""
    s = self.settings
    outputs, losses, gradients, rows = self.forward()
    norm = global_norm(gradients)
    rate = learning_rate(
      s['learning_rate'], self.env_frames, s['total_environment_frames']
    )
    rmsprop(s, self.weights, self.slots, gradients, rate, norm, rows)
    self.env_frames += (
      s['batch_size'] * s['unroll_length'] * s['frames_per_step']
    )
    figures = {**losses, 'gradient_norm': norm, 'learning_rate': rate}
    return outputs, figures, gradients


class Kit:
  """The kit's files."""

  def __init__(self, directory):
    self.directory = directory
    self.stages = self.json('kit')['stages']

  def json(self, name):
    with open(os.path.join(self.directory, f'{name}.json')) as file:
      return json.load(file)

  def cases(self, stage):
    """Name, settings, inputs and weights of each case. No outputs."""
    with np.load(os.path.join(self.directory, f'{stage}.npz')) as file:
      arrays = {k: file[k] for k in file.files if '/output/' not in k}
    for case, settings in self.json(stage)['cases'].items():
      parts = {}
      for role in ('input', 'weight'):
        prefix = f'{case}/{role}/'
        parts[role] = {
          k.removeprefix(prefix): a
          for k, a in arrays.items()
          if k.startswith(prefix)
        }
      yield case, settings, parts['input'], parts['weight']


def run_vtrace(settings, inputs, _):
  inputs, outputs = dict(inputs), {}
  if 'actions' in inputs:
    actions = inputs.pop('actions')
    for kind in ('behaviour', 'target'):
      logits = inputs.pop(f'{kind}_policy_logits')
      outputs[f'{kind}_action_log_probs'] = reference.action_log_probs(
        logits, actions
      )
    inputs['log_rhos'] = outputs['log_rhos'] = (
      outputs['target_action_log_probs'] - outputs['behaviour_action_log_probs']
    )
  outputs['vs'], outputs['pg_advantages'] = reference.vtrace(
    **inputs, **settings
  )
  return outputs


def run_losses(settings, inputs, _):
  if 'actions' not in inputs:
    return {
      name: reference.clip_rewards(inputs['rewards'], name)
      for name in ('abs_one', 'soft_asymmetric')
    }
  settings = dict(settings)
  costs = [settings.pop(name) for name in ('baseline_cost', 'entropy_cost')]
  outputs = run_vtrace(settings, inputs, _)
  outputs = {name: outputs[name] for name in ('vs', 'pg_advantages')}
  logits, values = inputs['target_policy_logits'], inputs['values']

  def losses(advantage_weight, *costs):
    return reference.losses(
      logits,
      inputs['actions'],
      values,
      outputs['vs'],
      advantage_weight * outputs['pg_advantages'],
      *costs,
    )

  gradients = {
    'policy_gradient_loss': losses(1, 0, 0),
    'baseline_loss': losses(0, 1, 0),
    'entropy_loss': losses(0, 0, 1),
    'total_loss': losses(1, *costs),
  }
  named = gradients['total_loss'][0]
  for name, (_, d_logits, d_values) in gradients.items():
    named = {
      **named,
      f'd_logits/{name}': d_logits,
      f'd_values/{name}': d_values,
    }
  return {**outputs, **named}


def run_heads(settings, inputs, _):
  """Any policy; the discrete one is a single choice."""
  discrete = settings['head'] == 'discrete'
  actions = inputs['actions']
  actions = actions[..., np.newaxis] if discrete else actions
  target, behaviour = (
    reference_heads.policy_for(settings, inputs[f'{kind}_policy_logits'])
    for kind in ('target', 'behaviour')
  )
  log_probs, entropies = target.log_probs(actions), target.entropies()
  outputs = {
    'encoded_actions': target.encode(actions),
    'mode': target.mode()[..., 0] if discrete else target.mode(),
    'entropy': entropies.sum(axis=-1),
    'target_action_log_probs': log_probs.sum(axis=-1),
    'behaviour_action_log_probs': behaviour.log_probs(actions).sum(axis=-1),
  }
  if settings['head'] == 'box':
    outputs |= {'loc': target.loc, 'scale': target.scale}
  if not discrete:
    outputs['log_probs_by_dimension'] = log_probs
    outputs['entropy_by_dimension'] = entropies
  outputs['log_rhos'] = (
    outputs['target_action_log_probs'] - outputs['behaviour_action_log_probs']
  )
  return outputs | head_losses(settings, inputs, target, actions, outputs)


def head_losses(settings, inputs, target, actions, outputs):
  """V-trace, the losses, and their gradients to the target's parameters."""
  options = 'clip_rho_threshold clip_pg_rho_threshold clip_c_threshold lambda_'
  steps = ('discounts', 'rewards', 'values', 'bootstrap_value')
  vs, advantages = reference.vtrace(
    outputs['log_rhos'],
    *(inputs[name] for name in steps),
    **{name: settings[name] for name in options.split()},
  )
  d_log_probs = target.d_log_probs(actions)
  d_policy_gradient = -advantages[..., np.newaxis] * d_log_probs
  d_entropy = -target.d_entropies()
  named = {
    'policy_gradient_loss': -np.sum(
      advantages * outputs['target_action_log_probs']
    ),
    'baseline_loss': 0.5 * np.sum((vs - inputs['values']) ** 2),
    'entropy_loss': -np.sum(outputs['entropy']),
  }
  total_loss = (
    named['policy_gradient_loss']
    + settings['baseline_cost'] * named['baseline_loss']
    + settings['entropy_cost'] * named['entropy_loss']
  )
  return named | {
    'vs': vs,
    'pg_advantages': advantages,
    'total_loss': total_loss,
    'd_logits/target_action_log_probs': d_log_probs,
    'd_logits/policy_gradient_loss': d_policy_gradient,
    'd_logits/entropy_loss': d_entropy,
    'd_logits/total_loss': d_policy_gradient
    + settings['entropy_cost'] * d_entropy,
  }


def run_network(settings, inputs, weights):
  net = Network(weights, settings)
  logits, baseline, state = net.unroll(inputs)
  return {
    **net.layers,
    'policy_logits': logits.value,
    'baseline': baseline.value,
    **state,
  }


def run_instruction(settings, inputs, _):
  buckets = [bucket(str(w), settings['num_buckets']) for w in inputs['words']]
  return {'buckets': np.array(buckets)}


def run_initial_weights(kit):
  """Spread of weights that are drawn as the kit describes them."""
  random, outputs = np.random.default_rng(0), {}
  weights = next(iter(kit.cases('network_deep_lstm_instruction')))[3]
  for path, given in weights.items():
    shape = given.shape
    if path.endswith('/bias'):
      value = np.zeros(shape)
    elif path.endswith('/embeddings'):
      value = random.standard_normal(shape)
    elif 'lstm' in path or 'core' in path:
      limit = np.sqrt(6 / sum(shape))
      value = random.uniform(-limit, limit, shape)
    else:
      value = random.standard_normal(shape)
      while np.any(wide := np.abs(value) > 2):
        value[wide] = random.standard_normal(np.count_nonzero(wide))
      value *= np.prod(shape[:-1]) ** -0.5
    outputs[f'stddev/{path}'] = np.std(value)
  return outputs


def run_optimizer(settings, inputs, weights):
  if 'updates' in inputs:
    per_update = np.prod(
      [settings[n] for n in ('unroll_length', 'batch_size', 'action_repeats')]
    )
    frames = inputs['updates'] * per_update
    total = settings['total_environment_frames']
    rates = [learning_rate(settings['initial'], n, total) for n in frames]
    return {'env_frames': frames, 'learning_rate': np.array(rates)}
  weights = {p: w.astype(np.float64) for p, w in weights.items()}
  slots, history = fresh_slots(weights), {}
  for k in range(settings['num_updates']):
    rows = {}
    if 'rows' in inputs:
      dense = np.zeros_like(weights['embeddings'])
      rows['embeddings'] = inputs['rows'][k]
      dense[rows['embeddings']] = inputs['row_gradients'][k]
      gradients = {'embeddings': dense}
    else:
      gradients = {
        p: inputs[f'gradients/{p}'][k].astype(np.float64) for p in weights
      }
    norm = global_norm(gradients)
    rate = settings['learning_rate']
    rmsprop(settings, weights, slots, gradients, rate, norm, rows)
    now = {'gradient_norm': norm}
    for path, weight in weights.items():
      square, momentum = slots[path]
      now |= {
        f'variables/{path}': weight.copy(),
        f'mean_square/{path}': square.copy(),
        f'momentum/{path}': momentum.copy(),
      }
    for name, value in now.items():
      history.setdefault(name, []).append(value)
  return {name: np.stack(values) for name, values in history.items()}


def run_update(settings, inputs, weights):
  learner = Learner(settings, weights, inputs)
  outputs, figures, gradients = learner.update()
  outputs |= {**figures, 'env_frames': learner.env_frames}
  for path, gradient in gradients.items():
    outputs[f'gradients/{path}'] = gradient
    outputs[f'weights/{path}'] = learner.weights[path]
    outputs[f'mean_square/{path}'] = learner.slots[path][0]
  return outputs


def run_training(kit):
  """Goes on where stage `update` begins."""
  outputs = {}
  num_updates = {c: s['num_updates'] for c, s, *_ in kit.cases('training')}
  for case, settings, inputs, weights in kit.cases('update'):
    learner = Learner(settings, weights, inputs)
    figures = [learner.update()[1] for _ in range(num_updates[case])]
    after, *_ = learner.forward()
    for name in figures[0]:
      outputs[f'{case}/output/{name}'] = np.array([f[name] for f in figures])
    for name in ('policy_logits', 'baseline'):
      outputs[f'{case}/output/{name}_after'] = after[name]
    outputs[f'{case}/output/env_frames'] = np.array(learner.env_frames)
  return outputs


class CountingEnvironment:
  """One environment of the stage `stream`, slot by slot."""

  def __init__(self, script):
    self.script, self.episode, self.step, self.total = script, 0, 0, 0.0

  def slot(self, action):
    """What the environment says of the step by `action`, and its last state."""
    entry = self.episode % len(self.script['lengths'])
    self.step += 1
    reward = action + self.step / 10
    self.total += reward
    ended = self.step == self.script['lengths'][entry]
    said = {
      'reward': reward,
      'done': ended or self.step == self.script['life_lost_at'][entry],
      'first': ended,
      'truncated': ended and self.script['ends'][entry] == 'truncation',
      'episode_return': self.total,
      'episode_step': self.step,
    }
    last_step = self.step
    if ended:
      self.episode, self.step, self.total = self.episode + 1, 0, 0.0
    return said | {'observation': [self.episode, self.step]}, last_step


def run_stream(settings, *_):
  columns = [
    stream_column(script, settings['num_unrolls'], settings['unroll_length'])
    for script in settings['scripts']
  ]
  return {
    name: np.stack([c[name] for c in columns], 1 if name == 'core_state' else 2)
    for name in columns[0]
  }


def stream_column(script, num_unrolls, unroll_length):
  """Arrays `[U, T + 1, ...]` of one environment; `core_state` is `[U]`."""
  env = CountingEnvironment(script)
  slot = {
    'reward': 0.0,
    'done': True,
    'first': True,
    'truncated': False,
    'episode_return': 0.0,
    'episode_step': 0,
    'observation': [0, 0],
    'action': 0,
    'policy_logits': [0.0] * 3,
    'baseline': 0.0,
    'truncation_values': 0.0,
  }
  state, slots, states = 0.0, [slot], [0.0]
  for _ in range(num_unrolls * unroll_length):
    state = (0.0 if slot['done'] else state) + slot['observation'][1] + 1
    action = slot['action'] + 1
    slot, last_step = env.slot(action)
    value = state + last_step + 1 if slot['truncated'] else 0.0
    slot |= {
      'action': action,
      'policy_logits': [0.0, action, 2.0 * action],
      'baseline': state,
      'truncation_values': value,
    }
    slots.append(slot)
    states.append(state)
  starts = range(0, num_unrolls * unroll_length, unroll_length)
  column = {
    name: np.array(
      [[s[name] for s in slots[i : i + unroll_length + 1]] for i in starts]
    )
    for name in slots[0]
  }
  return column | {'core_state': np.array([states[i] for i in starts])}


RUNS = {
  'vtrace': run_vtrace,
  'losses': run_losses,
  'heads': run_heads,
  'instruction': run_instruction,
  'optimizer': run_optimizer,
  'update': run_update,
  'stream': run_stream,
}


def outputs_of(kit, stage):
  """All outputs of a stage, by full name."""
  if stage == 'training':
    return run_training(kit)
  if stage == 'initial_weights':
    spread = run_initial_weights(kit)
    return {f'fresh/output/{name}': value for name, value in spread.items()}
  run = run_network if stage.startswith('network_') else RUNS[stage]
  return {
    f'{case}/output/{name}': np.asarray(value)
    for case, *given in kit.cases(stage)
    for name, value in run(*given).items()
  }


def main(kit_directory, candidate):
  kit = Kit(kit_directory)
  os.makedirs(candidate, exist_ok=True)
  for stage in kit.stages:
    arrays = outputs_of(kit, stage)
    np.savez(os.path.join(candidate, f'{stage}.npz'), **arrays)


if __name__ == '__main__':
  main(*sys.argv[1:])
