"""Tabulation of weights: what a reduction or an update computes of few of its loops, and of no data, becomes a stage of
its own: loop-invariant code motion, with a table for the values.

    f(x) = sum(a(x + i) * exp(-float32(i * i)) for i in range(-99, 100))
      ->
    f_weights(i) = exp(-float32(i * i)); f(x) = sum(a(x + i) * f_weights(i) for i in range(-99, 100))

A term is computed for each vector of points, and so are its weights, although all points have the same. A stage is
computed where its schedule says: once, as a rule, or inline, where it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import IntEnum
from functools import reduce
from math import prod

from tilesmith.records import record
from tilesmith.scheduler.analysis.dependence import free_dims
from tilesmith.scheduler.analysis.stage_graph import parts, reads
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Reduce,
    RVar,
    Var,
    children,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.substitution import substituted
from tilesmith.scheduler.ir.pipeline.types import BOOL
from tilesmith.scheduler.rewrites.fold_updates import SHORT_REDUCTION
from tilesmith.scheduler.rewrites.names import fresh, taken

MOST_DIMS = 5
"""Dims of a table, at most: no stage has more."""
MOST_POINTS = 1 << 16
"""Points of a table along loops of constant extent, at most."""
_POLYNOMIALS = frozenset(
    ("acos", "asin", "atan", "atan2", "cos", "exp", "log", "pow", "random", "sin", "tan", "tanh")
)  # fmt: skip


class Work(IntEnum):
    """The most that an expression takes, of what differs along all of its loops."""

    LITTLE = 0
    DIVISION = 1
    """A division or a square root: several times a product."""
    POLYNOMIAL = 2
    """A function: several times a division."""
    LOOP = 3
    """A reduction."""


def tabulated(pipeline: Pipeline, strict: bool = False) -> Pipeline:
    """*Before*: boundaries are arithmetic; updates are folded. *After*: of what is computed in reductions and updates,
    parts that read no data, depend on some of the loops around them only, and take a division, a function or a
    reduction are stages, each right before the first that reads it; so are functions in a value that depend on its
    place in a row only. They have the loops as dims, at most one of which is longer than constants say. Factors of
    a product that depend on the same loops are one table if not `strict`, whatever stands between them; all else has
    the same values, bit for bit. *Ignores* indices; conditions themselves; what compilers fold, as reductions that are
    written out have nothing but literals there; and stages that read no data, which are tables already. Again, this
    changes nothing."""
    tabulation = _Tabulation(pipeline, strict)
    stages = [new for s in pipeline.stages for new in tabulation.stage(s)]
    return replace(pipeline, stages=tuple(stages)) if tabulation.tables else pipeline


@record(frozen=True, slots=True)
class _Part:
    """An expression: the variables that it depends on; whether it reads data, or else what is known at the call only;
    what it takes; and whether there is a part in it that could be a table."""

    free: frozenset[str]
    data: bool
    literal: bool
    work: Work
    worth: bool


@record(frozen=True, slots=True, eq=False)
class _Scope:
    """The loops around an expression, by name with their extents (None: not constant), those of the stage first, the
    innermost of reductions next; those of reductions, and of reductions that are written out; and the stage's row."""

    loops: Mapping[str, int | None]
    reduced: frozenset[str]
    written: frozenset[str]
    row: str | None
    known: dict[int, Expr] = field(default_factory=dict)
    """Parts in it as they are rewritten, by identity."""

    def inside(self, domain: tuple[RVar, ...]) -> _Scope:
        """The scope of a reduction."""
        own = {r.name: _trips(r) for r in reversed(domain)}
        names = frozenset(own)
        stages = {n: k for n, k in self.loops.items() if n not in self.reduced}
        around = {n: k for n, k in self.loops.items() if n in self.reduced and n not in names}
        written = self.written - names | (names if is_short(domain) else frozenset())
        return _Scope({**stages, **own, **around}, self.reduced | names, written, self.row)


