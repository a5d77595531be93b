"""Packing of operands: what contractions read again and again, and may read from copies that lie as they read; whether
they do is for the search to say."""

from __future__ import annotations

from math import prod

from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.analysis.bounded_reads import bounded_reads
from tilesmith.scheduler.analysis.stage_graph import is_plain
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.ir.pipeline.boundary_conditions import before_clamp
from tilesmith.scheduler.ir.schedule.schedule import Packing
from tilesmith.scheduler.rewrites.names import fresh, taken
from tilesmith.scheduler.rewrites.pack_operands import along
from tilesmith.scheduler.search.params import PARAMS


def packings(facts: Facts, platform: Platform) -> tuple[Packing, ...]:
    """Packings of all operands of long reductions that are read along the row that vectors run along, again for every
    point of another dim, and lie otherwise than they are read: vectors are gathered, or those that follow each other
    are far apart, so that of a panel of them little stays in the first level or its pages are many; or their row is
    short, and is read beyond its ends, so that vectors there are put together, and come beside those inside of it."""
    found: list[Packing] = []
    names = taken(facts.pipeline)
    for name in facts.graph.stages:
        stage, row = facts.definitions[name], facts.stages[name].row
        if row is None or not is_plain(stage) or not has_long_reduction(stage, {}):
            continue
        operands = dict.fromkeys(a.producer for a in accesses(stage) if _is_walked(facts, platform, name, row, a))
        for operand in operands:
            if len(along(stage, operand, row)) == 1:
                copy = fresh(operand, f"for_{name}", names)
                found.append(Packing(name, operand, row, copy))
                names.add(copy)
    return tuple(found)


def _is_walked(facts: Facts, platform: Platform, name: str, row: str, a: StageAccess) -> bool:
    """True if an access goes along the row, which is short and within a boundary, or within none, and its reductions
    make it jump, of all that is read for one vector, over more than the first level."""
    stage, operand = facts.stages[name], facts.stages[a.producer]
    moving = [row in used for used in a.used]
    if a.producer == name or moving.count(True) != 1 or any(a.data) or not a.reductions:
        return False
    again = prod(stage.extent(d) for d in stage.dims if not any(d in used for used in a.used))
    if again < PARAMS.packed_operand_reads:
        return False
    along_row = a.access.indices[moving.index(True)]
    bounded = before_clamp(along_row) is not along_row
    if bounded and stage.extent(row) * stage.computed_bytes < PARAMS.packed_margin_vectors * platform.vector_bytes:
        read = facts.definitions.get(a.producer) or next(i for i in facts.pipeline.inputs if i.name == a.producer)
        if bounded_reads(facts.definitions[name], read, row):
            return True
    size = operand.bytes_per_point
    summed = {r.name for r in a.reductions}
    steps = [
        operand.apart[d] * size
        for d, used in zip(operand.dims, a.used, strict=True)
        if used & summed and row not in used
    ]
    if not steps:
        return False
    transposed = operand.dims[moving.index(True)] != operand.storage[0]
    far = min(steps) > platform.vector_unit.registers_per_value * platform.vector_bytes  # else whole rows are read
    return transposed or (far and not bounded and _walked(operand, a, summed, row) > platform.caches[0].size_bytes)


def _walked(operand: StageFacts, a: StageAccess, summed: set[str], row: str) -> int:
    """Bytes of memory over which the elements of a sum lie."""
    ends = [
        operand.apart[d] * (span.extent(1) if span.known else operand.extent(d))
        for d, span, used in zip(operand.dims, a.spans, a.used, strict=True)
        if used & summed and row not in used
    ]
    return max(ends) * operand.bytes_per_point
