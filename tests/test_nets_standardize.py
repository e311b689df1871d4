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
"""Tests for standardized images."""

import numpy as np
import pytest
from dm_env import specs

from scalable_agent import config, structs
from scalable_agent.nets import agent, layers


def images(seed=0):
  return np.random.RandomState(seed).uniform(0, 1, (3, 6, 5, 2)).astype('f')


def test_each_image_gets_mean_0_and_nearly_deviation_1():
  given = images()
  result = layers.standardize(given).numpy()
  for one, of in zip(result, given, strict=True):
    assert one.mean() == pytest.approx(0, abs=1e-6)
    assert one.std() == pytest.approx(of.std() / (of.std() + 0.05), rel=1e-4)


def test_neither_brightness_nor_contrast_matters_much():
  given = images()
  bright = layers.standardize(0.2 * given + 0.7).numpy()
  result = layers.standardize(given).numpy()
  correlation = np.corrcoef(bright.ravel(), result.ravel())[0, 1]
  assert correlation > 0.999


def test_an_image_without_contrast_is_zero():
  flat = np.full((1, 4, 4, 1), 0.3, np.float32)
  np.testing.assert_allclose(layers.standardize(flat), 0, atol=1e-5)


def test_half_precision_stays_half_precision():
  result = layers.standardize(images().astype(np.float16))
  assert result.dtype == np.float16
  np.testing.assert_allclose(result, layers.standardize(images()), atol=0.01)


@pytest.mark.parametrize('standardize', [False, True])
def test_the_agent_sees_standardized_images_if_told(standardize):
  spec = structs.EnvironmentSpec(
    specs.Array((24, 24), np.uint8), specs.DiscreteArray(3)
  )
  own = agent.Agent(
    spec,
    config.AgentConfig(torso='shallow', standardize_images=standardize),
  )
  dark = np.random.RandomState(0).randint(0, 100, (1, 1, 24, 24), np.uint8)

  def logits(frames):
    flag = np.ones((1, 1), bool)
    slot = structs.EnvOutput(
      np.zeros((1, 1), np.float32), (), flag, flag, (), frames
    )
    action = np.zeros((1, 1), np.int32)
    return own.unroll(action, slot, own.initial_state(1))[0].policy_logits

  same = np.allclose(logits(dark), logits(dark + 100), atol=1e-5)
  assert same == standardize
