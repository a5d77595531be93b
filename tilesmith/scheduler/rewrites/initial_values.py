"""Initial values of scans: an update that reads what a point held before reads what that is made of instead, so that
the values need not be there first."""

from __future__ import annotations

from dataclasses import replace

from tilesmith.scheduler.analysis.dependence import default_order, written_box
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    ParamRef,
    Select,
    Unary,
    Var,
    children,
    has_accesses,
    map_children,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.pipeline.substitution import substituted

LARGEST_VALUE = 8
"""Values are put into an update that have at most so many parts, besides their indices: no more than a load and a store
cost."""


def with_initial_values(stage: Stage, kept: frozenset[str]) -> Stage:
    """`stage` with its values in the place of what its first update reads of them, where each point is then written
    before it is read; the same values. The stage itself where they are more than a copy or so of what is `kept` in
    memory, or are needed anyway."""
    update = stage.updates[0] if stage.updates else None
    if (
        update is None
        or not update.domain
        or update.where is not None
        or not all(_is_cheap(v, kept) for v in stage.values)
    ):
        return stage
    places = dict(zip(stage.dims, update.at, strict=True))
    initial = {Access(stage.name, update.at, k, v.type): substituted(v, places) for k, v in enumerate(stage.values)}

    def put(e: Expr) -> Expr:
        return initial[e] if isinstance(e, Access) and e in initial else map_children(e, put)

    values = tuple(map(put, update.values))
    if values == update.values:
        return stage
    found = replace(stage, updates=(replace(update, values=values), *stage.updates[1:]))
    return found if _writes_first(found, found.updates[0]) else stage


def _writes_first(stage: Stage, update: Update) -> bool:
    """True if the update writes a box, each point of it before that is read."""
    return bool(written_box(stage, update, default_order(stage, update)))


def _is_cheap(value: Expr, kept: frozenset[str]) -> bool:
    """True if a value costs no more than what it saves: simple operations of one element that is loaded."""
    parts, pending, loaded = 0, [value], set[Expr]()
    while pending:
        e = pending.pop()
        parts += 1
        match e:
            case Access():
                loaded.add(e)
                if e.name not in kept or any(map(has_accesses, e.indices)):
                    return False
            case Binary(op="+" | "-" | "*" | "&" | "|" | "^") | Cast() | Compare() | Select() | Unary():
                pending += children(e)
            case Call(function="min" | "max" | "clamp" | "abs"):
                pending += children(e)
            case Const() | ParamRef() | Var():
                pass
            case _:
                return False
    return parts <= LARGEST_VALUE and len(loaded) <= 1
