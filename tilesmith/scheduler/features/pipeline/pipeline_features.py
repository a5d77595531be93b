"""Pipeline features for the search: stages, reads, boxes and arithmetic, found once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from operator import mul

from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.taco2019 import arithmetic_cost, cost_of_values
from tilesmith.platforms.base import LINE_BYTES
from tilesmith.platforms.core import ORDINARY, Core
from tilesmith.scheduler.analysis.access_functions import Span, constant
from tilesmith.scheduler.analysis.accesses import StageAccess, accesses
from tilesmith.scheduler.analysis.coordinate_maps import coordinate_maps
from tilesmith.scheduler.analysis.dependence import pure_dims
from tilesmith.scheduler.analysis.estimated_bounds import Estimates, Region, estimates
from tilesmith.scheduler.analysis.flat_rows import MOST_CHANNELS
from tilesmith.scheduler.analysis.neighbour_sums import GROUPS
from tilesmith.scheduler.analysis.stage_form import share_forms
from tilesmith.scheduler.analysis.stage_graph import StageGraph, stage_graph
from tilesmith.scheduler.features.operations.operation_counts import (
    Typed,
    element_bytes_used,
    operations_on_loads,
    total,
    typed_operations,
    update_operations,
)
from tilesmith.scheduler.features.operations.operation_counts import together as typed_together
from tilesmith.scheduler.features.pipeline.merged_reads import SHORT_ROW, Places, ReadMerger
from tilesmith.scheduler.features.pipeline.reads import Read
from tilesmith.scheduler.features.pipeline.update_facts import UpdateFacts, dim_along_memory, facts_of_update
from tilesmith.scheduler.ir.memo import Memo
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline, Stage


@dataclass(frozen=True, slots=True)
class StageFacts:
    """One stage or input: `region` is its (min, extent) per dim at the estimates, `bytes_per_point` of all its
    values in memory, `value_bytes` of the widest of them, `computed_bytes` those of the widest type that it computes
    with. `operations` are those of one
    point, updates with their share, `typed` by element type those that differ along a row of memory, and of these
    `typed_before` those of its values before updates, of which `on_loads` are of one load alone, by its producer. A
    slice in the dims of `pure` can be computed alone."""

    name: str
    is_input: bool
    dims: tuple[str, ...]
    storage: tuple[str, ...]
    region: Region
    bytes_per_point: int
    value_bytes: int
    computed_bytes: int
    operations: Operations
    reads: tuple[Read, ...]
    pure: frozenset[str]
    updates: tuple[UpdateFacts, ...] = ()
    typed: Typed = ()
    typed_before: Typed = ()
    on_loads: Mapping[str, Typed] = field(default_factory=dict, compare=False)
    row: str | None = None
    """The dim that vectors run along: the fastest in memory, or the one after it where the fastest are few channels,
    which whole vectors are shuffled of. None without dims."""
    extents: tuple[int, ...] = field(init=False, repr=False, compare=False)
    apart: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """Elements from one place to the next along each dim, if the stage lies dense in memory."""
    root_points: int = field(init=False, repr=False, compare=False)
    """Points of the whole stage, each computed once (TACO 2019, Eq. 4)."""
    passes: bool = field(init=False, repr=False, compare=False)
    """True if there are updates, and each is a pass over the stage: it visits every point once at most, at places that
    do not depend on data."""
    read_of: Mapping[str, Read] = field(init=False, repr=False, compare=False)
    """The stage's reads by producer."""
    loads: float = field(init=False, repr=False, compare=False)
    """Elements loaded for one point. What does not move with any loop of the stage (a kernel's weights) is loaded once,
    and not counted: otherwise a convolution would be trivial for having its weights in a stage."""
    arithmetic: float = field(init=False, repr=False, compare=False)
    """Arithmetic operations that one point costs (see `cost_models.taco2019`)."""
    common_bytes: int = field(init=False, repr=False, compare=False)
    """The fewest bytes that three quarters of the operations are done in: those of a pattern of bits, whose parts are
    bytes until they are joined. Those of the widest type where there are updates."""

    def __post_init__(self) -> None:
        moving = (r.points for r in self.reads if any(s.var is not None or not s.known for s in r.spans))
        object.__setattr__(self, "extents", tuple(extent for _, extent in self.region))
        strides = accumulate(map(self.extent, self.storage), mul, initial=1)
        object.__setattr__(self, "apart", dict(zip(self.storage, strides, strict=False)))
        object.__setattr__(self, "root_points", prod(self.extents))
        once = all(u.iterations <= self.root_points and not u.looked_up for u in self.updates)
        object.__setattr__(self, "passes", bool(self.updates) and once)
        object.__setattr__(self, "read_of", {r.producer: r for r in self.reads})
        object.__setattr__(self, "loads", sum(moving))
        object.__setattr__(self, "arithmetic", arithmetic_cost(self.operations))
        object.__setattr__(self, "common_bytes", self.computed_bytes if self.updates else self._common_bytes())

    def _common_bytes(self) -> int:
        counts = {int(type_[1:]) // 8: cost_of_values(operations) for type_, operations in self.typed}
        within, most = 0.0, sum(counts.values())
        for size in sorted(counts):
            within += counts[size]
            if 4 * within >= 3 * most:
                return size
        return self.computed_bytes

    def extent(self, dim: str) -> int:
        return self.extents[self.dims.index(dim)]


def _row(
    storage: tuple[str, ...],
    extents: Mapping[str, int],
    reads: tuple[Read, ...] = (),
    fastest: Mapping[str, int] | None = None,
) -> str | None:
    """The dim that vectors of an image run along (see `StageFacts.row`), without updates; `fastest` has the number of
    each producer's dim that is the fastest in memory."""
    first, second = (*storage[:2], None, None)[:2]
    if first is None or second is None:
        return first
    beside = 2 <= extents[first] <= MOST_CHANNELS and extents[second] > SHORT_ROW
    return second if beside and not _sums_along(first, reads, fastest or {}) else first


def _sums_along(dim: str, reads: tuple[Read, ...], fastest: Mapping[str, int]) -> bool:
    """True if a point reads further along memory than pixels have channels, and its neighbours in the dim read beside
    it, or the next group of elements: partial results of sums along rows, as many as a vector has lanes."""
    places = (r.spans[fastest[r.producer]] for r in reads if r.producer in fastest)
    return any(s.known and s.var == dim and s.rate in (1, *GROUPS) and s.width > MOST_CHANNELS for s in places)


@dataclass(frozen=True, slots=True)
class Facts:
    """A normalised pipeline, its graph of live stages, and the facts of every live stage and input read. `partial` are
    stages that hold partial results, of a factored reduction or a separated window, `strips` those that are for
    threads. A line of the platform's memory has `line_bytes`, and its `core` these figures. `memo` has whatever
    else follows from the facts alone."""

    pipeline: Pipeline
    graph: StageGraph
    stages: dict[str, StageFacts]
    definitions: dict[str, Stage]
    estimates: Estimates
    partial: frozenset[str] = frozenset()
    strips: frozenset[str] = frozenset()
    line_bytes: int = LINE_BYTES
    core: Core = ORDINARY
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)


