"""The cost of TACO 2019, Alg. 3: weighted loads and recomputation, in arithmetic operations.

    C_total = sum over stages of  w * Cl_i + (Cp_i - Croot_i)

Cl is the load cost (Eqs 5, 6, 13), Cp the compute cost (Eq. 3), Croot that of the stage computed once,
alone (Eq. 4), w the platform's cost of a load relative to an arithmetic operation.

What the paper leaves open is read so: the output of a group is charged as the other stages are (Alg. 3
leaves it out, and then a pipeline of single-stage groups would cost nothing), and a load costs where
it comes from an input or another group (Eq. 5 charges blur_x with the input's footprint; the paper speaks
of "external load costs" of splitting): buffers of the group itself are in the cache by constraint.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilesmith.cost_models.amounts import Amount, summed
from tilesmith.cost_models.counts import GroupCounts, LoadCounts, StageCounts
from tilesmith.cost_models.interface import Breakdown, StageCost, Term
from tilesmith.cost_models.operations import Operations
from tilesmith.platforms import Platform

OPERATION_COST = Operations(
    add=1, multiply=1, divide_by_constant=2, divide=4, select=1, convert=1, narrow=1, function=10, index=1
)
"""Operations that one of each kind counts for. The paper counts all alike; but its blur (two additions, one
division, three loads) is not trivial by its own Alg. 2, so that a division must count for more than one:
by a constant it is a multiplication and a shift."""


def arithmetic_cost(operations: Operations) -> float:
    """Arithmetic operations that one point costs."""
    return cost_of_values(operations) + operations.index * OPERATION_COST.index


def cost_of_values(operations: Operations) -> float:
    """Arithmetic operations that one point costs, index arithmetic left out."""
    cost = OPERATION_COST
    return (
        operations.add * cost.add
        + operations.multiply * cost.multiply
        + operations.divide_by_constant * cost.divide_by_constant
        + operations.divide * cost.divide
        + operations.select * cost.select
        + operations.convert * cost.convert
        + operations.narrow * cost.narrow
        + operations.function * cost.function
    )


def load_cost(load: LoadCounts, prefetcher: bool) -> Amount:
    """Loads that miss: with a streaming prefetcher one a contiguous row that is walked in order (TACO 2019,
    Eq. 6), otherwise one an element (Eqs 5, 13)."""
    return load.runs if prefetcher and load.streamed else load.points


@dataclass(frozen=True, slots=True)
class Taco2019:
    """The cost model of TACO 2019; see the module."""

    name: str = "taco2019"
    unit: str = "arithmetic operations"

    def price(self, counts: GroupCounts, platform: Platform) -> Breakdown:
        """The cost of a group, per stage: terms `load` and `recompute`."""
        stages = tuple(self._stage(s, counts.output, platform) for s in counts.stages)
        return Breakdown(self.name, self.unit, stages)

    def total(self, counts: GroupCounts, platform: Platform) -> Amount:
        """The cost of a group, all of it together."""
        return summed([summed(_parts(s, platform)) for s in counts.stages])

    def _stage(self, s: StageCounts, group: str, platform: Platform) -> StageCost:
        load, recompute = _parts(s, platform)
        return StageCost(s.stage, group, (Term("load", load), Term("recompute", recompute)))


def _parts(s: StageCounts, platform: Platform) -> tuple[Amount, Amount]:
    """The cost of a stage's loads, and of what it computes more than once."""
    loads = sum((load_cost(load, platform.prefetcher) for load in s.loads if load.external), 0.0)
    return platform.load_weight * loads, (s.points - s.root_points) * arithmetic_cost(s.operations)
