"""Edges of rows: the parts in which some clamp is at work, and what is computed for a point there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor, gcd, inf, log2

from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.work import Edges, Transfer
from tilesmith.scheduler.analysis.access_functions import Span, span_of, variable
from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.features.groups.execution_mode import Run
from tilesmith.scheduler.features.groups.fusion_group import Effective, point_alone
from tilesmith.scheduler.features.operations.node_operations import element_type
from tilesmith.scheduler.features.operations.operation_counts import Typed, together
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts
from tilesmith.scheduler.features.traffic.running_group import RunningGroup
from tilesmith.scheduler.features.work import l1_transfers
from tilesmith.scheduler.features.work.point_code import done_once
from tilesmith.scheduler.ir.memo import once, once_a_form
from tilesmith.scheduler.ir.pipeline.boundary_conditions import before_clamp
from tilesmith.scheduler.ir.pipeline.constant_folding import integer
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    Logical,
    Select,
    Var,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import INT32

REMAINDER = 8
"""Operations of a remainder of a place that is near the image: differences, and the comparison that says so."""
IN_ROWS = ("aligned", "unaligned", "strided", "shared", "reversed", "near")
"""Ways of loads that follow a row."""

QUOTIENTS = ("//", "%")

Ends = tuple[float, float]
"""The first and the last place along a dim."""


@dataclass(frozen=True, slots=True)
class _Clear:
    """Places where no clamp of a stage itself is at work, by dim, with the operations on those that it reads, which
    rows side by side share, and those of what it chooses by places, which they do not; and the producers that it
    reads through clamps that turn back, or begin anew."""

    places: Mapping[str, Ends]
    operations: Mapping[str, Typed]
    choices: Mapping[str, Typed]
    turned: frozenset[str]


@once
def _known_clear(stage: Stage) -> dict[Hashable, _Clear]:
    """By the sizes that it was found for, which few variants of a pipeline change."""
    return {}


@once
def _sizes(facts: Facts) -> Hashable:
    return tuple(sorted(facts.estimates.symbols.items()))


@once
def _known_edges(facts: Facts) -> dict[object, Edges | None]:
    return {}


def edges_of_rows(group: RunningGroup, name: str, run: Run) -> Edges | None:
    """The edges of a stage's rows, at the estimates: what whole vectors leave in which no lane is clamped; None where
    they leave nothing. Where stages share a loop they are steps of it."""
    facts, reads = group.facts, group.reads[name]
    if run.row is None or run.lanes == 1 or facts.stages[name].updates:
        return None
    in_loop = name in group.one_loop
    known = _known_edges(facts)
    key = (name, run, reads, reads.side_by_side, in_loop, group.layers.parts.get(name))
    if key not in known:
        points, steps = _left(facts, name, reads, run)
        extent = facts.stages[name].extent(run.row)
        share, part = (0.0, steps) if in_loop else (points / extent, steps * run.lanes / extent)
        known[key] = _edges(group, name, run, share, part) if points else None
    return known[key]


def _left(facts: Facts, name: str, reads: Effective, run: Run) -> tuple[float, float]:
    """The points of a row that whole vectors leave, and how many vectors these take."""
    assert run.row is not None
    whole, lanes, align = facts.stages[name], run.lanes, _blocks(facts, name, reads, run).align
    lo, extent = whole.region[whole.dims.index(run.row)]
    first, last = _inside(facts, name, reads).get(run.row, (-inf, inf))
    begin = -(-max(first, lo) // align) * align
    end = (min(last + 1, lo + extent) - lanes) // align * align + lanes
    ends = (begin - lo, lo + extent - end) if end - begin >= lanes else (extent,)
    return float(sum(ends)), float(sum(ceil(n / lanes) for n in ends))


def _inside(facts: Facts, name: str, reads: Effective) -> Mapping[str, Ends]:
    """The places where no clamp is at work, of a stage's own or of a stage that is inline."""
    clear: dict[str, dict[str, Ends]] = {}
    for stage in reads.with_inlined(name):
        clear[stage] = dict(_clear(facts, stage).places)
        for a in accesses(facts.definitions[stage]):
            if places := clear.get(a.producer):
                for dim, span, data in zip(facts.stages[a.producer].dims, a.spans, a.data, strict=True):
                    if span.var is not None and span.known and not data and dim in places:
                        _narrow(clear[stage], span, places[dim])
    return clear[name]


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Numbers that vectors of a row begin at multiples of, so that quotients and remainders in indices have the same
    shape in all of them; and the stages that are read at such places, or whose readers are."""

    align: int
    read: frozenset[str]


def _blocks(facts: Facts, name: str, reads: Effective, run: Run) -> _Blocks:
    align, read, stages = 1, set[str](), reads.with_inlined(name)
    if not any(_has_quotients(facts.definitions[stage]) for stage in stages):
        return _Blocks(align, frozenset(read))
    rates = _rates(facts, name, reads, run)
    for stage in reversed(stages):
        read |= {a.producer for a in accesses(facts.definitions[stage])} if stage in read else set()
        for dim, rate in sorted(rates[stage]):
            for _, index, _, producer in _places(facts, stage):
                needed = [_needed(rate * by, k, run.lanes) for by, k in _divided(index, dim)]
                align, read = max(align, *needed, 1), read | ({producer} if needed else set())
    return _Blocks(align, frozenset(read))


def _rates(facts: Facts, name: str, reads: Effective, run: Run) -> Mapping[str, set[tuple[str, int]]]:
    """The dims of a stage and of those that are inline in it that move with the row, each with its rate."""
    assert run.row is not None
    rates: dict[str, set[tuple[str, int]]] = defaultdict(set, {name: {(run.row, 1)}})
    for stage in reversed(reads.with_inlined(name)):
        for dim, rate in sorted(rates[stage]):
            for to, _, span, producer in _places(facts, stage):
                if span.var == dim and span.known and span.rate == int(span.rate):
                    rates[producer].add((to, int(rate * span.rate)))
    return rates


@once_a_form
def _has_quotients(stage: Stage) -> bool:
    """True if something is divided in a stage, or its remainder taken."""
    return any(e.op in QUOTIENTS for e in parts(stage, Binary))


def _places(facts: Facts, stage: str) -> Iterator[tuple[str, Expr, Span, str]]:
    """The indices of what a stage reads that are not made of data, each with the dim of the producer."""
    for a in accesses(facts.definitions[stage]):
        for place in zip(facts.stages[a.producer].dims, a.access.indices, a.spans, a.data, strict=True):
            if not place[-1]:
                yield *place[:3], a.producer


def _divided(index: Expr, dim: str) -> Iterator[tuple[int, int]]:
    """The rates at which a dim moves the operands of quotients and remainders in an index, and by what these divide."""
    env = {dim: variable(dim)}
    for e in walk(index):
        if isinstance(e, Binary) and e.op in QUOTIENTS and isinstance(e.right, Const) and e.right.value > 0:
            span = span_of(e.left, env)
            if span.var == dim and span.rate == int(span.rate):
                yield int(span.rate), int(e.right.value)


def _needed(rate: int, k: int, lanes: int) -> int:
    """The multiples at which vectors begin whose lanes, `rate` apart, are divided by `k` alike: fewer than lanes where
    a step goes on by whole ones, all lanes where a vector lies in one of them; 1 where nothing helps."""
    align = k // gcd(rate, k)
    return align if lanes % align == 0 else lanes if k % (lanes * abs(rate)) == 0 else 1


def _clear(facts: Facts, name: str) -> _Clear:
    known, sizes = _known_clear(facts.definitions[name]), _sizes(facts)
    found = known.get(sizes)
    if found is None:
        places, turned = dict[str, Ends](), set[str]()
        moved: dict[str, list[tuple[float, Typed]]] = defaultdict(list)
        env = {d: variable(d) for d in facts.stages[name].dims}
        read = defaultdict[Expr, set[str]](set)
        for _, index, _, producer in _places(facts, name) if parts(facts.definitions[name], Call) else ():
            read[index].add(producer)
        for index, producers in read.items():
            moves = dict[str, float]()
            for e in _clamps(index):
                moving, lo, hi, turns = _parts(facts.estimates.with_sizes(e))
                span = span_of(moving, env)
                if span.var is not None and span.known:
                    _narrow(places, span, (lo, hi))
                    moves[span.var] = max(moves.get(span.var, 0), REMAINDER * turns)
                    turned |= producers if turns else set()
            for dim, added in moves.items():
                chosen = sum(2 if e.function == "clamp" else 1 for e in _clamps(index))
                moved[dim].append((1.0, (("i32", Operations(add=added, select=chosen)),)))
        operations = {dim: together(of) for dim, of in moved.items()}
        choices = {dim: together(_choices(facts.definitions[name], dim)) for dim in places}
        found = known[sizes] = _Clear(places, operations, choices, frozenset(turned))
    return found


def _choices(stage: Stage, dim: str) -> Iterator[tuple[float, Typed]]:
    """The operations of conditions of places along a dim, as those of a constant boundary: comparisons, and the mask of
    what is chosen, which is as wide as that."""
    asked = dict[Expr, None]()
    for e in dict.fromkeys(part for value in stage.values for part in walk(value)):
        if isinstance(e, Select) and not any(isinstance(part, Access) for part in walk(e.condition)):
            tests = (part for part in walk(e.condition) if isinstance(part, Compare | Logical))
            moving = [part for part in tests if any(isinstance(v, Var) and v.name == dim for v in walk(part))]
            asked |= dict.fromkeys(moving)
            if moving:
                yield 1.0, ((element_type(e.type), Operations(narrow=max(0.0, log2(INT32.bits / e.type.bits)))),)
    yield float(len(asked)), (("i32", Operations(select=1)),)


def _clamps(index: Expr) -> Iterator[Call]:
    """The clamps that an index is made of."""
    return (e for e in walk(index) if isinstance(e, Call) and e.function in ("min", "max", "clamp"))


def _parts(clamp: Expr) -> tuple[Expr, float, float, bool]:
    """The operand of a clamp, its ends, and whether it turns back there or begins anew."""
    assert isinstance(clamp, Call)
    if clamp.function == "clamp":
        inner = before_clamp(clamp)
        lo, hi = (integer(e) for e in clamp.args[1:])
        return inner, -inf if lo is None else lo, inf if hi is None else hi, inner is not clamp.args[0]
    ends = [integer(e) for e in clamp.args]
    moving, end = (clamp.args[0], ends[1]) if ends[1] is not None else (clamp.args[1], ends[0])
    if end is None:
        return moving, -inf, inf, False
    return (moving, -inf, end, False) if clamp.function == "min" else (moving, end, inf, False)


def _narrow(places: dict[str, Ends], span: Span, ends: Ends) -> None:
    """Keeps those places along a dim from which `span` leads between the ends."""
    assert span.var is not None
    least, most = span.ends
    rate, lo, hi = float(span.rate), float(least), floor(most)
    first, last = (ends[0] - lo) / rate, (ends[1] - hi) / rate
    first, last = (first, last) if rate > 0 else (last, first)
    known = places.get(span.var, (-inf, inf))
    first, last = (e if e in (-inf, inf) else to(e) for e, to in ((first, ceil), (last, floor)))
    places[span.var] = max(known[0], first), min(known[1], last)


def _edges(group: RunningGroup, name: str, run: Run, share: float, steps: float) -> Edges:
    """The code of a point at the edges: rows side by side are loops there, share nothing but where they read along the
    row, and ask where they do across it each time. Stages of one loop share what they load there, too."""
    facts, members, stages = group.facts, group.members, group.facts.stages
    alone, loads = point_alone(members, name, group.reads[name]), list[Transfer]()
    turned = frozenset().union(*(_clear(facts, n).turned for n in alone.with_inlined(name)))
    blocks, rates = _blocks(facts, name, alone, run).read, _rates(facts, name, alone, run)
    part_of = {read.producer: part for read, part in group.layers.of_reads(name)}
    parts_of_reads = [(read, part_of[read.producer]) for read in alone.reads]
    for read, part in parts_of_reads:
        for t in l1_transfers.loads(members, read, run, group.registers, 1):
            own = t._replace(times=t.times * part)
            loads.append(_at_edge(own, read.producer in blocks, read.producer in turned))
    times = {name: 1.0, **alone.executed}
    once_each = done_once(facts, parts_of_reads, times)
    typed = together([*((n, stages[p].typed) for p, n in times.items()), *once_each])
    rows, places = group.reads[name].side_by_side, list[tuple[float, Typed]]()
    for stage, n in times.items():
        clear, moving = _clear(facts, stage), {dim for dim, _ in rates.get(stage, ())}
        places += [(n / rows, of) for dim, of in clear.operations.items() if dim in moving]
        places += [(n, of) for dim, of in clear.operations.items() if dim not in moving and rows > 1]
        places += [(n, of) for dim, of in clear.choices.items() if dim in moving]
    return Edges(share, steps, together([(1.0, typed), *places]), tuple(loads))


def _at_edge(t: Transfer, in_blocks: bool, turned: bool) -> Transfer:
    """The load of what vectors take from a row, at its edges: neighbours are a vector that may leave the row, or turn
    at its end; others, and those of places that begin anew in blocks, each lane alone."""
    if t.way not in IN_ROWS:
        return t
    near = t.way in ("aligned", "unaligned") and not in_blocks
    return Transfer("alone" if not near else "turned" if turned else "clamped", t.bytes, t.times)
