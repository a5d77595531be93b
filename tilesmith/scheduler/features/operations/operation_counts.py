"""Arithmetic of one point of a stage, by kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm, log2, prod
from types import MappingProxyType
from typing import NamedTuple, cast

import numpy as np

from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.taco2019 import arithmetic_cost
from tilesmith.scheduler.analysis.neighbour_sums import is_difference, neighbours, summed, summed_variable, total_type
from tilesmith.scheduler.analysis.row_recurrences import RowRecurrence
from tilesmith.scheduler.analysis.short_products import short_factors, terms
from tilesmith.scheduler.analysis.stage_form import form
from tilesmith.scheduler.analysis.stage_graph import all_parts, reductions
from tilesmith.scheduler.features.operations.node_operations import (
    Tally,
    add_conversion,
    add_executed,
    add_written,
    element_type,
    tally,
)
from tilesmith.scheduler.features.operations.reduction_loops import is_written_out
from tilesmith.scheduler.ir.memo import once, once_a_form
from tilesmith.scheduler.ir.pipeline.evaluation import evaluate
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    Logical,
    ParamRef,
    Reduce,
    RVar,
    Select,
    Var,
    children,
    has_accesses,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.integer_functions import written_out
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.pipeline.types import INT16, INT32

MOST_PLACES = 64
"""Places, by the remainders of theirs that a condition follows from, that are tried."""
_PLAIN = frozenset((Const, Var))
"""Expressions that take no operations."""


Trips = Callable[[RVar], int]
"""The number of iterations of a reduction variable."""


Typed = tuple[tuple[str, Operations], ...]
"""Operations by the type of the elements that they work on."""


def constant_trips(r: RVar) -> int:
    """Iterations where the document says them, else 1."""
    return max(1, int(r.extent.value)) if isinstance(r.extent, Const) else 1


def operations(stage: Stage, trips: Trips = constant_trips) -> Operations:
    """Operations of one point of the pure values of `stage`, of all types together."""
    return total(typed_operations(stage, trips))


def typed_operations(stage: Stage, trips: Trips = constant_trips, row: str | None = None) -> Typed:
    """Operations of one point of the pure values of `stage`, by element type. With the dim that vectors run along,
    `row`, those executed, without what is the same for all of a row, which is computed before it.

    Of index arithmetic only clamps, remainders and choices count, as `index` (a boundary costs): what is left are
    addresses, the compiler's business. So is a condition that reads nothing: which loops split or hoist. An
    inline reduction counts its body once a term.
    """
    return _counted(stage, trips, row).typed


def operations_on_loads(stage: Stage, trips: Trips = constant_trips, row: str | None = None) -> Mapping[str, Typed]:
    """Operations of `typed_operations` that convert what is loaded, or choose it within a constant boundary, by the
    producer that it is loaded of: where several readers load one element, compilers do that once."""
    found = _counted(stage, trips, row)
    if not found.on_loads or found.of is stage:
        return found.on_loads
    own = dict(zip(form(found.of).names, form(stage).names, strict=True))
    return {own[name]: typed for name, typed in found.on_loads.items()}


class _Counted(NamedTuple):
    """Operations of a point of the first stage of a form, and those of them that are of one load alone, by its
    producers."""

    of: Stage
    typed: Typed
    on_loads: Mapping[str, Typed]


def _counted(stage: Stage, trips: Trips, row: str | None) -> _Counted:
    if any(not isinstance(end, Const) for e in reductions(stage) for r in e.domain for end in (r.lo, r.extent)):
        return _count(stage, trips, row)
    known = _known_counts(stage)
    found = known.get(row)
    if found is None:
        found = known[row] = _count(stage, constant_trips, row)
    return found


@once_a_form
def _known_counts(stage: Stage) -> dict[str | None, _Counted]:
    """The operations by the row, of a stage whose reductions all have constant bounds."""
    return {}


def _count(stage: Stage, trips: Trips, row: str | None) -> _Counted:
    counts: Tally = {}
    counting = _Counting(counts, trips, row, beside=row in stage.storage[:1])
    for value in stage.values:
        counting.add(value)
    return _Counted(stage, _typed(counts), {name: _typed(found) for name, found in counting.on_loads.items()})


def joining_operations(found: RowRecurrence) -> Typed:
    """Operations by which a point is joined to one before it."""
    of = Operations(add=1, multiply=float(found.factor != 1)) if found.op == "+" else Operations(select=1)
    return ((element_type(found.rest.type), of),)


NO_REDUCTIONS: Mapping[Reduce, float] = MappingProxyType({})


def update_operations(
    update: Update,
    trips: Trips = constant_trips,
    row: str | None = None,
    steady: Mapping[Reduce, float] = NO_REDUCTIONS,
) -> Typed:
    """Operations of one iteration of `update`: its values, its condition, and where it writes. With a dim `row`,
    without what does not differ along it. A condition that is the same for all iterations of the domain's first
    variable stands around the loop over it; reductions that are `steady` are worked out once in so many iterations."""
    counts: Tally = {}
    values = _Counting(counts, trips, row, steady)
    for value in update.values:
        values.add(value)
    if update.where is not None:
        innermost = update.domain[0].name if update.domain else None
        _Counting(counts, trips, row if row is not None else innermost, steady).add(update.where)
    for index in update.at:
        _count_index(index, _Times(1.0), counts, True, None, {})
    return _typed(counts)


def total(typed: Typed) -> Operations:
    """Operations of all types together."""
    (_, first), *others = typed or (("", Operations()),)
    return sum((found for _, found in others), first)


def together(parts: Iterable[tuple[float, Typed]]) -> Typed:
    """The operations of all parts together, each times its factor."""
    found: dict[str, Operations] = {}
    for times, typed in parts:
        for name, operations_ in typed:
            scaled = operations_ if times == 1 else operations_.scaled(times)
            found[name] = found[name] + scaled if name in found else scaled
    return tuple(sorted(found.items()))


@once
def work_apart(stage: Stage) -> Mapping[str, float]:
    """Operations of a point of `stage` that differ along its rows, but not along a dim, by that dim: what a loop over
    the dim inside of one along the row does once for all points. Of random numbers it is the hash of the indices
    before."""
    made = _made_of(stage)
    row, found = stage.storage[0], dict.fromkeys(stage.dims, 0.0)
    for node in {id(e): e for value in stage.values for e in outside_indices(value)}.values():
        moving, dims = made[id(node)]
        apart = found.keys() - dims
        random = isinstance(node, Call) and node.function == "random"
        if isinstance(node, Access | Const | Var) or not (moving or row in dims) or not (apart or random):
            continue
        counts: Tally = {}
        add_written(node, 1.0, counts)
        cost = arithmetic_cost(total(_typed(counts)))
        for dim in found:
            if dim in apart:
                found[dim] += cost
            elif isinstance(node, Call) and random:
                args = [made[id(a)] for a in node.args]
                before = args[: [dim in of for _, of in args].index(True)]
                some = any(reads or row in of for reads, of in before)
                found[dim] += cost * len(before) / len(node.args) if some else 0.0
    return found


def _made_of(stage: Stage) -> dict[int, tuple[bool, frozenset[str]]]:
    """Parts of the stage's values, each with the variables in it, and True if it reads anything."""
    found: dict[int, tuple[bool, frozenset[str]]] = {}
    for value in stage.values:
        for e in reversed(list(walk(value))):
            if isinstance(e, Var):
                found[id(e)] = False, frozenset((e.name,))
            elif id(e) not in found:
                parts = [found[id(c)] for c in children(e)]
                reads = isinstance(e, Access) or any(r for r, _ in parts)
                found[id(e)] = reads, frozenset(name for _, of in parts for name in of)
    return found


