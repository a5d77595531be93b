"""Form of a stage: its definition with all that it reads numbered. What follows from the form alone is found once for
all stages of a pipeline that have it, as the layers of a network or the iterations of a solver do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.ir.memo import Memo, once
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Expr,
    Logical,
    Reduce,
    Select,
    Unary,
    children,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage


class Form(NamedTuple):
    """The form of a stage: a `key`, equal for stages that differ in their own name and in those of what they read
    alone, and these names in the order of their numbers."""

    key: tuple[object, ...]
    names: tuple[str, ...]


@once
def form(stage: Stage) -> Form:
    """The form of a stage without updates. Parts that are one object are told from those that are equal: analyses
    know parts by identity."""
    names: dict[str, int] = {}
    places: dict[int, int] = {}
    key: list[object] = [stage.dims, stage.storage, stage.boundary, len(stage.values)]
    pending: list[Expr] = [*stage.values]
    while pending:
        e = pending.pop()
        said = _SAID.get(type(e))
        if said is None:
            key.append(e)
            continue
        before = places.setdefault(id(e), len(places))
        key.append(before)
        if before == len(places) - 1:
            parts = children(e)
            key += (type(e), e.type, said(e), len(parts))
            if type(e) is Access:
                key.append(names.setdefault(e.name, len(names)))
            pending += parts
    return Form(tuple(key), tuple(names))


_SAID: dict[type, Callable[[Any], Hashable]] = {
    Access: attrgetter("component", "ends"),
    **dict.fromkeys((Binary, Unary, Compare, Logical), attrgetter("op")),
    Call: attrgetter("function"),
    Cast: attrgetter("saturate"),
    Reduce: lambda e: (e.op, e.component, e.where is None, *(r.name for r in e.domain)),
    Select: lambda e: (),
}
"""Fields of an expression with parts beside these, its type and the name of what it reads, by class."""


def share_forms(stages: Iterable[Stage]) -> None:
    """Gives stages of one form a memo in common (see `memo.once_a_form`). Only of those that have as many accesses and
    begin alike forms are compared: that tells most stages apart."""
    similar: dict[tuple[object, ...], list[Stage]] = {}
    for stage in stages:
        if not stage.updates and stage.memo.of_form is None:
            begins = tuple([(type(v), v.type) for v in stage.values])
            similar.setdefault((stage.dims, begins, len(accesses(stage))), []).append(stage)
    for several in similar.values():
        known: dict[tuple[object, ...], Memo] = {}
        for stage in several if len(several) > 1 else ():
            first = known.setdefault(form(stage).key, stage.memo)
            if first is not stage.memo:
                stage.memo.of_form = first
