"""Lowering of inline reductions to values: short ones written out, long ones as loops around accumulators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from tilesmith.scheduler.analysis.divided_variables import inner_trips
from tilesmith.scheduler.features.operations.reduction_loops import (
    UNROLLED_TRIPS,
    has_long_reduction,
    is_written_out,
    trips,
)
from tilesmith.scheduler.ir.index import Index, const, divide, maximum, minimum, sym
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.builder import Builder, Misfit, literal
from tilesmith.scheduler.ir.loop.program import Accumulator, Assign, Body, Define, If, Loop, PeeledLoop, Statement
from tilesmith.scheduler.ir.loop.traversal import used
from tilesmith.scheduler.ir.loop.values import Ends, Lane, Value
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Const,
    Expr,
    Logical,
    Reduce,
    RVar,
    children,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.types import BOOL, ScalarType
from tilesmith.scheduler.lowering.code_size import instructions
from tilesmith.scheduler.lowering.evaluation import Evaluation
from tilesmith.scheduler.lowering.index_vectorization import Frame
from tilesmith.scheduler.lowering.neighbour_sums import in_groups
from tilesmith.scheduler.lowering.prefetches import Ahead

Job: TypeAlias = "tuple[Reduce, Frame]"
"""A reduction at a point."""

UNROLLED_SCALAR_TRIPS = 9
"""Reductions of at most this many terms are written out as scalars, which only edges are."""
WRITTEN_TERMS = 32
"""Inside the loops of longer ones, as many terms are written out."""
MOST_TOGETHER = 256
"""Terms of points that are computed together, up to which all are written out: of more in two dims the outer one is a
loop (64 terms of 9 channels: 315 KB of C, and 60 with it, in no more time). Single terms in a loop took 1.2."""
MOST_INSTRUCTIONS = 8192
"""Instructions of vectors of a point's terms, up to which these are written out, however few: compilers take some four
seconds for them. In a loop that is half as long, a filter with exponentials of bytes took 1.16 of the time: sums that a
loop carries leave few registers to functions."""
WRITTEN_TOGETHER = 96
"""Terms that are written out inside such a loop: those of neighbours, which share what they load."""


def reduced(ev: Evaluation, e: Reduce, frame: Frame) -> Value:
    """The value of a reduction (or of its `component`), in the order that its terms are written in. Where another
    component of it is known, so is this one. Conditions that are the same for all terms and differ from lane to lane
    are asked in the end: what is added up where one does not hold is left."""
    whole, fixed = e, _fixed(ev, e, frame)
    e = _unconditional(e, fixed)
    state = ev.builder.recall(_key(ev, e, frame))
    if state is None:
        if ev.only_lanes or _is_long(ev, e, frame):
            state = _side_by_side(ev, [(e, frame)])[0]
        else:
            state = _unrolled(ev, e, frame)
            if e.op in ("argmin", "argmax"):
                _remember(ev, e, frame, state)
    assert isinstance(state, list)
    value = _picked(e, state)
    for c in fixed:
        value = _chosen(ev, ev.value(c, frame), value, _picked(whole, _identity(ev, whole, frame)))
    return value


def _fixed(ev: Evaluation, e: Reduce, frame: Frame) -> list[Expr]:
    """The conditions of a reduction that none of its variables is in, and that differ from lane to lane."""
    names = {r.name for r in e.domain}
    found = [c for c in _conjuncts(e.where) if names.isdisjoint(variables_of(c))]
    if not found:
        return found
    with ev.sizing() as sizing:
        return [c for c in found if sizing.value(c, frame).lanes > 1]


def _key(ev: Evaluation, e: Reduce, frame: Frame) -> object:
    """The key of equal reductions at one point, whatever their component: made of a number, since to hash a reduction
    takes long."""
    known, equal = ev.builder.reductions, ev.builder.equal_reductions
    found = known.get(id(e))
    if found is None:
        found = known[id(e)] = e, equal.setdefault((e.op, e.domain, e.where, e.body), len(equal))
    return (ev.token, "reduction", found[1], frame.number)


def _remember(ev: Evaluation, e: Reduce, frame: Frame, state: list[Value]) -> None:
    ev.builder.remember(ev.builder.depth, _key(ev, e, frame), lambda: state)


def _is_long(ev: Evaluation, e: Reduce, frame: Frame) -> bool:
    """True if a reduction is a loop: of many terms, or of more than a few that have loops of their own or are computed
    seldom."""
    short = ev.axis is None or (ev.builder.seldom and not ev.is_at_hand(e.body, frame))
    most = UNROLLED_SCALAR_TRIPS if short else UNROLLED_TRIPS
    few = is_written_out(e, UNROLLED_SCALAR_TRIPS)
    return not is_written_out(e, most) or (not few and (_has_loops(ev, e.body) or _are_many(ev, [(e, frame)])))


def _has_loops(ev: Evaluation, e: Expr) -> bool:
    """True if vectors of an expression take a loop, as a stage that is computed inline may."""
    inlined = ev.sources.inlined
    return any(
        (isinstance(n, Reduce) and not is_written_out(n))
        or (isinstance(n, Access) and n.name in inlined and has_long_reduction(inlined[n.name], inlined))
        for n in walk(e)
    )


def _unrolled(ev: Evaluation, e: Reduce, frame: Frame) -> list[Value]:
    points, chains = _points(ev, e.domain, frame), ev.builder.core.registers.extremes
    if not _waits(ev, e) or len(points) < 4 * chains:
        chains = 1
    states = [_identity(ev, e, frame)] * chains
    for n, point in enumerate(points):
        states[n % chains] = _step(ev, e, states[n % chains], point)
    while len(states) > 1:
        states = [[_joined(ev, e, a[0], b[0])] for a, b in zip(states[::2], states[1::2], strict=True)]
    return states[0]


def _waits(ev: Evaluation, e: Reduce) -> bool:
    """True if terms may be joined in any order and joining two takes long. Sums are cut by the compilers themselves."""
    return e.op in ("min", "max") and e.body.type.is_float and not ev.builder.strict


def _points(ev: Evaluation, domain: tuple[RVar, ...], frame: Frame) -> list[Frame]:
    """A frame for every point of a constant domain, the last variable fastest."""
    points = [frame]
    for r in domain:
        assert isinstance(r.lo, Const)
        lo, n = int(r.lo.value), trips(r)
        points = [ev.extended(f, r.name, Lane(const(v))) for f in points for v in range(lo, lo + n)]
    return points


def together(ev: Evaluation, values: Sequence[Expr], frames: list[Frame]) -> None:
    """Evaluates the reductions of `values` for all `frames` side by side, so that what these have in common is loaded
    once, and no accumulator waits for another: long ones in as few loops as there are domains, those that are written
    out term by term. `reduced` finds them done."""
    found: dict[object, Job] = {}
    seen: set[tuple[str, int, tuple[int, ...]]] = set()
    for e in values:
        _collect(ev, e, frames, found, seen)
    groups: dict[tuple[RVar, ...], list[Job]] = {}
    for e, frame in found.values():
        groups.setdefault(e.domain, []).append((e, frame))
    for jobs in groups.values():
        of_one: dict[object, list[Job]] = {}
        for e, frame in jobs:
            of_one.setdefault((e.op, e.where, e.body), []).append((e, frame))
        many = sum(_cells(e) for e, _ in jobs) > ev.builder.core.registers.held
        for part in of_one.values() if many else (jobs,):
            if len(part) > 1 and (_is_long(ev, *part[0]) or _are_many(ev, part)):
                _side_by_side(ev, part)
            elif len(part) > 1:
                _in_step(ev, part)


def _collect(
    ev: Evaluation,
    e: Expr,
    frames: list[Frame],
    found: dict[object, Job],
    seen: set[tuple[str, int, tuple[int, ...]]],
) -> None:
    """Adds the reductions in `e` to `found`. What is inline, by its component and frames, is looked through once: it is
    `seen` then, however often chains of inline stages read it."""
    match e:
        case Reduce() if in_groups(ev, e, frames[0]) is not None:
            return
        case Reduce() if _is_long(ev, e, frames[0]) or _has_many_terms(ev, e):
            e = _unconditional(e, _fixed(ev, e, frames[0]))
            for frame in frames:
                found.setdefault(_key(ev, e, frame), (e, frame))
        case Reduce():
            return
        case Access(name=name) if name in ev.sources.inlined:
            inside = {f.number: f for f in (ev.inlined_frame(e, frame) for frame in frames)}
            key = (name, e.component, tuple(inside))
            if len(frames) > 1 and key not in seen:
                seen.add(key)
                _collect(ev, ev.sources.inlined[name].values[e.component], list(inside.values()), found, seen)
        case _:
            for child in children(e):
                _collect(ev, child, frames, found, seen)


def _has_many_terms(ev: Evaluation, e: Reduce) -> bool:
    """True if vectors of a reduction that is written out are too many for registers: side by side with another one,
    each is loaded for both."""
    return ev.axis is not None and not _waits(ev, e) and prod(map(trips, e.domain)) >= ev.builder.core.registers.terms


def _are_many(ev: Evaluation, jobs: list[Job]) -> bool:
    """True if reductions of one domain have so many terms together, or terms of so many instructions, that they are
    loops."""
    domain = jobs[0][0].domain
    if len(domain) < 2:
        return False
    terms = prod(map(trips, domain))
    return len(jobs) * terms > MOST_TOGETHER or terms * instructions(ev, jobs[0][0].body) > MOST_INSTRUCTIONS


def _in_step(ev: Evaluation, jobs: list[Job]) -> None:
    """A term of each job of one domain, then the next of each."""
    points = [_points(ev, e.domain, frame) for e, frame in jobs]
    states = [_identity(ev, e, frame) for e, frame in jobs]
    for terms in zip(*points, strict=True):
        states = [_step(ev, e, state, point) for (e, _), state, point in zip(jobs, states, terms, strict=True)]
    for (e, frame), state in zip(jobs, states, strict=True):
        _remember(ev, e, frame, state)


def _side_by_side(ev: Evaluation, jobs: list[Job]) -> list[list[Value]]:
    """Loops around accumulators, those of every job of one domain; the first variable is the outermost loop, the
    last ones are written out. A condition that does not change in a loop is asked outside of it."""
    b = ev.builder
    cells: list[list[Value]] = []
    for (e, frame), lanes in zip(jobs, _lanes(ev, jobs), strict=True):
        state = []
        for start in _identity(ev, e, frame):
            bits = 32 if start.type == BOOL and lanes > 1 else 0
            cell = Value(start.type, lanes, b.fresh(e.op), None, bits)
            b.depths[cell.name] = b.depth
            b.emit(Accumulator(cell, start))
            state.append(cell)
        cells.append(state)
    if ev.only_lanes:
        return cells
    domain = jobs[0][0].domain
    most = WRITTEN_TERMS if _is_long(ev, *jobs[0]) else WRITTEN_TOGETHER
    counted: dict[tuple[str, int], int] = {}
    bodies = {id(e.body): e.body for e, _ in jobs}
    terms = {key: max(1, _terms_inside(ev, body, counted)) for key, body in bodies.items()}
    inside = sum(terms[id(e.body)] for e, _ in jobs)
    loops = len(domain) if ev.axis is None else _loops(domain, inside, most)

    depth = b.depth
    _Nest(ev, cells, domain, loops).inside(0, jobs)
    b.depths.update((cell.name, depth) for state in cells for cell in state)
    # what the loop leaves behind must not be mistaken for the accumulator inside it
    left = [
        [b.define(ops.Copy(c), c.type, c.lanes, mask_bits=c.mask_bits, pinned=True) for c in state] for state in cells
    ]
    for (e, frame), state in zip(jobs, left, strict=True):
        _remember(ev, e, frame, state)
    return left


@dataclass(frozen=True, slots=True)
class _Nest:
    """Loops over the first `loops` variables of a domain, around the accumulators of each job, its `cells`."""

    ev: Evaluation
    cells: list[list[Value]]
    domain: tuple[RVar, ...]
    loops: int

    def inside(self, n: int, jobs: list[Job]) -> None:
        """Emits the inside of the first `n` loops, and what these ask for ahead."""
        b = self.ev.builder
        if n == self.loops:
            self._steps(jobs)
        else:
            inner, condition = _asked(self.ev, jobs, self.domain[n:])
            if condition is None:
                self._loop(n, inner)
            elif condition.literal is None:
                with b.condition() as body:
                    self._loop(n, inner)
                b.emit(If((), tuple(body), condition))
            elif condition.literal:
                self._loop(n, inner)
        if n and not b.seldom:
            self._ask_ahead(n, jobs)

    def _ask_ahead(self, n: int, jobs: list[Job]) -> None:
        """Asks for the vectors that the next iteration of the outermost loop reads in the place of those that all loops
        inside of the nth read: between the first of them and the last."""
        first, here = self.domain[0].name, self.domain[n - 1].name
        terms = [t for t in self.ev.sources.ahead.terms if (t.variable, t.inside) == (first, here)]
        if self.ev.axis is None or not terms:
            return
        asking = self.ev.asking(Ahead(rows={t.producer: {t.dim: t.rows} for t in terms}, near=True))
        for e, frame in jobs:
            for last in (False, True):
                point = frame
                for r in self.domain[n:]:
                    lo, extent = asking.lane(r.lo, point).base, asking.lane(r.extent, point).base
                    point = asking.extended(point, r.name, Lane(lo + extent - 1 if last else lo))
                asking.value(e.body, point)

    def _steps(self, jobs: list[Job]) -> None:
        b = self.ev.builder
        for cell in (c for state in self.cells for c in state):
            b.depths[cell.name] = b.depth  # what is made of an accumulator belongs into the innermost loop
        points = [_points(self.ev, self.domain[self.loops :], frame) for _, frame in jobs]
        crowded, begin = len(jobs) > 1 and self._leave_no_room(), len(b.scopes[-1].statements)
        states = self.cells
        if crowded:  # term by term: few of the vectors that they share are in use at once
            for each in zip(*points, strict=True):
                states = [_step(self.ev, e, state, p) for (e, _), state, p in zip(jobs, states, each, strict=True)]
        for state, cells, (e, _), terms in zip(states, self.cells, jobs, points, strict=True):
            new = list(state)
            for point in () if crowded else terms:
                new = _step(self.ev, e, new, point)
            for cell, value in zip(cells, new, strict=True):
                if value != cell:
                    b.emit(Assign(cell, value))
        if crowded:
            made = _loaded_once(b, b.scopes[-1].statements[begin:])
            b.scopes[-1].statements[begin:] = made if b.strict else _in_order(made)

    def _leave_no_room(self) -> bool:
        """True if there are not as many registers again as the accumulators take, and one for an element of all lanes
        where instructions do not take that from memory."""
        b = self.ev.builder
        element = 0 if b.vectors.takes_elements else 1
        vectors = [c for cells in self.cells for c in cells if c.lanes > 1]
        held = sum(max(1, c.lanes * c.type.bytes // b.vectors.register_bytes) for c in vectors)
        return 2 * held + element > b.vectors.registers

    def _loop(self, n: int, jobs: list[Job]) -> None:
        b, r, frame = self.ev.builder, self.domain[n], jobs[0][1]
        lo, extent = self.ev.lane(r.lo, frame).base, self.ev.lane(r.extent, frame).base
        ends = (lo, lo + extent - 1)
        inner = inner_trips(r, (e.body for e, _ in jobs), self.ev.sources.inlined) if n == self.loops - 1 else None
        if inner is not None:
            self._blocks(n, jobs, ends, inner)
            return
        var, body, _ = self._body(n, jobs, ends)
        inside = self._unclamped(n, jobs, ends)
        if inside is None:
            b.emit(Loop(var, *ends, const(1), body))
        else:
            skip, loop = inside
            b.emit(PeeledLoop(var, *ends, skip, body, (loop,)))

    def _blocks(self, n: int, jobs: list[Job], ends: Ends, trips: int) -> None:
        """The nth loop as two, the inner one with so many `trips`: what quotients decide is worked out in the outer."""
        b, r = self.ev.builder, self.domain[n]
        blocks = divide(ends[0], trips), divide(ends[1], trips)
        with b.scope() as outside:
            block = b.fresh(f"{r.name}_outer")
            first = b.declare(block, ends=blocks).scaled(trips)
            inner = const(0), const(trips - 1)
            var, body, _ = self._body(n, jobs, inner, first=first)
            b.emit(Loop(var, *inner, const(1), body))
        b.emit(Loop(block, *blocks, const(1), tuple(outside)))

    def _body(
        self, n: int, jobs: list[Job], ends: Ends, clamped: bool = True, first: Index | None = None
    ) -> tuple[str, Body, Evaluation]:
        """The variable of the nth loop, which counts on from `first`, and what runs inside of it, `clamped` or as where
        nothing is."""
        b, r = self.ev.builder, self.domain[n]
        with b.scope() as body:
            var = b.fresh(r.name)
            here = b.declare(var, ends=ends if clamped else None)
            at = Lane(here if first is None else first + here)
            nest = self if clamped else replace(self, ev=self.ev.unclamped(var))
            nest.inside(n + 1, [(e, nest.ev.extended(f, r.name, at)) for e, f in jobs])
        return var, tuple(body), nest.ev

    def _unclamped(self, n: int, jobs: list[Job], ends: Ends) -> tuple[Ends, Loop] | None:
        """Iterations of a long innermost loop in which no lane is clamped, and their loop, where vectors clamp lane by
        lane; None where these do not follow each other."""
        ev, b = self.ev, self.ev.builder
        (lo, hi), count = ends, ends[1] - ends[0] + 1
        short = count.is_const and count.const <= UNROLLED_TRIPS
        if ev.axis is None or not ev.exact or ev.safe or ev.shares_row or n < self.loops - 1 or short:
            return None
        try:
            with b.attempt():
                var, body, inside = self._body(n, jobs, ends, clamped=False)
        except Misfit:
            return None
        begin, end = lo, hi + 1
        for c in inside.constraints:
            moving = c.coefficient(var)
            fixed = c - sym(var).scaled(moving)
            if moving > 0:
                begin = maximum(begin, divide(fixed.scaled(-1) + (moving - 1), moving))
            elif moving < 0:
                end = minimum(end, divide(fixed, -moving) + 1)
            else:
                return None
        if not inside.constraints:
            return None
        first = b.let(minimum(begin, maximum(hi + 1, lo)), f"{var}_from")
        last = b.let(maximum(end, first), f"{var}_to")
        return (first, last), Loop(var, first, last - 1, const(1), body)


def _loaded_once(b: Builder, statements: list[Statement]) -> list[Statement]:
    """Statements in which vectors that are used more than once are held from where they are loaded on: where registers
    are scarce, compilers load them again for each use, half of them across two lines."""
    uses = Counter(name for s in statements for name in used(s))
    found: list[Statement] = []
    for s in statements:
        if isinstance(s, Define) and isinstance(s.op, ops.Load) and s.result.lanes > 1 and uses[s.result.name] > 1:
            loaded = replace(s.result, name=b.fresh(s.result.name.rpartition("_")[0]))
            found += [replace(s, result=loaded), replace(s, op=ops.Copy(loaded, held=True))]
        else:
            found.append(s)
    return found


def _in_order(statements: list[Statement]) -> list[Statement]:
    """Statements in which vectors of products are added as they are made, by one instruction each. Compilers that may
    add in any order make trees of the terms of a sum, so that none waits for another. That is instructions more, and
    where sums have most of the registers already, what a tree joins is in memory; and many sums do not wait."""
    uses = Counter(name for s in statements for name in used(s))
    products: dict[str, ops.Binary] = {}
    found: dict[int, Define] = {}
    for n, s in enumerate(statements):
        match s:
            case Define(Value(lanes=lanes) as r, ops.Binary("*") as product) if lanes > 1 and r.type.is_float:
                products[r.name] = product
            case Define(r, ops.Binary("+", a, b)) if products:
                term = next((x for x in (b, a) if x.name in products and uses[x.name] == 1), None)
                if term is not None:
                    product = products[term.name]
                    found[n] = Define(r, ops.FusedProduct(product.a, product.b, a if term is b else b))
    return [found.get(n, s) for n, s in enumerate(statements)]


def _asked(ev: Evaluation, jobs: list[Job], inside: tuple[RVar, ...]) -> tuple[list[Job], Value | None]:
    """The condition that all jobs have in common whatever the loops `inside` do, as one scalar, and the jobs without
    it; None where there is none."""
    first, names = jobs[0][0], {r.name for r in inside}
    common = [
        c
        for c in _conjuncts(first.where)
        if names.isdisjoint(variables_of(c)) and all(c in _conjuncts(e.where) for e, _ in jobs)
    ]
    values = [[ev.value(c, f) for _, f in jobs] for c in common]
    uniform = [n for n, v in enumerate(values) if v[0].lanes == 1 and all(x == v[0] for x in v)]
    if not uniform:
        return jobs, None
    asked = [common[n] for n in uniform]
    condition = values[uniform[0]][0]
    for n in uniform[1:]:
        condition = _bool(ev, ops.Logical("and", condition, values[n][0]))
    return [(_unconditional(e, asked), f) for e, f in jobs], condition


def _conjuncts(where: Expr | None) -> list[Expr]:
    if isinstance(where, Logical) and where.op == "and":
        return [*_conjuncts(where.left), *_conjuncts(where.right)]
    return [] if where is None else [where]


def _unconditional(e: Reduce, asked: list[Expr]) -> Reduce:
    """`e` where the conditions `asked` hold."""
    if not asked:
        return e
    left: Expr | None = None
    for c in _conjuncts(e.where):
        if c not in asked:
            left = c if left is None else Logical("and", left, c)
    return replace(e, where=left)


def _terms_inside(ev: Evaluation, e: Expr, counted: dict[tuple[str, int], int]) -> int:
    """Terms of reductions that a value of `e` writes out, those of stages that are computed inline among them; of a
    reduction that is a loop those of an iteration. `counted` has those of stages, each of which is looked into once."""
    inlined = ev.sources.inlined
    if isinstance(e, Access) and e.name in inlined:
        value = (e.name, e.component)
        if value not in counted:
            counted[value] = _terms_inside(ev, inlined[e.name].values[e.component], counted)
        return counted[value]
    inside = sum(_terms_inside(ev, c, counted) for c in children(e))
    if not isinstance(e, Reduce):
        return inside
    terms = prod(map(trips, e.domain))
    return (terms if is_written_out(e) else min(terms, WRITTEN_TERMS)) * max(1, inside)


def _loops(domain: tuple[RVar, ...], terms: int, most: int) -> int:
    """The number of variables that are loops: the last ones, constant terms and at most so many together, are written
    out, where a point of the domain has so many `terms`."""
    n = len(domain)
    while n > 1 and 0 < trips(domain[n - 1]) * terms <= most:
        n -= 1
        terms *= trips(domain[n])
    return n


def _cells(e: Reduce) -> int:
    """The number of accumulators of a reduction."""
    return len(e.domain) + 1 if e.op in ("argmin", "argmax") else 1


def _picked(e: Reduce, state: list[Value]) -> Value:
    return state[e.component if e.op in ("argmin", "argmax") else 0]


def _lanes(ev: Evaluation, jobs: list[Job]) -> list[int]:
    """Lanes of the result of each job: found by evaluating one term of each in a scope that is thrown away."""
    if ev.axis is None:
        return [1] * len(jobs)
    b, found = ev.builder, []
    variables: dict[tuple[str, Index, Index], Lane] = {}
    with ev.sizing() as sizing:
        for e, frame in jobs:
            point = frame
            for r in e.domain:
                key = (r.name, sizing.lane(r.lo, frame).base, sizing.lane(r.extent, frame).base)
                if key not in variables:
                    _, lo, extent = key
                    variables[key] = Lane(b.declare(b.fresh(r.name), ends=(lo, lo + extent - 1)))
                point = sizing.extended(point, r.name, variables[key])
            values = [sizing.value(part, point) for part in (e.body, e.where) if part is not None]
            found.append(max(v.lanes for v in values))
    return found


def _identity(ev: Evaluation, e: Reduce, frame: Frame) -> list[Value]:
    """The values that the reduction starts from: of argmin and argmax the first value of every variable, and the worst
    value."""
    t = e.body.type
    match e.op:
        case "sum":
            return [literal(0, t)]
        case "product":
            return [literal(1, t)]
        case "any":
            return [literal(False, BOOL)]
        case "all":
            return [literal(True, BOOL)]
        case "min" | "max":
            return [_worst(t, e.op == "min")]
    return [ev.position(ev.lane(r.lo, frame)) for r in e.domain] + [_worst(t, e.op == "argmin")]


def _worst(t: ScalarType, smallest_wins: bool) -> Value:
    if t.is_float:
        return literal(float("inf") if smallest_wins else float("-inf"), t)
    return literal(t.max if smallest_wins else t.min, t)


def _step(ev: Evaluation, e: Reduce, state: list[Value], point: Frame) -> list[Value]:
    """The state after one more term."""
    body = ev.value(e.body, point)
    where = None if e.where is None else ev.value(e.where, point)
    if where is not None and where.literal is not None:
        if not where.literal:
            return state
        where = None
    if e.op in ("argmin", "argmax"):
        better = _bool(ev, ops.Compare("<" if e.op == "argmin" else ">", body, state[-1]))
        if where is not None:
            better = _bool(ev, ops.Logical("and", better, where))
        fresh = [ev.position(point.env[r.name]) for r in e.domain] + [body]
        return [_chosen(ev, better, new, old) for new, old in zip(fresh, state, strict=True)]
    identity = _identity(ev, e, point)[0]
    if where is not None:
        body = _chosen(ev, where, body, identity)
    return [body if state[0] == identity else _joined(ev, e, state[0], body)]


def _joined(ev: Evaluation, e: Reduce, a: Value, b: Value) -> Value:
    lanes, mask = max(a.lanes, b.lanes), max(a.mask_bits, b.mask_bits)
    if e.op in ("min", "max") and lanes > 1 and e.body.type != BOOL:
        return ev.extreme_of(e.op, (a, b), lanes)
    return ev.builder.define(_combination(e.op, a, b), e.body.type, lanes, mask_bits=mask)


def _combination(reduction: str, a: Value, b: Value) -> ops.Operation:
    match reduction:
        case "sum":
            return ops.Binary("+", a, b)
        case "product":
            return ops.Binary("*", a, b)
        case "any":
            return ops.Logical("or", a, b)
        case "all":
            return ops.Logical("and", a, b)
        case _:
            return ops.Call(reduction, (a, b))


def _bool(ev: Evaluation, op: ops.Operation) -> Value:
    return ev.op(op, Logical("and", Const(True, BOOL), Const(True, BOOL)))


def _chosen(ev: Evaluation, condition: Value, a: Value, b: Value) -> Value:
    if condition.literal is not None:
        return a if condition.literal else b
    lanes = max(condition.lanes, a.lanes, b.lanes)
    mask = max(a.mask_bits, b.mask_bits, condition.mask_bits) if a.type == BOOL and lanes > 1 else 0
    return ev.builder.define(ops.Select(condition, a, b), a.type, lanes, mask_bits=mask)
