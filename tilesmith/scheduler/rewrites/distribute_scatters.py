"""Loop distribution of scatters: what an update takes functions for, before data says where it writes, becomes a stage.

    h(k) = 0; for r: h(int32(atan2(v(r), u(r))) % 18) += 1
      ->
    h_operand(r) = atan2(v(r), u(r)); h(k) = 0; for r: h(int32(h_operand(r)) % 18) += 1

Two iterations may write the same element, so that the loop has no vectors, and a function takes tens of cycles for a
point. As a stage it is computed in vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilesmith.scheduler.analysis.affine_forms import affine_form
from tilesmith.scheduler.analysis.dependence import free_dims
from tilesmith.scheduler.ir.pipeline.constant_folding import fold
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Reduce,
    RVar,
    Var,
    children,
    has_accesses,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.substitution import substituted
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.ir.pipeline.value_bounds import RUNTIME, UNBOUNDED, Interval, interval
from tilesmith.scheduler.rewrites.names import fresh, taken
from tilesmith.scheduler.rewrites.tabulate_weights import MOST_DIMS, Work, work_of

_NOTHING = Const(0, INT32)


def distributed(pipeline: Pipeline) -> Pipeline:
    """*Before*: boundaries are arithmetic; updates are folded. *After*: in updates without a condition that write where
    data says, and take functions, floats that read data and take a function, a division or a root are read from stages,
    each right before the first that reads it. Its dims are the dims and domain variables that it depends on, or, of
    blocks, the coordinates that these make up (8 * x + r). The same values, bit for bit, and the same bounds of places.
    *Ignores* what reads the stage itself, and coordinates of which a stage would have more than the update computes.
    Again, this changes nothing."""
    names = taken(pipeline)
    stages: list[Stage] = []
    for stage in pipeline.stages:
        operands = _Operands(stage, names)
        updates = tuple(map(operands.update, stage.updates))
        stages += operands.made.values()
        stages.append(replace(stage, updates=updates) if operands.made else stage)
    return replace(pipeline, stages=tuple(stages)) if len(stages) > len(pipeline.stages) else pipeline


@dataclass(frozen=True, slots=True)
class _Coordinate:
    """The sum of `coefficients` times variables, which indices have in common, and the dim that it is in a stage."""

    coefficients: dict[str, int]
    dim: str

    def sum(self) -> Expr:
        """The coordinate, the variable that moves it furthest first."""
        if len(self.coefficients) == 1:
            return Var(self.dim)
        found: Expr | None = None
        for name, factor in sorted(self.coefficients.items(), key=lambda item: -item[1]):
            term: Expr = Var(name) if factor == 1 else Binary("*", Const(factor, INT32), Var(name), INT32)
            found = term if found is None else Binary("+", found, term, INT32)
        assert found is not None
        return found


class _Operands:
    """The operands of one stage's updates that become stages: `made`, by what they compute."""

    def __init__(self, stage: Stage, names: set[str]) -> None:
        self.made: dict[Expr, Stage] = {}
        self._stage, self._names = stage, names

    def update(self, update: Update) -> Update:
        every = (*update.at, *update.values)
        places = any(map(has_accesses, update.at))
        functions = any(work_of(n) == Work.POLYNOMIAL for e in every for n in walk(e))
        if not (places and functions) or update.where is not None:
            return update
        at, values = (tuple(self._rewritten(e, update) for e in part) for part in (update.at, update.values))
        return replace(update, at=at, values=values)

    def _rewritten(self, e: Expr, update: Update) -> Expr:
        found = self._coordinates(e, update) if self._is_operand(e) else None
        ends = UNBOUNDED if found is None else interval(e)
        if found is None or RUNTIME in (ends.lo, ends.hi):  # a read has numbers as ends: what clamps stays in the index
            return map_children(e, lambda c: self._rewritten(c, update))
        return self._read(e, found, ends)

    def _is_operand(self, e: Expr) -> bool:
        if not e.type.is_float:
            return False
        parts = list(walk(e))
        reads = {n.name for n in parts if isinstance(n, Access)}
        return (
            bool(reads)
            and self._stage.name not in reads
            and any(work_of(n) for n in parts)
            and not any(isinstance(n, Reduce) for n in parts)
        )

    def _coordinates(self, e: Expr, update: Update) -> tuple[_Coordinate, ...] | None:
        """The coordinates that `e` depends on, in the order in which it has them; None where a variable is in more
        than one, or where they are no whole blocks."""
        found: dict[tuple[tuple[str, int], ...], _Coordinate] = {}
        for part in _affine_parts(e):
            sums = _coefficients(part)
            assert sums is not None
            if len(sums) == 1:
                sums = dict.fromkeys(sums, 1)
            key = tuple(sorted(sums.items()))
            if key not in found:
                if any(sums.keys() & other.coefficients.keys() for other in found.values()):
                    return None
                found[key] = _Coordinate(sums, max(sums, key=lambda name: sums[name]))
        free = set(free_dims(self._stage, update))
        extents = {r.name: _trips(r) for r in update.domain}
        whole = all(_is_dense(c.coefficients, extents, free) for c in found.values())
        return tuple(found.values()) if found and len(found) <= MOST_DIMS and whole else None

    def _read(self, e: Expr, coordinates: tuple[_Coordinate, ...], ends: Interval) -> Expr:
        value = _in_coordinates(e, coordinates)
        if value not in self.made:
            name = fresh(self._stage.name, "operand", self._names)
            self._names.add(name)
            dims = tuple(c.dim for c in coordinates)
            self.made[value] = Stage(name, dims, (value,), (), None, dims)
        assert ends.lo != RUNTIME
        assert ends.hi != RUNTIME
        return Access(self.made[value].name, tuple(c.sum() for c in coordinates), 0, e.type, (ends.lo, ends.hi))


