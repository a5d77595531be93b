"""Groups of stages that are the same but for names, as the layers of a network are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from tilesmith.scheduler.analysis.access_functions import Span
from tilesmith.scheduler.features.pipeline.interleaved_channels import fours
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.ir.pipeline.expressions import Access, Const, Expr, map_children
from tilesmith.scheduler.ir.pipeline.types import INT32


def but_for_names(facts: Facts, names: Sequence[str]) -> Hashable:
    """A key of all that a group with these stages follows from: equal for those that differ in names, and in where
    they read what they read at one place for all of their points. Those with updates are like no other."""
    if any(facts.definitions[name].updates for name in names):
        return tuple(names)
    numbers = {name: n for n, name in enumerate(names)}

    def number(of: str) -> int:
        return numbers.setdefault(of, len(numbers))

    def renamed(e: Expr) -> Expr:
        if not isinstance(e, Access):
            return map_children(e, renamed)
        indices = tuple(Const(0, INT32) if isinstance(i, Const) else renamed(i) for i in e.indices)
        return replace(e, name=str(number(e.name)), indices=indices)

    def known(of: str) -> Hashable:
        p = facts.stages[of]
        groups = (facts.graph.outputs, facts.partial, facts.strips, fours(facts))
        return (p.is_input, p.dims, p.storage, p.region, p.bytes_per_point, *(of in names for names in groups))

    def one(name: str) -> Hashable:
        own = facts.stages[name]
        values = tuple(map(renamed, facts.definitions[name].values))
        reads = tuple(
            r._replace(
                producer=str(number(r.producer)),
                spans=_places(r.spans),
                rough=_places(r.rough),
                several=tuple((_places(spans), n) for spans, n in r.several),
                offsets=_offsets(r.offsets, r.spans),
            )
            for r in own.reads
        )
        return values, reads, own.typed, own.row, known(name), tuple(known(r.producer) for r in own.reads)

    return tuple(map(one, names))


def _places(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Spans, each that is the same at all points as if it began at 0."""
    still = (s.var is None and s.lo is not None and s.hi is not None for s in spans)
    return tuple(s._replace(lo=0, hi=s.width) if fixed else s for s, fixed in zip(spans, still, strict=True))


def _offsets(offsets: frozenset[tuple[int, ...]], spans: tuple[Span, ...]) -> frozenset[tuple[int, ...]]:
    """Offsets from where such spans begin."""
    begins = tuple(int(s.lo or 0) if s.var is None else 0 for s in spans)
    if not any(begins):
        return offsets
    return frozenset(tuple(n - first for n, first in zip(of, begins, strict=True)) for of in offsets)
