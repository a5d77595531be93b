"""Dependence analysis of updates: loops that may change places, run in vectors or in threads, proved, never guessed.

Two iterations of an update depend on each other if one writes the point that the other reads or writes. With the
indices as affine forms of the loops this is a system of linear equations, one a dim, in the loops of the first
iteration and in how far ahead the second one is in every loop. Where a system has no solution in integers within
the loops' ranges, there is no such pair. What is not affine (data, divisions) is an unknown of its own; it is the
same in both iterations where all loops that it depends on are. Coordinates are taken not to wrap.

Tested are the equations and what Gaussian elimination makes of them, each by the greatest common divisor of its
coefficients and by the range of its values (Allen and Kennedy, Optimizing Compilers for Modern Architectures,
ch. 3). Both are cheap, and sure when they say no.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import gcd
from typing import Literal, NamedTuple, TypeAlias

from tilesmith.scheduler.analysis.affine_forms import AffineForm, affine_form
from tilesmith.scheduler.ir.memo import once
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Logical,
    Reduce,
    RVar,
    Unary,
    Var,
    children,
    free_variables,
    reads_from,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage, Update
from tilesmith.scheduler.ir.pipeline.value_bounds import AT_RUN_TIME, Interval, Leaf, interval, leaf_interval

Sign: TypeAlias = Literal[-1, 0, 1]
Range: TypeAlias = tuple[int | None, int | None]
Unknown: TypeAlias = tuple[str, int]
Row: TypeAlias = tuple[dict[Unknown, int], int]


def free_dims(stage: Stage, update: Update) -> tuple[str, ...]:
    """The dims that `update` runs through in whole, in the order of the stage's dims: those it uses. Each stands in
    its own place wherever the update writes or reads its own stage."""
    return tuple(d for d, e in zip(stage.dims, update.at, strict=True) if isinstance(e, Var) and e.name == d)


@once
def pure_dims(stage: Stage) -> frozenset[str]:
    """The dims that are free in every update of `stage` (all, without updates): a slice in these can be computed
    alone, values and updates."""
    pure = set(stage.dims)
    for update in stage.updates:
        pure &= set(free_dims(stage, update))
    return frozenset(pure)


def default_order(stage: Stage, update: Update) -> tuple[str, ...]:
    """The loops of `update` as it is defined, innermost first: its domain in order, then its free dims as they lie in
    memory."""
    free = free_dims(stage, update)
    return (*(r.name for r in update.domain), *(d for d in stage.storage if d in free))


def independent(stage: Stage, update: Update, order: tuple[str, ...], loop: str, together: int | None = None) -> bool:
    """True if the iterations of `loop`, those of the loops outside it held, are proved not to touch what another of
    them writes, whatever the loops inside it do: they may then run at once, or so many neighbours `together`, as the
    lanes of a vector do: an echo reads what is further back. `order` is innermost first. Free dims always are. An
    associative update into one place is not: its sum is no vector."""
    held: dict[str, Sign] = dict.fromkeys(order[order.index(loop) + 1 :], 0)
    system, apart = _system(stage, update), None if together is None else together - 1
    return not any(system.conflict({**held, loop: sign}, apart) for sign in _SIGNS)


def may_reorder(stage: Stage, update: Update, order: tuple[str, ...], strict: bool = False) -> bool:
    """True if the loops of `update` may run in `order` (innermost first, each loop once) and leave the same values.

    Proved where every pair of iterations that depend on each other keeps its order. The terms of an associative
    update may come in any order; those of floats only if not `strict`, as rounding will differ.
    """
    before, after = default_order(stage, update), order
    if sorted(before) != sorted(after):
        return False
    if before == after or commutes(stage, update, strict):
        return True
    system = _system(stage, update)
    # A pair changes its order if the outermost loop that differs in it was p, is q, and they go opposite ways.
    for n, p in enumerate(before):
        for q in before[:n]:
            if after.index(q) < after.index(p):
                continue
            held: dict[str, Sign] = dict.fromkeys((*before[n + 1 :], *after[after.index(q) + 1 :]), 0)
            if any(system.conflict({**held, p: ahead, q: back}) for ahead, back in (_SIGNS, _SIGNS[::-1])):
                return False
    return True


def written_box(stage: Stage, update: Update, order: tuple[str, ...]) -> dict[str, tuple[RVar, int]] | None:
    """The places that `update`, its loops in `order`, writes whatever they held before: a box, whole in every dim but
    those in the answer, which have the range of a variable of the domain, moved by a constant. None where no such
    box is proved: where the update writes elsewhere, or reads one of these places before it has written it."""
    if update.where is not None:
        return None
    system, variables = _system(stage, update), {r.name: r for r in update.domain}
    box: dict[str, tuple[RVar, int]] = {}
    for d, form in zip(stage.dims, system.at, strict=True):
        (e, c), *others = (*form.terms.items(), (None, 0))
        if others != [(None, 0)] or c != 1 or not isinstance(e, Var):
            return None
        if e.name in variables:
            box[d] = (variables.pop(e.name), form.const)
        elif e.name != d or form.const:
            return None
    if variables or system.early(dict.fromkeys(order, 0)):
        return None
    outside: dict[str, Sign] = {}
    for loop in reversed(order):
        if system.early({**outside, loop: -1}):
            return None
        outside[loop] = 0
    return box


class Way(NamedTuple):
    """The way of an update through a dim by the variable `loop` of its domain, by 1 or -1 a `step`: what it writes at a
    place follows from there and so many places before it on the way, at most `reach`."""

    loop: str
    step: int
    reach: int


def way_through(stage: Stage, update: Update, dim: str) -> Way | None:
    """The way by which `update` goes through `dim` from its beginning, or from its end: it writes there, moved by what
    never changes, what follows from its own stage at that place of `dim` or before it on the way, and from nothing that
    it writes later in that loop. None where there is none."""
    system, d = _system(stage, update), stage.dims.index(dim)
    at, domain = system.at[d], {r.name for r in update.domain}
    moving = [(e, c) for e, c in at.terms.items() if any(isinstance(n, Var | Access) for n in walk(e))]
    if len(moving) != 1:
        return None
    ((e, step),) = moving
    if abs(step) != 1 or not isinstance(e, Var) or e.name not in domain:
        return None
    if any(n == e for k, i in enumerate(update.at) if k != d for n in walk(i)):
        return None
    reach = 0
    for place, local in system.reads:
        behind = at.plus(place[d].scaled(-1)).scaled(step)
        if behind.terms or behind.const < 0 or e.name in local:
            return None
        reach = max(reach, behind.const)
    outermost = (*(n for n in default_order(stage, update) if n != e.name), e.name)
    return Way(e.name, step, reach) if may_reorder(stage, update, outermost, strict=True) else None


def steady_parts(stage: Stage, update: Update, order: tuple[str, ...]) -> dict[Reduce, frozenset[str]]:
    """The reductions of `update` that read its own stage and are the same in all iterations of its innermost loops, its
    loops in `order`: with these loops, in which no iteration is proved to write what they read."""
    system, found = _system(stage, update), dict[Reduce, frozenset[str]]()
    parts = (*update.values, *(() if update.where is None else (update.where,)))
    for e in dict.fromkeys(
        n for part in parts for n in walk(part) if isinstance(n, Reduce) and reads_from(n, stage.name)
    ):
        used = {*free_variables(e)}
        first = next((n for n, loop in enumerate(order) if loop in used), len(order))
        inside = order[:first]
        held: dict[str, Sign] = {loop: 0 for loop in order if loop not in inside}
        reads = [(tuple(map(affine_form, a.indices)), local) for a, local in _own_reads(e, stage.name, {})]
        if inside and not any(system.meets(place, local, held) for place, local in reads):
            found[e] = frozenset(inside)
    return found


def awaited(stage: Stage, update: Update, order: tuple[str, ...], loop: str) -> dict[Access, int]:
    """The places of its own stage where `update` may read what an iteration of `loop` before has written, those of the
    loops outside of it held: each with how many iterations that is before, at least. `order` is innermost first."""
    system, found = _system(stage, update), dict[Access, int]()
    ahead: dict[str, Sign] = {**dict.fromkeys(order[order.index(loop) + 1 :], 0), loop: 1}
    for access, local in (read for v in update.values for read in _own_reads(v, stage.name, {})):
        place = tuple(map(affine_form, access.indices))
        if system.meets(place, local, ahead):
            found[access] = _before(system.at, place, loop)
    return found


def _before(at: tuple[AffineForm, ...], place: tuple[AffineForm, ...], loop: str) -> int:
    """The least number of iterations of `loop` from the one that writes at `place` to the one that reads there."""
    for a, b in zip(at, place, strict=True):
        moved = a.plus(b.scaled(-1))
        if not moved.terms and len(a.terms) == 1 and any(isinstance(e, Var) and e.name == loop for e in a.terms):
            (step,) = a.terms.values()
            return max(1, moved.const // step)
    return 1


def commutes(stage: Stage, update: Update, strict: bool = False) -> bool:
    """True if the terms of `update` may be combined in any order and grouping; those of floats not if `strict`."""
    return associative(stage, update) is not None and not (strict and any(v.type.is_float for v in update.values))


def associative(stage: Stage, update: Update) -> str | None:
    """The operation of an update f(at) = op(f(at), e) that reads its own stage nowhere else: "sum", "product", "min",
    "max", "and", "or", or of integers' bits "&", "|", "^". None of any other. Of a tuple all components have one."""
    found = combination(stage, update)
    return None if found is None else found.op


