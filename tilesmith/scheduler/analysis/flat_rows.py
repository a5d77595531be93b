"""Flat rows: stages that compute all channels of interleaved pixels alike, each of elements at its own channel.
Whatever the shift, neighbours in memory read neighbours in memory: vectors run along all elements of a row, and no
channel is told from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from tilesmith.scheduler.analysis.accesses import accesses, span_inside
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, Var, children
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update

MOST_CHANNELS = 4
"""Channels that lie side by side in memory beside rows of pixels, at most: of more, vectors run along them."""
FURTHEST_PIXELS = 2
"""Pixels for each lane of a vector that channels are picked from, at most: of those further apart it gathers lanes."""


class Pixels(NamedTuple):
    """The two dims of an image or of a stage that are fastest in memory: its channels, and places in a row."""

    channel: str
    place: str


class PixelRead(NamedTuple):
    """A read of pixels: the producer, and the positions of its dims that follow the reader's channel and place."""

    producer: str
    channel: int
    place: int


Layouts = Callable[[str], tuple[int, int] | None]
"""Positions, by the name of an image or a stage, of the dims that are its channels and its places in a row; None where
it has no pixels."""


def is_flat(stage: Stage, pixels: Pixels, inlined: Mapping[str, Stage], layouts: Layouts) -> bool:
    """True if the rows of `stage` are flat, whose own pixels lie as `pixels` says: if whatever moves along them, by way
    of stages `inlined` too, lies like that."""
    pending, seen = [(stage, pixels)], {(stage.name, pixels)}
    while pending:
        reads = pixel_reads(*pending.pop())
        if reads is None:
            return False
        for read in reads:
            producer = inlined.get(read.producer)
            if producer is None:
                if layouts(read.producer) != (read.channel, read.place):
                    return False
                continue
            own = Pixels(producer.dims[read.channel], producer.dims[read.place])
            if (producer.name, own) not in seen:
                seen.add((producer.name, own))
                pending.append((producer, own))
    return True


def is_flat_update(
    stage: Stage, update: Update, pixels: Pixels, inlined: Mapping[str, Stage], layouts: Layouts
) -> bool:
    """True if `update` goes through whole rows of pixels, and makes each element of what lies like it, in its own stage
    as in others: where nothing of a row follows from the rest of it, its vectors may be of all elements."""
    kept = [isinstance(i, Var) and i.name == d for d, i in zip(stage.dims, update.at, strict=True) if d in pixels]
    others = (i for d, i in zip(stage.dims, update.at, strict=True) if d not in pixels)
    if update.where is not None or not all(kept) or not all(_is_elementwise(i, pixels) for i in others):
        return False
    return is_flat(replace(stage, values=update.values, updates=()), pixels, inlined, layouts)


def pixel_reads(stage: Stage, pixels: Pixels) -> tuple[PixelRead, ...] | None:
    """Images and stages that `stage` reads by steps of its own and at its own channel; None
    where it depends otherwise on these: a value that tells channels or places apart, an image of one channel."""
    known = _known(stage)
    if pixels not in known:
        known[pixels] = _pixel_reads(stage, pixels)
    return known[pixels]


@once
def _known(stage: Stage) -> dict[Pixels, tuple[PixelRead, ...] | None]:
    """Memoised results of `pixel_reads`."""
    return {}


def _pixel_reads(stage: Stage, pixels: Pixels) -> tuple[PixelRead, ...] | None:
    if stage.updates or not all(_is_elementwise(value, pixels) for value in stage.values):
        return None
    found: dict[PixelRead, None] = {}
    for a in accesses(stage):
        moving = [d for d in range(len(a.used)) if not a.used[d].isdisjoint(pixels)]
        spans = [(d, span_inside(stage, a, d)) for d in moving if not a.data[d]]
        if not moving or (not spans and all(_is_elementwise(a.access.indices[d], pixels) for d in moving)):
            continue
        steps = {s.var: (d, s) for d, s in spans if s.known and s.rate == 1}
        if len(moving) != len(pixels) or steps.keys() != {*pixels}:
            return None
        (channel, own), (place, _) = steps[pixels.channel], steps[pixels.place]
        if own.lo != 0 or own.hi != 0:
            return None
        found[PixelRead(a.producer, channel, place)] = None
    return tuple(found)


def _is_elementwise(e: Expr, pixels: Pixels) -> bool:
    """True of what is made of channels and places by what is read there alone."""
    pending, seen = [e], set[int]()
    while pending:
        part = pending.pop()
        if isinstance(part, Var) and part.name in pixels:
            return False
        if not isinstance(part, Access) and id(part) not in seen:
            seen.add(id(part))
            pending += children(part)
    return True