def outside_indices(e: Expr) -> Iterator[Expr]:
    """`e` and its parts, but what is read of indices, and conditions on places alone: by these loops are split."""
    pending = [e]
    while pending:
        node = pending.pop()
        if isinstance(node, Compare | Logical) and not any(isinstance(part, Access | Call) for part in walk(node)):
            continue
        yield node
        if not isinstance(node, Access):
            pending += children(node)


def _typed(counts: Tally) -> Typed:
    found: dict[str, dict[str, float]] = {}
    for (name, kind), n in counts.items():
        found.setdefault(name, {})[kind] = n
    return tuple((name, Operations(**kinds)) for name, kinds in sorted(found.items()))


@once_a_form
def element_bytes_used(stage: Stage) -> int:
    """Bytes of the widest type that the values and updates of `stage` compute with: what decides how many fit a vector.

    Parts that read nothing (dims, params, literals) are the same for a whole row or cheap to convert, and
    left out.
    """
    widest = [max((t.bytes for t in stage.types), default=1)]
    if all(e.type.bytes <= widest[0] for of in all_parts(stage).values() for e in of):
        return widest[0]
    for value in (*stage.values, *(v for u in stage.updates for v in u.values)):
        _widen(value, widest)
    return max(widest)


def _widen(e: Expr, widest: list[int]) -> bool:
    """True if `e` depends on what is read; appends the bytes of every such part of it, indices left out."""
    below = [] if isinstance(e, Access) else [_widen(child, widest) for child in children(e)]
    reads = isinstance(e, Access) or any(below)
    if reads:
        widest.append(e.type.bytes)
    return reads


