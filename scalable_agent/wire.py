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
"""Unrolls as bytes, to travel between machines: raw, LZ4, or JPEG.

The bytes are a length, a header in JSON, and the arrays one after the other in
the order of `tree.flatten`. Nothing in them is ever unpickled.
"""

import io
import json
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import tree

from scalable_agent import config, structs

# Raw: as in memory. LZ4: all of it compressed. JPEG: images lose details, so
# the learner sees other pixels than the actor did; all else is raw.
ENCODINGS = config.ENCODINGS

_LENGTH = struct.Struct('<4sI')
_MAGIC = b'UNR1'
# Axes in front of an image, both in an unroll and in the core's past frames.
_LEADING = 2
# After them: gray, or colour with its channels last.
_GRAY, _COLOUR = 2, 3


def make_encoder(
  encoding: str, jpeg_quality: int = 90
) -> Callable[[structs.Unroll], bytes]:
  """What turns unrolls of NumPy arrays into bytes.

  Args:
    encoding: one of `ENCODINGS`.
    jpeg_quality: 1 to 100, see Pillow.

  Raises:
    ValueError: there is no such encoding, or its library is not installed.
  """
  if encoding not in ENCODINGS:
    raise ValueError(
      f'unroll_encoding is {encoding!r}; choose {", ".join(ENCODINGS)}.'
    )
  if encoding == 'raw':
    return lambda unroll: _join(encoding, *_flatten(unroll))
  if encoding == 'lz4':
    frame = _lz4()
    return lambda unroll: _join(
      encoding, *_flatten(unroll), compress=frame.compress
    )
  image = _pillow()
  return lambda unroll: _join(
    encoding, *_flatten(unroll, lambda x: _to_jpeg(image, x, jpeg_quality))
  )


def decode(data: bytes, example: structs.Unroll) -> structs.Unroll:
  """The unroll that was encoded. Its arrays may be read-only views of `data`.

  Args:
    data: what an encoder made, of any encoding.
    example: an unroll of the same structure and dtypes, of any width.

  Raises:
    ValueError: the bytes are damaged, or of another kind of unroll.
  """
  header, body = _split(memoryview(data))
  if header['encoding'] == 'lz4':
    body = memoryview(_lz4().decompress(body))
  expected = tree.flatten(example)
  leaves = header['leaves']
  found = [_kind(leaf['dtype'], leaf['shape']) for leaf in leaves]
  if found != [_kind(array.dtype, array.shape) for array in expected]:
    raise ValueError(
      'The unroll has other arrays than unrolls of this run; start workers and '
      'learner with the same settings and the same version.'
    )
  arrays = []
  for leaf in leaves:
    arrays.append(_read(leaf, body))
    body = body[_num_bytes(leaf) :]
  return tree.unflatten_as(example, arrays)


def _flatten(
  unroll: structs.Unroll,
  to_jpeg: Callable[[np.ndarray], list[bytes]] | None = None,
) -> tuple[list[dict[str, Any]], list[Any]]:
  """A description of each array, and the bytes of all."""
  leaves: list[dict[str, Any]] = []
  parts: list[Any] = []
  for array in tree.flatten(unroll):
    leaf = {'dtype': array.dtype.str, 'shape': array.shape}
    if to_jpeg is not None and _holds_images(array.dtype, array.shape):
      files = to_jpeg(array)
      leaf['jpeg'] = [len(file) for file in files]
      parts.extend(files)
    else:
      parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    leaves.append(leaf)
  return leaves, parts


def _join(encoding, leaves, parts, compress=None):
  header = json.dumps({'encoding': encoding, 'leaves': leaves}).encode()
  body = parts if compress is None else [compress(b''.join(parts))]
  return b''.join([_LENGTH.pack(_MAGIC, len(header)), header, *body])


def _split(data):
  """The header, checked for what it must have, and the rest."""
  magic, length = b'', 0
  if len(data) >= _LENGTH.size:
    magic, length = _LENGTH.unpack(data[: _LENGTH.size])
  stop = _LENGTH.size + length
  if magic != _MAGIC or len(data) < stop:
    raise ValueError(
      f'These {len(data)} bytes are no unroll, or a part of one; they must '
      'come whole from an encoder of this version.'
    )
  return json.loads(bytes(data[_LENGTH.size : stop])), data[stop:]


def _num_bytes(leaf):
  if 'jpeg' in leaf:
    return sum(leaf['jpeg'])
  return np.dtype(leaf['dtype']).itemsize * math.prod(leaf['shape'])


def _kind(dtype, shape):
  """What arrays of the same leaf have in common; texts differ in length."""
  dtype = np.dtype(dtype)
  return ('text' if dtype.kind in 'OSU' else dtype.str), len(shape)


def _read(leaf, body):
  """The array that stands at the beginning of `body`."""
  shape, dtype = tuple(leaf['shape']), np.dtype(leaf['dtype'])
  if len(body) < _num_bytes(leaf):
    raise ValueError(
      f'The unroll breaks off in an array of {dtype} {shape}; it must come '
      'whole from an encoder of this version.'
    )
  if 'jpeg' in leaf:
    return _from_jpeg(_pillow(), leaf['jpeg'], body, shape)
  return np.frombuffer(body[: _num_bytes(leaf)], dtype).reshape(shape)


def _holds_images(dtype, shape):
  inner = len(shape) - _LEADING
  is_colour = inner == _COLOUR and shape[-1] == _COLOUR
  return dtype == np.uint8 and (inner == _GRAY or is_colour)


def _to_jpeg(image, array, quality):
  """One file for each image, so that none bleeds into the next."""
  files = []
  for pixels in array.reshape(-1, *array.shape[_LEADING:]):
    file = io.BytesIO()
    # 4:4:4, because small things in games are told apart by colour alone.
    image.fromarray(pixels).save(file, 'JPEG', quality=quality, subsampling=0)
    files.append(file.getvalue())
  return files


def _from_jpeg(image, lengths, body, shape):
  images = np.empty((len(lengths), *shape[_LEADING:]), np.uint8)
  start = 0
  for index, length in enumerate(lengths):
    file = io.BytesIO(body[start : start + length])
    try:
      images[index] = np.asarray(image.open(file, formats=['JPEG']))
    except OSError as error:
      raise ValueError(f'An image of the unroll is damaged: {error}') from error
    start += length
  return images.reshape(shape)


def _lz4():
  try:
    import lz4.frame
  except ImportError as error:
    raise ValueError(_missing('lz4', 'lz4')) from error
  return lz4.frame


def _pillow():
  try:
    from PIL import Image
  except ImportError as error:
    raise ValueError(_missing('jpeg', 'Pillow')) from error
  return Image


def _missing(encoding, library):
  return (
    f'unroll_encoding is {encoding}, but {library} is not installed; install '
    "it with `pip install '.[encodings]'`, or choose raw."
  )
