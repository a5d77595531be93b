"""Groups as they run: what the counts of SIMD work are made from."""

from __future__ import annotations

from tilesmith.scheduler.features.groups.execution_mode import Run, Running
from tilesmith.scheduler.features.groups.register_tiles import with_long_reductions
from tilesmith.scheduler.features.traffic.cache_traffic import Traffic
from tilesmith.scheduler.features.traffic.layer_conditions import Layers


class RunningGroup:
    """One group as it runs. `row` is the level outside of the row of the output."""

    def __init__(self, traffic: Traffic, running: Running) -> None:
        self.counter, self.running, self.traffic = traffic.counter, running, traffic
        counter, self.registers = traffic.counter, traffic.registers
        self.members, self.facts, self.nest = counter.members, counter.members.facts, counter.nest
        self.reads, self.levels = counter.reads, counter.levels
        row = running.stages[counter.members.output].row
        self.row = counter.nest.intra(row) + 1 if row is not None else 1
        fused = [n for n in running.stages if self.is_fused(n)]
        self.one_loop = frozenset((*fused, counter.members.output)) if fused else frozenset[str]()
        """The stages that are computed vector by vector in one loop, if there are several."""
        self.layers = Layers(traffic, self.row, self.one_loop)

    def along_row(self, name: str, run: Run) -> str | None:
        """The dim of the output that a row of the stage follows."""
        return None if run.row is None else self.members.followed(name, run.row)

    def level(self, name: str) -> int:
        """The level at which a row of the stage is seen whole: where it is computed, but in the row of the output."""
        if name == self.members.output:
            return self.nest.first_inter
        return max(self.levels[name].compute, self.row)

    def is_fused(self, name: str) -> bool:
        """True if a stage is computed vector by vector in the row of the output, as where some are in registers."""
        return self.is_inside_row(name) and bool(self.registers)

    def is_of_a_vector(self, name: str) -> bool:
        """True if rows of a stage are what one vector of the output reads."""
        return self.is_inside_row(name) and not self.registers

    def has_loops(self, name: str) -> bool:
        """True if a point of a stage has a reduction that vectors run as a loop, its own or that of a stage inline."""
        return not with_long_reductions(self.facts).isdisjoint(self.reads[name].with_inlined(name))

    def is_inside_row(self, name: str) -> bool:
        return name != self.members.output and self.levels[name].compute < self.row