def gather(
    pipeline: Pipeline,
    partial: frozenset[str] = frozenset(),
    strips: frozenset[str] = frozenset(),
    before: Facts | None = None,
    line_bytes: int = LINE_BYTES,
    core: Core = ORDINARY,
) -> Facts:
    """The facts of `pipeline`, which is normal, for a platform with such lines and such a core. Stages that are as they
    were `before`, and whose producers have no updates, keep the facts that they had, and the platform is the same."""
    graph = stage_graph(pipeline)
    share_forms(s for s in pipeline.stages if s.name in graph.consumers)
    found = {s.name: accesses(s) for s in pipeline.stages if s.name in graph.consumers}
    at = estimates(pipeline, found)
    definitions = {s.name: s for s in pipeline.stages}
    wholes = {name: _whole(definitions[name], at.regions[name]) for name in graph.stages if definitions[name].updates}
    stages = {i.name: _of_input(i, at.regions[i.name]) for i in pipeline.inputs if i.name in at.regions}
    along = {i.name: i.storage[0] for i in pipeline.inputs if i.storage}
    along |= {s.name: s.storage[0] for s in pipeline.stages if s.storage}
    fastest = {i.name: i.dims.index(i.storage[0]) for i in pipeline.inputs if i.storage}
    fastest |= {s.name: s.dims.index(s.storage[0]) for s in pipeline.stages if s.storage}
    places = Places(coordinate_maps(definitions[name] for name in graph.stages), along, fastest)
    for name in graph.stages:
        kept = before is not None and _same(before, name, definitions[name], at, wholes)
        stages[name] = (
            before.stages[name] if before and kept else _of_stage(definitions[name], at, found[name], wholes, places)
        )
    figures = (line_bytes, core) if before is None else (before.line_bytes, before.core)
    return Facts(pipeline, graph, stages, definitions, at, partial, strips, *figures)


