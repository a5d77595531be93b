"""Chains of dependent operations: how long a value takes from the last of its loads, or from the coordinates that it is
computed of, however much runs beside it.

A core overlaps steps of a loop as far as its window of instructions reaches. Where a step is long in both instructions
and latency, it is the latency that limits (`tilesmith.cost_models.ecm`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil, log2, prod

from tilesmith.platforms.core import Latencies
from tilesmith.scheduler.analysis.dependence import awaited, independent
from tilesmith.scheduler.analysis.linear_combinations import is_sum
from tilesmith.scheduler.analysis.stage_graph import reductions
from tilesmith.scheduler.features.operations.node_operations import function_of, is_few_products
from tilesmith.scheduler.features.operations.operation_counts import Trips, constant_trips
from tilesmith.scheduler.features.operations.reduction_loops import is_written_out
from tilesmith.scheduler.ir.memo import once_a_form
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Logical,
    Reduce,
    Select,
    Unary,
    Var,
    children,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops

CALL = 12.5
FUNCTIONS: Mapping[str, float] = {
    "exp": 14.0, "log": 16.25, "pow": 37.5, "cube root": 23.5, "sin": 12.0, "cos": 13.0, "tan": 19.0, "asin": 16.25,
    "acos": 17.5, "atan": 17.5, "atan2": 20.5, "tanh": 21.0, "floor": 2.0, "ceil": 2.0, "round": 2.0, "trunc": 2.0,
}  # fmt: skip
"""The longest chains of functions in the C, in sums of floats: those of `codegen.c.exponential_functions` and
`codegen.c.circular_functions`; CALL is that of another polynomial, or of a call."""
SIDE_BY_SIDE = 2
"""Chains that C compilers make of a longer sum, where they may add it up in another order: GCC two of vectors for most
of Intel's cores, three where it knows of none, four for AMD's; Clang one."""


Ends = tuple[float, float]
"""Cycles from the loads below an expression to its value, and from the last of them only; 0 of what no load is in.
Coordinates along the row that become floats are like loads: each step has others."""
NO_LOAD: Ends = (0.0, 0.0)
NOWHERE: frozenset[str] = frozenset()


def chain(stage: Stage, latencies: Latencies, along: frozenset[str] = NOWHERE, trips: Trips = constant_trips) -> Ends:
    """Cycles from the loads of a point of a stage to its values, those of a load included; and from the last part that
    comes of what is computed in the same step, on a core with these `latencies`. Sums are joined in the order that
    their parts come in, the last of which waits for no other. Dims `along` change from step to step: what is computed
    of the others alone, and of what is read at places that these say, is computed once a row. Reductions have so many
    `trips`."""
    known, key = _known(stage), (latencies, along, tuple(trips(r) for e in reductions(stage) for r in e.domain))
    found = known.get(key)
    if found is None:
        found = known[key] = chain_of(stage.values, latencies, along, trips)
    return found


def chain_of(
    values: Iterable[Expr], latencies: Latencies, along: frozenset[str] = NOWHERE, trips: Trips = constant_trips
) -> Ends:
    """The chain of some values of a stage (see `chain`)."""
    return _Chains(latencies, along, trips).of_all(values)


def carried_by(
    stage: Stage, update: Update, loops: UpdateLoops, trips: Callable[[str], int], latencies: Latencies
) -> float:
    """Cycles that a step of `update` waits for the one before: from what another iteration of the first loop whose
    iterations wait for each other has written to the value of this one, the longest way, which all steps of the loops
    inside of it have together. 0 where an update reads nothing but its own place."""
    steps = 1.0
    for loop in loops.loops:
        if not independent(stage, update, loops.loops, loop):
            return _carried(stage, update, latencies, awaited(stage, update, loops.loops, loop)) / steps
        lanes = loops.vector.lanes if loops.vector is not None and loops.vector.dim == loop else 1
        steps *= max(1.0, trips(loop) / lanes)
    return 0.0


def through_memory(update: Update, latencies: Latencies) -> float:
    """Cycles from what an associative update has stored to what it stores next in the same place: it is loaded as from
    the first level, and joined."""
    chains = _Chains(latencies)
    return latencies.load + max(chains.of_operation(v) for v in update.values)


def _carried(stage: Stage, update: Update, latencies: Latencies, reads: Mapping[Access, int]) -> float:
    """Cycles an iteration from the longest of these reads of the stage, each of what so many iterations before have
    written, to the value of this one. Products are fused with sums."""
    chains = _Chains(latencies)
    own = {Access(stage.name, update.at, k, v.type) for k, v in enumerate(update.values)}

    def way(e: Expr, before: int) -> float | None:
        if isinstance(e, Access):
            return 0.0 if reads.get(e) == before and e not in own else None
        parts = [(p, found) for p in children(e) if (found := way(p, before)) is not None]
        if not parts:
            return None
        if e.type.is_float and is_sum(e):
            product = latencies.float_sum
            parts = [(p, w - product if isinstance(p, Binary) and p.op == "*" else w) for p, w in parts]
        return max(w for _, w in parts) + chains.of_operation(e)

    ways = ((way(v, before), before) for v in update.values for before in sorted(set(reads.values())))
    return max((cycles / before for cycles, before in ways if cycles is not None), default=0.0)


@once_a_form
def _known(stage: Stage) -> dict[tuple[Latencies, frozenset[str], tuple[int, ...]], Ends]:
    return {}


@dataclass(slots=True)
class _Chains:
    """The chains of the expressions of one stage."""

    latencies: Latencies
    along: frozenset[str] = NOWHERE
    trips: Trips = constant_trips
    known: dict[int, Ends] = field(default_factory=dict)
    looped: set[str] = field(default_factory=set)

    def of(self, e: Expr) -> Ends:
        found = self.known.get(id(e))
        if found is None:
            found = self.known[id(e)] = self._from_parts(e)
        return found

    def _from_parts(self, e: Expr) -> Ends:
        if isinstance(e, Reduce):
            parts = (e.body, *(() if e.where is None else (e.where,)))
            if not is_written_out(e):
                self.looped.update(r.name for r in e.domain)
            inside, joins = self.of_all(parts), prod(map(self.trips, e.domain))
            if is_written_out(e):
                return NO_LOAD if inside == NO_LOAD else _joined(inside, joins, self._simple(e))
            return inside[0] + joins * self._simple(e), inside[1] + self._simple(e)  # a loop around one sum
        if is_sum(e):
            terms = terms_of_sum(e)
            before = self.of_all(terms)
            return _joined(before, len(terms) - 1, self._simple(e)) if before != NO_LOAD else NO_LOAD
        if type(e) is Access and self.along and variables_of(e).isdisjoint(self.along | self.looped):
            return NO_LOAD  # the same for all of a row
        before = self.of_all(children(e))
        if type(e) is Access:
            return _after(before, self.latencies.gather) if before != NO_LOAD else (self.latencies.load,) * 2
        if before == NO_LOAD and not self._is_coordinate(e):
            return NO_LOAD
        return _after(before, self._latency(e))

    def _is_coordinate(self, e: Expr) -> bool:
        """True of a coordinate along the row that becomes a float."""
        if not isinstance(e, Cast) or not e.type.is_float or not self.along:
            return False
        return any(isinstance(part, Var) and part.name in self.along for part in walk(e))

    def of_all(self, several: Iterable[Expr]) -> Ends:
        """The expressions together, each at its longest."""
        whole = after = 0.0
        for e in several:
            if type(e) is not Var and type(e) is not Const:
                first, last = self.of(e)
                whole, after = first if first > whole else whole, last if last > after else after
        return whole, after

    def _simple(self, e: Expr) -> float:
        return self.latencies.float_sum if e.type.is_float else self.latencies.integer_sum

    def of_operation(self, e: Expr) -> float:
        """Cycles of one operation."""
        return self._latency(e)

    def _latency(self, e: Expr) -> float:
        simple, of = self._simple(e), self.latencies
        match e:
            case Binary(op="*"):
                return simple if e.type.is_float else of.integer_product
            case Binary(op="/" | "//" | "%"):
                by_constant = simple if e.type.is_float else 2 * of.integer_product
                return by_constant if isinstance(e.right, Const) else of.quotient
            case Binary(op="**", right=Const(value=k)) if is_few_products(e):
                return ceil(log2(k)) * (simple if e.type.is_float else of.integer_product) if k > 1 else 0.0
            case Binary(op="**"):
                return FUNCTIONS[function_of(e)] * of.float_sum
            case Call():
                return self._of_call(function_of(e), e.type.is_float)
            case Cast():
                return of.conversion
            case Compare() | Select():
                return of.choice
            case Logical() | Unary():
                return of.integer_sum
        return simple

    def _of_call(self, function: str, is_float: bool) -> float:
        of = self.latencies
        match function:
            case "sqrt":
                return of.quotient
            case "min" | "max" | "mux":
                return of.choice
            case "clamp":
                return 2 * of.choice
            case "abs":
                return of.integer_sum
            case "absd" | "lerp":
                return 2 * of.float_sum
            case _ if function.startswith("as_"):  # the same register
                return 0.0
        if function in FUNCTIONS or is_float:
            return FUNCTIONS.get(function, CALL) * of.float_sum
        return 2 * of.integer_sum


def _after(before: Ends, cycles: float) -> Ends:
    return before[0] + cycles, before[1] + cycles


def _joined(before: Ends, terms: int, each: float) -> Ends:
    """So many terms joined to one by operations one after the other; after the last of them by one operation only."""
    return before[0] + min(terms, SIDE_BY_SIDE - 1 + terms / SIDE_BY_SIDE) * each, before[1] + each


def terms_of_sum(e: Binary) -> list[Expr]:
    """The terms of a sum, the last one first."""
    found, left = [e.right], e.left
    while is_sum(left):
        found.append(left.right)
        left = left.left
    return [*found, left]
