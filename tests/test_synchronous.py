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
import threading
import time

import pytest
from doubles import ScriptedEnvironments

from scalable_agent import config, metrics, params, structs, tasks
from scalable_agent.runtime import synchronous

NUM_UPDATES = 6


class Recorder(metrics.NullWriter):
  def __init__(self):
    self.rows = []

  def write(self, env_frames, metrics):
    self.rows.append(metrics)


def settings(tmp_path, sync_every='step', actor=None, learner=None):
  return config.Config(
    actor=config.ActorConfig(
      **{'num_actors': 2, 'envs_per_actor': 2, **(actor or {})}
    ),
    agent=config.AgentConfig(torso='mlp'),
    learner=config.LearnerConfig(
      **{
        'batch_size': 4,
        'unroll_length': 5,
        # Four frames a step.
        'total_environment_frames': NUM_UPDATES * 4 * 5 * 4,
        **(learner or {}),
      }
    ),
    run=config.RunConfig(
      logdir=str(tmp_path),
      runtime='sync',
      sync_every=sync_every,
      summary_secs=0.0,
    ),
  )


def train(chosen, build=None):
  def plain(request):
    return ScriptedEnvironments(num_envs=len(request.level_names))

  task = tasks.Task(('scripted',), 1, build or plain, factory=None)
  recorder = Recorder()
  run = synchronous.make_run(chosen, task, task.spec())
  outcome = run.run(recorder)
  return outcome, recorder.rows


@pytest.mark.parametrize(
  ('sync_every', 'widths'), [('step', [4]), ('trajectory', [2, 2])]
)
def test_data_are_on_policy(tmp_path, sync_every, widths):
  built = []

  def build(request):
    built.append(len(request.level_names))
    return ScriptedEnvironments(num_envs=len(request.level_names))

  outcome, rows = train(settings(tmp_path, sync_every), build)
  assert outcome.env_frames == NUM_UPDATES * 4 * 5 * 4
  assert rows[-1]['updates'] == NUM_UPDATES
  for row in rows:
    assert row['policy_lag_max'] == 0
    assert row['rho_max'] == pytest.approx(1.0, abs=1e-4)
  # The first is asked for its spec only.
  assert built[1:] == widths


def test_an_artificial_lag_is_exact(tmp_path):
  _, rows = train(settings(tmp_path, actor={'policy_lag': 2}))
  lags = [row['policy_lag_mean'] for row in rows]
  assert lags[-1] == 2
  assert max(lags) == 2


def test_replay_is_mixed_in_and_counts_no_frames(tmp_path):
  chosen = settings(
    tmp_path,
    learner={
      'batch_size': 8,
      'replay_fraction': 0.5,
      'replay_capacity': 8,
    },
  )
  outcome, rows = train(chosen)
  assert outcome.env_frames == NUM_UPDATES * 4 * 5 * 4
  assert rows[-1]['updates'] == NUM_UPDATES
  # Of the two newest batches: what is replayed is one update old at most.
  assert {row['replay_age_max'] for row in rows} <= {0, 1}
  assert all(row['policy_lag_max'] == 0 for row in rows)


def test_a_batch_that_is_not_one_unroll_of_each_is_refused(tmp_path):
  chosen = settings(tmp_path, learner={'batch_size': 6})
  with pytest.raises(
    ValueError, match='make 4 environments and a batch takes 6 fresh unrolls'
  ):
    train(chosen)


def test_a_failed_actor_is_replaced_and_holds_nobody_up(tmp_path):
  class Failing(ScriptedEnvironments):
    num_steps = 0

    def step(self, actions):
      self.num_steps += 1
      if self.num_steps == 13:
        raise OSError('the simulator is gone')
      return super().step(actions)

  built = []

  def build(request):
    built.append(request)
    kind = Failing if len(built) == 2 else ScriptedEnvironments
    return kind(num_envs=len(request.level_names))

  chosen = settings(tmp_path, 'trajectory', actor={'on_env_error': 'restart'})
  _, rows = train(chosen, build)
  assert rows[-1]['updates'] == NUM_UPDATES
  assert rows[-1]['actor_restarts'] == 1
  assert all(row['policy_lag_max'] == 0 for row in rows)


def test_a_put_lasts_until_the_update_or_the_end():
  class Queue:
    def put(self, unroll):
      del unroll

  store = params.ParamStore()
  store.publish(0, [])
  sink = synchronous.WaitingSink(Queue(), store)
  ended = []

  def put():
    try:
      sink.put(None)
      ended.append('update')
    except structs.Closed:
      ended.append('closed')

  for end in (lambda: store.publish(1, []), store.close):
    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    time.sleep(0.05)
    assert thread.is_alive()
    end()
    thread.join(10)
  assert ended == ['update', 'closed']
