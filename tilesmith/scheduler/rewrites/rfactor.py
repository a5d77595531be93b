"""rfactor, as in Halide: reductions cut into partial results, which can be computed side by side, by a rewrite of the
pipeline. What follows is a pipeline like any other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from tilesmith.scheduler.analysis.dependence import combination
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.ir.pipeline import semantics
from tilesmith.scheduler.ir.pipeline.constant_folding import fold
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    BinaryOp,
    Call,
    Compare,
    Const,
    Expr,
    Logical,
    Reduce,
    RVar,
    Unary,
    Var,
    map_children,
    reduction_loops_of,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.substitution import substituted
from tilesmith.scheduler.ir.pipeline.types import INT32, ScalarType
from tilesmith.scheduler.ir.schedule.schedule import Factor
from tilesmith.scheduler.rewrites.fold_updates import REDUCTIONS, joined, reduction_of
from tilesmith.scheduler.rewrites.names import problem, taken

MOST_PARTS: Final = 1 << 16
_JOINS: Final = {reduce: op for op, reduce in REDUCTIONS.items()}


def reductions(stage: Stage) -> tuple[Reduce | Update, ...]:
    """The reductions that `Factor.reduction` numbers: the different inline reductions of the values, outer ones first
    and left to right (the components of an argmin are one), then the updates."""
    found: dict[tuple[object, ...], Reduce] = {}
    for value in stage.values:
        for e in walk(value):
            if isinstance(e, Reduce):
                found.setdefault((e.op, e.body, e.domain, e.where), e)
    return (*found.values(), *stage.updates)


def factored(pipeline: Pipeline, factors: Iterable[Factor], strict: bool = False) -> Pipeline:
    """`pipeline` with each factor's reduction cut into parts, one factor after the other; a later one may name the
    partial stage of an earlier one. Computes the same values, but that floats are joined in another order.

    A factor makes a stage of its parts, with one dim more, 0 .. parts - 1, which is pure: it can be vectorised or
    run by threads, as it may be in the fastest or the slowest place of memory. The stage itself joins the parts.

    - Of an inline reduction, and of an update f(x) = op(f(x), e) of every point, the partial stage is a value again:
      a reduction. It has only those dims of the stage that the terms depend on. If interleaved, it has whole rounds
      only; what is left of the terms the stage itself joins. Iterations in a row are an inner loop of it.
    - Of another associative update, such as a histogram, the partial stage is updated as the stage was. If interleaved,
      in whole rounds, and the stage itself in what is left of the iterations; parts lie one after the other in memory,
      each as a whole.

    Required regions do not grow, but where an index has the variable several times and is not linear in it. Raises
    IllegalSchedule, naming the factor and the rule: for what is not associative (argmin, most updates), for floats if
    `strict`, for a reduction inside of another whose variables it uses, for a variable that has fewer constant
    iterations than parts, for a name that is taken, and for too many dims.
    """
    for factor in factors:
        pipeline = _Factoring(pipeline, factor, strict).run()
    return pipeline


@dataclass(frozen=True, slots=True)
class _Cut:
    """A variable cut up: its value at the new dim and the variables `within` that are left of it; `guard` says where
    that is still in its range; `tail` are iterations that no part has."""

    place: Expr
    within: tuple[RVar, ...]
    guard: Expr | None = None
    tail: RVar | None = None


class _Factoring:
    """One factor of one pipeline."""

    def __init__(self, pipeline: Pipeline, factor: Factor, strict: bool) -> None:
        self.pipeline = pipeline
        self.factor = factor
        self.strict = strict
        self.dim = factor.variable

    def run(self) -> Pipeline:
        self._check_name()
        stage = next((s for s in self.pipeline.stages if s.name == self.factor.stage), None)
        if stage is None:
            raise self.refuse("there is no such stage")
        found = reductions(stage)
        number = self.factor.reduction
        if not 0 <= number < len(found):
            raise self.refuse(f"the stage has {len(found)} reductions")
        if not 2 <= self.factor.parts <= MOST_PARTS:
            raise self.refuse(f"{self.factor.parts} parts: it must be from 2 to {MOST_PARTS}")
        if self.factor.neighbours > 1 and not self.factor.interleaved:
            raise self.refuse("strips have all of their iterations in a row")
        target = found[number]
        self.within = self._fresh(stage)
        partial, merged = (
            self._value(stage, target) if isinstance(target, Reduce) else self._update(stage, number - len(found))
        )
        if len(partial.dims) > Limits().dims:
            raise self.refuse(f"the partial stage would have more than {Limits().dims} dims")
        stages = tuple(new for s in self.pipeline.stages for new in ((partial, merged) if s is stage else (s,)))
        return replace(self.pipeline, stages=stages)

    def refuse(self, rule: str) -> IllegalSchedule:
        f = self.factor
        return IllegalSchedule(f"factor '{f.partial}' of stage '{f.stage}' in '{f.variable}': {rule}")

    def _check_name(self) -> None:
        wrong = problem(self.factor.partial, taken(self.pipeline))
        if wrong is not None:
            raise self.refuse(wrong)

    def _fresh(self, stage: Stage) -> str:
        """A name for what is left of the variable, like no other that the stage has in scope."""
        parts = (*stage.values, *(e for u in stage.updates for e in (*u.at, *u.values, u.where) if e is not None))
        taken = variables_of(*parts) | reduction_loops_of(*parts) | {q.name for q in self.pipeline.params}
        taken |= {*stage.dims, *(r.name for u in stage.updates for r in u.domain)}
        number, base = 0, self.dim[:50]
        while any(f"{base}_{number}{end}" in taken for end in ("", "_near")):
            number += 1
        return f"{base}_{number}"

    # values ------------------------------------------------------------

    def _value(self, stage: Stage, target: Reduce) -> tuple[Stage, Stage]:
        partial, (whole,) = self._reduced(stage, (target,))

        def rewrite(e: Expr) -> Expr:
            return whole if isinstance(e, Reduce) and e == target else map_children(e, rewrite)

        return partial, replace(stage, values=tuple(rewrite(v) for v in stage.values))

    def _reduced(self, stage: Stage, targets: tuple[Reduce, ...]) -> tuple[Stage, tuple[Expr, ...]]:
        """The partial stage of reductions over one domain, a component each, and what stands in their place."""
        first = targets[0]
        if first.op not in _JOINS:
            raise self.refuse(f"the parts of {first.op} cannot be joined")
        self._check_floats(e.type for e in targets)
        r = self._variable(first.domain)
        used = variables_of(*(e for t in targets for e in (t.body, t.where) if e is not None))
        bound = reduction_loops_of(*targets)
        if used - bound - set(stage.dims):
            raise self.refuse("it is inside of another reduction, whose variables it uses")
        dims = tuple(d for d in stage.dims if d in used)
        cut = self._rounds(r) if self.factor.interleaved else self._guarded(r)
        values = tuple(self._over(t, cut.within, cut.place, cut.guard) for t in targets)
        partial = self._partial(stage, dims, values, ())
        whole: list[Expr] = []
        place = tuple(Var(d) for d in partial.dims)
        for k, t in enumerate(targets):
            part = Access(partial.name, place, k, t.type)
            total: Expr = Reduce(t.op, part, (self._parts(),), None, 0, t.type)
            if cut.tail is not None:
                total = joined(_JOINS[t.op], total, self._over(t, (cut.tail,), _within(Var(self.dim), r), None))
            whole.append(total)
        return partial, tuple(whole)

    def _over(self, target: Reduce, within: tuple[RVar, ...], place: Expr, guard: Expr | None) -> Reduce:
        """`target` with its variable at `place` as those `within` run, where `guard` holds."""
        domain = tuple(r for v in target.domain for r in (within if v.name == self.dim else (v,)))
        where = None if target.where is None else self._at(place, target.where)
        return replace(target, body=self._at(place, target.body), domain=domain, where=_both(guard, where))

    # updates ------------------------------------------------------------

    def _update(self, stage: Stage, number: int) -> tuple[Stage, Stage]:
        update = stage.updates[number]
        own = tuple(Var(d) for d in stage.dims)
        pointwise = reduction_of(stage, update)
        tail: tuple[Update, ...] = ()
        if pointwise is not None:
            op, targets = pointwise
            partial, parts = self._reduced(stage, targets)
            merge = Update((), None, own, self._merged(stage, op, parts))
        else:
            partial, op, tail = self._scattered(stage, update)
            reads = tuple(Access(partial.name, (*own, Var(self.dim)), k, t) for k, t in enumerate(stage.types))
            merge = Update((self._parts(),), None, own, self._merged(stage, op, reads))
        updates = tuple(new for u in stage.updates for new in ((merge, *tail) if u is update else (u,)))
        return partial, replace(stage, updates=updates)

    def _merged(self, stage: Stage, op: str, parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The values of the stage, joined with `parts`."""
        own = tuple(Var(d) for d in stage.dims)
        return tuple(joined(op, Access(stage.name, own, k, p.type), p) for k, p in enumerate(parts))

    def _scattered(self, stage: Stage, update: Update) -> tuple[Stage, str, tuple[Update, ...]]:
        """The partial stage of an update that writes here and there, the operation that joins the parts, and the update
        in the iterations that no part has, if there may be some."""
        found = combination(stage, update)
        if found is None:
            raise self.refuse("the update is not f(at) = op(f(at), e) with an operation that is associative")
        self._check_floats(stage.types)
        r = self._variable(update.domain)
        cut = self._rounds(r) if self.factor.interleaved else self._guarded(r)
        name = self.factor.partial
        at = (*(self._at(cut.place, e) for e in update.at), Var(self.dim))
        terms = [self._at(cut.place, t) for t in found.terms]
        values = tuple(joined(found.op, Access(name, at, k, t.type), t) for k, t in enumerate(terms))
        where = None if update.where is None else self._at(cut.place, update.where)
        domain = tuple(r for v in update.domain for r in (cut.within if v.name == self.dim else (v,)))
        starts = tuple(_start(found.op, t) for t in stage.types)
        partial = self._partial(stage, stage.dims, starts, (Update(domain, _both(cut.guard, where), at, values),))
        if cut.tail is None:
            return partial, found.op, ()
        left = tuple(cut.tail if v.name == self.dim else v for v in update.domain)
        return partial, found.op, (replace(update, domain=left),)

    # both ------------------------------------------------------------

    def _at(self, place: Expr, e: Expr) -> Expr:
        """`e` with its variable at `place`."""
        return substituted(_collected(e, Var(self.dim)), {self.dim: place})

    def _partial(
        self, stage: Stage, dims: tuple[str, ...], values: tuple[Expr, ...], updates: tuple[Update, ...]
    ) -> Stage:
        storage = tuple(d for d in stage.storage if d in dims)
        within = len(storage)  # the dims that are faster in memory than the parts
        if self.factor.interleaved:
            scattered = {d for u in updates for d, e in zip(dims, u.at, strict=False) if e != Var(d)}
            within = max((n for n, d in enumerate(storage, 1) if d in scattered), default=0)
        storage = (*storage[:within], self.dim, *storage[within:])
        return Stage(self.factor.partial, (*dims, self.dim), values, updates, None, storage)

    def _variable(self, domain: tuple[RVar, ...]) -> RVar:
        r = next((r for r in domain if r.name == self.dim), None)
        if r is None:
            raise self.refuse("its domain has no such variable")
        if isinstance(r.extent, Const) and int(r.extent.value) < self.factor.parts * self.factor.neighbours:
            raise self.refuse(f"{self.factor.parts} parts of {int(r.extent.value)} iterations")
        return r

    def _check_floats(self, types: Iterable[ScalarType]) -> None:
        if self.strict and any(t.is_float for t in types):
            raise self.refuse("floats are joined in the order written, as the schedule is strict")

    def _parts(self) -> RVar:
        return RVar(self.dim, Const(0, INT32), Const(self.factor.parts, INT32))

    def _guarded(self, r: RVar) -> _Cut:
        """Parts of one size, the last of them partly beyond the end: what is there is clamped, so that it may be
        read, and guarded, so that it is not counted."""
        parts = self.factor.parts
        size = _int("//", _int("+", r.extent, parts - 1), parts)
        part, k = Var(self.dim), Var(self.within)
        offset = (
            _int("+", _int("*", k, parts), part) if self.factor.interleaved else _int("+", _int("*", part, size), k)
        )
        within, place = RVar(self.within, Const(0, INT32), size), _int("+", r.lo, offset)
        if isinstance(r.extent, Const) and int(r.extent.value) % parts == 0:
            return _Cut(place, (within,))
        return _Cut(_within(place, r), (within,), Compare("<", offset, r.extent))

    def _rounds(self, r: RVar) -> _Cut:
        """Every part has a term of each whole round; the tail is less than one. Without guards, so that the parts
        can be vectors."""
        row = self.factor.neighbours
        round_ = self.factor.parts * row
        size = _call("max", r.extent, Const(0, INT32))
        rounds = _int("//", size, round_)
        covered = _int("*", rounds, round_)
        within: tuple[RVar, ...] = (RVar(self.within, Const(0, INT32), rounds),)
        part = _int("*", Var(self.dim), row)
        if row > 1:
            near = RVar(f"{self.within}_near", Const(0, INT32), Const(row, INT32))
            within, part = (*within, near), _int("+", part, Var(near.name))
        place = _int("+", r.lo, _int("+", _int("*", Var(self.within), round_), part))
        rest = _int("%", size, round_)
        none = isinstance(rest, Const) and rest.value == 0
        tail = None if none else RVar(self.dim, _int("+", r.lo, covered), rest)
        return _Cut(place, within, tail=tail)


