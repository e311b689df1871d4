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
"""What the levels play: small games with the looks of a first-person view.

A game is started with a random generator, plays frame by frame with the seven
numbers of an action, and is drawn only when it is looked at. Rewards are whole
numbers, as Lab's.
"""

import numpy as np

_LOOK, _, _STRAFE, _MOVE, _FIRE = range(5)
CIRCLE = 3420  # Pixels of looking in a full turn: 57 a frame for a second.
_VIEW = CIRCLE // 4  # Width of the view.
_WALLS = 16
_TURN = 60  # Pixels of looking that count as a choice.
# Frames after an answer in which looking does not count: whoever holds actions
# for 4 frames has not seen the next question yet.
_REST = 3

COLOURS = {
  'red': (200, 40, 40),
  'blue': (40, 60, 200),
  'green': (40, 170, 60),
  'white': (230, 230, 230),
}


class Game:
  """A level's rules. Subclasses override the rest."""

  instruction = ''
  over = False
  position = 0.0
  yaw = 0

  def start(self, random):
    """Begins an episode, all of it drawn from `random`."""
    raise NotImplementedError

  def frame(self, action):
    """Plays one frame; returns its reward."""
    raise NotImplementedError

  def draw(self, height, width):
    """RGB of `[height, width, 3]`."""
    raise NotImplementedError


