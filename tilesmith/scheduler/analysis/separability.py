"""Windows that are products: sums over a box whose weights are one factor a row times one a column, and minima and
maxima over boxes. What each of them is of one and the same function, at different places, in two dims or more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from tilesmith.scheduler.analysis.linear_combinations import (
    ITSELF,
    ONE,
    Coefficient,
    Term,
    coefficient,
    combined,
    is_sum,
    scaled,
    term,
    terms,
)
from tilesmith.scheduler.analysis.rank_one import factor_products, number_products
from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.analysis.translation_equivalence import Looked, Place, Placed, placed
from tilesmith.scheduler.ir.memo import once, once_a_form
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    RVar,
    Var,
    children,
    has_accesses,
    variables_of,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.types import ScalarType

_FEWEST: Final = 4
"""Elements of a window of two dims, at least."""


@dataclass(frozen=True, slots=True)
class Half:
    """A window split along a dim: the part along that dim first, `value`, a function of `dims`, and then what stands
    in place of the window's `root`, reading the stage `name` where that value is."""

    name: str
    dims: tuple[str, ...]
    value: Expr
    whole: Expr


@dataclass(frozen=True, slots=True)
class Window(ABC):
    """One window of a stage. `root` is the part of a value that it is, or that it is some terms of; `dims` are those of
    the stage along which it can be split, in the stage's order."""

    stage: Stage
    root: Expr
    dims: tuple[str, ...]

    @abstractmethod
    def half(self, dim: str, name: str) -> Half:
        """The window split along `dim`, one of `dims`; `name` is of the new stage."""


@once
def windows(stage: Stage) -> tuple[Window, ...]:
    """The windows of the stage's values that can be split, in the order they are written; of one inside of another
    (a mean of means) the outer one first. Of an updated stage those of the values that it starts from."""
    first, found = _of_form(stage)
    return found if first is stage or not found else _found(stage)


@once_a_form
def _of_form(stage: Stage) -> tuple[Stage, tuple[Window, ...]]:
    """The windows of the first stage of a form, and that stage."""
    return stage, _found(stage)


def _found(stage: Stage) -> tuple[Window, ...]:
    if not _may_have_windows(stage):
        return ()
    found: dict[tuple[Expr, int], Window] = {}
    for value in stage.values:
        for root, number, window in _windows(stage, value):
            found.setdefault((root, number), window)
    return tuple(found.values())


def _may_have_windows(stage: Stage) -> bool:
    """A quick look: something is read in several places along two dims."""
    if len(stage.dims) < 2:
        return False
    if sum(len(e.domain) for e in parts(stage, Reduce)) > 1:
        return True
    first: dict[tuple[str, int], Expr] = {}
    several: set[tuple[str, int]] = set()
    for a in parts(stage, Access):
        for k, index in enumerate(a.indices):
            dim = (a.name, k)
            if dim not in several and first.setdefault(dim, index) != index:
                several.add(dim)
    return len(several) > len({producer for producer, _ in several})


def _windows(stage: Stage, value: Expr) -> Iterator[tuple[Expr, int, Window]]:
    pending = [value]
    while pending:
        e = pending.pop()
        inside: Sequence[Expr]
        if is_sum(e):
            parts = terms(e)
            yield from ((e, n, w) for n, w in enumerate(_of_terms(stage, e, "sum", parts)))
            inside = [t.body for t in parts]
        elif isinstance(e, Call) and e.function in ("min", "max"):
            inside = _operands(e)
            parts = tuple(Term(ITSELF, part) for part in inside)
            yield from ((e, n, w) for n, w in enumerate(_of_terms(stage, e, e.function, parts)))
        elif isinstance(e, Reduce):
            reduced = _of_reduction(stage, e)
            if reduced is not None:
                yield e, 0, reduced
            continue
        elif isinstance(e, Access):
            continue
        else:
            inside = tuple(children(e))
        pending.extend(reversed(inside))


