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
"""Where things are computed: CPU, GPU or TPU, and how on CPUs.

TensorFlow is imported inside functions only, so that `prepare` can be called
before anything imports it.
"""

import contextlib
import functools
import glob
import importlib
import os
import platform
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from scalable_agent import config, cores
from scalable_agent.runtime import hosts as hosts_lib

if TYPE_CHECKING:
  import tensorflow as tf

_ONEDNN = 'TF_ENABLE_ONEDNN_OPTS'
_INTRAOP = 'TF_NUM_INTRAOP_THREADS'


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


def set_threads(settings: config.Config) -> None:
  """Sets among how many threads an operation is divided on the CPU.

  As `--threads_per_operation` says. Threads of one operation wait for each
  other, which only costs where actors keep all cores busy anyway. What the
  user has set by `TF_NUM_INTRAOP_THREADS` is left alone.

  Raises:
    ValueError: TensorFlow has started with another number.
  """
  num_threads = settings.run.threads_per_operation
  decided = num_threads > 0
  if not decided:
    if _INTRAOP in os.environ or not _actors_fill_cores(settings):
      return
    num_threads = 1
  import tensorflow as tf

  try:
    tf.config.threading.set_intra_op_parallelism_threads(num_threads)
  except RuntimeError as error:
    if decided:
      raise ValueError(
        f'threads_per_operation is {num_threads}, but TensorFlow has started '
        'with another number; start a new process.'
      ) from error


def _actors_fill_cores(settings):
  """Whether so many actors share this machine with the learner, all busy."""
  if settings.learner.only_recorded:
    return False
  here = {
    'local': settings.actor.infers_directly,
    'ray': not settings.distributed.ray_address,
    'sync': False,
  }
  enough = settings.actor.num_actors >= cores.num_cores()
  return enough and here[settings.run.runtime]


class Placement(NamedTuple):
  """Where a run computes.

  strategy: of the learner; variables are made in its scope.
  learner_devices: for each replica on this host, the device to which batches
    are copied ahead; None: they stay on the host.
  inference_device: for `tf.device` in actor threads.
  """

  strategy: 'tf.distribute.Strategy'
  learner_devices: tuple[str | None, ...]
  inference_device: str


def place(
  learner: str,
  inference: str,
  num_learners: int = 1,
  hosts: hosts_lib.Hosts | None = None,
) -> Placement:
  """Turns `auto`, `cpu`, `gpu` or `tpu` into a placement.

  Args:
    learner: device of the learner; auto takes a GPU if there is one.
    inference: device of the actors' networks; auto likewise.
    num_learners: replicas of the learner on this host, each on a GPU of its
      own, or all on the CPU, which is then shown to TensorFlow as so many. On
      a TPU there is one on each core, whatever this says.
    hosts: those that learn together; with several this waits for all of them.
      None: this one alone.

  Raises:
    ValueError: the devices are asked for but not there.
  """
  import tensorflow as tf

  gpus = tf.config.list_physical_devices('GPU')
  for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
  learner = _resolve('learner_device', learner, gpus)
  inference = f'/{_resolve("inference_device", inference, gpus)}:0'
  several_hosts = hosts is not None and hosts.several
  if learner == 'tpu':
    strategy = _tpu_strategy(num_learners, several_hosts)
    num_cores = strategy.num_replicas_in_sync
    return Placement(strategy, (None,) * num_cores, inference)
  if learner == 'gpu' and num_learners > len(gpus):
    raise ValueError(
      f'num_learners is {num_learners}, but TensorFlow sees {len(gpus)} GPUs, '
      'and each learner needs its own; lower it, or choose '
      'learner_device=cpu to try it out.'
    )
  ahead = '/gpu:{}' if learner == 'gpu' else None
  devices = tuple(ahead and ahead.format(i) for i in range(num_learners))
  if several_hosts:
    return Placement(_over_hosts(hosts, learner, devices), devices, inference)
  if num_learners == 1:
    strategy = tf.distribute.OneDeviceStrategy(f'/{learner}:0')
    return Placement(strategy, devices, inference)
  if learner == 'cpu':
    _split_cpu(num_learners)
  names = tuple(f'/{learner}:{i}' for i in range(num_learners))
  return Placement(mirrored(names), devices, inference)


@functools.cache
def mirrored(devices: tuple[str, ...]) -> 'tf.distribute.MirroredStrategy':
  """The strategy of these devices; two of them would mix up their messages."""
  import tensorflow as tf

  return tf.distribute.MirroredStrategy(list(devices))


def _split_cpu(num_devices):
  """Shows the one CPU as `num_devices`, if that is still possible."""
  import tensorflow as tf

  (cpu,) = tf.config.list_physical_devices('CPU')
  parts = [tf.config.LogicalDeviceConfiguration()] * num_devices
  try:
    tf.config.set_logical_device_configuration(cpu, parts)
  except RuntimeError as error:
    if len(tf.config.list_logical_devices('CPU')) < num_devices:
      raise ValueError(
        f'num_learners is {num_devices}, but TensorFlow has started with fewer '
        'CPU devices; start a new process.'
      ) from error


def _over_hosts(hosts, learner, devices):
  """The strategy over all hosts; waits until all are there."""
  import tensorflow as tf

  if learner == 'cpu' and len(devices) > 1:
    raise ValueError(
      f'num_learners is {len(devices)} on each of several hosts without GPUs, '
      'where a host has one learner; leave it at 1, or start more hosts.'
    )
  # TensorFlow makes a replica on each GPU that it may see.
  gpus = tf.config.list_physical_devices('GPU')
  chosen = gpus[: len(devices)] if learner == 'gpu' else []
  tf.config.set_visible_devices(chosen, 'GPU')
  own = hosts.addresses[hosts.index]
  others = ', '.join(a for a in hosts.addresses if a != own)
  print(f'Waiting for the other learners at {others}.', flush=True)
  try:
    with _interruptible():
      return tf.distribute.MultiWorkerMirroredStrategy()
  except (tf.errors.OpError, RuntimeError) as error:
    raise ValueError(
      f'Learners cannot be joined as {hosts_lib.VARIABLE} says '
      f'({str(error).splitlines()[0]}); check that {own} is a free port of '
      'this host, and that the others run and can be reached.'
    ) from error


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
  """Lets Ctrl-C end a wait in C++, of which Python would never hear."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
  try:
    yield
  finally:
    signal.signal(signal.SIGINT, previous)


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


def _tpu_strategy(num_learners, several_hosts):
  """A replica on each core; never run on a TPU so far."""
  import tensorflow as tf

  if several_hosts or num_learners > 1:
    raise ValueError(
      'learner_device is tpu, which makes a replica on each core by itself; '
      f'leave num_learners at 1 and {hosts_lib.VARIABLE} unset.'
    )
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