@dataclass(frozen=True, slots=True)
class Combination:
    """An associative update: `op` joins `terms` (one a component) to what is there."""

    op: str
    terms: tuple[Expr, ...]


def combination(stage: Stage, update: Update) -> Combination | None:
    """The parts of an associative update of `stage`; None where it is none."""
    found = [_combined(v, Access(stage.name, update.at, k, v.type)) for k, v in enumerate(update.values)]
    parts = [f for f in found if f is not None]
    if not parts or len(parts) < len(found) or len({op for op, _ in parts}) > 1:
        return None
    others = (*(term for _, term in parts), *update.at, *(() if update.where is None else (update.where,)))
    if any(reads_from(e, stage.name) for e in others):
        return None
    return Combination(parts[0][0], tuple(term for _, term in parts))


_CHAINS: dict[str, str] = {"+": "sum", "*": "product", "&": "&", "|": "|", "^": "^", "and": "and", "or": "or"}
_SIGNS: tuple[Sign, Sign] = (1, -1)


def _combined(value: Expr, own: Access) -> tuple[str, Expr] | None:
    """(operation, term) of a value that joins a term to what is at `own`."""
    match value:
        case Binary(op="+" | "*" | "&" | "|" | "^") | Logical():
            op = _CHAINS[value.op]
        case Binary(op="-"):
            op = "sum"
        case Call(function="min" | "max"):
            op = value.function
        case _:
            return None
    leaves = list(_leaves(value, op, 1))
    rest = [(leaf, sign) for leaf, sign in leaves if sign < 0 or leaf != own]
    return (op, _joined(value, op, rest)) if rest and len(rest) == len(leaves) - 1 else None


