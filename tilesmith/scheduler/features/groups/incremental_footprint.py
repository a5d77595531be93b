"""Incremental footprints: the part of a stage that is new in an iteration of a loop of its group's output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from tilesmith.scheduler.analysis.access_functions import Span
from tilesmith.scheduler.features.groups.loop_nest import Line
from tilesmith.scheduler.features.pipeline.reads import Read

LineOf = Callable[[Span], Line]
"""The span in integers, kept by whoever asks again."""


class Motion(NamedTuple):
    """The part of a stage that is new in an iteration of a loop of the output, after the first (which fills the
    window): elements `first` to `last` of the dim that follows the loop, relative to it, in the share `active` of the
    iterations. `points` counts them on average, over all dims that follow the loop."""

    active: float
    first: float
    last: float
    points: float


ONE = Motion(1.0, 0.0, 0.0, 1.0)
"""The motion of the output itself."""


@lru_cache(maxsize=4096)
def slides(row: Line) -> Motion:
    """A sliding window: of the rows that an iteration needs those beyond the ones that earlier iterations made."""
    new = max(1.0, row.rate)
    if row.a > 0:
        first, last = row.hi / row.k - new + 1, row.hi / row.k
    else:
        first, last = row.lo / row.k, row.lo / row.k + new - 1
    return Motion(min(1.0, row.rate), first, last, row.rate)


def through(read: Read, own: Mapping[str, Span], motion: Motion, dim: str, line: LineOf) -> Motion | None:
    """The reads of a stage in an iteration of the loop over the output's `dim`, for the part of it that is new
    (`motion`); `own` are the spans of its dims. None where no dim that it reads moves with the loop."""
    result: Motion | None = None
    for span in read.spans:
        if span.var is not None and own[span.var].var == dim:
            row = line(span)
            ends = (row.a * motion.first / row.k, row.a * motion.last / row.k)
            first, last = min(ends) + row.lo / row.k, max(ends) + row.hi / row.k
            if result is None:
                result = Motion(motion.active, first, last, motion.active * (last - first + 1))
            else:
                result = result._replace(points=result.points * (last - first + 1))
    return result


def hulled(motions: Iterable[Motion | None]) -> Motion | None:
    """All of several motions; None where none moves."""
    found = [m for m in motions if m is not None]
    if not found:
        return None
    active = max(m.active for m in found)
    first, last = min(m.first for m in found), max(m.last for m in found)
    others = max(m.points / (m.active * (m.last - m.first + 1)) for m in found)
    return Motion(active, first, last, active * (last - first + 1) * others)
