"""Dims that are written out inside of other loops, where they have the extents that are expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilesmith.scheduler.analysis.bounds_inference import Interval
from tilesmith.scheduler.ir.index import Index, const, divide
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.values import Lane


def written_out(
    bounds: Mapping[str, Interval], unroll: Mapping[str, tuple[int | None, int]]
) -> tuple[dict[str, Interval], tuple[Index, ...]] | None:
    """The dims to unroll with the bounds that they are expected to have, and what must not be negative for them to
    have these. Where a dim is expected to begin is None for tiles, which begin anywhere. None where there is nothing
    to unroll, or they never have them."""
    fixed = {}
    for d, (start, extent) in unroll.items():
        lo, hi = bounds[d]
        if lo != hi:
            first = lo if start is None else const(start)
            fixed[d] = (first, first + (extent - 1))
    same = [
        x for d, ends in fixed.items() for bound, wanted in zip(bounds[d], ends, strict=True)
        for x in (bound - wanted, wanted - bound)
    ]  # fmt: skip
    if not fixed or any(x.is_const and x.const < 0 for x in same):
        return None
    return fixed, tuple(x for x in same if not x.is_const)


def iterations(ends: Interval) -> Iterator[Lane]:
    """The iterations of a loop that is written out."""
    lo, hi = ends
    return (Lane(lo + n) for n in range((hi - lo).const + 1))


def flat_parts(env: Mapping[str, Lane], place: str, channel: str, channels: Interval) -> Iterator[dict[str, Lane]]:
    """The vectors of all elements of a vector of pixels, in the order of memory: the place and the channel of each."""
    base, lanes = env[place].base, len(env[place].pattern or ())
    count = (channels[1] - channels[0]).const + 1
    for part in range(count):
        found = [divmod(n, count) for n in range(part * lanes, (part + 1) * lanes)]
        places, own = zip(*found, strict=True)
        yield {**env, place: Lane(base, places), channel: Lane(channels[0], own)}


def in_blocks(
    b: Builder, known: tuple[dict[str, Interval], tuple[Index, ...]], blocks: Mapping[str, int]
) -> tuple[dict[str, Interval], tuple[Index, ...]]:
    """The bounds and conditions of `written_out`, of dims that begin with one of the `blocks` that the stage reads: its
    points are then known to share these. That they do so is asked, too."""
    fixed, asked = dict(known[0]), known[1]
    for d in [d for d in fixed if d in blocks]:
        lo, hi = fixed[d]
        if lo.is_const:
            continue
        first = b.let(divide(lo, blocks[d]), f"{d}_block").scaled(blocks[d])
        fixed[d], asked = (first, first + (hi - lo)), (*asked, first - lo)
    return fixed, asked
