"""Integer narrowing: integers are computed in the narrowest type that their bounds allow, and stages between inputs and
outputs are kept in it.

    f(x) = uint32(a(x - 1)) + 2 * uint32(a(x)) + uint32(a(x + 1)); g(x) = uint8((f(x) + 2) // 4)
      ->
    f(x) = int16(a(x - 1)) + 2 * int16(a(x)) + int16(a(x + 1)); g(x) = uint8((uint16(f(x)) + 2) // 4)

A register has twice as many elements of half the size. Two facts make it exact. Of sums, differences, products and bits
the low bits follow from those of the operands, as integers wrap (demanded bits). All else is the same in any type that
its operands fit, as their bounds prove it (value range analysis).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilesmith.scheduler.analysis.short_products import terms
from tilesmith.scheduler.analysis.stage_graph import parts
from tilesmith.scheduler.ir.pipeline.expressions import (
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    InputBound,
    ParamRef,
    Reduce,
    Select,
    Unary,
    Var,
    children,
    map_children,
    walk,
)
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage, Update
from tilesmith.scheduler.ir.pipeline.types import INT16, INT32, UINT16, UINT32, ScalarType
from tilesmith.scheduler.ir.pipeline.value_bounds import (
    UNBOUNDED,
    Interval,
    Leaf,
    hull,
    interval,
    leaf_interval,
    parts_of_value,
)
from tilesmith.scheduler.ir.pipeline.value_ends import ValueEnds
from tilesmith.scheduler.rewrites.scaled_terms import with_fields

_WIDTHS = (8, 16, 32)
_OF_BYTES = ("+", "-", "&", "|", "^")
"""Operators that machines have for vectors of bytes: products and shifts of these take several instructions."""
_SUMS = ("+", "-", "*")
_INDEXED = ("argmin", "argmax")


def narrowed(pipeline: Pipeline) -> Pipeline:
    """*Before*: boundaries are arithmetic. *After*: what is computed of integers that are read has no more bits than
    its value needs, where the operands that it is made of have no more; stages that are neither outputs nor updated nor
    parts of indices have the types of what they are computed with. *Ignores* indices, and what is made of these alone.
    Again, this changes nothing."""
    narrowing = _Narrowing(pipeline)
    stages = tuple(map(narrowing.stage, pipeline.stages))
    same = all(a is b for a, b in zip(stages, pipeline.stages, strict=True))
    return pipeline if same else replace(pipeline, stages=stages)


@dataclass(frozen=True, slots=True)
class _Low:
    """The low bits of an integer, as an expression of a type that has as many. `cuts` operands of it are computed in
    wider types, and cut."""

    value: Expr
    cuts: int = 0


class _Narrowing:
    """The stages of a pipeline one by one, producers first. A part that is in an expression twice stays one part."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._ends = ValueEnds()
        self._types: dict[tuple[str, int], ScalarType] = {}
        self._forget(())

    @cached_property
    def _kept(self) -> frozenset[str]:
        """Stages that keep their types."""
        return frozenset((*self._pipeline.outputs, *_in_indices(self._pipeline.stages)))

    def _forget(self, values: Iterable[Expr]) -> None:
        """Begins with the expressions of a stage. All is known by identity: `_alive` has what is new."""
        self._loops = _loops(values)
        self._reads: dict[int, bool] = {}
        self._products: dict[int, bool] = {}
        self._intervals: dict[int, Interval] = {}
        self._values: dict[int, Expr] = {}
        self._terms: dict[tuple[int, bool], Expr] = {}
        self._operations: dict[tuple[int, ScalarType], _Low | None] = {}
        self._casts: dict[tuple[int, ScalarType, bool], Expr] = {}
        self._alive: list[Expr] = []

    def stage(self, stage: Stage) -> Stage:
        """The stage with its values and updates narrowed, until there is no more to narrow: types that wrap tell more
        of their values than wide ones of which nothing is known."""
        stage = with_fields(stage)
        while _has_integers(stage) and (found := self._narrowed(stage)) is not stage:
            stage = found
        self._ends.add(stage)
        return stage

    def _narrowed(self, stage: Stage) -> Stage:
        """The stage with its values and updates narrowed once."""
        self._forget(_values(stage) if parts(stage, Reduce) else ())
        for part in (part for value in _values(stage) for part in reversed([*parts_of_value(value)])):
            self._is_read(part)  # parts before what is made of them: no recursion goes deep
            self._has_product(part)
            self._value(part)
        if stage.updates or stage.boundary is not None or stage.name in self._kept:
            values = tuple(map(self._same, stage.values))
        else:
            values = tuple(self._component(stage.name, n, v) for n, v in enumerate(stage.values))
        updates = tuple(map(self._update, stage.updates))
        same = all(a is b for a, b in zip((*values, *updates), (*stage.values, *stage.updates), strict=True))
        return stage if same else replace(stage, values=values, updates=updates)

    def _update(self, update: Update) -> Update:
        values = tuple(map(self._same, update.values))
        where = None if update.where is None else self._same(update.where)
        same = where is update.where and all(a is b for a, b in zip(values, update.values, strict=True))
        return update if same else replace(update, values=values, where=where)

    def _component(self, name: str, n: int, e: Expr) -> Expr:
        """A component of a stage in the type that it is computed in: no conversion is made for a stage that may be part
        of its readers."""
        if not self._is_data(e) or (isinstance(e, Reduce) and e.op in _INDEXED):
            return self._same(e)
        value = self._value(e)
        if value.type.bits == 8 and self._narrow(e) is None:  # what was made wider to compute with is so once
            value = self._cast(value, self._type_of(e, 16) or e.type)
        if value.type.bits >= e.type.bits:
            return self._same(e)
        self._types[name, n] = value.type
        return value

    # values ------------------------------------------------------------

    def _same(self, e: Expr) -> Expr:
        """`e` with its parts narrowed, of its own type."""
        value = self._wide(e)
        plain = isinstance(e, Cast) and e.operand is value and not e.saturate
        return e if plain else self._cast(value, e.type)

    def _wide(self, e: Expr) -> Expr:
        """The value of `e` for a reader that has it in more bits. What reads one place alone is as wide: to convert its
        result takes as much as to convert what it reads."""
        value = self._value(e)
        if value.type.bits < e.type.bits and isinstance(e, Binary | Unary) and not _reads_several(e):
            return self._term(e) if isinstance(e, Binary) else self._new(map_children(e, self._same))
        return value

    def _value(self, e: Expr) -> Expr:
        """The value of `e`, in its own or a narrower type."""
        found = self._values.get(id(e))
        if found is None:
            found = self._values[id(e)] = self._value_of(e)
        return found

    def _value_of(self, e: Expr) -> Expr:
        match e:
            case Const() | Var() | ParamRef() | InputBound():
                return e
            case Access():
                kept = self._types.get((e.name, e.component), e.type)
                return e if kept == e.type else self._new(Access(e.name, e.indices, e.component, kept, e.ends))
            case Cast() if e.operand.type.is_integer:
                return self._converted(e)
            case Compare():
                return self._compared(e) or self._new(map_children(e, self._same))
            case Reduce():
                return self._narrow(e) or self._new(self._reduced(e))
            case Binary(op="+" | "-") if e.type.is_integer:
                return self._narrow(e) or self._term(e)
            case _:
                return self._narrow(e) or self._new(map_children(e, self._same))

    def _term(self, e: Expr, paired: bool | None = None) -> Expr:
        """A term of a sum that is as wide as it was: so are sums and products in it, which stay one sum of products. A
        sum of several elements that needs fewer bits, and has no product, is computed in these: it is made wider once,
        and not each of its terms. Short products are `paired` where the sum around has several; None if `e` is it."""
        if not isinstance(e, Binary):
            return self._same(e)
        if paired is None or e.op == "-":
            paired = e.op == "+" and sum(map(self._is_short_product, terms(e))) > 1
        found = self._terms.get((id(e), paired))
        if found is None:
            low = None if self._has_product(e) or not _reads_several(e) else self._narrow(e)
            wide = self._new(map_children(e, self._part_of(e, paired))) if low is None else self._cast(low, e.type)
            found = self._terms[id(e), paired] = wide
        return found

    def _part_of(self, e: Binary, paired: bool) -> Callable[[Expr], Expr]:
        """The function from an operand of a term to that of the new term."""
        if e.op in "+-":
            return lambda part: self._term(part, paired if e.op == "+" else None)
        return self._factor if paired and self._is_short_product(e) else self._same

    def _is_short_product(self, e: Expr) -> bool:
        """True for a product of 16 bits in 32, which machines add up by pairs."""
        if not isinstance(e, Binary) or e.op != "*" or e.type != INT32:
            return False
        return self._fits(e.left, INT16) and self._fits(e.right, INT16)

    def _factor(self, e: Expr) -> Expr:
        """A factor of a short product in a sum. A difference, as of what is quantised and its zero point, is computed
        in 16 bits, also where it reads one element: it is multiplied as that."""
        low = self._narrow(e) if isinstance(e, Binary) and e.op in "+-" else None
        return self._same(e) if low is None else self._cast(low, e.type)

    def _reduced(self, e: Reduce) -> Reduce:
        body = self._term(e.body, paired=True if e.op == "sum" else None)
        where = None if e.where is None else self._same(e.where)
        same = body is e.body and where is e.where
        return e if same else Reduce(e.op, body, e.domain, where, e.component, e.type)

    def _converted(self, e: Cast) -> Expr:
        """A conversion of an integer: where the value stays, what is converted may do."""
        if not e.type.is_integer:
            value = self._wide(e.operand)
            if value.type == UINT32 and self._is_data(e.operand) and self._fits(e.operand, INT32):
                value = self._cast(value, INT32)  # before AVX-512, vectors of x86 convert those with a sign alone
            return e if value is e.operand else self._cast(value, e.type)
        shorter = e.type.bits < e.operand.type.bits
        stays = self._fits(e.operand, e.type) or _holds(e.type, e.operand.type)
        if shorter and not stays and not e.saturate:
            low = self._low_bits(e.operand, e.type)
            if low is not None:
                return self._cast(low, e.type)
        value = self._narrow(e.operand, 1 if shorter else 0) or self._value(e.operand)
        if stays and value.type == UINT16 and e.type.bits > UINT16.bits and self._fits(e.operand, INT16):
            value = self._cast(value, INT16)  # factors of products of pairs have a sign
        if stays and value.type.bits < e.type.bits:
            return value
        saturate = e.saturate and not stays
        return e if value is e.operand and saturate == e.saturate else self._cast(value, e.type, saturate)

    def _low_bits(self, e: Expr, of: ScalarType) -> Expr | None:
        """The low bits of `e`, at least as many as a type has, computed in a narrower type than its own."""
        for bits in _WIDTHS:
            if of.bits <= bits < e.type.bits:
                found = self._operation(e, of if bits == of.bits else ScalarType("int", bits))
                if found is not None and found.cuts <= 1:
                    return found.value
        return None

    def _compared(self, e: Compare) -> Expr | None:
        both = (e.left, e.right)
        if not any(map(self._is_data, both)):
            return None
        for t in (t for bits in _WIDTHS for t in _types_of(bits)):
            if t.bits < e.left.type.bits and all(self._fits(part, t) for part in both):
                left, right = (self._low(part, t) for part in both)
                if not left.cuts and not right.cuts:
                    return self._new(Compare(e.op, left.value, right.value))
        return None

    def _narrow(self, e: Expr, most_cuts: int = 0) -> Expr | None:
        """The value of an operation in the narrowest type that has it, and that all but `most_cuts` operands have; None
        where that is its own. Of 32 bits those with a sign are preferred: more instructions are for them."""
        if not self._is_data(e):
            return None
        for bits in _WIDTHS:
            t = self._type_of(e, bits)
            if t is not None and (bits < e.type.bits or (t == INT32 and e.type.bits == bits and e.type != t)):
                found = self._operation(e, t)
                if found is not None and found.cuts <= most_cuts:
                    return found.value
        return None

    # low bits ----------------------------------------------------------

    def _low(self, e: Expr, t: ScalarType, as_term: bool = False) -> _Low:
        """`e` modulo 2 ** bits as a value of type `t`: `e` itself where it fits. A part that needs fewer bits is
        computed in these; `as_term` it is part of the sum around it."""
        value = self._value(e)
        if value.type.bits >= t.bits or (as_term and isinstance(e, Binary) and e.op in _SUMS):
            found = self._operation(e, t)
            if found is not None:
                return found
        loop = isinstance(value, Var) and value.name in self._loops
        uniform = loop or isinstance(value, Const | ParamRef | InputBound)
        return _Low(self._cast(value, t), 0 if uniform or value.type.bits <= t.bits else 1)

    def _operation(self, e: Expr, t: ScalarType) -> _Low | None:
        """An operation modulo 2 ** bits, where it can be done in type `t`; else None."""
        key = (id(e), t)
        if key not in self._operations:
            wider = e.type.is_integer and e.type != t and e.type.bits >= t.bits
            self._operations[key] = self._operation_of(e, t) if wider else None
        return self._operations[key]

    def _operation_of(self, e: Expr, t: ScalarType) -> _Low | None:
        bytes_alone = t.bits == 8
        match e:
            case Cast(operand=a, saturate=False) if a.type.is_integer and a.type.bits > t.bits:
                return self._operation(a, t)
            case Binary(op="+" | "-" | "*" | "&" | "|" | "^") if not bytes_alone or self._is_of_bytes(e, t):
                return self._modulo(t, (e.left, e.right), lambda p: Binary(e.op, p[0], p[1], t), e.op in "+-")
            case Binary(op="<<", right=Const(value=k)) if 0 <= k < t.bits and not bytes_alone:
                return self._modulo(t, (e.left,), lambda p: Binary("<<", p[0], Const(k, t), t))
            case Binary(op=">>", right=Const(value=k)) if 0 <= k < t.bits and not bytes_alone:
                return self._exact(e, t, (e.left,), lambda p, of: Binary(">>", p[0], Const(k, of), of))
            case Binary(op="//" | "%", right=Const(value=k)) if k > 0 and not bytes_alone:
                # without a sign a quotient is one product
                natural = ScalarType("uint", t.bits)
                return self._exact(e, t, (e.left, e.right), lambda p, of: Binary(e.op, p[0], p[1], of), natural)
            case Unary(op="-" | "~") if not bytes_alone:
                return self._modulo(t, (e.operand,), lambda p: Unary(e.op, p[0], t))
            case Select():
                condition = self._same(e.condition)
                return self._modulo(t, (e.if_true, e.if_false), lambda p: Select(condition, p[0], p[1], t))
            case Call(function="mux", args=(index, *choices)):
                return self._modulo(t, choices, lambda p: Call("mux", (self._same(index), *p), t), together=max)
            case Call(function="min" | "max" | "clamp"):
                return self._exact(e, t, e.args, lambda p, of: Call(e.function, tuple(p), of))
            case Call(function="abs" | "absd") if self._fits(e, ScalarType("int", t.bits)):
                return self._exact(e, t, e.args, lambda p, of: Call(e.function, tuple(p), of))
            case Reduce(op="sum") if not bytes_alone or self._is_count_of_bytes(e, t):
                where = None if e.where is None else self._same(e.where)
                return self._modulo(t, (e.body,), lambda p: Reduce(e.op, p[0], e.domain, where, e.component, t), True)
            case Reduce(op="min" | "max", where=None) if all(r.name in self._loops for r in e.domain):
                return self._exact(e, t, (e.body,), lambda p, of: Reduce(e.op, p[0], e.domain, None, e.component, of))
            case _:
                return None

    def _modulo(
        self,
        t: ScalarType,
        parts: Sequence[Expr],
        make: Callable[[Sequence[Expr]], Expr],
        as_terms: bool = False,
        together: Callable[[list[int]], int] = sum,
    ) -> _Low:
        """An operation whose low bits follow from those of its operands."""
        lows = [self._low(p, t, as_terms) for p in parts]
        return _Low(self._new(make([low.value for low in lows])), together([low.cuts for low in lows]))

    def _exact(
        self,
        e: Expr,
        t: ScalarType,
        parts: Sequence[Expr],
        make: Callable[[Sequence[Expr], ScalarType], Expr],
        preferred: ScalarType | None = None,
    ) -> _Low | None:
        """An operation that is the same in a type of as many bits as `t` that all operands fit."""
        for of in (preferred or t, *_types_of(t.bits)):
            if of == e.type:
                return None
            if all(self._fits(p, of) for p in parts):
                lows = [self._low(p, of) for p in parts]
                value = self._new(make([low.value for low in lows], of))
                return _Low(self._cast(value, t), sum(low.cuts for low in lows))
        return None

    def _is_of_bytes(self, e: Binary, t: ScalarType) -> bool:
        """True for an operation of vectors of bytes whose operands are bytes of that type."""
        return e.op in _OF_BYTES and self._fits(e.left, t) and self._fits(e.right, t)

    def _is_count_of_bytes(self, e: Reduce, t: ScalarType) -> bool:
        """True for a sum that fits a type of bytes with all its terms, which are made of bytes alone: how many pass a
        threshold. What is made of wider elements comes in vectors of fewer lanes, and stays in these."""
        if not (self._fits(e, t) and self._fits(e.body, t)):
            return False
        made = [self._low(e.body, t).value, *([] if e.where is None else [self._same(e.where)])]
        return all(part.type.bits == 8 for value in made for part in parts_of_value(value))

    # facts ------------------------------------------------------------

    def _is_data(self, e: Expr) -> bool:
        """True for an integer that is made of something that is read."""
        return e.type.is_integer and self._is_read(e)

    def _is_read(self, e: Expr) -> bool:
        found = self._reads.get(id(e))
        if found is None:
            found = isinstance(e, Access) or any(map(self._is_read, children(e)))
            self._reads[id(e)] = found
        return found

    def _has_product(self, e: Expr) -> bool:
        """True for a product, and for sums and conversions with one in them."""
        found = self._products.get(id(e))
        if found is None:
            terms = children(e) if isinstance(e, Cast) or (isinstance(e, Binary) and e.op in _SUMS) else ()
            product = isinstance(e, Binary) and e.op == "*"
            found = self._products[id(e)] = product or any(map(self._has_product, terms))
        return found

    def _fits(self, e: Expr, t: ScalarType) -> bool:
        """True where all values of an integer are proved to be values of an integer type."""
        ends = interval(e, self._leaf, self._intervals).numeric
        return ends is not None and t.min <= ends[0] and ends[1] <= t.max

    def _leaf(self, leaf: Leaf) -> Interval:
        if isinstance(leaf, Var) and leaf.name in self._loops:
            return self._loops[leaf.name]
        known = self._ends.of(leaf.name, leaf.component) if isinstance(leaf, Access) else None
        return leaf_interval(leaf) if known is None else known

    def _type_of(self, e: Expr, bits: int) -> ScalarType | None:
        """The type of so many bits that an integer fits. Of two, bytes have no sign, as pixels, all else has one."""
        types = _types_of(bits)
        return next((t for t in (types[::-1] if bits == 8 else types) if self._fits(e, t)), None)

    # parts ------------------------------------------------------------

    def _new(self, e: Expr) -> Expr:
        self._alive.append(e)
        return e

    def _cast(self, e: Expr, t: ScalarType, saturate: bool = False) -> Expr:
        """`e` as a value of type `t`."""
        if e.type == t:
            return e
        if isinstance(e, Const) and e.type.is_integer and t.is_integer and not saturate:
            return Const(_wrapped(int(e.value), t), t)
        if not saturate and isinstance(e, Cast) and _changes_sign(e) and t.is_integer and t.bits <= e.type.bits:
            return self._cast(e.operand, t)
        key = (id(e), t, saturate)
        if key not in self._casts:
            self._casts[key] = self._new(Cast(self._new(e), t, saturate))
        return self._casts[key]


