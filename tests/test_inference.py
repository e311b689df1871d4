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
"""Tests for inference: direct and dynamically batched policies."""

import resource
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
import tree
from dm_env import specs

from scalable_agent import config, inference, params, structs
from scalable_agent.nets import agent as agent_lib

SPEC = structs.EnvironmentSpec(
  observation=specs.Array((3,), np.float32), action=specs.DiscreteArray(4)
)


def make_agent(seed=0, core='lstm'):
  return agent_lib.Agent(SPEC, config.AgentConfig(core=core), seed=seed)


def published(agent, version=0):
  store = params.ParamStore()
  store.publish(version, [v.numpy() for v in agent.trainable_variables])
  return store


def slot(num_envs, seed=0, done=False):
  rng = np.random.RandomState(seed)
  zeros = np.zeros(num_envs, np.float32)
  return structs.EnvOutput(
    reward=zeros,
    info=structs.EpisodeInfo(zeros, np.zeros(num_envs, np.int32)),
    done=np.full(num_envs, done),
    first=np.full(num_envs, done),
    truncated=np.zeros(num_envs, bool),
    observation=rng.standard_normal((num_envs, 3)).astype(np.float32),
  )


def make_policies(kind, agent_seed=1, num_envs=2, num_clients=1, **kwargs):
  store = published(make_agent(seed=0))
  own = make_agent(seed=agent_seed)
  if kind == 'direct':
    return store, [inference.DirectPolicy(own, store, num_envs, 7, **kwargs)]
  batcher = inference.InferenceBatcher(own, store, num_envs, num_clients, 7)
  return store, [batcher.client() for _ in range(num_clients)]


@pytest.fixture(params=['direct', 'batched'])
def kind(request):
  return request.param


def test_a_policy_computes_what_the_network_computes(kind):
  _, (policy,) = make_policies(kind)
  reference = make_agent(seed=0)
  policy.begin_unroll()
  actions, state = np.zeros(2, np.int32), policy.initial_state()
  for seed in range(3):
    env_output = slot(2, seed)
    expected, expected_state = reference.step(actions, env_output, state)
    value = policy.value(actions, env_output, state)
    output, state = policy.step(actions, env_output, state)
    np.testing.assert_allclose(
      output.policy_logits, expected.policy_logits, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(output.baseline, expected.baseline, rtol=1e-5)
    np.testing.assert_allclose(value, expected.baseline, rtol=1e-5)
    tree.map_structure(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
      state,
      expected_state,
    )
    assert output.action.dtype == np.int32
    actions = output.action


def test_actions_are_sampled_from_the_logits(kind):
  _, (policy,) = make_policies(kind, num_envs=2)
  policy.begin_unroll()
  env_output, state = slot(2), policy.initial_state()
  actions = np.zeros(2, np.int32)
  outputs = [policy.step(actions, env_output, state)[0] for _ in range(2000)]
  expected = tf.nn.softmax(outputs[0].policy_logits[0]).numpy()
  counts = np.bincount([o.action[0] for o in outputs], minlength=4)
  # Five standard deviations of a count.
  np.testing.assert_allclose(counts / 2000, expected, atol=0.056)


def test_the_same_seed_gives_the_same_actions():
  def actions_of(policy):
    policy.begin_unroll()
    state, actions = policy.initial_state(), np.zeros(2, np.int32)
    return [
      policy.step(actions, slot(2), state)[0].action.tolist() for _ in range(9)
    ]

  first, second = (make_policies('direct')[1][0] for _ in range(2))
  assert actions_of(first) == actions_of(second)


def test_greedy_takes_the_most_likely_action():
  _, (policy,) = make_policies('direct', greedy=True)
  policy.begin_unroll()
  output, _ = policy.step(
    np.zeros(2, np.int32), slot(2), policy.initial_state()
  )
  np.testing.assert_array_equal(output.action, output.policy_logits.argmax(-1))


def test_weights_are_pulled_at_the_start_of_an_unroll_only(kind):
  store, (policy,) = make_policies(kind)
  assert policy.begin_unroll() == 0
  args = np.zeros(2, np.int32), slot(2), policy.initial_state()
  before = policy.step(*args)[0].policy_logits
  newer = make_agent(seed=5)
  store.publish(3, [v.numpy() for v in newer.trainable_variables])
  np.testing.assert_allclose(policy.step(*args)[0].policy_logits, before)
  assert policy.begin_unroll() == 3
  expected, _ = newer.step(*args)
  np.testing.assert_allclose(
    policy.step(*args)[0].policy_logits,
    expected.policy_logits,
    rtol=1e-4,
    atol=1e-6,
  )


def test_many_clients_get_their_own_answers():
  num_clients = 8
  _, policies = make_policies('batched', num_envs=2, num_clients=num_clients)
  reference = make_agent(seed=0)
  policies[0].begin_unroll()
  failures = []

  def ask(client):
    policy = policies[client]
    state, actions = policy.initial_state(), np.zeros(2, np.int32)
    for i in range(20):
      env_output = slot(2, seed=100 * client + i)
      expected, _ = reference.step(actions, env_output, state)
      output, state = policy.step(actions, env_output, state)
      if not np.allclose(
        output.policy_logits, expected.policy_logits, 1e-4, 1e-5
      ):
        failures.append((client, i))
      actions = output.action

  threads = [
    threading.Thread(target=ask, args=(c,), daemon=True)
    for c in range(num_clients)
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(60)
    assert not thread.is_alive()
  assert not failures


def test_a_policy_is_traced_once(kind, monkeypatch):
  _, (policy,) = make_policies(kind)
  step, traces = agent_lib.Agent.step, []

  def counted(*args):
    traces.append(args)
    return step(*args)

  monkeypatch.setattr(agent_lib.Agent, 'step', counted)
  policy.begin_unroll()
  state, actions = policy.initial_state(), np.zeros(2, np.int32)
  for i in range(5):
    output, state = policy.step(actions, slot(2, done=i == 2), state)
    actions = output.action
  assert len(traces) == 1


def test_the_core_state_moves():
  _, (policy,) = make_policies('direct')
  policy.begin_unroll()
  state = policy.initial_state()
  _, after = policy.step(np.zeros(2, np.int32), slot(2), state)
  assert np.abs(np.asarray(after.lstm.c)).max() > 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != 'linux', reason='reads /proc/self/statm')
def test_memory_stays_flat_over_many_calls():
  _, (policy,) = make_policies('direct')
  policy.begin_unroll()
  env_output, state = slot(2), policy.initial_state()
  actions = np.zeros(2, np.int32)

  def act(times):
    current = state
    for _ in range(times):
      _, current = policy.step(actions, env_output, current)

  def resident_bytes():
    with open('/proc/self/statm', encoding='utf-8') as file:
      return int(file.read().split()[1]) * resource.getpagesize()

  act(1000)
  before = resident_bytes()
  act(10_000)
  assert resident_bytes() - before < 20e6