def _operands(e: Call) -> tuple[Expr, ...]:
    """The operands of a nest of `min` or `max`, left to right."""
    found: list[Expr] = []
    pending: list[Expr] = [e]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.function == e.function:
            pending.extend(reversed(node.args))
        else:
            found.append(node)
    return tuple(found)


# windows written out ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Split:
    """The elements' coefficients are `scale` times one of `first`, by the place along the dim, times one of `then`, by
    the places along the others."""

    scale: Coefficient
    first: tuple[tuple[Place, Coefficient], ...]
    then: tuple[tuple[tuple[Place, ...], Coefficient], ...]


@dataclass(frozen=True, slots=True)
class _Written(Window):
    """A window whose elements are written one by one, those of `function` along the dims `along`; `rest` are the other
    terms of `root`, of which `before` come before the first element."""

    op: str
    function: Placed
    along: tuple[str, ...]
    splits: Mapping[str, _Split]
    rest: tuple[Term, ...]
    before: int

    def half(self, dim: str, name: str) -> Half:
        split = self.splits[dim]
        others = tuple(d for d in self.along if d != dim)
        own = {d: Place(Var(d), 0) for d in others}
        value = self._join(Term(c, self.function.at({**own, dim: place})) for place, c in split.first)
        dims = _dims_of(self.stage, value)
        window = self._join(
            Term(c, Access(name, _indices(dims, dict(zip(others, places, strict=True))), 0, value.type))
            for places, c in split.then
        )
        whole = Term(split.scale, window)
        return Half(name, dims, value, self._join((*self.rest[: self.before], whole, *self.rest[self.before :])))

    def _join(self, parts: Iterator[Term] | tuple[Term, ...]) -> Expr:
        if self.op == "sum":
            return combined(parts, self.root.type)
        first, *others = (t.body for t in parts)
        for other in others:
            first = Call(self.op, (first, other), self.root.type)
        return first


def _of_terms(stage: Stage, root: Expr, op: str, parts: Sequence[Term]) -> Iterator[Window]:
    """The windows among the terms of a sum, or the operands of a minimum or maximum."""
    if len(parts) < _FEWEST or not all(t.coefficient.is_moderate(root.type) for t in parts):
        return
    groups: dict[tuple[Expr, tuple[str, ...]], list[tuple[int, Placed]]] = {}
    known = Looked(stage.dims, ())
    for n, t in enumerate(parts):
        if isinstance(t.body, Access) or has_accesses(t.body):
            found = placed(t.body, stage.dims, known=known)
            groups.setdefault((found.function, tuple(d for d, _ in found.places)), []).append((n, found))
    for members in groups.values():
        window = _of_group(stage, root, op, parts, members) if len(members) >= _FEWEST else None
        if window is not None:
            yield window


def _of_group(
    stage: Stage, root: Expr, op: str, parts: Sequence[Term], members: Sequence[tuple[int, Placed]]
) -> Window | None:
    """The window of terms that are one function at different places, if it can be split."""
    function = members[0][1]
    first = dict(function.places)
    several = {d for _, p in members for d, place in p.places if place != first[d]}
    along = tuple(d for d in stage.dims if d in several)
    if len(along) < 2:
        return None
    taps: dict[tuple[Place, ...], Coefficient] = {}
    for n, p in members:
        here = dict(p.places)
        places = tuple(here[d] for d in along)
        total = parts[n].coefficient
        if places in taps and op == "sum":
            if taps[places].factors != total.factors:
                return None
            total = replace(total, number=total.number + taps[places].number)
        taps[places] = total
    splits = _splits_of({places: c for places, c in taps.items() if c.number}, along, _tolerance(root.type))
    if not splits:
        return None
    inside = {n for n, _ in members}
    rest = tuple(t for n, t in enumerate(parts) if n not in inside)
    dims = tuple(d for d in stage.dims if d in splits)
    return _Written(stage, root, dims, op, function, along, splits, rest, min(inside))


