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
"""What the Ray runtime decides by itself, without Ray."""

import csv
import socket
import threading
import time
import types

import numpy as np
import pytest
from doubles import ScriptedEnvironments

from scalable_agent import config, params, queues, tasks
from scalable_agent.runtime import (
  actor_groups,
  ray_settings,
  replacements,
  rollout_worker,
  seats,
  worker_table,
)

LENGTH, NUM_ENVS = 5, 2


def make_task(settings):
  def build(request):
    return ScriptedEnvironments(num_envs=len(request.level_names))

  return tasks.Task(('scripted',), 1, build, factory=None)


def make_settings(actor=None, **distributed):
  return config.Config(
    actor=config.ActorConfig(
      **{'num_actors': 1, 'envs_per_actor': NUM_ENVS, **(actor or {})}
    ),
    agent=config.AgentConfig(torso='mlp'),
    learner=config.LearnerConfig(unroll_length=LENGTH),
    distributed=config.DistributedConfig(**distributed),
  )


def make_unroll(version):
  return types.SimpleNamespace(version=np.array([version] * NUM_ENVS))


class ScriptedWorker:
  """Does one thing after another: reports, `silent`, or exceptions."""

  def __init__(self, store, script, log):
    self._store, self._script, self.log = store, list(script), log
    self.open = self.most_open = 0

  def introduce(self):
    return ('somewhere', 7)

  def set_up(self, order):
    self.log.append(('set_up', order.request, order.policy_seed))
    return self._script.pop(0) if self._script[:1] != ['play'] else None

  def unroll(self):
    self.open += 1
    self.most_open = max(self.most_open, self.open)
    self.log.append(('unroll', self._store.version))
    head, *rest = self._script
    self._script = rest or [head]
    if head == 'play':
      secs = {'env': 1.0, 'inference': 2.0, 'idle': 0.5}
      head = (
        rollout_worker.Report(secs, 0, 0),
        make_unroll(self._store.version),
      )
    return head

  def done(self, call, timeout_secs, here):
    if call == 'silent':
      time.sleep(0.01)
    return call != 'silent'

  def result(self, call):
    if isinstance(call, Exception):
      raise call
    self.open -= isinstance(call, tuple) and len(call) == 2 and call[1] != 7
    return call

  def beat(self, timeout_secs):
    return 'env', 3.0

  def kill(self):
    self.log.append(('kill',))


class Played:
  """A seat in a thread, whose workers follow the scripts one by one."""

  def __init__(self, *scripts, **kwargs):
    self.settings = make_settings(**kwargs)
    self.store = params.ParamStore()
    self.store.publish(0, [])
    self.queue = queues.UnrollQueue(1)
    self.stop = threading.Event()
    self.log, self.error, self.workers = [], None, []
    self.row = worker_table.Row(0)
    parts = actor_groups.Parts(
      self.settings, make_task(None), None, self.store, self.queue, None, '', 0
    )
    remaining = list(scripts)

    def hire():
      script = remaining.pop(0) if remaining else ['play']
      self.workers.append(ScriptedWorker(self.store, script, self.log))
      return self.workers[-1]

    self.seat = seats.Seat(
      parts,
      self.row,
      self.stop,
      hire,
      seats.order_maker(
        parts,
        make_task,
        ScriptedEnvironments().spec,
        0,
        ['scripted'] * NUM_ENVS,
      ),
    )
    self._thread = threading.Thread(target=self._run)
    self._thread.start()

  def _run(self):
    try:
      self.seat.run()
    except Exception as error:
      self.error = error

  def end(self):
    self.stop.set()
    self.queue.close()
    self.join()

  def join(self):
    self._thread.join(20)
    assert not self._thread.is_alive()

  def of(self, kind):
    return [entry[1:] for entry in self.log if entry[0] == kind]


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch):
  monkeypatch.setattr(replacements, 'backoff_secs', lambda _: 0.01)


def test_every_unroll_begins_with_the_newest_weights():
  played = Played(['play'])
  versions = []
  for version in range(1, 6):
    versions.append(int(played.queue.get().version[0]))
    played.store.publish(version, [])
  played.end()
  # One may wait in the queue, and one be under way, while the version rises.
  assert versions[0] == 0
  assert all(v >= i - 2 for i, v in enumerate(versions))


@pytest.mark.parametrize('in_flight', [1, 2])
def test_what_a_worker_has_under_way_is_bounded(in_flight):
  played = Played(['play'], unrolls_in_flight=in_flight)
  time.sleep(0.3)
  # One lies in the queue, `in_flight` more were asked for.
  assert len(played.of('unroll')) == 1 + in_flight
  assert played.workers[0].most_open <= in_flight
  played.end()


