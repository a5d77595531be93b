"""Scan specialisation: scans over a few levels become a stage a level: each is pure, and may be inlined, slid, or kept
in registers.

Of `f(x, r, t) = max(f(x, r, t - 1), f(x, r + 2, t - 1))` over rows r and levels t, level 3 is a function of level 2
like any other, if who reads f says which level. A schedule of all of f has to fill whole columns of all levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from tilesmith.scheduler.analysis.stage_graph import expressions, is_plain
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.constant_folding import fold, folded
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    Logical,
    ParamRef,
    Reduce,
    RVar,
    Select,
    Var,
    children,
    has_accesses,
    map_children,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.rewrites.fold_updates import REDUCTIONS, joined
from tilesmith.scheduler.rewrites.names import fresh, taken

MOST_LEVELS = 16
"""A scan has at most so many levels."""
MOST_STAGES = 64
"""Stages that a scan and its readers may become, at most."""
MOST_TERMS = 64
"""Reductions of at most so many terms are written out where each reads a level of its own."""
MOST_TERMS_IN_ALL = 2048
"""Terms, those of reductions inside of others included, that are written out for a scan, at most."""
BLOCK = 64
"""Neighbouring entries of a table that are evaluated at once."""
MOST_TABLE_TERMS = 4096
"""An element of a table adds up at most so many terms: it is evaluated while the pipeline is analysed."""

_JOINS = {reduce: op for op, reduce in REDUCTIONS.items()}


def specialised(pipeline: Pipeline, strict: bool = False) -> Pipeline:
    """*Before*: a pipeline without boundaries. *After*: where every reader of a scan reads levels that are known, a
    stage for each of these in its place, and for each that they are made of; readers whose own dim says the level
    become a stage for each value of it that is read. Levels are known where indices are made of numbers, of the
    variables of short reductions, and of tables (stages of one dim that are made of nothing but their place). The
    same values; floats are added up in the same order if `strict`. The pipeline itself where there is no such scan.

    A level is the update's value on the rows that the update runs through, the stage's own value elsewhere, so both
    are required of every row: inputs are read there by indices that are clamped to them, or not by the row at all.
    """
    for stage in pipeline.stages:
        scan = _scan(stage)
        if scan is not None and stage.name not in pipeline.outputs:
            try:
                pipeline = _Specialising(pipeline, scan, strict).run()
            except _Unknown:
                continue
    return pipeline


class _Unknown(Exception):
    """A level that is not known, or too many."""


@dataclass(frozen=True, slots=True)
class _Scan:
    """`stage` whose update goes from level to level, `level`, of its dim `dim`; `rows` are the other variables of the
    update by the dims that they run through."""

    stage: Stage
    dim: str
    level: RVar
    rows: dict[str, RVar]

    @property
    def levels(self) -> range:
        assert isinstance(self.level.lo, Const)
        assert isinstance(self.level.extent, Const)
        lo = int(self.level.lo.value)
        return range(lo, lo + int(self.level.extent.value))


@once
def _scan(stage: Stage) -> _Scan | None:
    """`stage` as a scan: None where it is none, or its levels would require more of the inputs than it does."""
    if len(stage.updates) != 1 or not stage.updates[0].domain:
        return None
    update = stage.updates[0]
    level = update.domain[-1]
    if not (isinstance(level.lo, Const) and isinstance(level.extent, Const)):
        return None
    places = [e.name if isinstance(e, Var) else None for e in update.at]
    runs = {r.name: r for r in update.domain}
    rows = {d: runs[p] for d, p in zip(stage.dims, places, strict=True) if p in runs}
    kept = all(p == d for d, p in zip(stage.dims, places, strict=True) if p not in runs)
    if not kept or sorted(r.name for r in rows.values()) != sorted(runs):
        return None
    dim = next(d for d, r in rows.items() if r is level)
    del rows[dim]
    ends = (end for r in rows.values() for end in (r.lo, r.extent))
    if any(isinstance(e, Var | Access | Reduce) for end in ends for e in walk(end)):
        return None
    if not rows or int(level.extent.value) > MOST_LEVELS:
        return None  # without rows all levels of a tile can be filled in it
    found = _Scan(stage, dim, level, rows)
    return found if _requires_no_more(found, update) else None


def _requires_no_more(scan: _Scan, update: Update) -> bool:
    """True if what is read by rows is clamped, and no row is data."""
    stage = scan.stage
    moving = {scan.dim, *scan.rows, *(r.name for r in update.domain)}
    for e in (n for part in expressions(stage) for n in walk(part)):
        if isinstance(e, Reduce):
            return False
        if isinstance(e, Access) and e.name == stage.name:
            if any(map(has_accesses, e.indices)):
                return False
        elif isinstance(e, Access) and any(
            not _clamped(i) for i in e.indices if any(isinstance(n, Var) and n.name in moving for n in walk(i))
        ):
            return False
    return True


def _clamped(index: Expr) -> bool:
    """True if an index is held in an input, as boundaries do."""
    return (
        isinstance(index, Call)
        and index.function == "clamp"
        and any(isinstance(e, InputBound) for e in walk(index.args[1]))
        and all(not isinstance(e, Var | Access) for end in index.args[1:] for e in walk(end))
    )


@dataclass
class _Specialising:
    """One scan of one pipeline; `dims` are those of it and of its readers that say the level."""

    pipeline: Pipeline
    scan: _Scan
    strict: bool
    dims: dict[str, str] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    versions: dict[tuple[str, int], str] = field(default_factory=dict)
    made: dict[str, list[Stage]] = field(default_factory=dict)
    terms: int = 0

    def run(self) -> Pipeline:
        """Raises _Unknown."""
        self.stages = {s.name: s for s in self.pipeline.stages}
        self.names = taken(self.pipeline)
        self.dims[self.scan.stage.name] = self.scan.dim
        readers = [s for s in self.pipeline.stages if s is not self.scan.stage and self._is_reader(s)]
        new = {s.name: self._version_of(s, {}) for s in readers if s.name not in self.dims}
        stages = [n for s in self.pipeline.stages for n in (self.made.get(s.name, ()) if s.name in self.dims else (s,))]
        stages = [new.get(s.name, s) for s in stages]
        gone = self.stages.keys() - {s.name for s in stages}
        estimates = tuple(e for e in self.pipeline.estimates if e[0] not in gone)
        return replace(self.pipeline, stages=tuple(stages), estimates=estimates)

    def _is_reader(self, stage: Stage) -> bool:
        """True if `stage` reads levels; notes the dim of it that says which."""
        read = [
            e.indices[self._place(e)]
            for part in expressions(stage)
            for e in walk(part)
            if isinstance(e, Access) and e.name in self.dims
        ]
        said = variables_of(*read) & set(stage.dims)
        if read and (stage.updates or len(said) > 1 or (said and stage.name in self.pipeline.outputs)):
            raise _Unknown
        if said:
            self.dims[stage.name] = said.pop()
        return bool(read)

    def _place(self, e: Access) -> int:
        """The position of the level among the scan's indices."""
        return self.stages[e.name].dims.index(self.dims[e.name])

    def _name(self, name: str, at: int) -> str:
        """The stage that is `name` at a level; made where it is not there."""
        if (name, at) not in self.versions:
            stage = self.stages[name]
            if len(self.versions) == MOST_STAGES:
                raise _Unknown
            known = {self.dims[name]: Const(at, INT32)}
            level = self._level(at) if stage is self.scan.stage else self._version_of(stage, known)
            called = fresh(name, str(at).replace("-", "minus"), self.names)
            self.names.add(called)
            self.versions[name, at] = called
            dims, storage = (tuple(d for d in of if d != self.dims[name]) for of in (stage.dims, stage.storage))
            self.made.setdefault(name, []).append(
                replace(level, name=called, dims=dims, storage=storage, typed=False, made_of=name)
            )
        return self.versions[name, at]

    def _version_of(self, stage: Stage, known: dict[str, Const]) -> Stage:
        return replace(stage, values=tuple(self._written(v, dict(known)) for v in stage.values))

    def _level(self, at: int) -> Stage:
        """The scan at one level, of the levels before it."""
        scan, stage = self.scan, self.scan.stage
        own = self._version_of(stage, {scan.dim: Const(at, INT32)})
        if at not in scan.levels:
            return replace(own, updates=())
        update = stage.updates[0]
        here: dict[str, Expr] = {r.name: Var(d) for d, r in scan.rows.items()}
        here[scan.level.name] = Const(at, INT32)
        condition = None if update.where is None else self._written(update.where, here, at)
        for dim, r in scan.rows.items():
            last = Binary("-", Binary("+", r.lo, r.extent, INT32), Const(1, INT32), INT32)
            inside = Logical("and", Compare(">=", Var(dim), r.lo), Compare("<=", Var(dim), last))
            condition = inside if condition is None else Logical("and", condition, inside)
        values = [self._written(v, here, at) for v in update.values]
        if condition is not None:
            values = [Select(condition, new, old, new.type) for new, old in zip(values, own.values, strict=True)]
        return replace(own, values=tuple(values), updates=())

    def _written(self, e: Expr, known: dict[str, Expr], below: int | None = None) -> Expr:
        """`e` with what is `known` of its variables, with the levels that it reads in place of the scan, all `below`
        one where that is given, and with integers worked out as far as they are constant."""
        if isinstance(e, Var):
            return known.get(e.name, e)
        if isinstance(e, Reduce):
            known = {n: v for n, v in known.items() if all(n != r.name for r in e.domain)}
            return self._terms(e, known) if self._says_level(e) else map_children(e, lambda c: self._written(c, known))
        if not children(e):
            return e
        e = map_children(e, lambda c: self._written(c, known, below))
        if isinstance(e, Cast):
            return folded(e)
        if not isinstance(e, Access):
            return fold(e) if all(isinstance(part, Const) for part in children(e)) else e
        if e.name not in self.dims:
            return self._from_table(e)
        level = e.indices[self._place(e)]
        if not isinstance(level, Const) or (below is not None and int(level.value) >= below):
            raise _Unknown
        indices = tuple(i for n, i in enumerate(e.indices) if n != self._place(e))
        return Access(self._name(e.name, int(level.value)), indices, e.component, e.type, e.ends)

    def _says_level(self, e: Reduce) -> bool:
        """True if a variable of a reduction says which level a term reads."""
        names = {r.name for r in e.domain}
        read = (n.indices[self._place(n)] for n in walk(e.body) if isinstance(n, Access) and n.name in self.dims)
        return any(isinstance(v, Var) and v.name in names for index in read for v in walk(index))

    def _terms(self, e: Reduce, known: dict[str, Expr]) -> Expr:
        """A reduction written out."""
        ranges = [_range(r) for r in e.domain]
        if e.op not in _JOINS or e.where is not None or not 0 < prod(map(len, ranges)) <= MOST_TERMS:
            raise _Unknown
        self.terms += prod(map(len, ranges))
        if self.terms > MOST_TERMS_IN_ALL:
            raise _Unknown
        terms = [
            self._written(e.body, known | {r.name: Const(n, INT32) for r, n in zip(e.domain, point, strict=True)})
            for point in product(*ranges)
        ]
        if self.strict and e.type.is_float:
            terms.insert(0, Const(semantics.identity(e.op, e.type).item(), e.type))
            return _in_order(_JOINS[e.op], terms)
        return _by_halves(_JOINS[e.op], terms)

    def _from_table(self, e: Access) -> Expr:
        """An element of a table of integers, where its place is known."""
        if e.name not in self.stages or not all(isinstance(i, Const) for i in e.indices) or not e.type.is_integer:
            return e
        table = self.stages[e.name]
        found = _table(table)
        if found is None or not isinstance(e.indices[0], Const):
            return e
        return Const(found.at(int(e.indices[0].value)), e.type)