def _affine_parts(e: Expr) -> Iterator[Expr]:
    """The largest parts of `e` that are sums of variables with coefficients."""
    found = _coefficients(e)
    if found:
        yield e
    elif found is None:
        for c in children(e):
            yield from _affine_parts(c)


def _coefficients(e: Expr) -> dict[str, int] | None:
    """Coefficients by variable of a sum with constants, params and bounds of inputs; None of anything else."""
    terms = affine_form(e).terms if e.type == INT32 else {e: 1}
    if not all(isinstance(t, Var | ParamRef | InputBound) and t.type == INT32 for t in terms):
        return None
    return {t.name: k for t, k in terms.items() if isinstance(t, Var)}


def _is_dense(coefficients: dict[str, int], extents: dict[str, int | None], free: set[str]) -> bool:
    """True if all numbers between the ends of a sum are values of it: a variable moves it no further than those before
    it reach. How far a dim of the stage reaches is not known: it comes last."""
    if len(coefficients) == 1:
        return True
    reach = 1
    for name, factor in sorted(coefficients.items(), key=lambda item: (item[1], item[0] in free)):
        if not 0 < factor <= reach:
            return False
        extent = None if name in free else extents.get(name)
        reach = 0 if extent is None else reach + factor * (extent - 1)
    return True


def _in_coordinates(e: Expr, coordinates: tuple[_Coordinate, ...]) -> Expr:
    """`e` with sums of variables as the dims that stand for them."""
    found = _coefficients(e)
    if found is None:
        return map_children(e, lambda c: _in_coordinates(c, coordinates))
    if len(found) < 2:
        return e
    dim = next(c.dim for c in coordinates if c.coefficients.keys() == found.keys())
    rest = fold(substituted(e, dict.fromkeys(found, _NOTHING)))
    return Var(dim) if rest == _NOTHING else Binary("+", Var(dim), rest, INT32)


def _trips(r: RVar) -> int | None:
    """Iterations, where they are constant."""
    return int(r.extent.value) if isinstance(r.extent, Const) else None
