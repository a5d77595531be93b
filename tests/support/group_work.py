"""Work of small pipelines that are one group, counted."""

from __future__ import annotations

from itertools import product

from tilesmith.cost_models.counts import GroupCounts
from tilesmith.cost_models.work import Work
from tilesmith.platforms.base import LINE_BYTES
from tilesmith.platforms.core import ORDINARY
from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.fusion_group import effective, members_of
from tilesmith.scheduler.features.groups.group_counts import Levels
from tilesmith.scheduler.features.groups.loop_nest import Nest, axis
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, gather
from tilesmith.scheduler.features.work.simd_work import worked_counts
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise

ORDERS = (
    ("x.inner", "y.inner", "x.outer", "y.outer"),
    ("x.inner", "y.inner", "y.outer", "x.outer"),
    ("y.inner", "x.inner", "x.outer", "y.outer"),
)


LOAD, FLOAT, QUOTIENT = (getattr(ORDINARY.latency_cycles, name) for name in ("load", "float_sum", "quotient"))


TILES = ({"x": 4, "y": 3}, {"x": 5, "y": 7}, {"x": 20, "y": 4})


def group(
    of: Pipeline,
    loops: tuple[str, ...],
    levels: dict[str, Levels],
    tiles: dict[str, int],
    lanes: int,
    line_bytes: int = LINE_BYTES,
    facts: Facts | None = None,
) -> GroupCounts:
    """The counts of the pipeline as one group, along x, or point by point where a stage has no such dim. With lines of
    a byte rows end where their elements do. `facts` of the pipeline, if given, may know other groups."""
    facts = facts or gather(normalise(of), line_bytes=line_bytes)
    members = members_of(facts, of.outputs[0], facts.graph.stages)
    reads = effective(members, frozenset(members.names[:-1]) - frozenset(levels))
    output = facts.stages[members.output]
    axes = {d: axis(d, e, [min(tiles[d], e)]) for d, e in zip(output.dims, output.extents, strict=True)}
    stages = (facts.stages[name] for name in (*levels, members.output))
    running = Running({s.name: Run("x", lanes) if "x" in s.dims else Run(None, 1) for s in stages})
    return worked_counts(members, reads, Nest(members.output, loops, axes), levels, 1, running).at((0,))


def works(
    of: Pipeline,
    loops: tuple[str, ...],
    levels: dict[str, Levels],
    tiles: dict[str, int],
    lanes: int,
    line_bytes: int = LINE_BYTES,
    facts: Facts | None = None,
) -> dict[str, Work]:
    """The work of every stage."""
    counts = group(of, loops, levels, tiles, lanes, line_bytes, facts)
    return {s.stage: s.work for s in counts.stages if s.work is not None}


def boxes(extents: dict[str, int], tiles: dict[str, int]) -> list[dict[str, range]]:
    """All tiles."""
    ranges = [
        [(d, range(lo, min(lo + tiles[d], extent))) for lo in range(0, extent, tiles[d])]
        for d, extent in extents.items()
    ]
    return [dict(tile) for tile in product(*ranges)]


def outputs_work(of: Pipeline, lanes: int) -> Work:
    facts = gather(normalise(of))
    members = members_of(facts, of.outputs[0], facts.graph.stages)
    output = facts.stages[members.output]
    axes = {d: axis(d, e, [e]) for d, e in zip(output.dims, output.extents, strict=True)}
    running = Running({members.output: Run("x", lanes)})
    reads = effective(members, frozenset(members.names[:-1]))
    *_, stage = worked_counts(members, reads, Nest(members.output, ORDERS[0], axes), {}, 1, running).at((0,)).stages
    assert stage.work is not None
    return stage.work
