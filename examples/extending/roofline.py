"""A cost model: the roofline. A loop nest takes as long as its arithmetic or as its traffic, whichever is longer.

tilesmith --plugin examples/extending/roofline.py schedule harris --cost-model roofline
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilesmith.cost_models.amounts import Amount
from tilesmith.cost_models.counts import GroupCounts, StageCounts
from tilesmith.cost_models.interface import Breakdown, StageCost, Term
from tilesmith.cost_models.operations import Operations
from tilesmith.cost_models.registry import register
from tilesmith.platforms import Platform

FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Roofline:
    """Microseconds of a group of stages: the maximum of operations over peak and of bytes over bandwidth."""

    name: str = "roofline"
    unit: str = "microseconds"

    def price(self, counts: GroupCounts, platform: Platform) -> Breakdown:
        """The time of a group, per stage: the term `arithmetic` where that is the longer one, else `memory`. Counts may
        be arrays, with a number for each candidate of tile sizes."""
        ridge = platform.threads * platform.clock_ghz * 1e3 * platform.vector_bytes / FLOAT_BYTES  # operations
        roof = platform.ecm_parameters.memory_gb_s * 1e3  # bytes, both in a microsecond
        fits = counts.unfolded_bytes + counts.folded_bytes <= platform.l2_bytes
        arithmetic = [s.points * operations(s.operations) / ridge for s in counts.stages]
        memory = [traffic(s, counts.output, fits) / roof for s in counts.stages]
        computes = np.greater_equal(sum(arithmetic, 0.0), sum(memory, 0.0))
        return Breakdown(
            self.name,
            self.unit,
            tuple(
                StageCost(
                    s.stage, counts.output, (Term("arithmetic", own * computes), Term("memory", moved * ~computes))
                )
                for s, own, moved in zip(counts.stages, arithmetic, memory, strict=True)
            ),
        )

    def total(self, counts: GroupCounts, platform: Platform) -> Amount:
        """The time of a group, whole."""
        return self.price(counts, platform).total


def operations(of_a_point: Operations) -> float:
    """Operations of a point: all kinds alike, but for functions and divisions."""
    o = of_a_point
    return o.add + o.multiply + o.select + o.convert + o.narrow + o.divide_by_constant + 4 * o.divide + 10 * o.function


def traffic(stage: StageCounts, output: str, fits: Amount) -> Amount:
    """Bytes to and from memory: images of other groups, the group's own output, and buffers that the cache does not
    hold."""
    loads = sum((load.points * load.bytes_per_point * (1 - fits * (not load.external)) for load in stage.loads), 0.0)
    stored = 0 if stage.inlined else stage.points * stage.bytes_per_point
    return loads + stored * (1 if stage.stage == output else 1 - fits)


register("roofline", Roofline)