def test_time_is_shared_out_over_stages():
  played = Played(['play'])
  for _ in range(3):
    played.queue.get()
  played.end()
  secs = played.seat.timers.secs
  # Totals of the worker, not sums of its reports.
  assert (secs['env'], secs['inference']) == (1.0, 2.0)
  assert secs['put'] + secs['travel'] == pytest.approx(0.5)
  assert min(secs['put'], secs['travel']) >= 0


def test_a_lost_worker_is_replaced_with_a_new_seed_and_its_unroll_counted():
  played = Played(['play', 'play', seats.LostError('its machine is gone')])
  while len(played.of('set_up')) < 2:
    played.queue.get()
  played.end()
  (first, seed), (second, other_seed) = played.of('set_up')
  assert first.base_seed != second.base_seed
  assert seed != other_seed
  assert (first.restarts_used, second.restarts_used) == (0, 0)
  assert (played.row.losses, played.row.restarts) == (1, 0)
  assert played.row.last_error == 'LostError: its machine is gone'
  assert played.seat.num_dropped_steps == LENGTH * NUM_ENVS
  assert len(played.of('kill')) == 1


def test_with_two_in_flight_both_are_lost():
  lost = seats.LostError('gone')
  played = Played([lost], unrolls_in_flight=2)
  while not played.row.losses:
    time.sleep(0.01)
  played.end()
  assert played.seat.num_dropped_steps % (2 * LENGTH * NUM_ENVS) == 0


def test_an_environment_error_ends_the_run_unless_restarts_are_allowed():
  played = Played([ValueError('nonsense')])
  played.join()
  assert isinstance(played.error, ValueError)
  assert len(played.of('kill')) == 1


def test_restarts_are_capped_and_the_first_failure_is_kept():
  played = Played(
    [OSError('the first')],
    [OSError('the second')],
    [OSError('the third')],
    actor={'on_env_error': 'restart', 'max_restarts': 2},
  )
  played.join()
  assert isinstance(played.error, replacements.TooManyFailuresError)
  message = str(played.error)
  assert 'max_restarts=2 allows: the third' in message
  assert 'The first was: OSError: the first' in message
  assert str(played.error.__cause__) == 'the first'
  used = [request.restarts_used for request, _ in played.of('set_up')]
  assert used == [0, 1, 2]


def test_silent_environments_are_a_failure_that_names_level_and_age():
  played = Played(['play', 'silent'], actor={'env_timeout_secs': 0.05})
  played.queue.get()
  played.join()
  assert isinstance(played.error, TimeoutError)
  assert '(scripted) have not answered for 3 s' in str(played.error)


def test_a_worker_that_answers_nothing_is_lost(monkeypatch):
  def beat(self, timeout_secs):
    raise seats.LostError('it does not answer')

  monkeypatch.setattr(ScriptedWorker, 'beat', beat)
  played = Played(['play', 'silent'], actor={'env_timeout_secs': 0.05})
  while len(played.of('set_up')) < 2:
    played.queue.get()
  played.end()
  assert (played.row.losses, played.row.restarts) == (1, 0)


def test_losses_are_capped_within_an_hour():
  clock = [0.0]
  replaced = replacements.Replacements('abort', 0, 2, now=lambda: clock[0])
  for clock[0] in (0.0, 1800.0, 3700.0):
    replaced.after_loss(seats.LostError('gone'))
  assert replaced.num_losses == 3
  with pytest.raises(
    replacements.TooManyFailuresError, match='max_worker_losses=2 in an hour'
  ):
    replaced.after_loss(seats.LostError('gone again'))


def test_restarts_of_environments_use_up_those_of_workers():
  replaced = replacements.Replacements('restart', 3, 0)
  replaced.count_restarts(2)
  replaced.after_failure(OSError('once'))
  assert replaced.num_restarts == 3
  with pytest.raises(replacements.TooManyFailuresError):
    replaced.after_failure(OSError('twice'))


def test_the_back_off_doubles_up_to_half_a_minute(monkeypatch):
  monkeypatch.undo()
  waits = [replacements.backoff_secs(n) for n in (1, 2, 3, 6, 7, 8, 10**6)]
  assert waits == [0.5, 1.0, 2.0, 16.0, 30.0, 30.0, 30.0]


def test_the_first_worker_has_the_seeds_of_the_local_runtime():
  settings = make_settings(actor={'num_actors': 3})
  parts = actor_groups.Parts(
    settings, make_task(None), None, None, None, None, '', 4
  )
  make = seats.order_maker(parts, make_task, None, 2, ['scripted'])
  order = make(0, 0)
  entropy = np.random.SeedSequence((settings.run.seed, 4, 1))
  expected = entropy.generate_state(3).astype(np.int32)[2]
  assert order.policy_seed == expected
  assert order.request.base_seed == tasks.start_seed(settings.run.seed, 4)
  seeds = {make(n, 0).request.base_seed for n in range(5)}
  assert len(seeds) == 5