def _range(r: RVar) -> range:
    if not (isinstance(r.lo, Const) and isinstance(r.extent, Const)):
        raise _Unknown
    return range(int(r.lo.value), int(r.lo.value) + int(r.extent.value))


def _in_order(op: str, terms: list[Expr]) -> Expr:
    whole = terms[0]
    for term in terms[1:]:
        whole = joined(op, whole, term)
    return whole


def _by_halves(op: str, terms: list[Expr]) -> Expr:
    """Joined so that no join waits for many."""
    half = len(terms) // 2
    return joined(op, _by_halves(op, terms[:half]), _by_halves(op, terms[half:])) if half else terms[0]


class _Table:
    """Elements of a stage of one dim that is made of nothing but its place."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.blocks: dict[int, list[int]] = {}

    def at(self, place: int) -> int:
        block = place // BLOCK
        if block not in self.blocks:
            name = self.stage.name
            alone = Pipeline("", "", (), (), (self.stage,), (name,), ())
            (values,) = interpret(alone, {}, {}, {name: ((block * BLOCK, BLOCK),)})[name]
            self.blocks[block] = values.tolist()
        return self.blocks[block][place % BLOCK]


@once
def _table(stage: Stage) -> _Table | None:
    if len(stage.dims) != 1 or not is_plain(stage) or any(map(_is_told, _parts(stage))):
        return None
    try:
        short = sum(map(_terms_of, stage.values)) <= MOST_TABLE_TERMS
    except _Unknown:
        return None
    return _Table(stage) if short else None


def _terms_of(e: Expr) -> int:
    """Number of terms that the reductions in an expression add up, those of one inside of another for each of its
    terms. Raises _Unknown."""
    inner = sum(map(_terms_of, children(e)))
    return prod(len(_range(r)) for r in e.domain) * (1 + inner) if isinstance(e, Reduce) else inner


def _parts(stage: Stage) -> Iterator[Expr]:
    return (e for value in stage.values for e in walk(value))


def _is_told(e: Expr) -> bool:
    """True if an expression is known at the call only."""
    return isinstance(e, Access | ParamRef | InputBound) or (isinstance(e, Call) and e.function == "random")
