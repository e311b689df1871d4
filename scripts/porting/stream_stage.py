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
"""Stage `stream`: the unrolls of an actor in an environment that counts."""

from typing import NamedTuple

import dm_env
import numpy as np
import tree
from dm_env import specs

from porting import kit
from scalable_agent import actor, structs
from scalable_agent.envs import batches

NUM_UNROLLS = 4
UNROLL_LENGTH = 5
NUM_LOGITS = 3


class Script(NamedTuple):
  """How the episodes of one environment go; episode `k` plays entry `k % n`.

  lengths: of the episodes, in steps.
  ends: how they end, `termination` or `truncation`.
  life_lost_at: step (from 1) at which a life is lost; 0: never.
  """

  lengths: tuple[int, ...]
  ends: tuple[str, ...]
  life_lost_at: tuple[int, ...]


SCRIPTS = (
  Script((3, 4), ('termination', 'truncation'), (0, 2)),
  Script((5, 1, 2), ('truncation', 'termination', 'truncation'), (0, 0, 0)),
)


class Counting(dm_env.Environment):
  """Observes (episode, step) and pays back the action plus step / 10."""

  def __init__(self, script: Script):
    self._script = script
    self._episode = -1
    self._step = 0

  def reset(self) -> dm_env.TimeStep:
    """Begins the next episode of the script."""
    self._episode += 1
    self._step = 0
    return dm_env.restart(self._observe())

  def step(self, action: int) -> dm_env.TimeStep:
    """Counts; ends as the script says."""
    self._step += 1
    entry = self._episode % len(self._script.lengths)
    reward = action + self._step / 10
    if self._step == self._script.lengths[entry]:
      end = getattr(dm_env, self._script.ends[entry])
      return end(reward, self._observe())
    lost = self._step == self._script.life_lost_at[entry]
    return dm_env.transition(reward, self._observe(), 0.0 if lost else 1.0)

  def observation_spec(self) -> specs.Array:
    """Episode and step, from 0."""
    return specs.Array((2,), np.float32, 'place')

  def action_spec(self) -> specs.DiscreteArray:
    """More actions than are ever counted to."""
    return specs.DiscreteArray(1000, name='action')

  def _observe(self):
    return np.array([self._episode, self._step], np.float32)


class CountingPolicy:
  """The next action is the last one plus 1; the core adds up steps.

  Consuming a slot, the core state becomes `(0 if done else state) + step + 1`;
  the baseline is the state then, the logits are the action times 0, 1, 2.
  """

  def initial_state(self):
    """Zeros."""
    return np.zeros(len(SCRIPTS), np.float32)

  def begin_unroll(self):
    """Weights never change."""
    return 0

  def step(self, actions, env_output, core_state):
    """See `structs.Policy.step`."""
    state = self.value(actions, env_output, core_state)
    action = np.asarray(actions, np.int32) + 1
    logits = action[:, np.newaxis] * np.arange(NUM_LOGITS, dtype=np.float32)
    return structs.AgentOutput(action, logits.astype(np.float32), state), state

  def value(self, actions, env_output, core_state):
    """See `structs.Policy.value`."""
    del actions
    kept = np.where(env_output.done, np.float32(0), core_state)
    return kept + env_output.observation[:, 1] + 1


_MEANINGS = {
  'action': 'that led to the slot, [U, T + 1, E]',
  'policy_logits': 'of the policy that chose it, [U, T + 1, E, 3]',
  'baseline': 'said when it was chosen, [U, T + 1, E]',
  'reward': 'of the transition into the slot, [U, T + 1, E]',
  'done': 'the slot begins an episode for the learner, [U, T + 1, E]',
  'first': 'the slot follows a real reset, [U, T + 1, E]',
  'truncated': 'a time limit cut the old episode, [U, T + 1, E]',
  'episode_return': 'of the episode that the reward belongs to, [U, T + 1, E]',
  'episode_step': 'of the episode that the reward belongs to, [U, T + 1, E]',
  'observation': '(episode, step), [U, T + 1, E, 2]',
  'truncation_values': 'V of the last observation, [U, T + 1, E]',
  'core_state': 'before slot 0 is consumed, [U, E]',
}


def stream_stage() -> kit.Stage:
  """Some unrolls in a row of one actor with two environments."""
  stage = kit.Stage(
    'stream',
    """Unrolls in a row of one actor with two environments that observe
    (episode, step), both counted from 0, and pay action + step / 10. Episode k
    of environment e follows entry k % n of its script: its length; whether it
    ends by termination or by truncation (a time limit); the step at which a
    life is lost, 0 for never. Consuming a slot, the policy makes its core state
    (0 if done else state) + step + 1; its baseline is the new state, its next
    action is the slot's plus 1, its logits are that next action times 0, 1 and
    2.""",
    tolerance=1e-6,
  )
  environments = batches.SerialEnvironments(
    [_factory(script) for script in SCRIPTS],
    ['counting'] * len(SCRIPTS),
    base_seed=0,
    actor=0,
  )
  own = actor.Actor(environments, CountingPolicy(), UNROLL_LENGTH)
  unrolls = [own.unroll() for _ in range(NUM_UNROLLS)]
  environments.close()
  stage.add_case(
    'counting',
    num_unrolls=NUM_UNROLLS,
    unroll_length=UNROLL_LENGTH,
    scripts=[script._asdict() for script in SCRIPTS],
  )
  stage.add('counting', 'output', _named(unrolls), _MEANINGS)
  return stage


def _factory(script):
  return lambda seed: Counting(script)


def _named(unrolls):
  unroll = tree.map_structure(lambda *x: np.stack(x), *unrolls)
  return {
    **unroll.agent_outputs._asdict(),
    **unroll.env_outputs.info._asdict(),
    **{
      name: getattr(unroll.env_outputs, name)
      for name in ('reward', 'done', 'first', 'truncated', 'observation')
    },
    'truncation_values': unroll.truncation_values,
    'core_state': unroll.core_state,
  }