def _leaves(e: Expr, op: str, sign: int) -> Iterator[tuple[Expr, int]]:
    """The operands of a chain of `op`, left to right; the sign is -1 of what a sum takes away."""
    match e:
        case Binary(op="-") if op == "sum":
            yield from _leaves(e.left, op, sign)
            yield from _leaves(e.right, op, -sign)
        case Binary() | Logical() if _CHAINS.get(e.op) == op:
            yield from _leaves(e.left, op, sign)
            yield from _leaves(e.right, op, sign)
        case Call(function=("min" | "max") as function) if function == op:
            for a in e.args:
                yield from _leaves(a, op, sign)
        case _:
            yield e, sign


def _joined(value: Expr, op: str, leaves: list[tuple[Expr, int]]) -> Expr:
    """The leaves as one expression."""
    t = value.type
    first, sign = leaves[0]
    result = first if sign > 0 else Unary("-", first, t)
    for leaf, sign in leaves[1:]:
        match op:
            case "sum":
                result = Binary("+" if sign > 0 else "-", result, leaf, t)
            case "product":
                result = Binary("*", result, leaf, t)
            case "min" | "max":
                result = Call(op, (result, leaf), t)
            case "and" | "or":
                result = Logical(op, result, leaf)
            case "&" | "|" | "^":
                result = Binary(op, result, leaf, t)
    return result


# Systems of equations


