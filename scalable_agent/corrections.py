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
"""The four off-policy corrections that the paper compares, as pure functions.

Espeholt et al. 2018, section 5.2.2 and table 2. With `rho = pi / mu` and the
advantage over the n-step return, `A_s = r_s + discount_s v_{s+1} - V(x_s)`:

    correction  targets v of the baseline   policy gradient
    vtrace      V-trace, rho and c clipped  min(clip_pg_rho, rho) A grad log pi
    one_step    as if on-policy             min(clip_pg_rho, rho) A grad log pi
    epsilon     as if on-policy             A grad log(pi + 1e-6)
    none        as if on-policy             A grad log pi

"As if on-policy" is V-trace with every rho and c at 1 (times lambda, where that
is not 1): the n-step return. `one_step` is V-trace without traces; `epsilon`
keeps log pi from running away and corrects nothing else, as GA3C does.
"""

from typing import Any

import tensorflow as tf

from scalable_agent import losses, shapes, vtrace_tf
from scalable_agent.config import CORRECTIONS

# The paper's value.
EPSILON = 1e-6


def from_distributions(
  correction: str,
  behaviour_distribution: Any,
  target_distribution: Any,
  actions: Any,
  **options: Any,
) -> vtrace_tf.VTraceFromLogitsReturns:
  """Targets of the baseline and weights of the policy gradient.

  Args:
    correction: one of `config.CORRECTIONS`.

  The other arguments are those of `vtrace_tf.from_distributions`; `log_rhos` of
  the result are the true ones, whatever the correction makes of them.

  Raises:
    ValueError: the correction is unknown.
  """
  if correction not in CORRECTIONS:
    raise ValueError(
      f'correction is {correction!r}; choose one of {", ".join(CORRECTIONS)}.'
    )
  if correction == 'vtrace':
    return vtrace_tf.from_distributions(
      behaviour_distribution, target_distribution, actions, **options
    )
  behaviour = shapes.log_probs(
    behaviour_distribution, actions, 'behaviour_distribution'
  )
  target = shapes.log_probs(target_distribution, actions, 'target_distribution')
  log_rhos = target - behaviour
  # No rho to clip: thresholds below 1 would shrink what is meant to stay 1.
  unclipped = dict.fromkeys(
    ('clip_rho_threshold', 'clip_pg_rho_threshold', 'clip_c_threshold')
  )
  vs, advantages = vtrace_tf.from_importance_weights(
    tf.zeros_like(log_rhos), **{**options, **unclipped}
  )
  if correction == 'one_step':
    advantages *= _weights(log_rhos, options.get('clip_pg_rho_threshold', 1.0))
  return vtrace_tf.VTraceFromLogitsReturns(
    vs, advantages, log_rhos, behaviour, target
  )


def _weights(log_rhos, threshold):
  rhos = tf.exp(tf.minimum(log_rhos, vtrace_tf.MAX_LOG_RHO))
  if threshold is not None:
    rhos = tf.minimum(rhos, threshold)
  return tf.stop_gradient(rhos)


def policy_gradient_loss(
  correction: str, distribution: Any, actions: Any, advantages: Any
) -> tf.Tensor:
  """The policy-gradient loss of a correction; see the module's table.

  The other arguments and the result are those of `losses.policy_gradient_loss`.
  """
  epsilon = EPSILON if correction == 'epsilon' else 0.0
  return losses.policy_gradient_loss(distribution, actions, advantages, epsilon)
