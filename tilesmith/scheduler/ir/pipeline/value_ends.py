"""Bounds of the values of stages, for indices that are made of these: `table(bin(x, y))` reads what `bin` may be.

Of a stage with updates they are of all that is ever written. A stage that says a place, by arithmetic of its dims,
params and bounds alone, is put into the index instead: how far that goes depends on where it is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Select,
    Unary,
    Var,
    has_accesses,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.substitution import substituted
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.ir.pipeline.value_bounds import Interval, Leaf, hull, interval, leaf_interval, of_type

MOST_PARTS = 64
"""Parts of an expression that a place is put into an index with, at most."""
WHOLE_PARTS = frozenset(("ceil", "floor", "round", "trunc"))
"""Functions of floats that jump: values that hardly differ have others there."""
_OF_PLACES = ("abs", "absd", "ceil", "clamp", "floor", "max", "min", "mux", "round", "sqrt", "trunc")


def is_whole_part(e: Expr) -> bool:
    """True of the whole part of a float, as a float: `floor(a)`, `float32(int32(a))` and the like."""
    match e:
        case Call():
            return e.function in WHOLE_PARTS
        case Cast(operand=Cast(operand=place) as cut):
            return e.type.is_float and cut.type.is_integer and place.type.is_float
    return False


class ValueEnds:
    """Known bounds of the values of stages, each found when it is first asked for; producers come first."""

    def __init__(self, stages: Iterable[Stage] = ()) -> None:
        self.stages: dict[str, Stage] = {s.name: s for s in stages}
        self._ends: dict[str, tuple[Interval, ...]] = {}
        self._places: dict[str, tuple[Expr, ...] | None] = {}

    def add(self, stage: Stage) -> None:
        """Takes in the next stage."""
        self.stages[stage.name] = stage

    def of(self, name: str, component: int) -> Interval | None:
        """The interval of a component of a stage, with numbers as ends or none; None where it is no stage."""
        if name not in self.stages:
            return None
        pending = [] if name in self._ends else [name]
        while pending:
            stage = self.stages[pending[-1]]
            missing = [p for p in _read(stage) if p in self.stages and p not in self._ends and p != stage.name]
            if missing:
                pending += missing
                continue
            if pending.pop() not in self._ends:
                self._ends[stage.name] = self._found(stage)
        return self._ends[name][component]

    def _found(self, stage: Stage) -> tuple[Interval, ...]:
        own = tuple(_numbers(interval(v, self._leaf)) for v in stage.values)
        if stage.boundary is not None and stage.boundary.value is not None:
            beyond = interval(stage.boundary.value)
            own = tuple(hull((i, beyond)) for i in own)
        whole = tuple(of_type(t) for t in stage.types)
        if not stage.updates:
            return own

        def written(guess: tuple[Interval, ...]) -> tuple[Interval, ...]:
            return self._written(stage, own, guess)

        once, clamped = written(own), written(whole)
        # an end that one round of updates leaves stays, as a rule; one that it moves, updates clamp it or nothing does
        settled = tuple(
            Interval(a.lo if a.lo == b.lo else c.lo, a.hi if a.hi == b.hi else c.hi)
            for a, b, c in zip(own, once, clamped, strict=True)
        )
        return next((guess for guess in (settled, clamped) if written(guess) == guess), whole)

    def _written(self, stage: Stage, own: tuple[Interval, ...], guess: tuple[Interval, ...]) -> tuple[Interval, ...]:
        """Bounds of all values that are written: the initial ones (`own`), and those that updates make of values within
        a guess."""

        def leaf(node: Leaf) -> Interval:
            if isinstance(node, Access) and node.name == stage.name:
                return guess[node.component]
            return self._leaf(node)

        found = list(own)
        for update in stage.updates:
            for k, value in enumerate(update.values):
                found[k] = _numbers(hull((found[k], interval(value, leaf))))
        return tuple(found)

    def _leaf(self, leaf: Leaf) -> Interval:
        found = self._ends.get(leaf.name) if isinstance(leaf, Access) else None
        return leaf_interval(leaf) if found is None or not isinstance(leaf, Access) else found[leaf.component]

    def at_run_time(self, name: str) -> bool:
        """True of a stage whose values have bounds, but not numbers: a call says what they are."""
        stage = self.stages.get(name)
        if stage is None or stage.updates or self.of(name, 0) is None:
            return False
        return all(interval(v, self._leaf).bounded for v in stage.values)

    def place(self, name: str) -> tuple[Expr, ...] | None:
        """The values of a stage that is made of its dims and of what a call is given, and says places."""
        if name not in self._places:
            pending = [name]
            while pending:
                stage = self.stages[pending[-1]]
                missing = [p for p in _read(stage) if p not in self._places and p in self.stages]
                if missing and _may_say_places(stage):
                    pending += missing
                    continue
                self._places[pending.pop()] = self._inlined(stage) if _may_say_places(stage) else None
        return self._places[name]

    def _inlined(self, stage: Stage) -> tuple[Expr, ...] | None:
        if any(self._places.get(p) is None for p in _read(stage)):
            return None
        found = tuple(self._with_places(v) for v in stage.values)
        return found if all(sum(1 for _ in walk(v)) <= MOST_PARTS for v in found) else None

    def _with_places(self, e: Expr) -> Expr:
        e = map_children(e, self._with_places)
        place = self._places.get(e.name) if isinstance(e, Access) else None
        if place is None or not isinstance(e, Access):
            return e
        return substituted(place[e.component], dict(zip(self.stages[e.name].dims, e.indices, strict=True)))

    def index(self, e: Expr) -> Expr:
        """An index with what is known of the values in it: places are put in, others have their ends."""
        if not has_accesses(e):
            return e
        return self._index(e)

    def _index(self, e: Expr) -> Expr:
        e = map_children(e, self._index)
        if not isinstance(e, Access) or e.ends is not None:
            return _widened(e)
        ends = self.of(e.name, e.component)
        if ends is None:
            return e
        if ends.numeric is None and self.place(e.name) is not None:
            return self._with_places(e)
        if ends == leaf_interval(e) or (ends.lo is None and ends.hi is None):
            return e
        return Access(e.name, e.indices, e.component, e.type, (_number(ends.lo), _number(ends.hi)))

    def indices(self, e: Expr) -> Expr:
        """An expression with that in the indices of everything that it reads."""
        if isinstance(e, Access):
            return map_children(e, lambda i: self.index(self.indices(i)))
        return map_children(e, self.indices)

    def whole_parts(self, e: Expr) -> Expr:
        """An expression with the places that are part of indices put in wherever their whole part is taken. That has to
        be of the same floats, rounded alike: a weight that is a place less its floor is of the point that is read."""
        e = map_children(e, self.whole_parts)
        is_cut = isinstance(e, Cast) and e.type.is_integer and e.operand.type.is_float
        if is_cut or (isinstance(e, Call) and e.function in WHOLE_PARTS):
            return map_children(e, self._with_places)
        return e


def _widened(e: Expr) -> Expr:
    """A sum of short integers that is an index, as a sum of indices, where it does not wrap: those that differ by a
    constant are neighbours."""
    match e:
        case Cast(operand=Binary(op="+" | "-" as op, left=a, right=b) as total) if e.type == INT32:
            if total.type.is_integer and total.type.bits < INT32.bits:
                wide = Binary(op, _as_index(a), _as_index(b), INT32)
                ends = interval(wide).numeric
                if ends is not None and total.type.min <= ends[0] and ends[1] <= total.type.max:
                    return wide
    return e


def _as_index(e: Expr) -> Expr:
    return Const(e.value, INT32) if isinstance(e, Const) else _widened(Cast(e, INT32))


def _numbers(i: Interval) -> Interval:
    """Ends that are known without a call."""
    return Interval(_number(i.lo), _number(i.hi))


def _number(end: object) -> int | float | None:
    return end if isinstance(end, int | float) else None


@once
def _read(stage: Stage) -> list[str]:
    """The names of what the values of a stage are made of, each once."""
    values = [*stage.values, *(v for u in stage.updates for v in u.values)]
    return list(dict.fromkeys(n.name for v in values for n in walk(v) if isinstance(n, Access)))


def _may_say_places(stage: Stage) -> bool:
    if stage.updates or stage.boundary is not None or not stage.dims:
        return False
    return all(_says_place(n) for v in stage.values for n in walk(v))


def _says_place(e: Expr) -> bool:
    if isinstance(e, Call):
        return e.function in _OF_PLACES
    return isinstance(e, Access | Binary | Cast | Const | InputBound | ParamRef | Select | Unary | Var)