@dataclass(slots=True)
class _System:
    """One update: what it writes, what it reads of its own stage (with the reductions around each read), and the
    ranges of its variables."""

    name: str
    at: tuple[AffineForm, ...]
    reads: list[tuple[tuple[AffineForm, ...], dict[str, Range]]]
    ranges: dict[str, Range]
    steps: dict[str, int | None]
    numbers: dict[Expr, int] = field(default_factory=dict)
    variables: dict[Expr, frozenset[str] | None] = field(default_factory=dict)
    answers: dict[tuple[int | None, tuple[tuple[str, Sign], ...]], bool] = field(default_factory=dict)

    def conflict(self, ahead: Mapping[str, Sign], apart: int | None = None) -> bool:
        """True if two iterations may depend on each other of which the second is ahead in the loops as said:
        the sign of how far, by `apart` at most. Loops left out may differ by anything."""
        key = (apart, tuple(sorted(ahead.items())))
        if key not in self.answers:
            runs = all(self.steps[loop] != 0 for loop, sign in ahead.items() if sign)
            own = (self.at, dict[str, Range]())
            others = [own, *(read for read in self.reads if read != own)]
            self.answers[key] = runs and any(self._meet(place, local, ahead, apart) for place, local in others)
        return self.answers[key]

    def meets(self, place: tuple[AffineForm, ...], local: dict[str, Range], ahead: Mapping[str, Sign]) -> bool:
        """True if an iteration may read that place where the other of two such iterations writes."""
        return self._meet(place, local, ahead)

    def early(self, ahead: Mapping[str, Sign]) -> bool:
        """True if the second of two such iterations may read what the first one writes."""
        return any(self._meet(place, local, ahead) for place, local in self.reads)

    def _meet(
        self,
        place: tuple[AffineForm, ...],
        local: dict[str, Range],
        ahead: Mapping[str, Sign],
        apart: int | None = None,
    ) -> bool:
        known: dict[Unknown, Range] = {}
        steps = {loop: self._step(loop, ahead.get(loop), apart) for loop in self.ranges}
        rows = [self._equation(a, b, local, ahead, steps, known) for a, b in zip(self.at, place, strict=True)]
        return not any(_impossible(row, known) for row in chain(rows, _eliminated(rows, known)))

    def _step(self, loop: str, sign: Sign | None, apart: int | None) -> Range:
        """Range of iterations by which a loop may be ahead, `apart` at most where it is ahead or back."""
        most = self.steps[loop]
        if sign and apart is not None:
            most = apart if most is None else min(most, apart)
        least = None if most is None else -most
        return {None: (least, most), 0: (0, 0), 1: (1, most), -1: (least, -1)}[sign]

    def _equation(
        self,
        a: AffineForm,
        b: AffineForm,
        local: dict[str, Range],
        ahead: Mapping[str, Sign],
        steps: Mapping[str, Range],
        known: dict[Unknown, Range],
    ) -> Row:
        """a - b, the loops of `b` written as those of `a` and how far they are ahead."""
        row: dict[Unknown, int] = {}

        def add(unknown: Unknown, coefficient: int, range_: Range) -> None:
            if coefficient:
                row[unknown] = row.get(unknown, 0) + coefficient
                known[unknown] = range_

        for e in dict.fromkeys((*a.terms, *b.terms)):
            left, right = a.terms.get(e, 0), b.terms.get(e, 0)
            n = self.numbers.setdefault(e, len(self.numbers))
            if isinstance(e, Var) and e.name in self.ranges:
                add(("same", n), left - right, self.ranges[e.name])
                add(("step", n), -right, steps[e.name])
            elif self._held(e, ahead):
                add(("same", n), left - right, self._range(e, local))
            else:
                add(("left", n), left, self._range(e, local))
                add(("right", n), -right, self._range(e, local))
        return {u: c for u, c in row.items() if c}, a.const - b.const

    def _held(self, e: Expr, ahead: Mapping[str, Sign]) -> bool:
        """True if `e` has one value in both iterations."""
        if e not in self.variables:
            self.variables[e] = None if reads_from(e, self.name) else frozenset(free_variables(e))
        names_used = self.variables[e]
        return names_used is not None and all(ahead.get(n) == 0 for n in names_used)

    def _range(self, e: Expr, local: dict[str, Range]) -> Range:
        def leaf(node: Leaf) -> Interval:
            if not isinstance(node, Var):
                return leaf_interval(node)
            lo, hi = local.get(node.name) or self.ranges.get(node.name, (None, None))
            return AT_RUN_TIME if lo is None or hi is None else Interval(lo, hi)

        if isinstance(e, Var):
            return local.get(e.name, (None, None))
        ends = interval(e, leaf).numeric
        return (None, None) if ends is None else (int(ends[0]), int(ends[1]))


