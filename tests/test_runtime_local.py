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
"""Tests for runtime.local: a whole run in threads, going well and badly."""

import threading
import time

import numpy as np
import pytest
from doubles import ScriptedEnvironments

from scalable_agent import checkpoint, config, tasks
from scalable_agent.runtime import local, workers

FRAMES_PER_STEP = 4  # Of `ScriptedEnvironments`.


class Recorder:
  """A metric writer that remembers."""

  def __init__(self):
    self.rows = []

  def write(self, env_frames, metrics):
    self.rows.append((env_frames, dict(metrics)))

  def close(self):
    pass


class Failing(ScriptedEnvironments):
  """Calls `fail` in the given step."""

  def __init__(self, at_step, fail, **kwargs):
    super().__init__(**kwargs)
    self._at_step, self._fail, self._taken = at_step, fail, 0

  def step(self, actions):
    self._taken += 1
    if self._taken == self._at_step:
      self._fail()
    return super().step(actions)


def boom():
  raise OSError('the simulator is gone')


def settings(tmp_path, *, actor=None, learner=None, run=None):
  return config.Config(
    task=config.TaskConfig(level_name='scripted'),
    actor=config.ActorConfig(**{'num_actors': 1, **(actor or {})}),
    agent=config.AgentConfig(torso='mlp'),
    learner=config.LearnerConfig(
      **{
        'batch_size': 2,
        'unroll_length': 5,
        'total_environment_frames': 1000,
        **(learner or {}),
      }
    ),
    run=config.RunConfig(logdir=str(tmp_path), **(run or {})),
  )


def make_task(build=None):
  def plain(request):
    return ScriptedEnvironments(num_envs=len(request.level_names))

  return tasks.Task(('scripted',), 1, build or plain, factory=None)


def train(chosen, task=None, saved=None, **kwargs):
  recorder = Recorder()
  task = task or make_task()
  run = local.make_run(chosen, task, task.spec(), saved)
  outcome = run.run(recorder, **kwargs)
  return run, outcome, recorder


def no_threads_left():
  deadline = time.monotonic() + 5
  while time.monotonic() < deadline:
    names = [t.name for t in threading.enumerate()]
    if not any(n.startswith(('actor', 'learner')) for n in names):
      return True
    time.sleep(0.02)
  return False


@pytest.mark.parametrize(
  ('total', 'updates', 'frames'), [(1000, 25, 1000), (1010, 26, 1040)]
)
def test_a_run_ends_after_exactly_its_frames(tmp_path, total, updates, frames):
  chosen = settings(tmp_path, learner={'total_environment_frames': total})
  run, outcome, recorder = train(chosen)
  assert run._learner.num_updates == updates
  assert outcome.env_frames == frames
  assert outcome.signum is None
  assert recorder.rows[-1][0] == frames
  assert no_threads_left()


def test_every_column_is_trained_or_accounted_for(tmp_path):
  _, _, recorder = train(settings(tmp_path))
  _, last = recorder.rows[-1]
  in_pipeline = (
    last['frames_produced'] - last['frames_trained'] - last['frames_dropped']
  )
  # One batch read ahead and one being joined at most.
  assert 0 <= in_pipeline <= 2 * 2 * 5 * FRAMES_PER_STEP


@pytest.mark.parametrize(
  ('num_actors', 'envs_per_actor', 'batch_size', 'inference'),
  [(1, 1, 4, 'direct'), (3, 2, 4, 'direct'), (3, 1, 4, 'batched')],
)
def test_any_number_of_actors_fills_any_batch(
  tmp_path, num_actors, envs_per_actor, batch_size, inference
):
  chosen = settings(
    tmp_path,
    actor={
      'num_actors': num_actors,
      'envs_per_actor': envs_per_actor,
      'inference': inference,
    },
    learner={'batch_size': batch_size, 'total_environment_frames': 5 * 80},
  )
  run, _, _ = train(chosen)
  assert run._learner.num_updates == 5


def test_one_slow_actor_does_not_hold_up_the_others(tmp_path):
  def build(request):
    slow = request.actor == 0
    return ScriptedEnvironments(
      delay=(lambda: time.sleep(0.05)) if slow else None
    )

  chosen = settings(
    tmp_path,
    actor={'num_actors': 3},
    learner={'total_environment_frames': 4000},
  )
  start = time.monotonic()
  train(chosen, make_task(build))
  # Alone, the slow one would take 1000 steps of 0.05 s.
  assert time.monotonic() - start < 40


