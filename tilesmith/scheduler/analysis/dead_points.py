"""Dead-point analysis: the points of a stage's bounding box that no consumer reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from math import prod

from tilesmith.scheduler.analysis.stage_graph import expressions, stage_graph
from tilesmith.scheduler.ir.index import Index, const
from tilesmith.scheduler.ir.pipeline.constant_folding import fold
from tilesmith.scheduler.ir.pipeline.expressions import Access, Const, Expr, Reduce, Var, children, map_children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.substitution import substituted
from tilesmith.scheduler.ir.pipeline.types import INT32

MOST_OFFSETS = 256
"""Offsets in a pair of dims that are looked at, at most."""

_Points = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Half:
    """The half of a box in the dims `slow` and `fast` that is read: the points for which `at` is not negative, all with
    `slow` on one side of its last place, and at that some of `fast`."""

    slow: str
    fast: str
    factors: tuple[int, int]
    constant: int

    def at(self, slow: Index, fast: Index) -> Index:
        return slow.scaled(self.factors[0]) + fast.scaled(self.factors[1]) + const(self.constant)


def halves(pipeline: Pipeline) -> dict[str, Half]:
    """The stages without updates of which, whoever reads them, half of the offsets in two dims are read: those are
    numbers, variables of reductions, or dims of a reader of which the same is known."""
    graph = stage_graph(pipeline)
    stages = {s.name: s for s in pipeline.stages}
    known: dict[str, dict[tuple[str, str], _Points]] = {}
    found: dict[str, Half] = {}
    for name in reversed(graph.stages):
        stage = stages[name]
        known[name] = {}
        if name in graph.outputs or stage.updates or len(stage.dims) < 2:
            continue
        for pair in ((a, b) for n, a in enumerate(stage.dims) for b in stage.dims[n + 1 :]):
            points = _read(stage, pair, [stages[r] for r in graph.consumers[name]], known)
            if points is not None:
                known[name][pair] = points
                half = _half(pair, points)
                if half is not None:
                    found.setdefault(name, half)
    return found


def _read(
    stage: Stage, pair: tuple[str, str], readers: list[Stage], known: Mapping[str, Mapping[tuple[str, str], _Points]]
) -> _Points | None:
    """The points of two dims that are read; None where that is not known."""
    places = [stage.dims.index(d) for d in pair]
    found: set[tuple[int, int]] = set()
    for reader in readers:
        for part in expressions(reader):
            for access, ranges in _accesses(part, stage.name, {}):
                one, other = (access.indices[p] for p in places)
                if isinstance(one, Var) and isinstance(other, Var) and (one.name, other.name) in known[reader.name]:
                    found |= known[reader.name][one.name, other.name]
                    continue
                names = sorted({n.name for i in (one, other) for n in walk(i) if isinstance(n, Var)})
                if any(n not in ranges for n in names) or prod(len(ranges[n]) for n in names) > MOST_OFFSETS:
                    return None
                for values in product(*(ranges[n] for n in names)):
                    at = {n: Const(v, INT32) for n, v in zip(names, values, strict=True)}
                    point = [_number(substituted(i, dict(at))) for i in (one, other)]
                    if point[0] is None or point[1] is None:
                        return None
                    found.add((point[0], point[1]))
    return frozenset(found)


def _accesses(e: Expr, name: str, ranges: Mapping[str, range]) -> Iterator[tuple[Access, Mapping[str, range]]]:
    """The accesses to `name`, with the constant ranges of the variables of reductions around them."""
    if isinstance(e, Access) and e.name == name:
        yield e, ranges
    if isinstance(e, Reduce):
        ranges = {n: r for n, r in ranges.items() if all(n != v.name for v in e.domain)} | {
            v.name: range(int(v.lo.value), int(v.lo.value) + int(v.extent.value))
            for v in e.domain
            if isinstance(v.lo, Const) and isinstance(v.extent, Const)
        }
    for part in children(e):
        yield from _accesses(part, name, ranges)


def _number(e: Expr) -> int | None:
    e = map_children(e, lambda c: c if (n := _number(c)) is None else Const(n, INT32)) if e.type == INT32 else e
    e = fold(e)
    return int(e.value) if isinstance(e, Const) and e.type == INT32 else None


def _half(pair: tuple[str, str], points: _Points) -> Half | None:
    """The half that the points are; None where they are a box, or something else."""
    if not points:
        return None
    ends = [(min(p[n] for p in points), max(p[n] for p in points)) for n in (0, 1)]
    if not len(points) < prod(hi - lo + 1 for lo, hi in ends) <= MOST_OFFSETS:
        return None
    box = set(product(*(range(lo, hi + 1) for lo, hi in ends)))
    for slow, fast in permutations((0, 1)):
        size = ends[fast][1] - ends[fast][0] + 1
        for side, turn in product((-1, 1), repeat=2):
            last = ends[slow][side > 0]
            there = [p[fast] for p in points if p[slow] == last]
            constant = max(-turn * f for f in there) + side * last * size
            if {p for p in box if turn * p[fast] - side * size * p[slow] + constant >= 0} == points:
                return Half(pair[slow], pair[fast], (-side * size, turn), constant)
    return None