def _same(before: Facts, name: str, stage: Stage, at: Estimates, wholes: Mapping[str, object]) -> bool:
    """True if all that the facts of a stage follow from is as it was."""
    return (
        before.definitions.get(name) is stage
        and before.estimates.regions[name] == at.regions[name]
        and before.estimates.symbols == at.symbols
        and all(r.producer not in wholes for r in before.stages[name].reads)
    )


def _whole(stage: Stage, region: Region) -> dict[str, Span]:
    """The dims of `stage` that are not pure, each with its whole range."""
    pure = pure_dims(stage)
    return {
        d: constant(lo, lo + extent - 1) for d, (lo, extent) in zip(stage.dims, region, strict=True) if d not in pure
    }


def _of_input(image: Input, region: Region) -> StageFacts:
    size = image.type.bytes
    return StageFacts(
        image.name,
        True,
        image.dims,
        image.storage,
        region,
        size,
        size,
        size,
        Operations(),
        (),
        frozenset(image.dims),
        row=_row(image.storage, {d: extent for d, (_, extent) in zip(image.dims, region, strict=True)}),
    )


def _of_stage(
    stage: Stage, at: Estimates, found: tuple[StageAccess, ...], wholes: dict[str, dict[str, Span]], places: Places
) -> StageFacts:
    region = at.regions[stage.name]
    extents = {d: extent for d, (_, extent) in zip(stage.dims, region, strict=True)}
    updates = tuple(facts_of_update(stage, u, extents, at) for u in stage.updates)
    points = prod(extents.values())
    shares = [u.iterations / points for u in updates]
    typed = typed_together([(1, typed_operations(stage, at.trips)), *_shared_out(shares, [u.typed for u in updates])])
    moving = [update_operations(u, at.trips, dim_along_memory(stage, u)) for u in stage.updates]
    pure = pure_dims(stage)
    reads = ReadMerger(stage, extents, at, wholes, updates, places).merged(a for a in found if a.producer != stage.name)
    computed = not updates and pure.issuperset(stage.storage[:2])
    row = _row(stage.storage, extents, reads, places.fastest) if computed else next(iter(stage.storage), None)
    before = typed_operations(stage, at.trips, row)
    along = typed_together([(1, before), *_shared_out(shares, moving)])
    return StageFacts(
        stage.name,
        False,
        stage.dims,
        stage.storage,
        region,
        sum(t.bytes for t in stage.types),
        max(t.bytes for t in stage.types),
        element_bytes_used(stage),
        total(typed),
        reads,
        pure,
        updates,
        along,
        before,
        operations_on_loads(stage, at.trips, row),
        row,
    )


def _shared_out(shares: list[float], typed: list[Typed]) -> list[tuple[float, Typed]]:
    """The operations of each update with how many of its iterations there are a point."""
    return list(zip(shares, typed, strict=True))