class _Tabulation:
    """The stages of a pipeline one by one, producers first. `tables` are those that were made, by what they compute."""

    def __init__(self, pipeline: Pipeline, strict: bool) -> None:
        self.strict = strict
        self.tables: dict[tuple[Expr, int], Stage] = {}
        self._names = taken(pipeline)
        self._fixed: set[str] = set()

    def stage(self, stage: Stage) -> Iterator[Stage]:
        """The tables that are made for a stage, and the stage with these read."""
        if reads(stage) <= self._fixed and not stage.updates and stage.boundary is None:
            self._fixed.add(stage.name)
            yield stage
        elif not _may_have_weights(stage):
            yield stage
        else:
            before = len(self.tables)
            found = _Tabulating(self, stage).run()
            yield from [*self.tables.values()][before:]
            yield found

    def is_data(self, name: str) -> bool:
        """True if an input or stage of that name has data, or may have."""
        return name not in self._fixed

    def read(self, e: Expr, dims: tuple[str, ...], stage: Stage) -> Expr:
        """The read, in a stage, of the table of `e`, which depends on `dims`."""
        places: dict[str, Expr] = {d: Var(f"{n}.place") for n, d in enumerate(dims)}
        key = substituted(e, places), len(dims)
        if key not in self.tables:
            name = fresh(stage.name, "weights", self._names)
            self._names.add(name)
            self._fixed.add(name)
            self.tables[key] = Stage(name, dims, (e,), (), None, dims)
        return Access(self.tables[key].name, tuple(map(Var, dims)), 0, e.type)


class _Tabulating:
    """The expressions of one stage. Parts are known by identity, of what is `_alive`."""

    def __init__(self, tabulation: _Tabulation, stage: Stage) -> None:
        self._tabulation, self._stage = tabulation, stage
        self._parts: dict[int, _Part] = {}
        self._alive: list[Expr] = []

    def run(self) -> Stage:
        stage = self._stage
        row = stage.storage[0] if stage.storage else None
        loops: dict[str, int | None] = dict.fromkeys(stage.dims)
        scope = _Scope(loops, frozenset(), frozenset(), row)
        values = tuple(self._of(v, scope) for v in stage.values)
        updates = tuple(map(self._update, stage.updates))
        same = all(a is b for a, b in zip((*values, *updates), (*stage.values, *stage.updates), strict=True))
        return stage if same else replace(stage, values=values, updates=updates)

    def _update(self, update: Update) -> Update:
        loops: dict[str, int | None] = dict.fromkeys(free_dims(self._stage, update))
        own = {r.name: _trips(r) for r in update.domain}
        scope = _Scope({**loops, **own}, frozenset(own), frozenset(), None)
        values = tuple(self._of(v, scope) for v in update.values)
        where = None if update.where is None else self._of(update.where, scope)
        same = where is update.where and all(a is b for a, b in zip(values, update.values, strict=True))
        return update if same else replace(update, values=values, where=where)

    def _of(self, e: Expr, scope: _Scope) -> Expr:
        """A whole expression, with its tables read."""
        self._look_at(e)
        return self._rewritten(e, scope)

    def _look_at(self, e: Expr) -> _Part:
        self._alive.append(e)
        for node in reversed(list(walk(e))):
            if id(node) not in self._parts:
                self._parts[id(node)] = self._part(node)
        return self._parts[id(e)]

    def _rewritten(self, e: Expr, scope: _Scope) -> Expr:
        part = self._parts[id(e)]
        if not part.worth:
            return e
        if id(e) not in scope.known:
            scope.known[id(e)] = self._rewritten_once(e, part, scope)
        return scope.known[id(e)]

    def _rewritten_once(self, e: Expr, part: _Part, scope: _Scope) -> Expr:
        if _is_table(e, part, scope):
            dims = tuple(d for d in scope.loops if d in part.free)
            return self._tabulation.read(e, dims, self._stage)
        if not isinstance(e, Reduce):
            return map_children(e, lambda c: self._rewritten(c, scope))
        inside = scope.inside(e.domain)
        if e.body.type.is_float and not self._tabulation.strict:
            e = self._gathered(e, inside)
        return map_children(e, lambda c: self._rewritten(c, inside))

    def _gathered(self, e: Reduce, scope: _Scope) -> Reduce:
        """A reduction of products in which factors that a table can have together stand together, after all others."""
        factors = list(_factors(e.body))
        groups: list[tuple[frozenset[str], list[Expr]]] = []
        for f in factors:
            part = self._parts[id(f)]
            if part.data or not part.free:
                continue
            free, members = part.free, [f]
            for known in [g for g in groups if g[0] <= part.free or part.free <= g[0]]:
                groups.remove(known)
                free, members = free | known[0], [*known[1], *members]
            groups.append((free, members))
        products = [_product(members) for _, members in groups if len(members) > 1]
        tables = [p for p in products if _is_table(p, self._look_at(p), scope)]
        if not tables:
            return e
        inside = {id(f) for t in tables for f in _factors(t)}
        found = replace(e, body=_product([*(f for f in factors if id(f) not in inside), *tables]))
        self._look_at(found)
        return found

    def _part(self, e: Expr) -> _Part:
        parts = [self._parts[id(c)] for c in children(e)]
        free = frozenset(name for p in parts for name in p.free)
        data = any(p.data for p in parts)
        literal = all(p.literal for p in parts)
        worth = any(p.worth for p in parts)
        match e:
            case Var(name=name):
                return _Part(frozenset((name,)), False, True, Work.LITTLE, False)
            case Access():
                return _Part(free, data or self._tabulation.is_data(e.name), False, Work.LITTLE, False)
            case Reduce():
                free -= {r.name for r in e.domain}
                short = is_short(e.domain)
                work = Work.LOOP if worth or not short else Work.LITTLE
                return _Part(free, data, literal and short, work, worth or (work > 0 and not data))
        own = work_of(e) if free else Work.LITTLE
        work = max([own, *(p.work for p in parts if p.free == free)])
        return _Part(free, data, literal and not isinstance(e, ParamRef | InputBound), work, worth or own > 0)


