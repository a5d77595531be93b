"""Edges of rows: the parts in which some clamp is at work, and what is computed for a point there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor, inf

from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.work import Edges, Transfer
from tilesmith.scheduler.analysis.access_functions import Span, span_of, variable
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.fusion_group import Effective, point_alone
from tilesmith.scheduler.features.operations.operation_counts import together
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.traffic.running_group import RunningGroup
from tilesmith.scheduler.features.work import l1_transfers
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.boundary_conditions import before_clamp
from tilesmith.scheduler.ir.pipeline.constant_folding import fold
from tilesmith.scheduler.ir.pipeline.expressions import Call, Const, Expr, walk

MOST_OF_ROW = 8
"""Edges are wide that are expected to be one part in so many of a row."""
IN_ROWS = ("aligned", "unaligned", "strided", "shared", "near")
"""Ways of loads that follow a row."""

Ends = tuple[float, float]
"""The first and the last place along a dim."""


@dataclass(frozen=True, slots=True)
class _Clear:
    """Places where no clamp of a stage itself is at work, by dim; and the producers that it reads through clamps that
    turn back, or begin anew."""

    places: Mapping[str, Ends]
    turned: frozenset[str]


@once
def _known_clear(facts: Facts) -> dict[str, _Clear]:
    return {}


@once
def _known_edges(facts: Facts) -> dict[object, Edges | None]:
    return {}


def edges_of_rows(group: RunningGroup, name: str, run: Run) -> Edges | None:
    """The edges of a stage's rows that are wide enough to be computed by vectors of their own, whose lanes clamp one by
    one, at the estimates; None where there are none. In a loop that stages share they are what is near."""
    facts, reads = group.facts, group.reads[name]
    if run.row is None or run.lanes == 1 or name in group.one_loop or facts.stages[name].updates:
        return None
    known, key = _known_edges(facts), (name, run, reads, reads.side_by_side)
    if key not in known:
        share = _share(facts, name, reads, run)
        known[key] = _edges(group, name, run, share) if share * MOST_OF_ROW >= 1 else None
    return known[key]


def _share(facts: Facts, name: str, reads: Effective, run: Run) -> float:
    """The share of the points of a stage's rows where a clamp is at work, of its own or of a stage that is inline."""
    assert run.row is not None
    clear: dict[str, dict[str, Ends]] = {}
    for stage in reads.with_inlined(name):
        clear[stage] = dict(_clear(facts, stage).places)
        for a in accesses(facts.definitions[stage]):
            for dim, span, data in zip(facts.stages[a.producer].dims, a.spans, a.data, strict=True):
                if span.var is not None and span.known and not data and dim in clear.get(a.producer, {}):
                    _narrow(clear[stage], span, clear[a.producer][dim])
    whole = facts.stages[name]
    lo, extent = whole.region[whole.dims.index(run.row)]
    first, last = clear[name].get(run.row, (-inf, inf))
    inside = max(0.0, min(last, lo + extent - 1) - max(first, lo) + 1)
    return 1.0 - (inside / extent if inside >= run.lanes else 0.0)


def _clear(facts: Facts, name: str) -> _Clear:
    known = _known_clear(facts)
    found = known.get(name)
    if found is None:
        places, turned, env = dict[str, Ends](), set[str](), {d: variable(d) for d in facts.stages[name].dims}
        for a in accesses(facts.definitions[name]):
            for index, data in zip(a.access.indices, a.data, strict=True):
                for e in () if data else _clamps(index):
                    moving, lo, hi, turns = _parts(facts.estimates.with_sizes(e))
                    span = span_of(moving, env)
                    if span.var is not None and span.known:
                        _narrow(places, span, (lo, hi))
                        turned |= {a.producer} if turns else set()
        found = known[name] = _Clear(places, frozenset(turned))
    return found


def _clamps(index: Expr) -> Iterator[Call]:
    """The clamps that an index is made of."""
    return (e for e in walk(index) if isinstance(e, Call) and e.function in ("min", "max", "clamp"))


def _parts(clamp: Expr) -> tuple[Expr, float, float, bool]:
    """The operand of a clamp, its ends, and whether it turns back there or begins anew."""
    assert isinstance(clamp, Call)
    if clamp.function == "clamp":
        inner = before_clamp(clamp)
        lo, hi = (_number(e) for e in clamp.args[1:])
        return inner, -inf if lo is None else lo, inf if hi is None else hi, inner is not clamp.args[0]
    ends = [_number(e) for e in clamp.args]
    moving, end = (clamp.args[0], ends[1]) if ends[1] is not None else (clamp.args[1], ends[0])
    if end is None:
        return moving, -inf, inf, False
    return (moving, -inf, end, False) if clamp.function == "min" else (moving, end, inf, False)


def _number(e: Expr) -> int | None:
    found = fold(e)
    return int(found.value) if isinstance(found, Const) else None


def _narrow(places: dict[str, Ends], span: Span, ends: Ends) -> None:
    """Keeps those places along a dim from which `span` leads between the ends."""
    assert span.var is not None
    assert span.lo is not None
    assert span.hi is not None
    rate, lo, hi = float(span.rate), float(span.lo), floor(span.hi)
    first, last = (ends[0] - lo) / rate, (ends[1] - hi) / rate
    first, last = (first, last) if rate > 0 else (last, first)
    known = places.get(span.var, (-inf, inf))
    first, last = (e if e in (-inf, inf) else to(e) for e, to in ((first, ceil), (last, floor)))
    places[span.var] = max(known[0], first), min(known[1], last)


def _edges(group: RunningGroup, name: str, run: Run, share: float) -> Edges:
    """The code of a point at the edges: rows side by side are loops there, and share nothing but where they read."""
    facts, members, stages = group.facts, group.members, group.facts.stages
    alone, loads, turns = point_alone(members, name, group.reads[name]), list[Transfer](), 0.0
    turned = {p for n in alone.with_inlined(name) for p in _clear(facts, n).turned}
    for read in alone.reads:
        for t in l1_transfers.loads(members, read, run, group.registers, 1):
            loads.append(_at_edge(t, read.producer in turned))
            turns += t.times if t.way in IN_ROWS and read.producer in turned else 0.0
    typed = together([(1.0, stages[name].typed), *((n, stages[p].typed) for p, n in alone.executed.items())])
    each = 1.0 / group.reads[name].side_by_side
    places = Operations(select=sum(of.index for _, of in typed) * each, divide=turns * each)
    return Edges(share, together([(1.0, typed), (1.0, (("i32", places),))]), tuple(loads))


def _at_edge(t: Transfer, turned: bool) -> Transfer:
    """The load of what vectors take from a row, at its edges: neighbours are a vector that may leave the row; others,
    and those whose places turn back, each lane alone."""
    if t.way not in IN_ROWS:
        return t
    near = t.way in ("aligned", "unaligned") and not turned
    return Transfer("clamped" if near else "alone", t.bytes, t.times)