def test_the_first_failure_ends_the_run_with_its_own_traceback(tmp_path):
  chosen = settings(tmp_path, learner={'total_environment_frames': 10**9})
  start = time.monotonic()
  with pytest.raises(
    workers.WorkerFailedError, match='actor 0 failed: OSError: the simulator'
  ) as caught:
    train(chosen, make_task(lambda _: Failing(40, boom)))
  assert isinstance(caught.value.__cause__, OSError)
  assert time.monotonic() - start < 60
  assert no_threads_left()
  # What was learned until then is not lost.
  saved = checkpoint.Checkpointer(tmp_path).restore_required()
  assert saved.counters['learner']['num_updates'] > 0


def test_an_environment_that_cannot_be_made_ends_the_run(tmp_path):
  task = make_task()
  calls = []

  def build(request):
    calls.append(request)
    if len(calls) > 1:
      boom()
    return ScriptedEnvironments()

  with pytest.raises(workers.WorkerFailedError, match='the simulator is gone'):
    train(settings(tmp_path), task._replace(build=build))
  assert no_threads_left()


def test_a_failed_actor_is_restarted_with_another_seed(tmp_path):
  seeds = []

  def build(request):
    seeds.append(request.base_seed)
    # The first one is asked for its spec only.
    return Failing(23, boom) if len(seeds) == 2 else ScriptedEnvironments()

  chosen = settings(tmp_path, actor={'on_env_error': 'restart'})
  _, outcome, recorder = train(chosen, make_task(build))
  assert outcome.env_frames == 1000
  assert recorder.rows[-1][1]['actor_restarts'] == 1
  assert len(set(seeds[1:])) == 2


def test_restarts_are_capped_and_the_error_is_the_environments(tmp_path):
  chosen = settings(
    tmp_path, actor={'on_env_error': 'restart', 'max_restarts': 1}
  )
  with pytest.raises(workers.WorkerFailedError, match='the simulator is gone'):
    train(chosen, make_task(lambda _: Failing(2, boom)))


def test_restarts_of_environments_and_of_actors_are_one_budget(tmp_path):
  used = []

  def build(request):
    used.append(request.restarts_used)
    environments = Failing(2, boom)
    environments.num_restarts = 2
    return environments

  chosen = settings(
    tmp_path, actor={'on_env_error': 'restart', 'max_restarts': 3}
  )
  with pytest.raises(workers.WorkerFailedError, match='the simulator is gone'):
    train(chosen, make_task(build))
  # The spec's; the first actor, two of whose environments were replaced; the
  # second, which takes the last restart.
  assert used == [0, 0, 3]


def test_an_environment_that_hangs_is_named_with_actor_level_and_age(tmp_path):
  gate = threading.Event()
  chosen = settings(tmp_path, actor={'env_timeout_secs': 1.0})
  start = time.monotonic()
  try:
    with pytest.raises(
      workers.WorkerFailedError,
      match=r'actor 0 failed.*\(scripted\) have not answered for \d s',
    ):
      train(chosen, make_task(lambda _: Failing(12, gate.wait)))
  finally:
    gate.set()
  assert time.monotonic() - start < 60


def test_time_is_up(tmp_path):
  chosen = settings(tmp_path, learner={'total_environment_frames': 10**9})
  run, outcome, _ = train(chosen, stop_after_secs=3)
  assert 0 < outcome.env_frames < 10**9
  saved = checkpoint.Checkpointer(tmp_path).restore_required()
  assert saved.counters['learner']['env_frames'] == outcome.env_frames
  assert len(list(tmp_path.glob('checkpoint-*'))) == 1
  assert no_threads_left()
  del run


def test_a_resumed_run_goes_on_where_it_was(tmp_path):
  # 10 updates of 25, then the rest.
  chosen = settings(tmp_path, learner={'total_environment_frames': 400})
  first, _, _ = train(chosen)
  saved = checkpoint.Checkpointer(tmp_path).restore_required()
  longer = settings(tmp_path, learner={'total_environment_frames': 1000})
  task = make_task()
  second = local.make_run(longer, task, task.spec(), saved)
  before, _ = first._learner.state()
  after, counters = second._learner.state()
  assert counters['env_frames'] == 400
  for name, array in before.items():
    np.testing.assert_array_equal(after[name], array)
  recorder = Recorder()
  outcome = second.run(recorder)
  assert outcome.env_frames == 1000
  assert second._learner.num_updates == 25
  episodes = recorder.rows[-1][1]['scripted/num_steps']
  assert episodes >= 250