def _is_table(e: Expr, part: _Part, scope: _Scope) -> bool:
    """True if a part is the same for the iterations of a loop, and worth to be kept for these."""
    if part.data or part.work == Work.LITTLE or e.type == BOOL or part.free == scope.loops.keys():
        return False
    if part.literal and part.free <= scope.written:
        return False
    if part.free.isdisjoint(scope.reduced):  # what does not move along a row is computed before it
        in_row = part.free == {scope.row} and part.work == Work.POLYNOMIAL
        if not in_row and part.work != Work.LOOP:
            return False
    extents = [scope.loops[name] for name in sorted(part.free)]
    constant = [n for n in extents if n is not None]
    return len(extents) <= min(len(constant) + 1, MOST_DIMS) and prod(constant) <= MOST_POINTS


def _factors(e: Expr) -> Iterator[Expr]:
    """The factors of a product, left to right."""
    if isinstance(e, Binary) and e.op == "*":
        yield from _factors(e.left)
        yield from _factors(e.right)
    else:
        yield e


def _product(factors: Iterable[Expr]) -> Expr:
    return reduce(lambda a, b: Binary("*", a, b, a.type), factors)


def work_of(e: Expr) -> Work:
    """The work of an operation by itself."""
    match e:
        case Call(function="sqrt"):
            return Work.DIVISION
        case Call() if e.function in _POLYNOMIALS:
            return Work.POLYNOMIAL
        case Binary(op="**") if e.type.is_float and not isinstance(e.right, Const):
            return Work.POLYNOMIAL
        case Binary(op="/" | "//" | "%") if not isinstance(e.right, Const):
            return Work.DIVISION
    return Work.LITTLE


@once
def _may_have_weights(stage: Stage) -> bool:
    """A quick look: there are loops around something that takes time."""
    reduces = bool(parts(stage, Reduce))
    loops = bool(stage.updates) or len(stage.dims) > 1 or reduces
    return loops and (reduces or any(work_of(e) for kind in (Call, Binary) for e in parts(stage, kind)))


def _trips(r: RVar) -> int | None:
    """Iterations, where they are constant."""
    return int(r.extent.value) if isinstance(r.lo, Const) and isinstance(r.extent, Const) else None


def is_short(domain: tuple[RVar, ...]) -> bool:
    """True if the terms of a reduction are written out, with numbers for its variables."""
    extents = [_trips(r) for r in domain]
    return None not in extents and prod(n for n in extents if n is not None) <= SHORT_REDUCTION
