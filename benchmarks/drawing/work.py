"""Work of a pipeline: the parts of expressions that every stage computed once, whole, is made of."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.ir.pipeline.arguments import Region
from tilesmith.scheduler.ir.pipeline.boundary_conditions import without_boundaries
from tilesmith.scheduler.ir.pipeline.expressions import Access, Call, Const, Expr, Reduce, RVar, Var, children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

FUNCTION = 12
"""Parts that a function as `exp` counts as."""
CHEAP = frozenset(("min", "max", "clamp", "abs", "absd"))
MOVED = 16
"""Parts that a value counts as that is written to memory and read again."""


def work(pipeline: Pipeline) -> float:
    """The parts computed of all stages, each at root, at the pipeline's estimates."""
    known: dict[str, Region] = dict(pipeline.estimates)
    outputs = {name: known[name] for name in pipeline.outputs}
    params = {p.name: p.default for p in pipeline.params if p.default is not None}
    regions = required_regions(without_boundaries(pipeline), outputs, params, known)
    total = 0.0
    for stage in pipeline.stages:
        points = _points(regions.get(stage.name, ()))
        total += points * (MOVED + sum(parts(value) for value in stage.values))
        for update in stage.updates:
            used = {node.name for e in update.at for node in walk(e) if isinstance(node, Var)}
            free = prod(n for d, (_, n) in zip(stage.dims, regions[stage.name], strict=True) if d in used)
            total += free * _extent(update.domain) * (MOVED + sum(parts(e) for e in (*update.at, *update.values)))
    return total


def parts(e: Expr) -> float:
    """The operations of an expression, those of a reduction as often as it has terms."""
    if isinstance(e, Reduce):
        return _extent(e.domain) * (1 + parts(e.body))
    below = sum(parts(child) for child in children(e))
    if isinstance(e, (Const, Var)):
        return 0.0
    if isinstance(e, Call) and e.function not in CHEAP:
        return below + FUNCTION
    return below + (2 if isinstance(e, Access) else 1)


def _extent(domain: Sequence[RVar]) -> float:
    return prod(v.extent.value if isinstance(v.extent, Const) else 1 for v in domain)


def _points(region: Sequence[tuple[int, int]]) -> float:
    return float(prod(n for _, n in region))