def _tolerance(type: ScalarType) -> Fraction:
    """Tolerance of products of weights, as a part of the largest coefficient: roundings of a few operations."""
    return Fraction(0) if not type.is_float else Fraction(1, 1 << (21 if type.bits == 32 else 50))


def _splits_of(
    taps: Mapping[tuple[Place, ...], Coefficient], along: Sequence[str], tolerance: Fraction
) -> dict[str, _Split]:
    """Splits of the coefficients into products, by the dim of one of the factors."""
    splits = {}
    for k, dim in enumerate(along[:1] if len(along) == 2 else along):
        split = _split_of({(at[k], at[:k] + at[k + 1 :]): c for at, c in taps.items()}, tolerance)
        if split is not None:
            splits[dim] = split
    if len(along) == 2 and splits:
        split = splits[along[0]]
        turned = tuple((places[0], c) for places, c in split.then), tuple(((p,), c) for p, c in split.first)
        splits[along[1]] = _Split(split.scale, *turned)
    return splits


def _split_of(grid: Mapping[tuple[Place, tuple[Place, ...]], Coefficient], tolerance: Fraction) -> _Split | None:
    """Coefficients, by their places along a dim and along the others, as products; None where they are not."""
    rows, columns = tuple(dict.fromkeys(row for row, _ in grid)), tuple(dict.fromkeys(column for _, column in grid))
    if len(rows) < 2 or len(columns) < 2 or len(rows) * len(columns) != len(grid):
        return None
    table = [[grid[r, c] for c in columns] for r in rows]
    numbers = number_products([[c.number for c in row] for row in table], tolerance)
    factors = factor_products([[c.factors for c in row] for row in table])
    if numbers is None or factors is None:
        return None
    (scale, us, vs), (shared, us_factors, vs_factors) = numbers, factors
    first = tuple(zip(rows, map(Coefficient, us, us_factors), strict=True))
    then = tuple(zip(columns, map(Coefficient, vs, vs_factors), strict=True))
    return _Split(Coefficient(scale, shared), first, then)


# windows that are reductions ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reduced(Window):
    """A window that is a reduction of `function`, which stands at places that depend on the variables of the domain,
    times weights that do; `scale` is the same everywhere. Weights may depend on a dim as well, as those of a resize or
    of a transform do."""

    function: Placed
    domain: tuple[RVar, ...]
    weights: tuple[Expr, ...]
    scale: Coefficient
    first: Mapping[str, Set[str]]

    def half(self, dim: str, name: str) -> Half:
        first = self.first[dim]
        moving = {d: p for d, p in self.function.places if variables_of(p.base) - {*self.stage.dims, *first}}
        value = self._reduced(self.function.at({d: Place(Var(d), 0) for d in moving}), first)
        dims = _dims_of(self.stage, value)
        read = Access(name, _indices(dims, moving), 0, value.type)
        then = frozenset(r.name for r in self.domain) - first
        return Half(name, dims, value, scaled(self._reduced(read, then), self.scale))

    def _reduced(self, body: Expr, over: Set[str]) -> Expr:
        for weight in self.weights:
            if not over.isdisjoint(variables_of(weight)):
                body = scaled(body, Coefficient(ONE, (weight,)))
        domain = tuple(r for r in self.domain if r.name in over)
        return replace(self._root, body=body, domain=domain)

    @property
    def _root(self) -> Reduce:
        assert isinstance(self.root, Reduce)
        return self.root


