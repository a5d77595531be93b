"""Interleaved updates as one value: those that each write every second point or row, and together all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

from tilesmith.scheduler.analysis.affine_forms import affine_form
from tilesmith.scheduler.analysis.stage_graph import reads
from tilesmith.scheduler.ir.pipeline.expressions import (
    Binary,
    Compare,
    Const,
    Expr,
    Logical,
    Reduce,
    Select,
    Var,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.types import INT32

ALONG_ROWS = 2
"""The longest stride along memory: lanes of a vector compute all that its points may be, and take one each."""
ACROSS = 4
"""The longest stride across it: rows are written once for each residue."""


@dataclass(frozen=True)
class _Step:
    """Points `stride * r + offset` of a dim, for r from `lo` on."""

    stride: int
    offset: int
    variable: str
    lo: Expr
    extent: Expr

    @property
    def residue(self) -> int:
        return self.offset % self.stride

    @property
    def range(self) -> tuple[Expr, Expr]:
        """The first r and their number, were `offset` the residue."""
        return _plus(self.lo, self.offset // self.stride), self.extent


def interleaved_updates(pipeline: Pipeline) -> Pipeline:
    """`pipeline` with the updates of a stage as its value, chosen by residues of its dims, where they write each point
    of one box once, by strides that divide it up among them, and read no point of the stage. The same values.

    What they read is then read beyond the box, too: it has to be of inputs that have boundaries, and so of any place.
    """
    anywhere = {i.name for i in pipeline.inputs if i.boundary is not None}
    stages = []
    for stage in pipeline.stages:
        everywhere = reads(stage) <= anywhere
        if stage.updates and everywhere:
            stage = _interleaved(stage) or stage
        stages.append(stage)
        if not stage.updates and everywhere:
            anywhere.add(stage.name)
    same = all(a is b for a, b in zip(stages, pipeline.stages, strict=True))
    return pipeline if same else replace(pipeline, stages=tuple(stages))


def _interleaved(stage: Stage) -> Stage | None:
    found: dict[tuple[int, ...], tuple[Expr, ...]] = {}
    boxes: set[tuple[tuple[str, int, tuple[Expr, Expr]], ...]] = set()
    for update in stage.updates:
        steps = _steps(stage, update)
        if steps is None:
            return None
        residues = tuple(s.residue for s in steps.values())
        if residues in found:
            return None
        found[residues] = tuple(_at_point(v, {s.variable: (d, s) for d, s in steps.items()}) for v in update.values)
        boxes.add(tuple((d, s.stride, s.range) for d, s in steps.items()))
    if len(boxes) != 1:
        return None
    (box,) = boxes
    if set(found) != set(product(*(range(stride) for _, stride, _ in box))) or len(found) < 2:
        return None
    for d, stride, _ in box:
        if stride > (ALONG_ROWS if d == stage.storage[0] else ACROSS):
            return None
    inside = _inside(box)
    values = tuple(
        Select(inside, _chosen(box, found, k, {}), value, value.type) for k, value in enumerate(stage.values)
    )
    return replace(stage, values=values, updates=())


def _steps(stage: Stage, update: Update) -> dict[str, _Step] | None:
    """The step of each dim that the update does not write in whole; None where it writes otherwise."""
    if update.where is not None or any(isinstance(n, Reduce) for v in update.values for n in walk(v)):
        return None
    ranges, steps = {r.name: r for r in update.domain}, dict[str, _Step]()
    for d, e in zip(stage.dims, update.at, strict=True):
        if isinstance(e, Var) and e.name == d:
            continue
        place = affine_form(e)
        variable, stride = next(iter(place.terms.items()), (e, 0))
        if len(place.terms) > 1 or stride < 1 or not isinstance(variable, Var) or variable.name not in ranges:
            return None
        r = ranges.pop(variable.name)
        steps[d] = _Step(stride, place.const, variable.name, r.lo, r.extent)
    return steps if steps and not ranges else None


def _at_point(e: Expr, variables: Mapping[str, tuple[str, _Step]]) -> Expr:
    """`e` with each variable as what it is at a point: multiples of strides without a division."""
    match e:
        case Binary("*", Const() as n, Var() as v) | Binary("*", Var() as v, Const() as n) if v.name in variables:
            d, step = variables[v.name]
            if not int(n.value) % step.stride and v.type == INT32:
                times, moved = int(n.value) // step.stride, _plus(Var(d, INT32), -step.offset)
                return moved if times == 1 else Binary("*", Const(times, INT32), moved, INT32)
        case Var() if e.name in variables:
            d, step = variables[e.name]
            moved = _plus(Var(d, INT32), -step.offset)
            return moved if step.stride == 1 else Binary("//", moved, Const(step.stride, INT32), INT32)
    return map_children(e, lambda part: _at_point(part, variables))


def _inside(box: tuple[tuple[str, int, tuple[Expr, Expr]], ...]) -> Expr:
    conditions: list[Expr] = []
    for d, stride, (lo, extent) in box:
        first, end = _times(stride, lo), _times(stride, Binary("+", lo, extent, INT32))
        conditions += [Compare(">=", Var(d, INT32), first), Compare("<", Var(d, INT32), end)]
    whole = conditions[0]
    for c in conditions[1:]:
        whole = Logical("and", whole, c)
    return whole


def _chosen(
    box: tuple[tuple[str, int, tuple[Expr, Expr]], ...],
    values: Mapping[tuple[int, ...], tuple[Expr, ...]],
    component: int,
    known: dict[str, int],
) -> Expr:
    """The value of a point of which some residues are known: the dims that lie farthest apart are asked first."""
    rest = [(d, stride) for d, stride, _ in box if d not in known]
    if not rest:
        return values[tuple(known[d] for d, _, _ in box)][component]
    d, stride = rest[-1]
    result = _chosen(box, values, component, {**known, d: stride - 1})
    for n in reversed(range(stride - 1)):
        is_n = Compare("==", Binary("%", Var(d, INT32), Const(stride, INT32), INT32), Const(n, INT32))
        one = _chosen(box, values, component, {**known, d: n})
        result = Select(is_n, one, result, result.type)
    return result


def _plus(e: Expr, n: int) -> Expr:
    if isinstance(e, Const):
        return Const(int(e.value) + n, INT32)
    return e if not n else Binary("+", e, Const(n, INT32), INT32)


def _times(n: int, e: Expr) -> Expr:
    return e if n == 1 else Binary("*", Const(n, INT32), e, INT32)
