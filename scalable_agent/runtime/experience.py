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
"""What batches are made of besides fresh unrolls, and what is kept of those.

Fresh unrolls may be recorded in files. A batch may be completed by columns of a
replay buffer, or of files that were recorded before.
"""

from collections.abc import Callable

import numpy as np

from scalable_agent import (
  config,
  dataset,
  files,
  replay,
  structs,
  unroll_files,
)


class Experience:
  """The replay buffer, the reader and the recorder that the settings ask for.

  replay_buffer: None if nothing is replayed.
  reader: of recorded unrolls; None if there are none.
  """

  def __init__(
    self,
    settings: config.Config,
    example: Callable[[], structs.Unroll],
    spec: structs.EnvironmentSpec,
    level_names: tuple[str, ...],
    start: int,
    num_learners: int = 1,
  ):
    """Opens what is asked for.

    Args:
      settings: of the run.
      example: makes an unroll of one column, for its shapes and dtypes.
      spec: of the environments.
      level_names: that the unrolls' level indices mean.
      start: how often the run has been started before; for seeds.
      num_learners: that take batches on this host.

    Raises:
      ValueError: memory does not suffice, recorded unrolls do not fit, or
        there are several learners to complete batches for.
    """
    learner = settings.learner
    self._num_completing = learner.batch_size - learner.num_fresh
    if self._num_completing and num_learners > 1:
      raise ValueError(
        f'a share of each batch is replayed or recorded, and {num_learners} '
        'learners are on this host; that is for one, so leave either out.'
      )
    self.replay_buffer: replay.ReplayBuffer | None = None
    self.reader: unroll_files.UnrollReader | None = None
    self._recorder: unroll_files.UnrollWriter | None = None
    entropy = np.random.SeedSequence((settings.run.seed, start, 2))
    seed = int(entropy.generate_state(1)[0])
    if learner.from_unrolls:
      self.reader = unroll_files.UnrollReader(
        learner.from_unrolls, example(), spec.action, level_names, seed
      )
      self._recorded = iter(self.reader)
    elif self._num_completing:
      self.replay_buffer = replay.ReplayBuffer(
        example(), learner.replay_capacity, self._num_completing, seed
      )
    if settings.run.record_unrolls:
      self._recorder = unroll_files.UnrollWriter(
        settings.run.record_unrolls,
        level_names,
        int(settings.run.record_gib * 2**30),
      )
    self._forgiving = files.WarnOnce('Recorded unrolls')

  def record(self, unroll: structs.Unroll) -> None:
    """Writes a fresh unroll to disk, if that is asked for."""
    if self._recorder is not None:
      with self._forgiving:
        self._recorder.write(unroll)

  @property
  def complete(self) -> Callable[[structs.Unroll], structs.Unroll] | None:
    """Makes a batch of its fresh columns; None: they are the batch."""
    if not self._num_completing:
      return None
    if self.replay_buffer is not None:
      return self.replay_buffer.complete
    return self._with_recorded

  def metrics(self) -> dict[str, float]:
    """Records that could not be used and that were written."""
    values = {}
    if self.reader is not None:
      values['records_skipped'] = float(self.reader.num_skipped.total())
    if self._recorder is not None:
      values['records_written'] = float(self._recorder.num_records)
    return values

  def close(self) -> None:
    """Completes the files."""
    if self._recorder is not None:
      with self._forgiving:
        self._recorder.close()

  def _with_recorded(self, fresh):
    columns = [next(self._recorded) for _ in range(self._num_completing)]
    return dataset.concatenate([fresh, *columns])