def _collected(e: Expr, v: Var) -> Expr:
    """`e` with every int32 sum that has multiples of `v` in several places written as one multiple and the rest.
    Interval arithmetic takes each place for itself: the bounds of r - r are exact where r is a number, as it is when
    short updates are folded, but not of what a factor puts in for r."""
    if _mentions(e, v) < 2:
        return e
    k, rest = _apart(e, v)
    if _mentions(e, v) - _mentions(rest, v) < 2 or not INT32.min <= k <= INT32.max:
        return map_children(e, lambda part: _collected(part, v))
    rest = _collected(rest, v)
    return rest if k == 0 else _int("+", v if k == 1 else _int("*", v, k), rest)


def _mentions(e: Expr, v: Var) -> int:
    return sum(n == v for n in walk(e))


def _apart(e: Expr, v: Var) -> tuple[int, Expr]:
    """k and rest with e = k * v + rest, exactly, and so if it wraps. All else stays in the rest, even what cancels: it
    may be read from a stage."""
    if e.type == INT32:
        match e:
            case Var() if e == v:
                return 1, Const(0, INT32)
            case Unary(op="-"):
                k, rest = _apart(e.operand, v)
                return -k, _int("-", Const(0, INT32), rest)
            case Binary(op=("+" | "-") as op):
                (a, left), (b, right) = _apart(e.left, v), _apart(e.right, v)
                return (a + b if op == "+" else a - b), _int(op, left, right)
            case Binary(op="*", left=Const(value=c), right=other) | Binary(op="*", left=other, right=Const(value=c)):
                k, rest = _apart(other, v)
                return k * int(c), _int("*", rest, int(c))
    return 0, e