def _types_of(bits: int) -> tuple[ScalarType, ScalarType]:
    """The integers of so many bits, with and without a sign."""
    return ScalarType("int", bits), ScalarType("uint", bits)


def _changes_sign(e: Cast) -> bool:
    """True for a conversion that leaves all bits as they are."""
    return e.operand.type.is_integer and e.operand.type.bits == e.type.bits and not e.saturate


def _wrapped(value: int, t: ScalarType) -> int:
    return (value - t.min) % (1 << t.bits) + t.min


def _holds(t: ScalarType, other: ScalarType) -> bool:
    """True where all values of an integer type are values of the type `t`."""
    return t.is_integer and t.min <= other.min and other.max <= t.max


def _loops(values: Iterable[Expr]) -> dict[str, Interval]:
    """The variables of reductions that are known numbers, each with the interval of all loops of its name."""
    found: dict[str, Interval] = {}
    for r in (r for value in values for e in walk(value) if isinstance(e, Reduce) for r in e.domain):
        here = UNBOUNDED
        if isinstance(r.lo, Const) and isinstance(r.extent, Const) and r.extent.value > 0:
            here = Interval(r.lo.value, r.lo.value + r.extent.value - 1)
        found[r.name] = hull((found.get(r.name, here), here))
    return {name: ends for name, ends in found.items() if ends.numeric is not None}


