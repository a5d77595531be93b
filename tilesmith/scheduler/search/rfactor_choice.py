"""Choice of rfactors: reductions that are cut into partial results, where a stage has too few points for threads or
vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from math import prod

from tilesmith.platforms import Platform
from tilesmith.scheduler.analysis.access_functions import Span, variable
from tilesmith.scheduler.analysis.dependence import combination
from tilesmith.scheduler.analysis.neighbour_sums import FEWEST, WIDEST_BITS, summed_type, summed_variable
from tilesmith.scheduler.analysis.stage_graph import is_plain
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.features.pipeline.pipeline_features import Facts, StageFacts, gather
from tilesmith.scheduler.features.pipeline.reads import Read
from tilesmith.scheduler.ir.pipeline.expressions import Access, Reduce, RVar, Var, variables_of, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Input, Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.types import UINT8
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.ir.schedule.schedule import Factor
from tilesmith.scheduler.rewrites.hoist_reductions import hoisted
from tilesmith.scheduler.rewrites.names import fresh, taken
from tilesmith.scheduler.rewrites.passes import with_factors
from tilesmith.scheduler.rewrites.rfactor import factored, reductions
from tilesmith.scheduler.search.params import PARAMS
from tilesmith.scheduler.search.scatter_tables import tables_of
from tilesmith.scheduler.search.update_loops import update_loops

PARTS_OF = {"sum", "product", "min", "max", "any", "all"}


@dataclass(frozen=True, slots=True)
class Factored:
    """A plan with its reductions factored, and the facts of its pipeline."""

    plan: Plan
    facts: Facts


def factor_reductions(plan: Plan, facts: Facts, platform: Platform) -> Factored:
    """The plan with the factors that pay at the estimates, and its facts; `plan` and `facts` themselves without any.
    Factors are of the pipeline as it was written, but for what is hoisted, so that with some it is rewritten once more.

    Strips of a domain's outermost variable, one a thread, where a stage has neither a dim nor a loop of an update for
    threads; within them, or alone, as many interleaved parts as a vector has lanes, where the terms lie along memory
    and the points do not; or tables of what is scattered by data, which neighbours along memory take in turn. Only for
    reductions that are long enough to be worth it.
    """
    pipeline = hoisted(plan.written)
    chosen = _Choice(pipeline, facts, platform, plan.schedule.strict)
    written = {s.name for s in pipeline.stages}
    for name in facts.graph.stages:
        if name in written and _is_candidate(facts.stages[name]):
            chosen.consider(name)
    if not chosen.factors:
        return Factored(plan, facts)
    strips = frozenset(f.partial for f in chosen.factors if not f.interleaved)
    partial = frozenset(f.partial for f in chosen.factors)
    plan = with_factors(plan, tuple(chosen.factors))
    return Factored(plan, gather(plan.pipeline, partial, strips, line_bytes=facts.line_bytes, core=facts.core))


def _is_candidate(stage: StageFacts) -> bool:
    return bool(stage.updates) or stage.arithmetic >= PARAMS.rfactor_least_operations


def _spans(read: Read) -> Sequence[tuple[Span, ...]]:
    """The spans of a read, of each way that its accesses go."""
    return [spans for spans, _ in read.several] or [read.spans]


def _others(stage: StageFacts, followed: Set[str | None]) -> int:
    """The points of a stage that read the same, where that follows these dims."""
    return prod(stage.extent(d) for d in stage.dims if d not in followed)


@dataclass
class _Target:
    """One reduction, and all it costs at the estimates, in operations."""

    number: int
    definition: Reduce | Update
    work: float


class _Choice:
    """Factors as they are chosen, one after the other; `pipeline` has them applied."""

    def __init__(self, pipeline: Pipeline, facts: Facts, platform: Platform, strict: bool) -> None:
        self.pipeline, self.facts, self.platform, self.strict = pipeline, facts, platform, strict
        self.factors: list[Factor] = []

    def consider(self, name: str) -> None:
        stage, facts = self._definition(name), self.facts.stages[name]
        threads = not self._has_threads(facts)
        lanes = 0 if self._has_vectors(facts) else self.platform.vector_bytes // facts.computed_bytes
        for target in self._targets(stage, facts):
            tables = self._tables(stage, facts, target)
            long = (threads or lanes >= 2) and target.work >= self.facts.core.balance.fork_operations
            if not (long or tables) or not self._may_be_cut(stage, target.definition):
                continue
            within = stage.name
            if threads and long:
                strip = self._strip(facts, target)
                within = strip or within
            if tables:
                self._tabulate(within, facts, target, tables)
            elif lanes >= 2 and long:
                self._interleave(within, facts, target, lanes)
            return  # the stage has other reductions now, and other numbers

    def _definition(self, name: str) -> Stage:
        return next(s for s in self.pipeline.stages if s.name == name)

    def _has_threads(self, stage: StageFacts) -> bool:
        """True if threads have a dim of the stage to share, or every update of it a loop."""
        if any(stage.extent(d) >= self.platform.threads for d in stage.pure):
            return True
        loops = update_loops(self.facts, stage.name, stage.computed_bytes, self.platform, self.strict, threads=True)
        return bool(loops) and all(u.parallel is not None for u in loops)

    def _has_vectors(self, stage: StageFacts) -> bool:
        """True if points that are neighbours in memory read neighbours: not those of other lines, as row after row of a
        flat array. What is read less than once for a vector of what the terms read, as a bias is, decides nothing; but
        where lines of these are read for as many points as a vector has, copies of them compete."""
        lanes = self.platform.vector_bytes // stage.computed_bytes
        if not stage.storage or stage.extent(stage.storage[0]) < lanes:
            return False
        fastest, read = stage.storage[0], sum(r.executed for r in stage.reads)
        often = [r for r in stage.reads if r.executed * lanes >= read]
        followed = [{s.var for s in spans} for r in often for spans in _spans(r)]
        once = all(_others(stage, by) < lanes for by in followed if fastest in by)
        ways = [w for r in (often if once else stage.reads) for w in self._along_lines(r)]
        along = [None if span is None else span.var for span, _ in ways]
        apart = (span.rate * size for span, size in ways if span is not None and span.var == fastest)
        if any(abs(float(bytes_)) > self.facts.line_bytes for bytes_ in apart):
            return False
        return not along or fastest in along or all(v is not None for v in along)

    def _along_lines(self, read: Read) -> list[tuple[Span | None, int]]:
        """The spans of a read's fastest dim in memory, of each way that its accesses go, with its bytes a point."""
        producer = self.facts.stages[read.producer]
        if not producer.storage:
            return [(None, producer.bytes_per_point)]
        if read.beside is not None and read.beside.of == producer.storage[0] and read.beside.step == 1:
            return [(variable(read.beside.dim), producer.bytes_per_point)]
        n = producer.dims.index(producer.storage[0])
        return [(spans[n], producer.bytes_per_point) for spans in _spans(read)]

    def _targets(self, stage: Stage, facts: StageFacts) -> Iterable[_Target]:
        """The stage's reductions, in the numbers of `Factor`. Those of a value are each charged all of it."""
        at = self.facts.estimates
        for number, definition in enumerate(reductions(stage)):
            terms = prod(at.trips(r) for r in definition.domain)
            if isinstance(definition, Reduce):
                work = max(terms, facts.arithmetic) * facts.root_points
                yield _Target(number, definition, work)
            else:
                free = prod(facts.extent(d) for d, e in zip(stage.dims, definition.at, strict=True) if e == Var(d))
                yield _Target(number, definition, float(terms * free))

    def _may_be_cut(self, stage: Stage, definition: Reduce | Update) -> bool:
        if not definition.domain:
            return False  # a change of every point in place
        if isinstance(definition, Update):
            floats = any(v.type.is_float for v in definition.values)
            return combination(stage, definition) is not None and not (self.strict and floats)
        return definition.op in PARTS_OF and not (self.strict and definition.type.is_float)

    def _strip(self, facts: StageFacts, target: _Target) -> str | None:
        """Cuts the outermost variable that is long enough, one part a thread; the name of the partial stage."""
        parts = self.platform.threads
        domain = target.definition.domain
        outermost_first = domain if isinstance(target.definition, Reduce) else domain[::-1]
        if target.work < PARAMS.rfactor_work_share * parts * facts.root_points:
            return None
        for r in outermost_first:
            if self.facts.estimates.trips(r) >= 2 * parts:
                return self._cut(facts.name, target.number, r.name, parts, False)
        return None

    def _interleave(self, name: str, facts: StageFacts, target: _Target, lanes: int) -> None:
        """Cuts the variable that runs along memory into as many parts as a vector has lanes."""
        definition = self._definition(name)
        found = reductions(definition)
        number = target.number if name == facts.name else 0
        if number >= len(found):
            return
        reduction = found[number]
        if isinstance(reduction, Update) and any(
            not (isinstance(e, Var) and e.name in definition.dims) for e in reduction.at
        ):
            return  # what is scattered has no lanes
        r = self._along_memory(reduction, lanes)
        if r is not None:
            row = min(WIDEST_BITS // UINT8.bits, self.platform.vector_bytes // FEWEST)
            parts = self.platform.vector_bytes // row if row > 1 else 0
            if parts and self._sums_neighbours(name, Factor(name, number, r.name, parts, "parts", True, row)):
                self._cut(name, number, r.name, parts, True, row)
            else:
                self._cut(name, number, r.name, lanes, True)

    def _tables(self, stage: Stage, facts: StageFacts, target: _Target) -> int:
        """The tables of an update that scatters by data (see `scatter_tables`); 0 of other reductions."""
        if not isinstance(target.definition, Update):
            return 0
        last = len(stage.updates) - stage.updates.index(target.definition)  # those before may be folded
        if last > len(facts.updates):
            return 0
        return tables_of(stage, target.definition, facts, facts.updates[-last], self.platform)

    def _tabulate(self, name: str, facts: StageFacts, target: _Target, tables: int) -> None:
        """Cuts the variable that runs along memory, so that neighbours write to one table each."""
        number = target.number if name == facts.name else 0
        reduction = reductions(self._definition(name))[number]
        r = self._along_memory(reduction, tables)
        if r is not None:
            self._cut(name, number, r.name, tables, True)

    def _sums_neighbours(self, name: str, factor: Factor) -> bool:
        """True if parts that take as many neighbours in a row sum them in the order of memory, whatever is inline."""
        partial = fresh(name, "parts", taken(self.pipeline))
        try:
            cut = factored(self.pipeline, (replace(factor, partial=partial),), self.strict)
        except IllegalSchedule:
            return False
        inline = {s.name: s for s in cut.stages if is_plain(s)}
        owners: tuple[Input | Stage, ...] = (*cut.inputs, *cut.stages)
        fastest = {o.name: o.dims.index(o.storage[0]) for o in owners if o.storage}
        return all(
            isinstance(e, Reduce)
            and summed_type(e) == UINT8
            and summed_variable(e, factor.variable, {}, fastest.get) is not None
            and summed_variable(e, factor.variable, inline, fastest.get) is not None
            for e in cut.stage(partial).values
        )

    def _along_memory(self, reduction: Reduce | Update, lanes: int) -> RVar | None:
        """The variable of the domain that most accesses' fastest index goes along, where it and the domain are long
        enough."""
        storages = {s.name: (s.dims, s.storage) for s in self.pipeline.stages}
        storages |= {i.name: (i.dims, i.storage) for i in self.pipeline.inputs}
        body = (reduction.body,) if isinstance(reduction, Reduce) else (*reduction.values, *reduction.at)
        own = reduction.at if isinstance(reduction, Update) else None
        counted = {r.name: 0 for r in reduction.domain}
        for access in (e for part in body for e in walk(part) if isinstance(e, Access) and e.indices != own):
            dims, storage = storages[access.name]
            if storage:
                fastest = access.indices[dims.index(storage[0])]
                for v in variables_of(fastest) & counted.keys():
                    counted[v] += 1
        best = max(reduction.domain, key=lambda r: counted[r.name])
        row, terms = (prod(map(self.facts.estimates.trips, of)) for of in ((best,), reduction.domain))
        long = row >= PARAMS.rfactor_rounds * lanes and terms >= PARAMS.rfactor_terms_per_lane * lanes
        return best if counted[best.name] and long else None

    def _cut(self, stage: str, number: int, variable: str, parts: int, interleaved: bool, row: int = 1) -> str | None:
        """Adds a factor, unless the pipeline cannot have it."""
        factor = Factor(stage, number, variable, parts, fresh(stage, "parts", taken(self.pipeline)), interleaved, row)
        try:
            cut = factored(self.pipeline, (factor,), self.strict)
        except IllegalSchedule:
            return None
        self.pipeline = cut
        self.factors.append(factor)
        return factor.partial
