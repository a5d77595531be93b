"""Predicted cost over the tile sizes of a schedule's groups, all else held: how good a choice is, and how near."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np

from tilesmith.cost_models.interface import CostModel
from tilesmith.platforms import Platform
from tilesmith.scheduler.features.groups.fusion_group import members_of
from tilesmith.scheduler.features.groups.loop_nest import axis
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts, gather
from tilesmith.scheduler.features.schedule_features import counts_of_group
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Group
from tilesmith.scheduler.search.taco2019.levels import largest_overlaps

SHOWN_DIMS = 2
"""Dims of a map, at most."""


@dataclass(frozen=True, slots=True)
class TileCosts:
    """The cost of one group over the tile sizes of one or two dims: `sizes` of each of `dims`, the smallest first, and
    one row of `costs` for each size of the first dim. `chosen` are the sizes that the schedule has, which are among
    them; an extent stands for the whole."""

    output: str
    dims: tuple[str, ...]
    sizes: tuple[tuple[int, ...], ...]
    chosen: tuple[int, ...]
    costs: tuple[tuple[float, ...], ...]

    def to_document(self) -> dict[str, Any]:
        """The costs as plain data, for JSON."""
        return {
            "output": self.output,
            "dims": [
                {"dim": dim, "sizes": list(sizes), "chosen": chosen}
                for dim, sizes, chosen in zip(self.dims, self.sizes, self.chosen, strict=True)
            ],
            "costs": [list(row) for row in self.costs],
        }


def tile_costs(plan: Plan, platform: Platform, model: CostModel) -> tuple[TileCosts, ...]:
    """The costs of all groups that have tiles, by `model`. Of more than two tiled dims the longest are varied."""
    facts = gather(plan.pipeline, line_bytes=platform.line_bytes, core=platform.core)
    past = frozenset(g.output for g in plan.schedule.groups if g.stream)
    return tuple(
        _costs(facts, group, dims, platform, model, past)
        for group in plan.schedule.groups
        if (dims := _dims(facts.stages[group.output], group))
    )


def _dims(output: StageFacts, group: Group) -> tuple[str, ...]:
    """The dims to vary: tiled, not written out, and of more than one point."""
    tiled = [t.dim for t in group.tiles if t.dim not in group.unroll and output.extent(t.dim) > 1]
    longest = sorted(tiled, key=lambda d: -output.extent(d))[:SHOWN_DIMS]
    return tuple(d for d in tiled if d in longest)


def _costs(
    facts: Facts, group: Group, dims: tuple[str, ...], platform: Platform, model: CostModel, past: frozenset[str]
) -> TileCosts:
    output = facts.stages[group.output]
    overlaps = largest_overlaps(members_of(facts, group.output, (*(p.stage for p in group.placements), group.output)))
    chosen = {t.dim: t.size or output.extent(t.dim) for t in group.tiles}
    found = [tuple(sorted({*_sizes(output, d, overlaps[d], platform), chosen[d]})) for d in dims]
    axes = {
        d: axis(d, output.extent(d), list(s), n, len(dims)) for n, (d, s) in enumerate(zip(dims, found, strict=True))
    }
    counts = counts_of_group(facts, group, platform.threads, past, axes)
    total = np.broadcast_to(model.total(counts, platform), tuple(map(len, found)))
    rows = total.reshape(len(found[0]), -1)
    return TileCosts(
        group.output, dims, tuple(found), tuple(chosen[d] for d in dims), tuple(tuple(map(float, r)) for r in rows)
    )


def _sizes(output: StageFacts, dim: str, overlap: int, platform: Platform) -> Iterator[int]:
    """Sizes of a dim, each twice the one before, and the whole extent: along memory whole lines and vectors, and none
    below the overlap of neighbouring tiles (TACO 2019, Eq. 15)."""
    extent = output.extent(dim)
    size = 1
    if dim == output.row:
        lanes = max(1, platform.vector_bytes // max(1, output.computed_bytes))
        size = lcm(max(1, platform.line_bytes // output.bytes_per_point), lanes)
    while size < extent:
        if size >= overlap:
            yield size
        size *= 2
    yield extent
