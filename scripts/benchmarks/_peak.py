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
"""What share of the machine's arithmetic peak the network reaches.

The peak is that of a float32 product of two 2000 x 2000 matrices on all cores
(or on the accelerator), measured in the same run, in turns with what is
compared to it: what else the machine does then meets both alike.

Operations are counted in the network's graph: two for each multiply-add of a
convolution or a matrix product, nothing for the rest. The backward pass takes
twice the forward pass, except in the first layer, whose input needs no
gradient. An instruction encoder is not counted.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

_SIZE = 2000


class Gemm:
  """The product; call it for gigaflops per second of that call."""

  def __init__(self, device: str):
    """Makes and warms up the product on `device`."""
    import tensorflow as tf

    with tf.device(device):
      a, b = tf.random.stateless_normal((2, _SIZE, _SIZE), seed=(1, 2))
      # One number comes back, to wait for the device.
      self._product = tf.function(lambda: tf.matmul(a, b)[0, 0])
    self._device = tf.device(device)
    for _ in range(3):
      self()

  def __call__(self) -> float:
    start = time.perf_counter()
    self._product().numpy()
    return 2e-9 * _SIZE**3 / (time.perf_counter() - start)


def training_flops(agent: Any, spec: Any) -> int:
  """Floating-point operations of one slot, forward and backward."""
  convolutions, products = _forward_flops(agent, spec)
  first = (convolutions or products)[0]
  return 3 * (sum(convolutions) + sum(products)) - first


def _forward_flops(agent, spec):
  """Of each convolution, and of each product, for one slot of one column."""
  import tensorflow as tf

  from scalable_agent import dataset, structs

  example = dataset.example_unroll(agent, spec, 1)
  actions = structs.no_actions(spec.action, 1)

  @tf.function(autograph=False)
  def step():
    slot = tf.nest.map_structure(lambda x: x[0], example.env_outputs)
    return agent.step(actions, slot, agent.initial_state(1))

  convolutions, products = [], []
  for op in step.get_concrete_function().graph.get_operations():
    if op.type == 'Conv2D':
      kernel, pixels = op.inputs[1].shape, op.outputs[0].shape[1:3]
      flops = 2 * kernel.num_elements() * pixels.num_elements()
      convolutions.append(flops)
    elif op.type == 'MatMul':
      products.append(2 * op.inputs[1].shape.num_elements())
  if agent.core is not None:
    # The product inside of the loop.
    products.append(2 * agent.core.size * 4 * agent.core.size)
  return convolutions, [int(np.asarray(flops)) for flops in products]


def compare(
  call: Callable[[], Any], flops: float, gemm: Gemm, secs: float
) -> dict[str, float]:
  """Runs `call` and the product in turns; medians.

  Args:
    call: of `flops` operations; waits for the device.
    flops: floating-point operations.
    gemm: the product.
    secs: how long.
  """
  call_secs, peaks = [], []
  end = time.perf_counter() + secs
  while time.perf_counter() < end or len(peaks) < 2:
    start = time.perf_counter()
    call()
    call_secs.append(time.perf_counter() - start)
    peaks.append(gemm())
  update_secs = statistics.median(call_secs)
  peak = statistics.median(peaks)
  gflops = 1e-9 * flops / update_secs
  return {
    'update_ms': round(1e3 * update_secs, 2),
    'gflop_per_sec': round(gflops, 1),
    'gemm_gflop_per_sec': round(peak, 1),
    'share_of_peak': round(gflops / peak, 3),
  }