def _moving_parts(e: Expr, row: str) -> set[int]:
    """Parts of `e`, by identity, that differ along a row: the row's dim, what is made of it, and every reduction."""
    found: set[int] = set()
    for node in reversed(list(walk(e))):
        if isinstance(node, Var):
            if node.name == row:
                found.add(id(node))
        elif isinstance(node, Reduce) or not found.isdisjoint(map(id, children(node))):
            found.add(id(node))
    return found


@dataclass(frozen=True, slots=True)
class _Times:
    """Executions of a part of a value: so many in the loops of the reductions around it, and outside of each of these,
    innermost first, with the variables of its loops: in which order they are is the business of lowering."""

    inside: float
    around: tuple[tuple[frozenset[str], float], ...] = ()

    def of(self, e: Expr) -> float:
        """Executions of `e`, before a reduction in all of which it is the same."""
        n = self.inside
        if self.around:
            names = variables_of(e)
            for variables, outside in self.around:
                if not names.isdisjoint(variables):
                    break
                n = outside
        return n

    def within(self, e: Reduce, times: float, trips: Trips) -> _Times:
        """The executions in the loops of a reduction, which is itself executed so often."""
        own = frozenset(r.name for r in e.domain), times
        return _Times(times * prod(trips(r) for r in e.domain), (own, *self.around))

    def scaled(self, share: float) -> _Times:
        return _Times(self.inside * share, tuple((names, n * share) for names, n in self.around))


