"""The loop nest of a group with tile sizes left open: one axis of candidates a tiled dim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import gcd, lcm
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from tilesmith.records import record
from tilesmith.scheduler.analysis.access_functions import Span, furthest
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.ir.schedule.schedule import dim_of, inner, outer

Sizes: TypeAlias = NDArray[np.int64] | int


@record(frozen=True, slots=True)
class Axis:
    """The candidates of one dim of the output: `sizes` are tile sizes (one for a dim without a tile: its extent),
    shaped to broadcast against the other axes, or a plain number; `counts` are tiles, rounded up; `last` the sizes of
    the last tile. `extent` is the problem size B."""

    dim: str
    extent: int
    sizes: Sizes
    counts: Sizes
    last: Sizes
    is_cut: bool = field(init=False)
    """True if any candidate has several tiles."""

    def __post_init__(self) -> None:
        counts = self.counts
        object.__setattr__(self, "is_cut", bool(counts.max() > 1) if isinstance(counts, ndarray) else counts > 1)


def axis(dim: str, extent: int, sizes: list[int], position: int = 0, axes: int = 1) -> Axis:
    """The axis number `position` of `axes` for these tile sizes (each at most the extent)."""
    shape = tuple(len(sizes) if n == position else 1 for n in range(axes))
    array = np.array(sizes, dtype=np.int64).reshape(shape)
    counts = -(-extent // array)
    return Axis(dim, extent, array, counts, extent - (counts - 1) * array)


def single(dim: str, extent: int, size: int) -> Axis:
    """The axis with one tile size, in plain numbers."""
    tiles = -(-extent // size)
    return Axis(dim, extent, size, tiles, extent - (tiles - 1) * size)


class Line(NamedTuple):
    """A span in integers: floor((a * v + lo) / k) .. floor((a * v + hi) / k), of a dim of so many elements at `most`:
    what goes beyond them meets a clamp."""

    a: int
    lo: int
    hi: int
    k: int
    most: int = INT32.max

    def extent(self, points: Sizes) -> Sizes:
        """Elements that iterations 0 to points - 1 of the loop touch."""
        reach = self.a * (points - 1)
        if self.k == 1:
            found = (reach if self.a >= 0 else -reach) + (self.hi - self.lo + 1)
        elif self.a < 0:
            found = self.hi // self.k - (reach + self.lo) // self.k + 1
        else:
            found = (reach + self.hi) // self.k - self.lo // self.k + 1
        return np.minimum(found, self.most) if isinstance(found, ndarray) else min(found, self.most)

    def window(self) -> int:
        """The most elements that one iteration touches."""
        if self.k == 1:
            return min(self.hi - self.lo + 1, self.most)
        return min((furthest(self.a, self.lo, self.k) + self.hi - self.lo) // self.k + 1, self.most)

    def mean_window(self) -> float:
        """Elements that one iteration touches, on average over alignments."""
        whole, rest = divmod(self.hi - self.lo, self.k)
        step = gcd(self.a, self.k)
        alignments = self.k // step
        one_more = alignments + (rest + self.lo % step - self.k) // step  # where a remainder and `rest` make k
        return min(((whole + 1) * alignments + one_more) / alignments, self.most)

    @property
    def rate(self) -> float:
        return abs(self.a) / self.k


def line(span: Span, most: int = INT32.max) -> Line:
    """The span, which must be known, in integers. Raises ScheduleError where these are larger than any coordinate."""
    parts = (span.rate, *span.ends)
    k = lcm(*(x.denominator for x in parts))
    a, lo, hi = (x.numerator * (k // x.denominator) for x in parts)
    found = Line(a, lo, hi, k, most)
    if max(abs(a), abs(lo), abs(hi), k) > INT32.max:
        raise ScheduleError(
            f"from stage to stage, indices scale dim '{span.var}' by {found.a} / {k} and shift it by up to "
            f"{max(abs(found.lo), abs(found.hi)) // k}, beyond every image; scale and shift by less"
        )
    return found


@record(frozen=True, slots=True, eq=False)
class Nest:
    """`loops` is D_m, innermost first; `axes` has one entry for every dim of the output. What was found of a nest is
    kept for that very one."""

    output: str
    loops: tuple[str, ...]
    axes: Mapping[str, Axis]
    positions: Mapping[str, int] = field(init=False)
    _intra: Mapping[str, int] = field(init=False)
    _inter: Mapping[str, int] = field(init=False)
    first_inter: int = field(init=False)
    """Position of the innermost inter-tile loop; outside all loops where nothing is tiled."""

    def __post_init__(self) -> None:
        positions = {loop: n for n, loop in enumerate(self.loops)}
        inter = {d: positions.get(outer(d), len(self.loops)) for d in self.axes}
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "_intra", {d: positions[inner(d)] for d in self.axes})
        object.__setattr__(self, "_inter", inter)
        object.__setattr__(self, "first_inter", min(inter.values(), default=len(self.loops)))

    def intra(self, dim: str) -> int:
        """Position of the intra-tile loop of `dim`, 0 the innermost."""
        return self._intra[dim]

    def inter(self, dim: str) -> int:
        """Position of the inter-tile loop of `dim`; outside all loops for a dim without a tile."""
        return self._inter[dim]

    def dim(self, position: int) -> str:
        """The dim of the loop at `position`."""
        return dim_of(self.loops[position])
