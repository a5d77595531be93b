"""Flat rows of stages (see `analysis.flat_rows`), at the estimates: as lowering finds them of the memory of what they
read."""

from __future__ import annotations

from collections.abc import Iterable

from tilesmith.scheduler.analysis.flat_rows import Pixels, is_flat
from tilesmith.scheduler.features.pipeline_features import Facts
from tilesmith.scheduler.ir.memo import once


def has_flat_rows(facts: Facts, name: str, inlined: Iterable[str]) -> bool:
    """True if vectors along the pixels of a stage, with those of `inlined` that it reads, may be of all elements of a
    row."""
    stage, known = facts.stages[name], _known(facts)
    key = (name, *inlined)
    if key not in known:
        channels = stage.extent(stage.storage[0])

        def layouts(producer: str) -> tuple[int, int] | None:
            of = facts.stages[producer]
            if len(of.storage) < len(Pixels._fields) or of.extent(of.storage[0]) != channels:
                return None
            return of.dims.index(of.storage[0]), of.dims.index(of.storage[1])

        inside = {n: facts.definitions[n] for n in inlined}
        known[key] = is_flat(facts.definitions[name], Pixels(*stage.storage[:2]), inside, layouts)
    return known[key]


@once
def _known(facts: Facts) -> dict[tuple[str, ...], bool]:
    """Memoised results of `has_flat_rows`."""
    return {}