@dataclass(slots=True)
class _Counting:
    """Counts of the operations of values in `counts`; a part that is there twice in one is computed once. With `row`
    those that are executed for a point of a row along that dim: none of a part that is the same for all of it, of what
    a `mux` picks from one, and what is the same in all of a reduction once before that. `beside`: its points are
    neighbours in memory. Reductions that are `steady` are computed once in so many points. `on_loads` has, of what is
    executed, operations on one load alone by its producer."""

    counts: Tally
    trips: Trips
    row: str | None = None
    steady: Mapping[Reduce, float] = field(default_factory=dict)
    beside: bool = True
    on_loads: dict[str, Tally] = field(default_factory=dict)
    _moving: set[int] | None = field(init=False, default=None)
    _terms: set[str] = field(init=False, default_factory=set)
    _kept: list[Expr] = field(init=False, default_factory=list)
    _indices: dict[int, list[tuple[Expr, bool]]] = field(init=False, default_factory=dict)

    def add(self, e: Expr) -> None:
        """Adds the operations of one execution of `e`."""
        row, moving = self.row, None if self.row is None else _moving_parts(e, self.row)
        self._moving = moving
        pending = [(e, _Times(1.0))]
        seen: set[tuple[int, float]] = set()
        while pending:
            node, executions = pending.pop()
            same = moving is not None and id(node) not in moving
            if type(node) in _PLAIN or (same and not self._terms):
                continue
            n = executions.inside if row is None else executions.of(node)
            key = (id(node), n)
            if key in seen:
                continue
            seen.add(key)
            if same:
                self._same_in_all_lanes(node, executions.inside)
            else:
                pending += self._operation(node, n, executions)

    def _operation(self, e: Expr, n: float, executions: _Times) -> Sequence[tuple[Expr, _Times]]:
        """Adds `n` times the operation of `e` itself, and gives the parts of it that are still to be counted."""
        if isinstance(e, Access):
            for index in e.indices:
                _count_index(index, executions, self.counts, self.row is not None, self.row, self._indices)
            return ()
        if isinstance(e, Reduce):
            return self._reduction(e, n, executions)
        if isinstance(e, Call) and (written := written_out(e)) is not None:
            self._kept.append(written)  # parts are known by identity
            if self._moving is not None and self.row is not None:
                self._moving |= _moving_parts(written, self.row)
            return [(written, executions)]
        if self._moving is None:
            add_written(e, n, self.counts)
        else:
            parts = self._executed(e, n, executions, self._moving)
            if parts is not None:
                return parts
        if isinstance(e, Select) and not has_accesses(e.condition):
            return [(e.if_true, executions), (e.if_false, executions)]
        return [(child, executions) for child in children(e)]

    def _same_in_all_lanes(self, e: Expr, n: float) -> None:
        """Adds `n` times the tests and choices of a part that is the same for all of a row, as of the boundary of an
        element that all lanes share, where the innermost loop of a long reduction has others in each iteration."""
        own: Tally = {}
        for node in dict.fromkeys(walk(e)):
            if isinstance(node, Select | Compare | Logical | Call) and any(
                isinstance(part, Var) and part.name in self._terms for part in walk(node)
            ):
                add_written(node, n, own)
        if own:
            tally(INT32, "uniform", sum(own.values()), self.counts)

    def _reduction(self, e: Reduce, n: float, executions: _Times) -> Sequence[tuple[Expr, _Times]]:
        executions = executions.within(e, n / self.steady.get(e, 1.0), self.trips)
        if not is_written_out(e):
            self._terms.add(e.domain[-1].name)
        n = executions.inside
        grouped = summed_variable(e, self.row, {}, None) if self.row is not None and self.beside else None
        if grouped is not None:
            return [(part, executions) for part in _tally_groups(e, grouped, n, self.counts)]
        tally(e.type, {"sum": "add", "product": "multiply"}.get(e.op, "select"), n, self.counts)
        return [(part, executions) for part in (e.body, e.where) if part is not None]

    def _executed(
        self, e: Expr, n: float, executions: _Times, moving: Collection[int]
    ) -> Sequence[tuple[Expr, _Times]] | None:
        """Parts of what is executed otherwise than as the operation that it is; None of all else, which is counted."""
        products = _sum_of_products(e, moving, n, self.counts, self.on_loads)
        if products:
            return [(part, executions) for part in products]
        if isinstance(e, Select) and id(e.condition) not in moving:
            share = remainders_hold(e.condition)
            if share is not None:
                return [(e.if_true, executions.scaled(share)), (e.if_false, executions.scaled(1 - share))]
        add_executed(e, n, self.counts)
        producer = _loaded_of(e) if isinstance(e, Cast | Select) else None
        if producer is not None:
            add_executed(e, n, self.on_loads.setdefault(producer, {}))
        if isinstance(e, Call) and e.function == "mux":
            index, *choices = e.args
            return [(index, executions), *((choice, executions.scaled(1 / len(choices))) for choice in choices)]
        return None


def _loaded_of(e: Expr) -> str | None:
    """The producer of the element that `e` is, within a constant boundary and converted or not; None of others."""
    match e:
        case Access():
            return e.name
        case Cast():
            return _loaded_of(e.operand)
        case Select(if_false=Const()) if not has_accesses(e.condition):
            return _loaded_of(e.if_true)
    return None


def remainders_hold(condition: Expr) -> float | None:
    """The share of places at which a condition holds that follows from remainders of these alone, as `y % 2 == 0` does:
    rows are written once for each remainder. None of another."""
    periods: dict[str, int] = {}
    pending = [condition]
    while pending:
        match pending.pop():
            case Binary(op="%", left=Var(name=name), right=Const(value=k)) if k > 0:
                periods[name] = lcm(periods.get(name, 1), int(k))
            case Var() | Access() | Reduce() | ParamRef() | InputBound():
                return None
            case other:
                pending += children(other)
    if not periods or prod(periods.values()) > MOST_PLACES:
        return None
    places = np.meshgrid(*(np.arange(n, dtype=np.int32) for n in periods.values()), indexing="ij")
    by_name = dict(zip(periods, places, strict=True))
    return float(np.mean(evaluate(condition, lambda leaf: by_name[cast(Var, leaf).name])))


