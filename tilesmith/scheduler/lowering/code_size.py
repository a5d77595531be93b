"""Instructions that the value of an expression takes where it is written out, stages that are inline in it included."""

from __future__ import annotations

from tilesmith.scheduler.features.operations.node_operations import Tally, add_executed
from tilesmith.scheduler.ir.pipeline.expressions import Access, Expr, children, walk
from tilesmith.scheduler.lowering.evaluation import Evaluation


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
    lanes, registers = 1 if ev.axis is None else ev.axis.lanes, ev.builder.vectors.register_bytes
    return sum(n * max(1.0, lanes * int(of[1:]) / (8 * registers)) for (of, _), n in counts.items())