def _both(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return Logical("and", a, b)


def _int(op: BinaryOp, a: Expr, b: Expr | int) -> Expr:
    """An index; constants are folded."""
    b = b if not isinstance(b, int) else Const(b, INT32)
    if op == "*" and isinstance(b, Const) and b.value == 1:
        return a
    if op in ("+", "-") and isinstance(b, Const) and b.value == 0:
        return a
    if op == "+" and isinstance(a, Const) and a.value == 0:
        return b
    return fold(Binary(op, a, b, INT32))


def _call(function: str, a: Expr, b: Expr) -> Expr:
    return fold(Call(function, (a, b), INT32))


def _within(place: Expr, r: RVar) -> Expr:
    """`place` held in the range of `r`, or at its first value where the range is empty: no more than that is
    required anyway."""
    last = _int("-", _int("+", r.lo, r.extent), 1)
    return Call("clamp", (place, r.lo, last), INT32)


def _start(op: str, t: ScalarType) -> Const:
    """The neutral element of a reduction."""
    match op:
        case "&":
            return Const(True if t.kind == "bool" else t.max if t.kind == "uint" else -1, t)
        case "|" | "^":
            return Const(False if t.kind == "bool" else 0, t)
    return Const(semantics.identity(REDUCTIONS[op], t).item(), t)