def _tally_groups(e: Reduce, r: RVar, n: float, counts: Tally) -> tuple[Expr, ...]:
    """Adds `n` terms of a sum of neighbours, and gives what they are made of. Groups of eight bytes are summed by one
    instruction, absolute differences or not, others by halves of elements twice as wide, each a mask, a shift and a
    sum; and a vector of sums of groups is added up. They are counted in the type of these sums: a vector has as many
    lanes as points."""
    term, total = summed(e), total_type(e, r) or e.type
    group = total.bits // term.type.bits
    halves = 1 if (term.type.bits, group) == (8, 8) else 3 * log2(neighbours(r))
    tally(total, "add", n * (halves + 1) / group, counts)
    add_conversion(total, e.type, 1, counts)
    return term.args if isinstance(term, Call) and is_difference(term, group) else (term,)


def _sum_of_products(
    e: Expr, moving: Collection[int], n: float, counts: Tally, on_loads: dict[str, Tally]
) -> list[Expr]:
    """The terms of a sum that multiplies 16 bits in 32 and adds up by one instruction. That is counted for each two
    products, and a vector put together of two for each of their factors that differs along the row: once for what is
    loaded once."""
    if not (isinstance(e, Binary) and e.op == "+" and e.type == INT32):
        return []
    found = [(t, short_factors(t)) for t in terms(e)]
    products = [parts for t, parts in found if len(parts) == 2 and id(t) in moving]
    if len(products) < 2:
        return []
    others = [t for t, parts in found if len(parts) < 2 or id(t) not in moving]
    factors = [p for parts in products for p in parts]
    pairs = (len(products) + 1) // 2
    tally(INT16, "multiply", 2 * n * pairs, counts)
    tally(INT32, "add", n * (pairs + len(others) - 1), counts)
    for p in factors:
        if id(p) in moving:
            tally(INT32, "convert", n / 2, counts)
            less = isinstance(p, Binary) and not any(isinstance(part, Access | Var) for part in walk(p.right))
            producer = _loaded_of(p.left if isinstance(p, Binary) and less else p)
            if producer is not None:
                of_load = on_loads.setdefault(producer, {})
                tally(INT32, "convert", n / 2, of_load)
                if less:  # a zero point, say
                    add_executed(p, n, of_load)
    return [*factors, *others]


def _count_index(
    index: Expr,
    times: _Times,
    counts: Tally,
    executed: bool,
    row: str | None,
    known: dict[int, list[tuple[Expr, bool]]],
) -> None:
    """Adds what of an index is not an address to be formed from loop variables. If `executed`, what is done with data
    and floats is done for each point, of a row where it differs along that; the rest is the loops' business, which are
    split where clamps begin. The operations of indices are `known` by identity."""
    operations = known.get(id(index))
    if operations is None:
        operations = known[id(index)] = _operations_of_index(index, row)
    own: Tally = {}
    for node, of_data in operations:
        n = times.inside if row is None else times.of(node)
        if executed and of_data:
            add_executed(node, n, counts)
        else:
            add_written(node, n, own)
    if own:
        counts["i32", "index"] = counts.get(("i32", "index"), 0) + sum(own.values())


def _operations_of_index(index: Expr, row: str | None) -> list[tuple[Expr, bool]]:
    """The functions, choices and remainders in an index, each with whether it is of data or floats that differ along
    the row."""
    while type(index) is Binary and index.op in ("+", "-") and type(index.right) is Const:
        index = index.left
    found: list[tuple[Expr, bool]] = []
    for node in () if type(index) in _PLAIN else walk(index):
        kind = type(node)
        if kind is Call or kind is Select or (isinstance(node, Binary) and node.op == "%"):
            parts = list(walk(node))
            apart = row is None or any(isinstance(part, Var) and part.name == row for part in parts)
            found.append((node, apart and any(isinstance(part, Access) or part.type.is_float for part in parts)))
    return found
