"""Flat rows of stages (see `analysis.flat_rows`), at the estimates: as lowering finds them of the memory of what they
read."""

from __future__ import annotations

from collections.abc import Iterable

from tilesmith.scheduler.analysis.flat_rows import MOST_CHANNELS, Layouts, Pixels, is_flat, is_flat_update
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.pipeline import Update


def has_flat_rows(facts: Facts, name: str, inlined: Iterable[str]) -> bool:
    """True if vectors along the pixels of a stage, with those of `inlined` that it reads, may be of all elements of a
    row."""
    stage, known = facts.stages[name], _known(facts)
    key = (name, *inlined)
    if key not in known:
        inside = {n: facts.definitions[n] for n in inlined}
        layouts = _layouts(facts, stage.extent(stage.storage[0]))
        known[key] = is_flat(facts.definitions[name], Pixels(*stage.storage[:2]), inside, layouts)
    return known[key]


def flat_update(facts: Facts, name: str, update: Update) -> Pixels | None:
    """The interleaved pixels of a stage, of whose rows vectors of `update` may be of all elements; None where there are
    none, or they may not."""
    stage = facts.stages[name]
    if len(stage.storage) < len(Pixels._fields):
        return None
    channels = stage.extent(stage.storage[0])
    if not 2 <= channels <= MOST_CHANNELS:
        return None
    pixels = Pixels(*stage.storage[:2])
    return pixels if is_flat_update(facts.definitions[name], update, pixels, {}, _layouts(facts, channels)) else None


def _layouts(facts: Facts, channels: int) -> Layouts:
    """The pixels of images and stages that have so many channels."""

    def layouts(producer: str) -> tuple[int, int] | None:
        of = facts.stages[producer]
        if len(of.storage) < len(Pixels._fields) or of.extent(of.storage[0]) != channels:
            return None
        return of.dims.index(of.storage[0]), of.dims.index(of.storage[1])

    return layouts


@once
def _known(facts: Facts) -> dict[tuple[str, ...], bool]:
    """Memoised results of `has_flat_rows`."""
    return {}
