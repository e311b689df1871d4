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
"""The environment in which TensorFlow is imported by the tests."""

import os

# On some CPUs TensorFlow leaves oneDNN off unless told before its import.
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '1'
# The tests state numbers of float32 on a CPU.
os.environ['CUDA_VISIBLE_DEVICES'] = ''