def _impossible(row: Row, known: Mapping[Unknown, Range]) -> bool:
    """True if no integers in their ranges make the row zero."""
    terms, const = row
    if terms and const % gcd(*terms.values()):
        return True
    least: int | None = const
    most: int | None = const
    for unknown, c in terms.items():
        lo, hi = known[unknown] if c > 0 else known[unknown][::-1]
        least = None if least is None or lo is None else least + c * lo
        most = None if most is None or hi is None else most + c * hi
    return (least is not None and least > 0) or (most is not None and most < 0)


def _eliminated(rows: list[Row], known: Mapping[Unknown, Range]) -> Iterator[Row]:
    """The rows that are left as one unknown after the other is eliminated, those with the loosest ranges first."""

    def looseness(unknown: Unknown) -> tuple[bool, int, int]:
        lo, hi = known[unknown]
        return unknown[0] != "step", (lo is None) + (hi is None), 0 if lo is None or hi is None else hi - lo

    rows = [row for row in rows if row[0]]
    for unknown in sorted(known, key=looseness, reverse=True):
        pivot = next((row for row in rows if unknown in row[0]), None)
        if pivot is not None:
            rows = [_without(unknown, row, pivot) for row in rows if row is not pivot]
            yield from rows


def _without(unknown: Unknown, row: Row, pivot: Row) -> Row:
    """`row` less a multiple of `pivot`, in integers, so that `unknown` is gone."""
    a, b = row[0].get(unknown, 0), pivot[0][unknown]
    if not a:
        return row
    merged = {u: c * b for u, c in row[0].items()}
    for u, c in pivot[0].items():
        merged[u] = merged.get(u, 0) - c * a
    terms, const = {u: c for u, c in merged.items() if c}, row[1] * b - pivot[1] * a
    common = gcd(const, *terms.values()) or 1
    return {u: c // common for u, c in terms.items()}, const // common


def _system(stage: Stage, update: Update) -> _System:
    """The system of one of the stage's updates, made once."""
    for known, system in _systems(stage):
        if known is update:
            return system
    return _make(stage, update)


@once
def _systems(stage: Stage) -> tuple[tuple[Update, _System], ...]:
    return tuple((update, _make(stage, update)) for update in stage.updates)


def _make(stage: Stage, update: Update) -> _System:
    ranges: dict[str, Range] = {r.name: _range_of(r) for r in update.domain}
    steps = {r.name: _most(r) for r in update.domain}
    for d in free_dims(stage, update):
        ranges[d], steps[d] = (None, None), None
    reads: list[tuple[tuple[AffineForm, ...], dict[str, Range]]] = []
    for e in (*update.at, *update.values, *(() if update.where is None else (update.where,))):
        for access, local in _own_reads(e, stage.name, {}):
            reads.append((tuple(affine_form(i) for i in access.indices), local))
    return _System(stage.name, tuple(affine_form(e) for e in update.at), reads, ranges, steps)


def _own_reads(e: Expr, name: str, local: dict[str, Range]) -> Iterator[tuple[Access, dict[str, Range]]]:
    """Every read of stage `name`, with the ranges of the reduction variables around it."""
    if isinstance(e, Access) and e.name == name:
        yield e, local
    inner = {**local, **{r.name: _range_of(r) for r in e.domain}} if isinstance(e, Reduce) else local
    for child in children(e):
        yield from _own_reads(child, name, inner)


def _range_of(r: RVar) -> Range:
    if not isinstance(r.lo, Const):
        return None, None
    lo = int(r.lo.value)
    return lo, lo + max(int(r.extent.value), 1) - 1 if isinstance(r.extent, Const) else None


def _most(r: RVar) -> int | None:
    return max(int(r.extent.value), 1) - 1 if isinstance(r.extent, Const) else None
