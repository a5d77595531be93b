"""Pictures of arrays, small enough for a page."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tilesmith.app.runtime import images
from tilesmith.app.runtime.axes import channel_dim
from tilesmith.scheduler.ir.pipeline.types import TYPES

MOST_PIXELS = 1024
"""The most points of a preview along either side."""

Array = np.ndarray[Any, np.dtype[Any]]


def is_picture(array: Array, dims: tuple[str, ...]) -> bool:
    """True if the array, whose axes are the reverse of the dims, can be shown."""
    if len(dims) not in (2, 3) or not (array.dtype.kind == "f" or array.dtype in (np.bool_, np.uint8, np.uint16)):
        return False
    channel = channel_dim(dims)
    return channel is None or array.shape[len(dims) - 1 - dims.index(channel)] in images.COLOURS


def png(array: Array, dims: tuple[str, ...], stretch: bool) -> bytes:
    """The picture of an array, averaged down to MOST_PIXELS. ImageError where it is none."""
    small = _averaged(array, dims)
    with tempfile.TemporaryDirectory(prefix="tilesmith-") as folder:
        path = Path(folder) / "preview.png"
        images.check_writable(path, dims, TYPES[str(array.dtype)])
        images.write(path, small, dims, stretch)
        return path.read_bytes()


def _averaged(array: Array, dims: tuple[str, ...]) -> Array:
    """The array with every block of its picture's points replaced by their mean. Axes are the reverse of the dims."""
    channel = channel_dim(dims)
    sides = [axis for axis, dim in enumerate(reversed(dims)) if dim != channel]
    step = -(-max(array.shape[axis] for axis in sides) // MOST_PIXELS)
    if step == 1 or array.dtype == np.bool_:
        return array
    for axis in sides:
        count = max(1, array.shape[axis] // step)
        whole = array.take(range(count * min(step, array.shape[axis])), axis)
        blocks = whole.reshape(*whole.shape[:axis], count, -1, *whole.shape[axis + 1 :])
        array = blocks.mean(axis + 1, dtype=np.float32).astype(array.dtype)
    return array