def test_a_second_start_plays_other_episodes(tmp_path):
  assert tasks.start_seed(1, 0) != tasks.start_seed(1, 1)
  assert tasks.start_seed(1, 0) == tasks.start_seed(1, 0)
  seen = []

  def build(request):
    seen.append(request.base_seed)
    return ScriptedEnvironments()

  task = make_task(build)
  train(settings(tmp_path, learner={'total_environment_frames': 80}), task)
  saved = checkpoint.Checkpointer(tmp_path).restore_required()
  train(settings(tmp_path), task, saved)
  assert seen[1] != seen[3]


def test_policy_lag_and_memory_stay_bounded_with_a_slow_learner(
  tmp_path, monkeypatch
):
  chosen = settings(
    tmp_path,
    actor={'num_actors': 8},
    learner={
      'batch_size': 4,
      'unroll_length': 2,
      'total_environment_frames': 60 * 4 * 2 * FRAMES_PER_STEP,
    },
    run={'summary_secs': 0.0},
  )
  task = make_task()
  run = local.make_run(chosen, task, task.spec())
  update = run._learner.update

  def slow_update(batch):
    time.sleep(0.02)
    return update(batch)

  monkeypatch.setattr(run._learner, 'update', slow_update)
  recorder = Recorder()
  run.run(recorder)
  lags = [
    m['policy_lag_max'] for _, m in recorder.rows if 'policy_lag_max' in m
  ]
  # 8 in hand, 1 queued, 2 batches of 4 joined or ahead: 17 unrolls are at
  # most 5 updates, and one more for the update that is under way.
  assert max(lags) <= 6
  assert max(lags[30:]) <= max(lags[:30]) + 1


def test_a_starved_learner_says_so(tmp_path):
  def build(_):
    return ScriptedEnvironments(delay=lambda: time.sleep(0.05))

  chosen = settings(
    tmp_path,
    learner={'total_environment_frames': 600},
    run={'summary_secs': 0.5},
  )
  _, _, recorder = train(chosen, make_task(build))

  # Without the start, in which the learner compiles.
  def median(name):
    return np.median([row[name] for _, row in recorder.rows[3:]])

  assert median('learner_wait_share') > 0.9
  assert median('actor_env_share') > 0.5
  # One step of 4 frames in 0.05 s and a little more.
  assert 40 < median('frames_per_sec') <= 84


def test_a_full_disk_does_not_end_a_run(tmp_path, monkeypatch, caplog):
  chosen = settings(tmp_path, run={'checkpoint_secs': 0.0})
  task = make_task()
  run = local.make_run(chosen, task, task.spec())
  save = checkpoint.Checkpointer.save
  calls = []

  def full_at_first(self, *args):
    calls.append(1)
    if len(calls) < 3:
      raise OSError(28, 'No space left on device')
    return save(self, *args)

  monkeypatch.setattr(checkpoint.Checkpointer, 'save', full_at_first)
  outcome = run.run(Recorder())
  assert outcome.env_frames == 1000
  assert checkpoint.Checkpointer(tmp_path).latest() is not None


def test_no_return_is_reported_before_an_episode_ends(tmp_path):
  def build(_):
    return ScriptedEnvironments(episode_length=10**6)

  _, outcome, recorder = train(settings(tmp_path), make_task(build))
  assert outcome.mean_returns == {}
  for _, row in recorder.rows:
    assert not any('episode_return' in name for name in row)
    assert all(np.isfinite(v).all() for v in row.values())


def test_too_few_environments_for_the_levels_are_refused(tmp_path):
  chosen = settings(tmp_path, actor={'num_actors': 2})
  task = make_task()._replace(level_names=('a', 'b', 'c'))
  spec = ScriptedEnvironments().spec
  with pytest.raises(ValueError, match='2 environments, fewer than the 3'):
    local.make_run(chosen, task, spec)


def test_returns_are_raw_whatever_the_clipping(tmp_path):
  def build(_):
    return ScriptedEnvironments(episode_length=2, reward=lambda *_: 5)

  _, outcome, _ = train(settings(tmp_path), make_task(build))
  assert outcome.mean_returns == {'scripted': 10.0}
