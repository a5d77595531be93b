"""Verification of rules by evaluation: both sides of every instance on all values of small types, on extreme and random
ones of the others. Rules of users are loaded only if no value tells the sides apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Final

import numpy as np

from tilesmith.scheduler.errors import DocumentError, Problem
from tilesmith.scheduler.ir.pipeline.evaluation import Leaf, evaluate
from tilesmith.scheduler.ir.pipeline.expressions import Call, Expr, Var, walk
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.semantics import Array
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.rewrites.expression_rules.conditions import Holds
from tilesmith.scheduler.rewrites.expression_rules.error_bounds import with_errors
from tilesmith.scheduler.rewrites.expression_rules.rule import Exactness, ExpressionRule, Instance
from tilesmith.scheduler.rewrites.expression_rules.template import argument_of

ALL_VALUES: Final = 1 << 16
"""So many combinations of values are tried all, ..."""
SAMPLES: Final = 2048
FEW_SAMPLES: Final = 256
"""... or this many of them, few where functions are computed element by element, ..."""
ROUNDS: Final = 8
"""... up to so many times, until there are ..."""
ENOUGH: Final = 16
"""... that many where the conditions hold and the result says something."""
APPROXIMATE: Final = 2.0**-8
"""The relative difference that an approximation may make."""
SAFETY: Final = 2.0

_ELEMENT_BY_ELEMENT = frozenset((
    "abs", "absd", "lerp", "sat_add", "sat_sub", "halving_add", "rounding_halving_add", "rounding_shift_right",
    "mul_shift_right",
))  # fmt: skip


def check(rule: ExpressionRule, where: str = "") -> ExpressionRule:
    """The rule itself; raises DocumentError, with values that tell its sides apart, where it is not what it says."""
    for instance in rule.instances:
        found = counterexample(instance, rule.exact)
        if found is not None:
            hint = "restrict it with conditions, as in type(?a) is integer, or say that it is not exact"
            problem = Problem("false_rule", where, f"The rule {rule.name!r} {found}.", hint)
            raise DocumentError((problem,))
    return rule


_CLAIM: Final[Mapping[Exactness, str]] = {
    "exact": "exact", "rounding": "exact but for rounding", "approximate": "an approximation",
}  # fmt: skip


def counterexample(instance: Instance, exact: Exactness) -> str | None:
    """A counterexample of an instance: values at which its sides differ by more than `exact` allows, and what they are
    there; or that no values say anything."""
    counted = 0
    for values in _samples(instance):
        values = _where_it_holds(instance, values)
        size = len(next(iter(values.values())))
        if not size:
            continue
        wrong, says = _compared(instance, exact, values)
        if wrong.any():
            at = int(np.argmax(wrong))
            return f"is not {_CLAIM[exact]}: {_shown(instance, {name: v[at] for name, v in values.items()})}"
        counted += int(np.count_nonzero(says))
        if counted >= ENOUGH or size == ALL_VALUES:
            return None
    types = ", ".join(f"{v.name}: {v.type}" for v in instance.variables)
    return None if counted else f"cannot be judged: no values ({types}) were found where its two sides can be compared"


def _compared(instance: Instance, exact: Exactness, values: Mapping[str, Array]) -> tuple[Array, Array]:
    """Masks of the samples at which the two sides differ, and at which the comparison says something."""
    match, result = instance.match, instance.result
    if exact == "exact" or not (instance.has_floats or exact == "approximate"):
        before, after = (_evaluated(side, values) for side in (match, result))
        return ~_equal(before, after), np.full(before.shape, True)
    (before, error), (after, other) = (with_errors(side, values) for side in (match, result))
    allowed = SAFETY * (error + other)
    with np.errstate(all="ignore"):
        sizes = np.maximum(np.abs(np.asarray(before, np.float64)), np.abs(np.asarray(after, np.float64)))
        if exact == "approximate":
            allowed = allowed + APPROXIMATE * sizes + (0 if match.type.is_float or match.type.kind == "bool" else 1)
        apart = np.abs(np.asarray(before, np.float64) - np.asarray(after, np.float64))
        sure = np.isfinite(allowed)
        return sure & ~(apart <= allowed), sure & (allowed <= np.maximum(2 * APPROXIMATE * sizes, 1e-30))


def _equal(a: Array, b: Array) -> Array:
    """Equality to the bit; any NaN is one."""
    if a.dtype.kind != "f":
        return np.asarray(a == b)
    with np.errstate(all="ignore"):
        return np.asarray(((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b)))


def _evaluated(e: Expr, values: Mapping[str, Array]) -> Array:
    def leaf(leaf: Leaf) -> Array:
        assert isinstance(leaf, Var)
        return values[leaf.name]

    size = len(next(iter(values.values())))
    return np.broadcast_to(evaluate(e, leaf), (size,))


def _where_it_holds(instance: Instance, values: Mapping[str, Array]) -> Mapping[str, Array]:
    """The values where the conditions hold, with the logarithms that the rule speaks of."""
    for logarithm in instance.logarithms:
        of = values[argument_of(logarithm)]
        powers = [n for n in range(logarithm.type.bits) if 1 << n <= logarithm.type.max]
        places = np.searchsorted([1 << n for n in powers], np.maximum(of, 1).astype(object))
        kept = np.array([n < len(powers) and int(x) == 1 << powers[n] for n, x in zip(places, of, strict=True)], bool)
        values = {name: v[kept] for name, v in values.items()}
        values = {**values, logarithm.name: places[kept].astype(logarithm.type.numpy)}
    for condition in instance.where:
        if isinstance(condition, Holds) and len(next(iter(values.values()))):
            holds = _evaluated(condition.e, values)
            values = {name: v[holds] for name, v in values.items()}
    return values


def _shown(instance: Instance, values: Mapping[str, Array]) -> str:
    here = {name: np.asarray([v]) for name, v in values.items()}
    before, after = (_evaluated(side, here)[0] for side in (instance.match, instance.result))
    given = ", ".join(f"{v.name} = {values[v.name]} ({v.type})" for v in instance.variables)
    return f"with {given}, {to_text(instance.match)} is {before} and {to_text(instance.result)} is {after}"


# Values


def _samples(instance: Instance) -> Iterator[Mapping[str, Array]]:
    """Values of the variables: all combinations, where they are few, or rounds of extreme and random ones."""
    variables = instance.variables
    slow = any(isinstance(n, Call) and n.function in _ELEMENT_BY_ELEMENT for n in _all_parts(instance))
    if all(v.type.bits <= 16 and not v.type.is_float for v in variables) and not slow:
        ranges = [np.arange(v.type.min, v.type.max + 1) for v in variables]
        if prod(map(len, ranges)) <= ALL_VALUES:
            grid = np.meshgrid(*ranges, indexing="ij")
            yield {v.name: g.ravel().astype(v.type.numpy) for v, g in zip(variables, grid, strict=True)}
            return
    rng = np.random.default_rng(len(variables))
    for _ in range(ROUNDS):
        yield _drawn(variables, rng, FEW_SAMPLES if slow else SAMPLES)


def _all_parts(instance: Instance) -> Iterator[Expr]:
    for side in (instance.match, instance.result):
        yield from walk(side)


def _drawn(variables: tuple[Var, ...], rng: np.random.Generator, size: int) -> Mapping[str, Array]:
    """`size` values each: some extreme, some random, some those of a variable before it."""
    found: dict[str, Array] = {}
    for v in variables:
        kinds = rng.integers(0, 8, size)
        values = np.where(kinds < 4, rng.choice(_extremes(v.type), size), _random(v.type, rng, size))
        others = [found[o.name] for o in variables if o.name in found and o.type == v.type]
        if others:
            values = np.where(kinds == 7, others[int(rng.integers(len(others)))], values)
        found[v.name] = values.astype(v.type.numpy)
    return found


def _extremes(type: ScalarType) -> Array:
    if type.is_float:
        limits = np.finfo(type.numpy)
        ends = [limits.max, limits.tiny, limits.smallest_subnormal, np.inf, np.nan, 0.0]
        usual = [1, 2, 3, 4, 7.25, 10, 16, 100, 255, 256, 1e4, 1e8, 0.5, 0.25, 0.1, 1 / 3, 1e-3, 1e-8, 1e20, 1e-20]
        positive = np.array([*usual, *ends], type.numpy)
        return np.concatenate([positive, positive[: len(usual)], -positive])
    if type.kind == "bool":
        return np.array([False, True])
    powers = [1 << n for n in range(type.bits)]
    near = [p + d for p in powers for d in (-1, 0, 1)] + list(range(12)) + [type.min, type.max, type.min + 1]
    return np.array([n for n in (*near, *(-n for n in near)) if type.min <= n <= type.max], type.numpy)


def _random(type: ScalarType, rng: np.random.Generator, size: int) -> Array:
    if type.is_float:
        return (rng.normal(size=size) * 2.0 ** rng.integers(-8, 9, size)).astype(type.numpy)
    if type.kind == "bool":
        return rng.integers(0, 2, size).astype(np.bool_)
    return rng.integers(type.min, type.max, size, type.numpy, endpoint=True)
