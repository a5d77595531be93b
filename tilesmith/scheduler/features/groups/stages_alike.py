"""Groups of stages that are alike: the same but for names, as the layers of a network are, or for names and sizes, as
the iterations of a stencil are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tilesmith.scheduler.analysis.access_functions import Span
from tilesmith.scheduler.analysis.estimated_bounds import Region
from tilesmith.scheduler.features.pipeline.interleaved_channels import fours
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import Access, Const, Expr, map_children
from tilesmith.scheduler.ir.pipeline.types import INT32


class GroupForm(NamedTuple):
    """The form of a group of stages: a `key` of all but names and sizes, equal for groups that differ in these, and in
    where they read what they read at one place for all of their points; and the `extents` of the stages and of what
    they read."""

    key: Hashable
    extents: tuple[int, ...] = ()

    def is_near(self, other: GroupForm, most: float) -> bool:
        """True if the groups are the same but for names and for extents that differ by no more than this ratio."""
        return self.key == other.key and all(
            a <= most * b and b <= most * a for a, b in zip(self.extents, other.extents, strict=True)
        )


def group_form(facts: Facts, names: Sequence[str]) -> GroupForm:
    """The form of a group with these stages, the last of which is its output. One with updates is like no other."""
    if any(facts.definitions[name].updates for name in names):
        return GroupForm(tuple(names))
    output = facts.stages[names[-1]]
    numbers = {name: n for n, name in enumerate(names)}
    parts: list[Hashable] = []
    for own in map(facts.stages.__getitem__, names):
        places = [numbers.setdefault(r.producer, len(numbers)) for r in own.reads]
        parts.append((_form_of(facts, own), _beside(own, output), *places))
    return GroupForm(tuple(parts), tuple([n for name in numbers for n in facts.stages[name].extents]))


def _beside(stage: StageFacts, output: StageFacts) -> Region:
    """The region of a stage, relative to that of the output of its group where these have the same dims."""
    if stage.dims != output.dims:
        return stage.region
    return tuple([(lo - first, n - m) for (lo, n), (first, m) in zip(stage.region, output.region, strict=True)])


def _form_of(facts: Facts, own: StageFacts) -> int:
    """A number for all that a group follows from in a stage but names and sizes: what it reads has the numbers of its
    reads."""
    found = _forms(facts)
    if own.name not in found.of:
        found.of[own.name] = found.numbers.setdefault(_key(facts, own), len(found.numbers))
    return found.of[own.name]


class _Forms(NamedTuple):
    """The numbers of the keys of stages, and the number of each stage by name."""

    numbers: dict[Hashable, int]
    of: dict[str, int]


@once
def _forms(facts: Facts) -> _Forms:
    return _Forms({}, {})


def _key(facts: Facts, own: StageFacts) -> Hashable:
    numbers = {r.producer: str(n) for n, r in enumerate(own.reads)}
    groups = (facts.graph.outputs, facts.partial, facts.strips, fours(facts))

    def renamed(e: Expr) -> Expr:
        if not isinstance(e, Access):
            return map_children(e, renamed)
        indices = tuple(Const(0, INT32) if isinstance(i, Const) else renamed(i) for i in e.indices)
        return replace(e, name=numbers[e.name], indices=indices)

    def known(p: StageFacts) -> Hashable:
        return (p.is_input, p.dims, p.storage, p.row, p.bytes_per_point, *(p.name in names for names in groups))

    values = tuple(map(renamed, facts.definitions[own.name].values))
    reads = tuple(
        r._replace(
            producer=numbers[r.producer],
            spans=_places(r.spans),
            rough=_places(r.rough),
            several=tuple((_places(spans), n) for spans, n in r.several),
            offsets=_offsets(r.offsets, r.spans),
        )
        for r in own.reads
    )
    return values, reads, own.typed, known(own), tuple(known(facts.stages[r.producer]) for r in own.reads)


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
