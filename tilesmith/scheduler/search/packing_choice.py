"""Packing of operands: what contractions read again and again, and may read from copies that lie as they read; whether
they do is for the search to say."""

from __future__ import annotations

from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.analysis.bounded_reads import bounded_reads
from tilesmith.scheduler.analysis.stage_graph import is_plain
from tilesmith.scheduler.features.groups.register_tiles import shares_loads
from tilesmith.scheduler.features.operations.reduction_loops import has_long_reduction
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts
from tilesmith.scheduler.ir.pipeline.boundary_conditions import before_clamp
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Stage
from tilesmith.scheduler.ir.schedule.schedule import Packing
from tilesmith.scheduler.rewrites.names import fresh, taken
from tilesmith.scheduler.rewrites.pack_operands import along
from tilesmith.scheduler.search.params import PARAMS


def packings(facts: Facts, platform: Platform) -> tuple[Packing, ...]:
    """Packings of all operands of long reductions that are read along the row that vectors run along, again for every
    point of another dim or for windows that share them, and lie otherwise than they are read: vectors are gathered, or
    those that follow each other are far apart, so that of a panel of them little stays in the first level or its pages
    are many; or they are read within a boundary, which is tested for each term, or vectors beyond the ends of a row are
    put together. And of all operands an element of which all lanes share, within a boundary that is tested for each
    term."""
    found: list[Packing] = []
    names = taken(facts.pipeline)
    for name in facts.graph.stages:
        stage, row = facts.definitions[name], facts.stages[name].row
        if row is None or not is_plain(stage) or not has_long_reduction(stage, {}):
            continue
        dims = {a.producer: row for a in accesses(stage) if _is_walked(facts, platform, name, row, a)}
        for operand in {a.producer: None for a in accesses(stage) if a.producer not in dims}:
            dim = _bounded_dim(facts, name, row, operand)
            if dim is not None:
                dims[operand] = dim
        for operand, dim in dims.items():
            if len(along(stage, operand, dim)) == 1:
                copy = fresh(operand, f"for_{name}", names)
                found.append(Packing(name, operand, dim, copy))
                names.add(copy)
    return tuple(found)


def _bounded_dim(facts: Facts, name: str, row: str, operand: str) -> str | None:
    """The dim of a stage, that of the nearest neighbours in memory, along which points with the same vectors read an
    operand within a boundary, each an element for all lanes, at a place of each term; None where there is none, or it
    is read too seldom. A boundary that is the same for all terms is asked once a point."""
    stage, producer, definition = facts.stages[name], facts.stages[operand], facts.definitions[name]
    reads = [a for a in accesses(definition) if a.producer == operand]
    seldom = _times_read(stage, producer) < PARAMS.packed_operand_reads
    if seldom or any(row in used or not a.reductions for a in reads for used in a.used):
        return None
    read = _read_by(facts, operand)
    of_terms = [used for a in reads for used in a.used if used & {r.name for r in a.reductions}]
    moved = {
        d: producer.apart[producer.dims[n]]
        for d in stage.dims
        if any(d in used for used in of_terms)
        and shares_loads(definition, d, row, {})
        and bounded_reads(definition, read, d)
        for n in along(definition, operand, d)
    }
    return min(moved, key=lambda d: moved[d], default=None)


def _read_by(facts: Facts, operand: str) -> Input | Stage:
    return facts.definitions.get(operand) or next(i for i in facts.pipeline.inputs if i.name == operand)


def _is_walked(facts: Facts, platform: Platform, name: str, row: str, a: StageAccess) -> bool:
    """True if an access goes along the row within a boundary, or within none, and its reductions make it jump, of all
    that is read for one vector, over more than the first level."""
    stage, operand = facts.stages[name], facts.stages[a.producer]
    moving = [row in used for used in a.used]
    if a.producer == name or moving.count(True) != 1 or any(a.data) or not a.reductions:
        return False
    if _times_read(stage, operand) < PARAMS.packed_operand_reads:
        return False
    along_row = a.access.indices[moving.index(True)]
    bounded = before_clamp(along_row) is not along_row
    if bounded and bounded_reads(facts.definitions[name], _read_by(facts, a.producer), row):
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


def _times_read(stage: StageFacts, operand: StageFacts) -> float:
    """Times that a stage reads each element of an operand: for every point of a dim that this does not move with, and
    for every window that shares it."""
    return stage.root_points * stage.read_of[operand.name].executed / operand.root_points


def _walked(operand: StageFacts, a: StageAccess, summed: set[str], row: str) -> int:
    """Bytes of memory over which the elements of a sum lie."""
    ends = [
        operand.apart[d] * (span.extent(1) if span.known else operand.extent(d))
        for d, span, used in zip(operand.dims, a.spans, a.used, strict=True)
        if used & summed and row not in used
    ]
    return max(ends) * operand.bytes_per_point
