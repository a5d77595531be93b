"""Variables that are divided by numbers: `r // 9` and `r % 9` are the row and the column in a window that is flat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Const, Expr, RVar, Var, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Stage


def inner_trips(r: RVar, bodies: Iterable[Expr], inlined: Mapping[str, Stage]) -> int | None:
    """The iterations of the inner one of two loops that run through the values of `r` in their order, such that
    quotients of it move with the outer one alone: the greatest number that it is divided by in `bodies`, or in stages
    that are `inlined` in these, of which its range is several multiples. None where there is no such number."""
    if not isinstance(r.lo, Const) or not isinstance(r.extent, Const):
        return None
    lo, extent = int(r.lo.value), int(r.extent.value)
    fitting = (n for n in _divisors(r.name, bodies, inlined) if n < extent and lo % n == 0 and extent % n == 0)
    return max(fitting, default=None)


def _divisors(name: str, bodies: Iterable[Expr], inlined: Mapping[str, Stage]) -> Iterator[int]:
    """The numbers that a variable of `bodies` is divided by, also as a coordinate of what is inlined."""
    pending, seen = [(e, name) for e in bodies], set[tuple[str, str]]()
    while pending:
        e, name = pending.pop()
        for part in walk(e):
            match part:
                case Binary(op="//" | "%", left=Var(name=divided), right=Const(value=n)) if divided == name and n > 1:
                    yield int(n)
                case Access(name=producer, indices=indices) if producer in inlined:
                    stage = inlined[producer]
                    for dim, index in zip(stage.dims, indices, strict=True):
                        if isinstance(index, Var) and index.name == name and (producer, dim) not in seen:
                            seen.add((producer, dim))
                            pending += [(value, dim) for value in stage.values]