def worker_that_plays(**changes):
  settings = make_settings()
  order = rollout_worker.Order(
    settings=settings,
    make_task=make_task,
    spec=ScriptedEnvironments().spec,
    request=tasks.Request(['scripted'] * NUM_ENVS, 1, 0),
    policy_seed=3,
    import_path=(),
  )
  worker = rollout_worker.RolloutWorker()
  worker.set_up(order._replace(**changes))
  return worker


def test_a_worker_acts_with_the_weights_that_it_is_given():
  from scalable_agent.nets import agent as agent_lib

  worker = worker_that_plays()
  agent = agent_lib.Agent(ScriptedEnvironments().spec, make_settings().agent)
  shapes = [v.shape for v in agent.trainable_variables]
  zeros = [np.zeros(s, np.float32) for s in shapes]
  report, unroll = worker.unroll(5, zeros)
  assert (unroll.version == 5).all()
  assert unroll.env_outputs.reward.shape == (LENGTH + 1, NUM_ENVS)
  np.testing.assert_array_equal(unroll.agent_outputs.baseline, 0)
  ones = [np.full(s, 0.1, np.float32) for s in shapes]
  _, unroll = worker.unroll(6, ones)
  assert (unroll.agent_outputs.baseline[1:] != 0).all()
  assert report.secs.keys() == {'env', 'inference', 'idle'}
  stage, age = worker.beat()
  assert stage != 'env' or age < 1
  worker.close()


def test_a_worker_with_other_environments_than_the_learner_refuses():
  spec = ScriptedEnvironments().spec
  with pytest.raises(ValueError, match='but the learner'):
    worker_that_plays(spec=spec._replace(frames_per_step=7))


def test_the_table_tells_rates_and_spread(tmp_path):
  table = worker_table.WorkerTable(str(tmp_path), 3, unroll_frames=10)
  assert table.metrics()['workers_waiting'] == 3
  for row, unrolls in zip(table.rows[:2], (10, 30), strict=True):
    row.state, row.node = worker_table.PLAYING, f'10.0.0.{unrolls}'
    row.unrolls, row.policy_lag = unrolls, unrolls // 10
  time.sleep(0.1)
  metrics = table.metrics()
  assert metrics['workers_playing'] == 2
  assert metrics['worker_nodes'] == 2
  assert metrics['worker_lag_max'] == 3
  low, high = metrics['worker_frames_per_sec']
  assert high == pytest.approx(3 * low)
  assert 100 / 0.4 < low <= 100 / 0.1
  with open(tmp_path / worker_table.FILE, newline='') as file:
    rows = list(csv.DictReader(file))
  assert [row['frames'] for row in rows] == ['100', '300', '0']
  assert [row['state'] for row in rows] == ['playing', 'playing', 'waiting']
  # Nothing new: no speed.
  assert set(table.metrics()['worker_frames_per_sec']) == {0.0}


def test_an_own_cluster_has_what_its_workers_take(tmp_path):
  settings = make_settings(
    actor={'num_actors': 3},
    worker_cpus=2.0,
    worker_memory_gib=0.5,
    worker_resources='simulator=1',
  )
  own = ray_settings.own_cluster(settings, str(tmp_path))
  assert own['num_cpus'] == 6
  assert own['resources'] == {'simulator': 3.0}
  assert own['_memory'] == 3 * 2**29
  assert own['_node_ip_address'] == '127.0.0.1'
  options = ray_settings.worker_options(settings.distributed)
  assert options['num_cpus'] == 2.0
  assert options['memory'] == 2**29
  assert options['max_restarts'] == 0


@pytest.mark.parametrize(
  ('offered', 'said'),
  [
    ([{'CPU': 1.0, 'sim': 1.0}], 'none of the cluster has so much'),
    ([{'CPU': 2.0}, {'CPU': 2.0, 'sim': 1.0}], 'others take it'),
    ([], 'none of the cluster has so much'),
  ],
)
def test_waiting_workers_are_explained(offered, said):
  distributed = config.DistributedConfig(
    worker_cpus=2.0, worker_resources='sim=1'
  )
  sentence = ray_settings.why_waiting(distributed, offered)
  assert sentence == f'each takes CPU=2, sim=1, and {said}.'


def test_a_wrong_address_is_told_at_once():
  with socket.socket() as free:
    free.bind(('127.0.0.1', 0))
    port = free.getsockname()[1]
  start = time.monotonic()
  with pytest.raises(ValueError, match='where no Ray cluster answers'):
    ray_settings.check_address(f'127.0.0.1:{port}')
  with pytest.raises(ValueError, match='write auto, or host:port'):
    ray_settings.check_address('somewhere')
  assert time.monotonic() - start < 5


def test_closed_queues_end_a_seat_quietly():
  played = Played(['play'])
  played.queue.get()
  played.queue.close()
  played.join()
  assert played.error is None
