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
"""Films an episode: what the environment renders, as a GIF or MP4."""

import os
from collections.abc import Callable

import imageio.v3 as imageio
import numpy as np

from scalable_agent import evaluate, structs
from scalable_agent.envs import base, batches

FORMATS = ('.gif', '.mp4')

# A GIF shows each picture for a whole number of hundredths of a second.
_FPS = 25
_MIN_HEIGHT = 160
_MAX_PICTURES = 4500


def check_path(path: str) -> None:
  """Raises ValueError if `path` cannot become a video."""
  suffix = os.path.splitext(path)[1].lower()
  if suffix not in FORMATS:
    raise ValueError(
      f'video is {path!r}; give a file that ends in {" or ".join(FORMATS)}.'
    )
  if suffix == '.mp4':
    try:
      import imageio_ffmpeg  # noqa: F401
    except ImportError:
      raise ValueError(
        f'video is {path!r}, and MP4 needs the package imageio-ffmpeg; '
        'install it, or give a file that ends in .gif.'
      ) from None


def film(
  factory: base.Factory,
  policy: structs.Policy,
  level_name: str,
  path: str,
  seed: int,
) -> float:
  """Plays one episode, films it, and returns its raw return.

  Args:
    factory: makes an environment that can `render`.
    policy: for one environment.
    level_name: what is played.
    path: of the file, ending in one of `FORMATS`.
    seed: of the environment.

  Raises:
    ValueError: the environment gives no pictures.
  """
  made = []

  def remember(environment_seed):
    made.append(factory(environment_seed))
    return made[-1]

  environments = batches.SerialEnvironments(
    [remember], [level_name], base_seed=seed
  )
  pictures: list[np.ndarray] = []
  try:
    result = evaluate.play(
      environments, policy, 1, on_slot=_camera(made[-1], pictures, level_name)
    )
  finally:
    environments.close()
  _write(path, pictures)
  return result.returns[0]


def _camera(
  environment, pictures, level_name
) -> Callable[[structs.EnvOutput], None]:
  """Takes a picture in each slot of the first episode."""

  def look(env_output):
    over = bool(pictures) and bool(env_output.first[0])
    if over or len(pictures) >= _MAX_PICTURES:
      return
    render = getattr(environment, 'render', None)
    picture = render() if render else None
    if picture is None:
      raise ValueError(
        f'{level_name} renders no pictures; leave --video out, or give its '
        'environment a render() that returns [H, W, 3] uint8.'
      )
    pictures.append(_enlarged(np.asarray(picture, np.uint8)))

  return look


def _enlarged(picture):
  """Small boards get pixels that can be seen; even sizes, as MP4 needs."""
  times = -(-_MIN_HEIGHT // picture.shape[0])
  picture = picture.repeat(times, axis=0).repeat(times, axis=1)
  height, width = picture.shape[:2]
  return picture[: height // 2 * 2, : width // 2 * 2]


def _write(path, pictures):
  os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
  if path.lower().endswith('.gif'):
    imageio.imwrite(path, pictures, duration=1000 // _FPS, loop=0)
  else:
    imageio.imwrite(path, pictures, fps=_FPS, macro_block_size=2)
