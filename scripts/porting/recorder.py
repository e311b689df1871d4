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
"""Records what the layers of an agent put out while it computes."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from scalable_agent.nets import instruction, layers, lstm, torsos

# Of each kind of layer: the method that computes, and which input is kept too,
# under which name.
_KINDS: tuple[tuple[type, str, str | None], ...] = (
  (layers.Conv2D, 'call', None),
  (layers.Linear, 'call', None),
  (torsos.ResidualBlock, 'call', None),
  (torsos.ShallowTorso, 'call', 'input'),
  (torsos.DeepTorso, 'call', 'input'),
  (torsos.MLPTorso, 'call', 'input'),
  (lstm.LSTM, 'unroll', 'input'),
  (instruction.InstructionEncoder, 'encode', None),
)


@contextlib.contextmanager
def layer_outputs() -> Iterator[dict[str, np.ndarray]]:
  """Gives a dict that fills with outputs of layers, by the layers' paths.

  Of all layers that compute meanwhile, so let one agent do so, eagerly. Paths
  are those of the weights without `kernel` and `bias`. The output of a pooling,
  which is no layer of its own, is `section_<i>/pool`; the second convolution of
  a block is left out, for with the residual it is the block's output.
  """
  records: dict[str, np.ndarray] = {}
  originals = [getattr(kind, method) for kind, method, _ in _KINDS]
  for original, (kind, method, kept_input) in zip(
    originals, _KINDS, strict=True
  ):
    setattr(kind, method, _recording(original, kept_input, records))
  try:
    yield records
  finally:
    for original, (kind, method, _) in zip(originals, _KINDS, strict=True):
      setattr(kind, method, original)


def _recording(
  original: Callable, kept_input: str | None, records: dict[str, Any]
) -> Callable:
  def call(layer, inputs, *args, **kwargs):
    path = os.path.commonpath([v.path for v in layer.trainable_variables])
    if kept_input:
      records[f'{path}/{kept_input}'] = np.asarray(inputs)
    if path.endswith('/block_0'):
      records[f'{path.removesuffix("block_0")}pool'] = np.asarray(inputs)
    outputs = original(layer, inputs, *args, **kwargs)
    if not (path.endswith('/conv_1') and '/block_' in path):
      first = outputs if tf.is_tensor(outputs) else outputs[0]
      records[path] = np.asarray(first)
    return outputs

  return call
