"""A schedule as calls of Halide's scheduling language: data, to be printed as code or applied to live Funcs.

Halide names loops after variables: a dim that is not split has no inter-tile loop there, so that a level at it
is the next loop further out, or root. A stage with updates has a loop nest for its values and one for each update,
which all get the tiles of their group: Halide fills a tile with values and updates only where another Func asks for it.
Updates that were made part of a value are updates still in Halide, and a scan whose levels are stages is one Func.
Registers as a storage level have no equal there, nor have windows that move along a vectorised loop: a stage that is
computed inside of that loop is computed a row at a time, ahead of it. Nor have stores past the caches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tilesmith.scheduler.analysis.dependence import free_dims
from tilesmith.scheduler.analysis.row_recurrences import along_recurrence
from tilesmith.scheduler.analysis.stage_graph import stage_graph
from tilesmith.scheduler.features.groups.fusion_group import Members, members_of
from tilesmith.scheduler.features.groups.loop_nest import line
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, gather
from tilesmith.scheduler.ir.pipeline.expressions import Reduce, RVar
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import (
    INLINE,
    Factor,
    Group,
    Joining,
    Packing,
    Placement,
    Separation,
    UpdateLoops,
    Vector,
    dim_of,
    inner,
    outer,
)
from tilesmith.scheduler.rewrites.rfactor import reductions

MOST_GUARDED = 8
"""A loop of an extent that may be another one is unrolled at most so many times: Halide guards every copy."""


@dataclass(frozen=True, slots=True)
class DimVar:
    """The Var of a dim of `stage`."""

    name: str
    stage: str


@dataclass(frozen=True, slots=True)
class NewVar:
    """A Var, or an RVar where `reduction`, that the schedule makes."""

    name: str
    reduction: bool = False


@dataclass(frozen=True, slots=True)
class DomainVar:
    """Variable number `index` of the domain of an update."""

    stage: str
    update: int
    index: int


@dataclass(frozen=True, slots=True)
class FuncOf:
    """The Func of a stage."""

    stage: str


@dataclass(frozen=True, slots=True)
class Guard:
    """TailStrategy::GuardWithIf: any extent, also one smaller than the factor."""


@dataclass(frozen=True, slots=True)
class Shift:
    """TailStrategy::ShiftInwards: the last vector overlaps the one before. No extent below the factor."""


Variable: TypeAlias = DimVar | NewVar | DomainVar
Argument: TypeAlias = Variable | FuncOf | Guard | Shift | int


@dataclass(frozen=True, slots=True)
class Directive:
    """One scheduling call on the Func of `stage`, or on one of its updates. `makes` names the stage of the Func that
    the call returns (rfactor)."""

    stage: str
    method: str
    arguments: tuple[Argument, ...] = ()
    update: int | None = None
    makes: str | None = None


@dataclass(frozen=True, slots=True)
class Directives:
    """The calls in order. `unsaid` are parts of the schedule that no call can say, as sentences."""

    calls: tuple[Directive, ...]
    unsaid: tuple[str, ...]


def directives(plan: Plan, inline: Mapping[str, tuple[str, ...]] | None = None) -> Directives:
    """The schedule of a plan for Funcs that have the stages' definitions as the document has them.

    `inline` names, by stage, the Funcs of the reductions inside of its values, in the order of `factors.reductions`,
    where they are known: without it these cannot be factored.
    """
    making, schedule = _Making(plan, inline or {}), plan.schedule
    for factor in schedule.factors:
        making.factor(factor)
    for separation in schedule.separations:
        making.separation(separation)
    for group in schedule.groups:
        making.group(group)
    for joining in schedule.joinings:
        making.joining(joining)
    for packing in schedule.packings:
        making.packing(packing)
    making.whole()
    making.rest()
    return Directives(tuple(making.calls), tuple(making.unsaid))


@dataclass
class _Making:
    plan: Plan
    inline: Mapping[str, tuple[str, ...]]
    calls: list[Directive] = field(default_factory=list)
    unsaid: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        whole = self.plan.pipeline
        self.written, self.schedule = self.plan.written, self.plan.schedule
        self.facts: Facts = gather(whole)
        self.taken = {d for s in (*whole.stages, *self.written.stages) for d in s.dims}
        # The domains that the updates of each Func have in Halide, by the names that they have with us.
        self.domains: dict[str, list[dict[str, Variable]]] = {
            s.name: [{r.name: DomainVar(s.name, k, n) for n, r in enumerate(u.domain)} for k, u in enumerate(s.updates)]
            for s in self.written.stages
        }
        placed = Counter(p.stage for g in self.schedule.groups for p in g.placements)
        self.several = {stage for stage, times in placed.items() if times > 1}
        self.missing = {s.name for s in whole.stages} - {s.name for s in self.written.stages}
        self.joint = {name: j.joint for j in self.schedule.joinings for name in j.stages}

    def call(self, stage: str, method: str, *arguments: Argument, update: int | None = None) -> None:
        self.calls.append(Directive(stage, method, arguments, update))

    def new(self, name: str, reduction: bool = False) -> NewVar:
        while name in self.taken:
            name += "_"
        if reduction:
            self.taken.add(name)
        return NewVar(name, reduction)

    # Factors

    def factor(self, f: Factor) -> None:
        stage = self.written.stage(f.stage) if any(s.name == f.stage for s in self.written.stages) else None
        found = () if stage is None else reductions(stage)
        if stage is None or f.reduction >= len(found):
            self.unsaid.append(f"the factor '{f.partial}' of '{f.stage}': it factors a partial stage")
            return
        target = found[f.reduction]
        owner, update = f.stage, f.reduction - (len(found) - len(stage.updates))
        domain = target.domain
        if isinstance(target, Reduce):
            funcs = self.inline.get(f.stage, ())
            if f.reduction >= len(funcs):
                self.unsaid.append(f"the factor '{f.partial}' of '{f.stage}': its reduction is inside of a value")
                return
            owner, update, domain = funcs[f.reduction], 0, tuple(reversed(target.domain))
        index = next(n for n, r in enumerate(domain) if r.name == f.variable)
        size = f.parts if f.interleaved else -(-self._trips(domain[index]) // f.parts)
        around, within = (self.new(f"{f.variable}_{end}", reduction=True) for end in ("outer", "inner"))
        kept = within if f.interleaved else around
        self.call(owner, "split", DomainVar(owner, update, index), around, within, size, update=update)
        self.calls.append(Directive(owner, "rfactor", (kept, DimVar(f.variable, f.partial)), update, makes=f.partial))
        if f.neighbours > 1:
            self.unsaid.append(f"that each part of '{f.partial}' takes {f.neighbours} neighbours in its turn")
        self.missing.discard(f.partial)
        partial = self.facts.definitions[f.partial]
        if partial.storage != partial.dims:
            self.call(f.partial, "reorder_storage", *(DimVar(d, f.partial) for d in partial.storage))
        left: list[Variable] = [DomainVar(owner, update, n) for n in range(len(domain))]
        left[index] = around if f.interleaved else within
        names = [r.name for r in (partial.updates[0].domain if partial.updates else domain)]
        names = [f"{n} within" if n == f.variable else n for n in names]  # the dim over the parts has its name
        self.domains[f.partial] = [dict(zip(names, left, strict=True))]
        if owner in self.domains:
            self.domains[owner][update] = {f.variable: kept}

    def separation(self, s: Separation) -> None:
        """Funcs have their windows whole: no call rewrites a definition."""
        self.unsaid.append(f"the separation '{s.partial}' of '{s.stage}': its window is computed whole")

    def joining(self, j: Joining) -> None:
        """Funcs are computed one by one: each gets the loops of the group, but for those that have one of their own."""
        self.unsaid.append(f"that {', '.join(j.stages)} are computed together: each has loops of its own")
        groups = {g.output: g for g in self.schedule.groups}
        for name in j.stages:
            if name not in groups:
                self._output(replace(groups[j.joint], output=name))

    def packing(self, p: Packing) -> None:
        """Funcs read operands where they lie."""
        self.unsaid.append(f"the copy '{p.packed}' of '{p.operand}': '{p.stage}' reads it where it lies")

    def whole(self) -> None:
        """Scans that are a stage a level here, and the tables that say which level: a Func each, of all of it."""
        needed, graph = stage_graph(self.written), self.facts.graph
        for name in needed.stages:
            scan = bool(self.written.stage(name).updates)
            if name not in {*graph.consumers, *self.joint} and (scan or not needed.producers[name]):
                self.call(name, "compute_root")
                vector = self.schedule.groups[-1].vector
                if scan:
                    self._scan(self.written.stage(name), vector)
                    self.unsaid.append(f"the levels of '{name}', a stage each: it is computed whole")

    def _scan(self, stage: Stage, vector: Vector | None) -> None:
        """Vectors along the rows of a scan, and threads over the outermost of its other dims."""
        threads = any(g.parallel is not None for g in self.schedule.groups)
        row = stage.storage[0]
        for k in (None, *range(len(stage.updates))):
            free = frozenset(stage.dims) if k is None else free_dims(stage, stage.updates[k])
            if vector is not None and row in free:
                self._vectorize(stage.name, DimVar(row, stage.name), vector.lanes, k, None)
            others = [d for d in stage.dims if d in free and d != row]
            if threads and others:
                self.call(stage.name, "parallel", DimVar(others[-1], stage.name), update=k)

    def rest(self) -> None:
        """Updates that run as they are defined: Halide wants to hear that this is meant."""
        seen = {(c.stage, c.update) for c in self.calls}
        for stage in dict.fromkeys(c.stage for c in self.calls):
            for k in range(len(self._updates(stage))):
                if (stage, k) not in seen:
                    self.call(stage, "unscheduled", update=k)

    # Groups

    def group(self, group: Group) -> None:
        name = group.output
        loops = self._loops(group) if name in self.missing else self._output(group)
        members = members_of(self.facts, name, (*(p.stage for p in group.placements), name))
        for placement in group.placements:
            if placement.stage not in self.missing and placement.stage not in self.joint:
                self._placement(members, group, placement, loops)

    def _output(self, group: Group) -> dict[str, Variable]:
        """The loops of the group on its output; returns the variables of these."""
        loops = self._loops(group)
        self.call(group.output, "compute_root")
        if group.loops:
            self._tiled(group, loops, None, tuple(loops.values()), group.vector)
            for k in range(len(self._updates(group.output))):
                self._output_update(group, loops, k)
        return loops

    def _loops(self, group: Group) -> dict[str, Variable]:
        """The Halide variable of every loop of the group that exists there, innermost first."""
        found: dict[str, Variable] = {}
        for loop in group.loops:
            dim = dim_of(loop)
            tile = group.tile(dim)
            if tile is not None and tile.size is not None:
                found[loop] = self.new(loop.replace(".", "_"))
            elif loop == inner(dim):
                found[loop] = DimVar(dim, group.output)
        return found

    def _tiled(
        self, group: Group, loops: Mapping[str, Variable], update: int | None, order: tuple[Variable, ...],
        vector: Vector | None, dims: frozenset[str] | None = None,
    ) -> None:  # fmt: skip
        """The tiles of a group on its output's values, or on an update, which runs through `dims`."""
        name = group.output
        for tile in group.tiles:
            if tile.size is not None and (dims is None or tile.dim in dims):
                both = (DimVar(tile.dim, name), loops[outer(tile.dim)], loops[inner(tile.dim)])
                self.call(name, "split", *both, tile.size, Guard(), update=update)
        if len(order) > 1:
            self.call(name, "reorder", *order, update=update)
        if vector is not None and inner(vector.dim) in loops:
            self._vectorize(name, loops[inner(vector.dim)], vector.lanes, update, _size(group, vector.dim))
        for dim in group.unroll:
            if update is None:
                size = _size(group, dim)
                if size is not None:
                    self.call(name, "unroll", loops[inner(dim)])
                    continue
                stage = self.facts.stages[self.joint.get(name, name)]
                times = stage.region[stage.dims.index(dim)][1]
                if times <= MOST_GUARDED:
                    self.call(name, "unroll", loops[inner(dim)], times, Guard())
                else:
                    self.unsaid.append(f"the loop over '{dim}' of '{name}' is not unrolled, {times} times with a guard")
        threads = None if group.parallel is None else self._level(group, group.parallel, loops)
        if threads is not None:
            self.call(name, "parallel", threads, update=update)

    def _output_update(self, group: Group, loops: Mapping[str, Variable], k: int) -> None:
        name = group.output
        said = self._said(name, k, group.updates)
        free = self._dims_of(name, k)
        run = self._runs(name, k)
        mine = {d: loops.get(inner(d), DimVar(d, name)) for d in free}
        within = [dim_of(loop) for loop in group.loops if loop == inner(dim_of(loop)) and dim_of(loop) in free]
        inside = [*run, *within] if said is None else list(said.loops)
        names: dict[str, Variable] = {**mine, **run}
        around = [loops[loop] for loop in group.loops if loop in loops and loop != inner(dim_of(loop))]
        order = [names[v] for v in inside if v in names] + [v for v in around if v not in names.values()]
        vector = group.vector if said is None else said.vector
        of_domain = vector is not None and vector.dim in run
        if vector is not None and vector.dim not in free:
            self._tiled(group, loops, k, tuple(order), None, free)
            if of_domain and not self._joined_along(name, k, said):
                self.call(name, "allow_race_conditions", update=k)
                self.call(name, "vectorize", run[vector.dim], vector.lanes, Guard(), update=k)
        else:
            self._tiled(group, loops, k, tuple(order), vector, free)
        if said is not None and said.parallel is not None and said.parallel in names:
            if said.parallel in run:
                self.call(name, "allow_race_conditions", update=k)
            self.call(name, "parallel", names[said.parallel], update=k)

    def _placement(self, members: Members, group: Group, placement: Placement, loops: Mapping[str, Variable]) -> None:
        name = placement.stage
        if placement.compute == INLINE or name in self.several:
            self.call(name, "compute_inline")
            if placement.compute != INLINE:  # a Func is computed at one place
                self.unsaid.append(f"that '{name}' is kept in the group of '{group.output}': it is in others, too")
            return
        compute, store = (self._level(group, loop, loops) for loop in _levels(group, placement))
        at = FuncOf(group.output)
        if group.output in self.missing:
            compute = store = None
        if compute is None:
            self.call(name, "compute_root")
        else:
            if store is None:
                self.call(name, "store_root")
            elif store != compute:
                self.call(name, "store_at", at, store)
            self.call(name, "compute_at", at, compute)
        order = tuple(DimVar(d, name) for d in placement.order)
        if len(order) > 1:
            self.call(name, "reorder", *order)
        if placement.vector is not None:
            self._vectorize_row(name, placement.vector)
        per_vector = group.vector is not None and placement.compute == inner(group.vector.dim)
        if placement.fold and compute is not None and compute != store and not per_vector:
            self._folded(members, placement)
        for k in range(len(self._updates(name))):
            self._update(placement, k)

    def _update(self, placement: Placement, k: int) -> None:
        """An update of a stage that is computed inside of a group."""
        name, run = placement.stage, self._runs(placement.stage, k)
        said = self._said(name, k, placement.updates)
        if said is None:
            free = self._dims_of(name, k)
            order: tuple[Variable, ...] = tuple(DimVar(d, name) for d in placement.order if d in free)
            vector = placement.vector if placement.vector is not None and placement.vector.dim in free else None
        else:
            order = tuple(run.get(loop, DimVar(loop, name)) for loop in said.loops)
            vector = said.vector
        if len(order) > 1:
            self.call(name, "reorder", *order, update=k)
        if vector is not None and not self._joined_along(name, k, said):
            if vector.dim in run:
                self.call(name, "allow_race_conditions", update=k)
            self._vectorize(name, run.get(vector.dim, DimVar(vector.dim, name)), vector.lanes, k, None)

    def _joined_along(self, name: str, k: int, said: UpdateLoops | None) -> bool:
        """True, and noted, of vectors along a recurrence, which Halide has none of."""
        definition = self.facts.definitions[name]
        n = k - len(self._updates(name)) + len(definition.updates)
        if said is None or along_recurrence(definition, definition.updates[n], said) is None:
            return False
        self.unsaid.append(
            f"that update {k} of '{name}' has vectors along its rows, whose points follow from each other"
        )
        return True

    def _vectorize(self, name: str, v: Variable, lanes: int, update: int | None, size: int | None) -> None:
        whole = size is not None and size % lanes == 0
        self.call(name, "vectorize", v, lanes, *(() if whole else (Guard(),)), update=update)

    def _vectorize_row(self, name: str, vector: Vector) -> None:
        """Vectors along the values of a stage inside of a group: what they compute too much, nobody sees. Rows that are
        shorter at the estimates are guarded: there, Halide would want more of the inputs than there is."""
        stage = self.facts.stages[name]
        long = stage.region[stage.dims.index(vector.dim)][1] >= vector.lanes
        self.call(name, "vectorize", DimVar(vector.dim, name), vector.lanes, Shift() if long else Guard())

    def _folded(self, members: Members, placement: Placement) -> None:
        """A ring along the dim that follows the compute level's, a power of two that holds the whole window."""
        if placement.compute != inner(dim_of(placement.compute)):
            return
        for dim, span in members.follows[placement.stage].items():
            if span.var == dim_of(placement.compute) and span.known and span.rate > 0:
                window = line(span).window()
                size = 1 << (window - 1).bit_length()
                self.call(placement.stage, "fold_storage", DimVar(dim, placement.stage), size)
                return

    def _level(self, group: Group, loop: str | None, loops: Mapping[str, Variable]) -> Variable | None:
        """The variable of `loop`, or of the next loop further out that exists in Halide; None for root."""
        further = () if loop is None else group.loops[group.loops.index(loop) :]
        return next((loops[f] for f in further if f in loops), None)

    # Updates: those in Halide are those that the document has, of which the first may be part of the value with us

    def _updates(self, name: str) -> list[dict[str, Variable]]:
        return self.domains.get(name, [])

    def _said(self, name: str, k: int, said: tuple[UpdateLoops, ...]) -> UpdateLoops | None:
        """The loops that the schedule has for update `k` in Halide."""
        first = len(self._updates(name)) - len(self.facts.definitions[name].updates)
        return said[k - first] if k >= first and k - first < len(said) else None

    def _runs(self, name: str, k: int) -> dict[str, Variable]:
        return self._updates(name)[k]

    def _dims_of(self, name: str, k: int) -> frozenset[str]:
        """The dims that update `k` in Halide runs through."""
        definition = self.facts.definitions[name]
        first = len(self._updates(name)) - len(definition.updates)
        if k >= first:
            return frozenset(free_dims(definition, definition.updates[k - first]))
        for s in self.written.stages:
            if s.name == name:
                return frozenset(free_dims(s, s.updates[k]))
        return frozenset(definition.dims)  # of partial results

    def _trips(self, r: RVar) -> int:
        """At the estimates."""
        return self.facts.estimates.trips(r)


def _levels(group: Group, placement: Placement) -> tuple[str | None, str | None]:
    """The loops at which a stage is computed and stored: for the vectorised one, the next further out."""
    around = {}
    if group.vector is not None and (row := inner(group.vector.dim)) in group.loops:
        around[row] = next(iter(group.loops[group.loops.index(row) + 1 :]), None)
    return around.get(placement.compute, placement.compute), around.get(placement.store, placement.store)


def _size(group: Group, dim: str) -> int | None:
    tile = group.tile(dim)
    return None if tile is None else tile.size
