"""Instructions of an expression where it is written out, stages that are inline in it included, and of statements."""

from __future__ import annotations

from collections.abc import Callable

from tilesmith.scheduler.features.operations.node_operations import Tally, add_executed
from tilesmith.scheduler.features.work.row_edges import REMAINDER
from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.ops import (
    Binary,
    ClampedLoad,
    EdgeGather,
    Gather,
    MonotoneGather,
    Operation,
    WindowGather,
)
from tilesmith.scheduler.ir.loop.program import Body, Define, If, Loop
from tilesmith.scheduler.ir.loop.traversal import indices, regions
from tilesmith.scheduler.ir.loop.values import Value
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, children, walk
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.lowering.evaluation import Evaluation

DIVISION = 20
"""Instructions in the time of a division by a number that only the call knows: of doubles, a register in vectors."""
PICKED = 3
"""Instructions of a lane that is loaded on its own: its place, the load, and its way into the vector."""
CLAMPED = 16
"""Instructions beside the load of a vector that may leave its row, or be two of it: clamps and comparisons of where it
begins, the places of its lanes, and a permutation."""


def instructions(ev: Evaluation, e: Expr) -> float:
    """Instructions of `e` in all lanes of the axis, a term of each reduction inside: an operation takes one for each
    register that these fill. A value of a stage that is inline counts once, places are free unless data says them."""
    counts: Tally = {}
    pending, seen = [e], {e}
    while pending:
        n = pending.pop()
        add_executed(n, 1.0, counts)
        if not isinstance(n, Access):
            pending += children(n)
            continue
        pending += (i for i in n.indices if any(isinstance(part, Access) for part in walk(i)))
        if n.name in ev.sources.inlined:
            value = ev.sources.inlined[n.name].values[n.component]
            pending += {value} - seen
            seen.add(value)
    lanes, registers = 1 if ev.axis is None else ev.axis.lanes, ev.builder.vectors.vector_bytes
    return sum(n * max(1.0, lanes * int(of[1:]) / (8 * registers)) for (of, _), n in counts.items())


def executed(body: Body, vector_bytes: int, estimate: Callable[[Index], int]) -> float:
    """Instructions of one run of a block: an operation takes one for each register that its lanes fill, or each lane
    where these go their own ways; loops run as often as is expected, choices their first way."""
    total = 0.0
    for s in body:
        if isinstance(s, Loop):
            total += executed(s.body, vector_bytes, estimate) * max(1, estimate(s.hi - s.lo + 1) // estimate(s.step))
        elif inside := regions(s):
            ways = inside[:1] if isinstance(s, If) else inside
            total += sum(executed(part, vector_bytes, estimate) for part in ways)
        else:
            total += _instructions_of(s.result, s.op, vector_bytes) if isinstance(s, Define) else 1.0
            total += sum(map(_of_index, indices(s)))
    return total


def _instructions_of(result: Value, op: Operation, vector_bytes: int) -> float:
    registers = max(1.0, result.lanes * max(8, result.type.bits) / (8 * vector_bytes))
    match op:
        case Gather():
            return PICKED * result.lanes
        case MonotoneGather() | WindowGather() | EdgeGather():
            return CLAMPED * max(1.0, result.lanes * INT32.bits / (8 * vector_bytes))
        case ClampedLoad():
            return CLAMPED + registers
        case Binary("//" | "%" as kind, _, by) if result.type.is_integer and by.literal is None:
            return (REMAINDER if kind == "%" else 2 * DIVISION) * registers
    return registers


def _of_index(x: Index) -> float:
    """Instructions of what an index is made of, but for sums; divisions by what is no number for what they take."""
    total = 0.0
    for atom, _ in x.terms:
        if atom.kind != "sym":
            total += sum(map(_of_index, atom.args)) + len(atom.args) - 1
            total += 0.0 if atom.args[-1].is_const else {"div": DIVISION, "mod": REMAINDER}.get(atom.kind, 0)
    return total