def _of_reduction(stage: Stage, e: Reduce) -> Window | None:
    domain, guarded = list(e.domain), e.where is not None
    outer: list[Expr] = []
    inner, scale = e.body, ITSELF
    while True:
        if e.op == "sum":
            part = term(inner, scale)
            scale = part.coefficient
            inner, beside = _nested(part.body)
            outer += beside
        if not isinstance(inner, Reduce) or inner.op != e.op:
            break
        domain += inner.domain
        guarded = guarded or inner.where is not None
        inner = inner.body
    body = _product((inner, *outer))
    if guarded or e.op in ("argmin", "argmax") or not all(map(_is_constant, domain)):
        return None
    names = frozenset(r.name for r in domain)
    weights: list[Expr] = []
    core = [body]
    if e.op == "sum":
        core, weights, more = _factors(body, frozenset(stage.dims), names)
        scale *= more
    if names <= {
        i.name for f in core for n in walk(f) if _has_dims(n, stage) for i in children(n) if isinstance(i, Var)
    }:
        return None  # as those of weights with a value of its own for every element
    if not core or not scale.is_moderate(e.type):
        return None
    function = placed(_product(core), stage.dims, names)
    inside = variables_of(function.function) & names
    places = {d: variables_of(p.base) & names for d, p in function.places}
    moving = {d for d, variables in places.items() if variables}
    first = {}
    for dim in (d for d in stage.dims if places.get(d)):
        mine = places[dim] | inside
        others = (*(v for d, v in places.items() if d != dim), *(variables_of(w) & names for w in weights))
        still = all(variables_of(w).isdisjoint(moving - {dim}) for w in weights if not mine.isdisjoint(variables_of(w)))
        if mine != names and still and all(not part & mine or part <= mine for part in others):
            first[dim] = mine
    dims = tuple(d for d in stage.dims if d in first)
    if not dims:
        return None
    return _Reduced(stage, e, dims, function, tuple(domain), tuple(weights), scale, first)


def _nested(body: Expr) -> tuple[Expr, list[Expr]]:
    """The sum that is a factor of a product, and the other factors, which may stand in it as well: none of them has
    variables of its own. `body` itself where there is no such sum."""
    factors = _factors_of(body)
    for n, factor in enumerate(factors):
        others = factors[:n] + factors[n + 1 :]
        if isinstance(factor, Reduce) and not any(isinstance(part, Reduce) for e in others for part in walk(e)):
            return (factor, others) if factor.op == "sum" else (body, [])
    return body, []


def _has_dims(e: Expr, stage: Stage) -> bool:
    return isinstance(e, Access) and not variables_of(e).isdisjoint(stage.dims)


def _is_constant(r: RVar) -> bool:
    return isinstance(r.lo, Const) and isinstance(r.extent, Const) and int(r.extent.value) > 1


def _factors(body: Expr, dims: Set[str], variables: Collection[str]) -> tuple[list[Expr], list[Expr], Coefficient]:
    """The factors of a product that depend on `dims`, those that depend on `variables` and, where others depend on
    several dims, on one of these at most, and what the others are together."""
    scale = ITSELF
    core: list[Expr] = []
    weights: list[Expr] = []
    factors = _factors_of(body)
    several = any(len(variables_of(e) & dims) > 1 for e in factors)
    for e in factors:
        used = variables_of(e)
        if not used.isdisjoint(dims):
            few = several and len(used & dims) == 1 and not used.isdisjoint(variables)
            (weights if few else core).append(e)
        elif not used.isdisjoint(variables):
            weights.append(e)
        else:
            scale *= coefficient(e) or Coefficient(ONE, (e,))
    return core, weights, scale


def _factors_of(body: Expr) -> list[Expr]:
    """The factors of a product, left to right."""
    pending = [body]
    factors: list[Expr] = []
    while pending:
        e = pending.pop()
        if isinstance(e, Binary) and e.op == "*":
            pending += (e.right, e.left)
        else:
            factors.append(e)
    return factors


def _product(factors: Sequence[Expr]) -> Expr:
    result = factors[0]
    for f in factors[1:]:
        result = scaled(result, Coefficient(ONE, (f,)))
    return result


# both ------------------------------------------------------------


def _dims_of(stage: Stage, value: Expr) -> tuple[str, ...]:
    used = variables_of(value)
    return tuple(d for d in stage.dims if d in used)


def _indices(dims: Sequence[str], places: Mapping[str, Place]) -> tuple[Expr, ...]:
    """The indices at which a stage with `dims` is read: in `places`, and else at the reader's own."""
    return tuple(places[d].expression if d in places else Var(d) for d in dims)
