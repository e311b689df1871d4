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
"""V-trace converges to the value of pi_rho_bar (section 4.1 of the paper)."""

import numpy as np
import pytest
from experiments import fixed_point

WORLD = fixed_point.make_world(0)


@pytest.mark.parametrize('rho_bar', [0.5, 1.0, float('inf')])
def test_vtrace_converges_to_the_closed_form(rho_bar):
  np.testing.assert_allclose(
    fixed_point.iterate(WORLD, rho_bar),
    fixed_point.closed_form(WORLD, rho_bar),
    atol=1e-4,
  )


def test_the_closed_form_lies_between_the_two_policies():
  of_mu = fixed_point.value_of(WORLD, WORLD.mu)
  of_pi = fixed_point.value_of(WORLD, WORLD.pi)
  assert np.abs(of_mu - of_pi).max() > 0.5
  # With a rho bar that clips everything, and with one that clips nothing.
  np.testing.assert_allclose(fixed_point.closed_form(WORLD, 1e-6), of_mu)
  np.testing.assert_allclose(fixed_point.closed_form(WORLD, 1e6), of_pi)
  between = fixed_point.closed_form(WORLD, 1.0)
  assert np.abs(between - of_mu).max() > 0.1
  assert np.abs(between - of_pi).max() > 0.1


def test_a_value_function_solves_its_bellman_equation():
  values = fixed_point.value_of(WORLD, WORLD.pi)
  for x in range(3):
    expected = 0.0
    for a in range(2):
      following = WORLD.transitions[x, a] @ values
      expected += WORLD.pi[x, a] * (WORLD.rewards[x, a] + 0.8 * following)
    np.testing.assert_allclose(values[x], expected)