class RingWorld(Game):
  """Objects stand around the player: look at one, walk to it, get its reward.

  `worth` of each object; `fire`: it is shot instead; `told`: the instruction
  names the colour to take, others cost as much; `last`: the first one ends the
  episode, 0.2 seconds later.
  """

  def __init__(
    self, worth=1, num_objects=4, fire=False, told=False, last=False
  ):
    self._worth = worth
    self._num_objects = num_objects
    self._fire = fire
    self._told = told
    self._last = last

  def start(self, random):
    self._random = random
    self._sky, self._floor = random.integers(20, 236, (2, 3), np.uint8)
    self._wall = random.integers(20, 236, (_WALLS, 3), np.uint8)
    self.yaw, self.position = int(random.integers(CIRCLE)), 0.0
    self._frames_left, self.over, self._pause = None, False, 0
    self._objects = [self._new_object() for _ in range(self._num_objects)]
    self._instruct()

  def frame(self, action):
    self.yaw = (self.yaw + action[_LOOK]) % CIRCLE
    self._pause = max(0, self._pause - 1)
    if self._frames_left is not None:
      self._frames_left -= 1
      self.over = self._frames_left <= 0
      return 0
    for index, (bearing, distance, colour) in enumerate(self._objects):
      angle = (bearing - self.yaw + CIRCLE // 2) % CIRCLE - CIRCLE // 2
      if self._fire:
        taken = action[_FIRE] and not self._pause and abs(angle) < 60
      else:
        if action[_MOVE] > 0 and abs(angle) < 150:
          distance -= 1
          self._objects[index] = (bearing, distance, colour)
        taken = distance <= 0
      if taken:
        return self._take(index, colour)
    if action[_FIRE]:
      self._pause = 30
    return 0

  def _take(self, index, colour):
    reward = self._worth
    if self._told and colour != self._wanted:
      reward = -reward
    self.position += 1
    self._objects[index] = self._new_object()
    self._instruct()
    if self._last:
      self._frames_left = 12
    return reward

  def _new_object(self):
    bearing, distance = self._random.integers((0, 40), (CIRCLE, 120))
    names = ('red', 'blue') if self._told else tuple(COLOURS)
    return int(bearing), int(distance), str(self._random.choice(names))

  def _instruct(self):
    if self._told:
      self._wanted = str(self._random.choice([o[2] for o in self._objects]))
      self.instruction = f'Pick the {self._wanted} object.'

  def draw(self, height, width):
    image = np.empty((height, width, 3), np.uint8)
    angles = np.arange(width) * _VIEW // width - _VIEW // 2 + self.yaw
    image[: height // 3] = self._sky
    image[height // 3 : 2 * height // 3] = self._wall[
      angles * _WALLS // CIRCLE % _WALLS
    ]
    image[2 * height // 3 :] = self._floor
    for bearing, distance, colour in self._objects:
      angle = (bearing - self.yaw + CIRCLE // 2) % CIRCLE - CIRCLE // 2
      x, half = (
        width // 2 + angle * width // _VIEW,
        height * 4 // (distance + 20),
      )
      if -half < x < width + half:
        half = min(max(half, 1), height // 2)
        image[height // 2 - half : height // 2 + half, max(0, x - half) :][
          :, : half + min(x, half)
        ] = COLOURS[colour]
    return image


class _Choice(Game):
  """Trials in which looking left or looking right far enough is an answer."""

  def start(self, random):
    self._random = random
    self._trial()
    self._rest = 0

  def _trial(self):
    self._turned, self._frames, self._rest = 0, 0, _REST
    self._right = bool(self._random.integers(2))
    self._backdrop = self._random.integers(60, 196, 3, np.uint8)

  def _answer(self, action):
    """1 for the right answer, -1 for the wrong one, 0 for none yet."""
    if self._rest > 0:
      self._rest -= 1
      return 0
    self._turned += action[_LOOK]
    if abs(self._turned) < _TURN:
      return 0
    return 1 if (self._turned > 0) == self._right else -1

  def _draw(self, height, width, colour):
    image = np.empty((height, width, 3), np.uint8)
    image[:] = colour
    image[height // 2 :, max(0, width // 2 + self._turned * width // 256)] = 0
    return image


class TurnAsTold(_Choice):
  """The instruction says where to turn; the frame does not."""

  def _trial(self):
    super()._trial()
    self.instruction = f'turn {"right" if self._right else "left"}'

  def frame(self, action):
    reward = self._answer(action)
    if reward:
      self._trial()
    return reward

  def draw(self, height, width):
    return self._draw(height, width, self._backdrop)


class RememberColour(_Choice):
  """Red: left, blue: right; shown first, asked after a gap, on green."""

  cue, gap, limit = 8, 8, 60  # Frames.

  def _trial(self):
    super()._trial()
    self._rest = 0  # The cue is rest enough.

  def frame(self, action):
    self._frames += 1
    reward = 0
    if self._frames > self.cue + self.gap:
      reward = self._answer(action)
    if reward or self._frames >= self.limit:
      self._trial()
    return reward

  def draw(self, height, width):
    if self._frames < self.cue:
      colour = COLOURS['blue' if self._right else 'red']
    elif self._frames < self.cue + self.gap:
      colour = (128, 128, 128)
    else:
      colour = COLOURS['green']
    return self._draw(height, width, colour)


class LongCorridor(Game):
  """Forward past the pebbles to the end; a step aside is a fall."""

  def __init__(self, difficulty=1.0):
    self._length = max(1, round(40 * difficulty))

  def start(self, random):
    self._wall = random.integers(60, 196, 3, np.uint8)
    self.position, self._furthest, self._pause = 0, 0, 0
    self._frames_left, self.over = None, False

  def frame(self, action):
    if self._frames_left is not None:
      self._frames_left -= 1
      self.over = self._frames_left <= 0
      return 0
    self._pause = max(0, self._pause - 1)
    if action[_STRAFE] and not self._pause:
      self.position, self._pause = 0, 15
      return -10
    self.position = max(0, self.position + action[_MOVE])
    if self.position >= self._length:
      self._frames_left = 12
      return 100
    if self.position <= self._furthest:
      return 0
    self._furthest = self.position
    return int(self.position % 10 == 0)

  def draw(self, height, width):
    image = np.empty((height, width, 3), np.uint8)
    image[:] = self._wall
    half = max(1, height // 2 * self.position // self._length)
    image[height // 2 - half : height // 2 + half] = COLOURS['white']
    image[:, : width // 16] = COLOURS['red']
    image[:, -width // 16 :] = COLOURS['red']
    return image