def _reads(e: Expr) -> Iterator[Access]:
    """The accesses that the value of `e` is made of."""
    return (node for node in parts_of_value(e) if isinstance(node, Access))


def _reads_several(e: Expr) -> bool:
    """True of what is made of elements at two places, or more."""
    reads = _reads(e)
    first = next(reads, None)
    return any(read != first for read in reads)


def _has_integers(stage: Stage) -> bool:
    """A quick look: some part of a value is no float."""
    return any(not part.type.is_float for value in _values(stage) for part in parts_of_value(value))


def _values(stage: Stage) -> Iterator[Expr]:
    yield from stage.values
    for u in stage.updates:
        yield from u.values
        yield from () if u.where is None else (u.where,)


def _in_indices(stages: Iterable[Stage]) -> Iterator[str]:
    """The names of what indices, and ends of loops, are made of."""
    for s in stages:
        places = [part for u in s.updates for part in (*u.at, *(end for r in u.domain for end in (r.lo, r.extent)))]
        places += [index for a in parts(s, Access) for index in a.indices]
        places += [end for e in parts(s, Reduce) for r in e.domain for end in (r.lo, r.extent)]
        different = {id(place): place for place in places}
        yield from (e.name for place in different.values() for e in walk(place) if isinstance(e, Access))
