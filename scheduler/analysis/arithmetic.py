"""Arithmetic of one point of a stage, by kind."""

from __future__ import annotations

from collections.abc import Callable

from cost_models.counts import Operations
from scheduler.lang.expr import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Logical,
    Reduce,
    RVar,
    Select,
    Unary,
    Var,
    children,
    walk,
)
from scheduler.lang.pipeline import Stage, Update

CALLS = {
    "min": "select", "max": "select", "clamp": "select2", "mux": "select", "abs": "select", "absd": "select2",
    "lerp": "lerp", "sat_add": "add2", "sat_sub": "add2", "halving_add": "add2", "rounding_halving_add": "add3",
    "rounding_shift_right": "add2", "mul_shift_right": "multiply",
}  # fmt: skip
COSTS = {
    "add2": Operations(add=2),
    "add3": Operations(add=3),
    "lerp": Operations(add=2, multiply=1),
    "multiply": Operations(multiply=1, add=1),
    "select": Operations(select=1),
    "select2": Operations(select=2),
    "function": Operations(function=1),
}
BINARY = {"+": "add", "-": "add", "&": "add", "|": "add", "^": "add", "<<": "add", ">>": "add", "*": "multiply"}


Trips = Callable[[RVar], int]
"""How many iterations a reduction variable has."""


def constant_trips(r: RVar) -> int:
    """Iterations where the document says them, else 1."""
    return max(1, int(r.extent.value)) if isinstance(r.extent, Const) else 1


def operations(stage: Stage, trips: Trips = constant_trips) -> Operations:
    """Operations of one point of the pure values of `stage`.

    Of index arithmetic only clamps, remainders and choices count, as `index` (a boundary costs): what is left are
    addresses, the compiler's business. So is a condition that reads nothing: which loops split or hoist. An
    inline reduction counts its body once a term.
    """
    counts: dict[str, float] = {}
    for value in stage.values:
        _count(value, 1, counts, trips)
    return Operations(**counts)


def update_operations(update: Update, trips: Trips = constant_trips) -> Operations:
    """Operations of one iteration of `update`: its values, its condition, and where it writes."""
    counts: dict[str, float] = {}
    for part in (*update.values, *(() if update.where is None else (update.where,))):
        _count(part, 1, counts, trips)
    for index in update.at:
        _count_index(index, 1, counts)
    return Operations(**counts)


def element_bytes_used(stage: Stage) -> int:
    """Bytes of the widest type that the values and updates of `stage` compute with: what decides how many fit a vector.

    Parts that read nothing (dims, params, literals) are the same for a whole row or cheap to convert, and
    left out.
    """
    widest = [max((t.bytes for t in stage.types), default=1)]
    for value in (*stage.values, *(v for u in stage.updates for v in u.values)):
        _widen(value, widest)
    return max(widest)


def _widen(e: Expr, widest: list[int]) -> bool:
    """Whether `e` depends on what is read; appends the bytes of every such part of it, indices left out."""
    below = [] if isinstance(e, Access) else [_widen(child, widest) for child in children(e)]
    reads = isinstance(e, Access) or any(below)
    if reads:
        widest.append(e.type.bytes)
    return reads


def _count(e: Expr, times: float, counts: dict[str, float], trips: Trips) -> None:
    """Adds `times` the operations of `e` to `counts`; a part that is there twice is computed once."""
    pending = [(e, times)]
    seen: set[tuple[int, float]] = set()
    while pending:
        node, n = pending.pop()
        if isinstance(node, Const | Var) or (id(node), n) in seen:
            continue
        seen.add((id(node), n))
        if isinstance(node, Access):
            for index in node.indices:
                _count_index(index, n, counts)
            continue
        if isinstance(node, Reduce):
            for r in node.domain:
                n *= trips(r)
            kind = {"sum": "add", "product": "multiply"}.get(node.op, "select")
            counts[kind] = counts.get(kind, 0) + n
            pending.extend((part, n) for part in (node.body, node.where) if part is not None)
            continue
        _add(node, n, counts)
        if isinstance(node, Select) and not any(isinstance(e, Access) for e in walk(node.condition)):
            pending += [(node.if_true, n), (node.if_false, n)]
        else:
            pending.extend((child, n) for child in children(node))


def _count_index(index: Expr, times: float, counts: dict[str, float]) -> None:
    """Adds what of an index is not an address to be formed from loop variables."""
    own: dict[str, float] = {}
    for node in walk(index):
        if isinstance(node, Call | Select) or (isinstance(node, Binary) and node.op == "%"):
            _add(node, times, own)
    counts["index"] = counts.get("index", 0) + sum(own.values())


def _add(e: Expr, n: float, counts: dict[str, float]) -> None:
    match e:
        case Binary(op=("/" | "//" | "%"), right=right):
            kind = "divide_by_constant" if isinstance(right, Const) else "divide"
        case Binary(op="**", right=Const(value=k)) if e.type.is_integer or (float(k).is_integer() and 0 < k < 9):
            kind, n = "multiply", n * max(0, int(k) - 1)
        case Binary(op="**"):
            kind = "function"
        case Binary():
            kind = BINARY[e.op]
        case Unary():
            kind = "add"
        case Compare() | Logical() | Select():
            kind = "select"
        case Cast():
            kind = "convert" if e.type.kind != "bool" else "select"
        case Call():
            cost = COSTS.get(CALLS.get(e.function, "function"), COSTS["function"])
            for name in ("add", "multiply", "select", "function"):
                counts[name] = counts.get(name, 0) + n * getattr(cost, name)
            return
        case _:
            return
    counts[kind] = counts.get(kind, 0) + n
