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
"""Two logical CPU devices, so that two replicas fit on one machine.

Import this where replicas are tested: it must happen before TensorFlow starts,
and pytest imports all test modules before it runs the first test.
"""

import tensorflow as tf

from scalable_agent.runtime import devices

tf.config.set_logical_device_configuration(
  tf.config.list_physical_devices('CPU')[0],
  [tf.config.LogicalDeviceConfiguration()] * 2,
)

NAMES = ('/cpu:0', '/cpu:1')


def mirrored():
  """The strategy of two replicas, as a run makes it."""
  return devices.mirrored(NAMES)
