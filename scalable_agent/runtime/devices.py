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
"""Where things are computed: CPU, GPU or TPU, and oneDNN on x86 CPUs.

TensorFlow is imported inside functions only, so that `prepare` can be called
before anything imports it.
"""

import contextlib
import glob
import importlib
import os
import platform
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
  import tensorflow as tf

_ONEDNN = 'TF_ENABLE_ONEDNN_OPTS'


def prepare() -> None:
  """Imports TensorFlow with oneDNN on, and without noise where no GPU is.

  Without a GPU TensorFlow complains at length that there is none, some of it
  before it reads its own setting for that. `TF_CPP_MIN_LOG_LEVEL`, if the user
  has set it, is left alone, and so is the noise.
  """
  enable_onednn()
  if 'TF_CPP_MIN_LOG_LEVEL' in os.environ or glob.glob('/dev/nvidia[0-9]*'):
    return
  os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
  with _stderr_silenced():
    importlib.import_module('tensorflow')


@contextlib.contextmanager
def _stderr_silenced() -> Iterator[None]:
  """Drops what is written to file descriptor 2, by C++ too."""
  kept = os.dup(2)
  nowhere = os.open(os.devnull, os.O_WRONLY)
  try:
    os.dup2(nowhere, 2)
    yield
  finally:
    os.dup2(kept, 2)
    os.close(kept)
    os.close(nowhere)


def enable_onednn() -> None:
  """Turns oneDNN's kernels on, on x86 CPUs, unless the user has decided.

  TensorFlow reads the setting once, while it is imported; on some CPUs it
  leaves oneDNN off, which makes updates two to three times slower.
  """
  if platform.machine().lower() not in ('x86_64', 'amd64'):
    return
  if _ONEDNN not in os.environ:
    if 'tensorflow' in sys.modules:
      raise RuntimeError(
        'enable_onednn was called after TensorFlow was imported, when it has '
        'no effect any more; call it first.'
      )
    os.environ[_ONEDNN] = '1'


class Placement(NamedTuple):
  """Where a run computes.

  strategy: of the learner; variables are made in its scope.
  learner_device: to which batches are copied ahead; None: they stay on the
    host.
  inference_device: for `tf.device` in actor threads.
  """

  strategy: 'tf.distribute.Strategy'
  learner_device: str | None
  inference_device: str


def place(learner: str, inference: str) -> Placement:
  """Turns `auto`, `cpu`, `gpu` or `tpu` into a placement.

  Args:
    learner: device of the learner; auto takes a GPU if there is one.
    inference: device of the actors' networks; auto likewise.

  Raises:
    ValueError: the device is asked for but not there.
  """
  import tensorflow as tf

  gpus = tf.config.list_physical_devices('GPU')
  for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
  learner = _resolve('learner_device', learner, gpus)
  inference = _resolve('inference_device', inference, gpus)
  if learner == 'tpu':
    return Placement(_tpu_strategy(), None, f'/{inference}:0')
  strategy = tf.distribute.OneDeviceStrategy(f'/{learner}:0')
  ahead = '/gpu:0' if learner == 'gpu' else None
  return Placement(strategy, ahead, f'/{inference}:0')


def _resolve(flag, device, gpus):
  if device == 'auto':
    return 'gpu' if gpus else 'cpu'
  if device == 'gpu' and not gpus:
    raise ValueError(
      f'{flag} is gpu, but TensorFlow sees no GPU here; install '
      '`tensorflow[and-cuda]` and a driver, or choose auto or cpu.'
    )
  if device == 'tpu' and flag == 'inference_device':
    raise ValueError(f'{flag} is tpu; actors run on cpu or gpu.')
  return device


def _tpu_strategy():
  import tensorflow as tf

  try:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
  except Exception as error:
    raise ValueError(
      f'learner_device is tpu, but no TPU could be reached ({error}); run on '
      'a TPU host, or choose auto, cpu or gpu.'
    ) from error
  return tf.distribute.TPUStrategy(resolver)
