"""Boxes of places, and NumPy arrays of values over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tilesmith.scheduler.ir.pipeline.arguments import Region
from tilesmith.scheduler.ir.pipeline.semantics import Array

Box: TypeAlias = tuple[tuple[int, int], ...]  # (first, last) per dim, both included


@dataclass(slots=True)
class Buffer:
    """Values over a box. Axes are the reverse of the dims."""

    box: Box
    arrays: tuple[Array, ...]


def box_of(region: Region) -> Box:
    """The box of a region, (min, extent) per dim."""
    return tuple((low, low + extent - 1) for low, extent in region)


def hull(a: Box | None, b: Box) -> Box:
    """The smallest box with both; `b` where `a` is None."""
    if a is None:
        return b
    return tuple((min(p, r), max(q, s)) for (p, q), (r, s) in zip(a, b, strict=True))


def covers(outer: Box, inner: Box) -> bool:
    """True if all of `inner` is in `outer`."""
    return all(p <= r and s <= q for (p, q), (r, s) in zip(outer, inner, strict=True))


def gather(array: Array, box: Box, indices: list[Array], rank: int) -> Array:
    """`array[indices]` for an array over `box`; `indices` are in the order of the dims.

    Where each index varies along an axis of its own and in order, which is so for stencils, whole slices are cut.
    """
    at = [np.asarray(i, np.int64) - first for i, (first, _) in reversed(list(zip(indices, box, strict=True)))]
    at = [i.reshape((1,) * (rank - i.ndim) + i.shape) for i in at]
    if all(i.size == 1 for i in at):
        return np.asarray(array[tuple(int(i.item()) for i in at)]).reshape((1,) * rank)
    axes = [[a for a, n in enumerate(i.shape) if n > 1] for i in at]
    varying = [a[0] for a in axes if a]
    if any(len(a) > 1 for a in axes) or varying != sorted(set(varying)):
        return np.asarray(array[tuple(at)])
    lines = [i.reshape(-1) for i in at]
    array = array[tuple(slice(int(line.min()), int(line.max()) + 1) for line in lines)]
    shape = [1] * rank
    for axis, line in enumerate(lines):
        line = line - line.min()
        steps = np.diff(line)
        if len(line) > 1 and np.all(steps == steps[0]) and steps[0] > 0:
            array = array[(slice(None),) * axis + (slice(None, None, int(steps[0])),)]
        elif len(line) > 1:
            array = np.take(array, line, axis=axis)
        if axes[axis]:
            shape[axes[axis][0]] = len(line)
    return array.reshape(shape)
