"""Reads across rows of memory: where vectors of a stage read elements of as many rows, and neighbours in another dim of
it read neighbours in these. Blocks of points in both dims read blocks of memory, which registers can transpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tilesmith.scheduler.analysis.accesses import accesses
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Const, Expr, InputBound, ParamRef, Unary, Var
from tilesmith.scheduler.ir.pipeline.pipeline import Stage

Rows = Callable[[str], tuple[tuple[str, ...], tuple[str, ...], int] | None]
"""The layout of an image or a stage, by its name: its dims, the dims along which neighbours lie in a row of memory (the
fastest, and that of pixels where the fastest has their channels), and the bytes of an element. None in registers."""


def dims_along_rows(stage: Stage, along: str, inlined: Mapping[str, Stage], rows: Rows) -> dict[str, int]:
    """The dims of `stage` in which neighbours read neighbours in memory, where its vectors, `along` another dim, read
    across rows; with the bytes of the shortest element that is read so. Stages `inlined` are looked through."""
    found: dict[str, int] = {}
    waiting = [(stage, {d: d for d in stage.dims})]
    met: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    while waiting:
        reader, moves = waiting.pop()
        key = reader.name, tuple(sorted(moves.items()))
        if key in met:  # paths through stages that are read twice each are too many to take them all
            continue
        met.add(key)
        for name, through, reads in _found(reader, moves, along, rows):
            if name in inlined:
                waiting.append((inlined[name], through))
            else:
                for dim, size in reads:
                    found[dim] = min(size, found.get(dim, size))
    return found


def _found(
    stage: Stage, moves: Mapping[str, str], along: str, rows: Rows
) -> Iterator[tuple[str, dict[str, str], list[tuple[str, int]]]]:
    """The reads of `stage`: of each what is read; its dims that move with one of the reader, step for step, and that,
    as `moves` has those of `stage`; and the dims in which neighbours read neighbours across rows, with bytes."""
    for a in accesses(stage):
        if a.definition or any(a.data):
            continue
        of = rows(a.producer)
        if of is None:
            continue
        dims, near, size = of
        steps = {d: _step(index) for d, index in zip(dims, a.access.indices, strict=True)}
        through = {d: moves[v] for d, v in steps.items() if v is not None and v in moves}
        crossed = [d for d, used in zip(dims, a.used, strict=True) if any(moves.get(v) == along for v in used)]
        across = len(crossed) == 1 and crossed[0] not in near
        yield a.producer, through, [(through[d], size) for d in near if d in through] if across else []


def _step(index: Expr) -> str | None:
    """The variable that an index moves with, by an element a step; None of any other."""
    match index:
        case Var():
            return index.name
        case Unary(op="-"):
            return _step(index.operand)
        case Binary(op="+" | "-"):
            if _is_still(index.right):
                return _step(index.left)
            return _step(index.right) if _is_still(index.left) else None
    return None


def _is_still(e: Expr) -> bool:
    """True of what is the same at all points."""
    if isinstance(e, Binary):
        return _is_still(e.left) and _is_still(e.right)
    return isinstance(e, Const | InputBound | ParamRef)
