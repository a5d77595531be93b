"""Random sequences of rules, on expressions made of the patterns of rules and on random pipelines: the same values, to
the bit where all rules are exact, else within what rounding allows."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.random_pipelines import disagreement, random_inputs, random_params, random_pipeline, random_regions

from tilesmith.scheduler.frontends.document.document import load, to_document
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.evaluation import Leaf, evaluate
from tilesmith.scheduler.ir.pipeline.expressions import Expr, Var, map_children, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.type_promotion import constant
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.rewrites.expression_rules.application import Rule, apply, matches, normalize
from tilesmith.scheduler.rewrites.expression_rules.equality import kind
from tilesmith.scheduler.rewrites.expression_rules.error_bounds import with_errors
from tilesmith.scheduler.rewrites.expression_rules.library import RULES, SIMPLIFICATIONS, rule
from tilesmith.scheduler.rewrites.expression_rules.places import Part, expressions, parts
from tilesmith.scheduler.rewrites.expression_rules.proofs import Bounds
from tilesmith.scheduler.rewrites.expression_rules.rule import ExpressionRule
from tilesmith.scheduler.rewrites.refusal import Refusal

POINTS = 512


@cache
def exact_rules() -> tuple[Rule, ...]:
    return tuple(rule(t.name) for t in RULES if t.exact == "exact")


@cache
def close_rules() -> tuple[Rule, ...]:
    """Those that are exact, or exact but for rounding."""
    return tuple(rule(t.name) for t in RULES if t.exact != "approximate")


# Expressions


@cache
def patterns(type: ScalarType) -> tuple[Expr, ...]:
    """Both sides of the instances of all rules that are of a type."""
    sides = (
        side
        for r in close_rules()
        if isinstance(r, ExpressionRule)
        for i in r.instances
        for side in (i.match, i.result)
    )
    return tuple(
        s for s in sides if s.type == type and not any(isinstance(n, Var) and n.name[0] != "?" for n in walk(s))
    )


def random_expression(rng: random.Random, type: ScalarType, depth: int) -> Expr:
    """A pattern of the type, with variables and constants, and patterns in the place of its variables."""
    if depth == 0 or not patterns(type):
        if type.kind != "bool" and rng.random() < 0.3:
            found = constant(rng.choice((0, 1, 2, 3, 4, 8, 16, 100)), type)
            assert found is not None
            return found
        return Var(f"{type}_{rng.randrange(3)}", type)
    bound: dict[str, Expr] = {}

    def put(e: Expr) -> Expr:
        if isinstance(e, Var):
            if e.name not in bound:
                bound[e.name] = random_expression(rng, e.type, rng.randrange(depth))
            return bound[e.name]
        return map_children(e, put)

    return put(rng.choice(patterns(type)))


def random_values(e: Expr, seed: int, tame: bool) -> dict[str, np.ndarray]:
    """Values of the variables of `e`, NaN and infinities among them if not `tame`."""
    rng = np.random.default_rng(seed)
    values = {}
    for v in sorted({n for n in walk(e) if isinstance(n, Var)}, key=lambda v: v.name):
        if v.type.is_float:
            found = rng.normal(size=POINTS) * 2.0 ** rng.integers(-3, 4, POINTS)
            special = rng.choice([0.0, 1.0, -1.0, 2.0, 0.5, *(() if tame else (-0.0, np.nan, np.inf, -np.inf))], POINTS)
            values[v.name] = np.where(rng.random(POINTS) < 0.2, special, found).astype(v.type.numpy)
        elif v.type.kind == "bool":
            values[v.name] = rng.integers(0, 2, POINTS).astype(np.bool_)
        else:
            found = rng.integers(v.type.min, v.type.max, POINTS, v.type.numpy, endpoint=True)
            values[v.name] = np.where(rng.random(POINTS) < 0.3, rng.integers(0, 9, POINTS), found).astype(v.type.numpy)
    return values


def value(e: Expr, values: dict[str, np.ndarray]) -> np.ndarray:
    def leaf(leaf: Leaf) -> np.ndarray:
        assert isinstance(leaf, Var)
        return values[leaf.name]

    return np.broadcast_to(evaluate(e, leaf), (POINTS,))


def random_step(e: Expr, rules: tuple[Rule, ...], rng: random.Random) -> tuple[str, Expr] | None:
    """A rule that fits somewhere, applied there."""
    bounds, places = Bounds(e), list(parts(Part(e, ())))
    kinds = {kind(p.e) for p in places}
    for r in rng.sample(rules, len(rules)):
        if r.kinds is not None and not kinds & set(r.kinds):
            continue
        for part in rng.sample(places, len(places)):
            if r.kinds is None or kind(part.e) in r.kinds:
                new = r.rewritten(part.e, bounds, strict=False)
                if not isinstance(new, str):
                    assert new.type == part.e.type
                    return r.name, part.replaced(new)
    return None


@pytest.mark.parametrize("seed", range(30))
def test_exact_rules_keep_every_bit(seed: int) -> None:
    rng = random.Random(seed)
    e = random_expression(rng, rng.choice(all_types()), 3)
    values = random_values(e, seed, tame=False)
    expected, trace = value(e, values), [to_text(e)]
    for _ in range(8):
        step = random_step(e, exact_rules(), rng)
        if step is None:
            break
        name, e = step
        trace.append(f"{name}: {to_text(e)}")
        np.testing.assert_array_equal(value(e, values), expected, "\n".join(trace), strict=True)
        if e.type.is_float:
            number = ~np.isnan(expected)
            np.testing.assert_array_equal(
                np.signbit(value(e, values))[number], np.signbit(expected)[number], "\n".join(trace)
            )


@pytest.mark.parametrize("seed", range(30))
def test_other_rules_keep_all_but_rounding(seed: int) -> None:
    rng = random.Random(1000 + seed)
    e = random_expression(rng, rng.choice(all_types()), 3)
    values = random_values(e, seed, tame=True)
    (expected, error), trace = with_errors(e, values), [to_text(e)]
    for _ in range(8):
        step = random_step(e, close_rules(), rng)
        if step is None:
            break
        name, e = step
        trace.append(f"{name}: {to_text(e)}")
        found, other = with_errors(e, values)
        with np.errstate(all="ignore"):
            apart = np.abs(np.asarray(found, np.float64) - np.asarray(expected, np.float64))
            sure = np.isfinite(error + other)
            assert np.all(apart[sure] <= 2 * (error + other)[sure]), "\n".join(trace)


@cache
def all_types() -> tuple[ScalarType, ...]:
    found = {i.match.type for r in close_rules() if isinstance(r, ExpressionRule) for i in r.instances}
    return tuple(sorted(found, key=lambda t: t.name))


# Pipelines


def random_sequence(
    pipeline: Pipeline, rules: tuple[Rule, ...], rng: random.Random, steps: int
) -> tuple[Pipeline, list[str]]:
    """A pipeline after so many random rules at random places, and where they were applied."""
    applied: list[str] = []
    for r in rng.sample(rules, len(rules)):
        if len(applied) == steps:
            break
        kinds = {kind(p.e) for s in pipeline.stages for whole in expressions(s) for p in parts(whole)}
        if r.kinds is not None and not kinds & set(r.kinds):
            continue
        places = list(matches(r, pipeline))
        if places:
            place = rng.choice(places)
            after = apply(r, pipeline, place)
            assert isinstance(after, Pipeline), after
            pipeline = after
            applied.append(f"{r.name} at {place}")
    return pipeline, applied


def assert_same_values(before: Pipeline, after: Pipeline, seed: int, exact: bool, trace: list[str]) -> None:
    regions, params = random_regions(before, seed), random_params(before, seed)
    images = random_inputs(before, seed, regions, params)
    expected, got = (interpret(p, images, params, regions) for p in (before, after))
    for name, arrays in expected.items():
        for a, b in zip(arrays, got[name], strict=True):
            if exact:
                np.testing.assert_array_equal(b, a, "\n".join(trace), strict=True)
            else:
                assert disagreement(b, a) is None, "\n".join((name, *trace, disagreement(b, a) or ""))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))])
def test_pipelines_keep_their_values(seed: int, exact: bool) -> None:
    rng = random.Random(seed)
    before = load(random_pipeline(seed))
    after, trace = random_sequence(before, exact_rules() if exact else close_rules(), rng, 12)
    assert load(to_document(after)) == after
    assert_same_values(before, after, seed, exact, trace)


@pytest.mark.parametrize("seed", range(16))
def test_simplification_has_a_normal_form(seed: int) -> None:
    rules = [rule(name) for name in SIMPLIFICATIONS]
    rng = random.Random(seed)
    for _ in range(20):
        before = random_expression(rng, rng.choice(all_types()), 3)
        pipeline = of_variables(before)
        after = normalize(rules, pipeline)
        assert not isinstance(after, Refusal), (str(after), to_text(before))
        assert [str(m) for r in rules for m in matches(r, after)] == []
        assert normalize(rules, after) is after
        again = of_variables(after.stages[0].values[0])
        assert again.stages == after.stages


def of_variables(e: Expr) -> Pipeline:
    """A pipeline of one stage, whose value is `e`; its variables stay what they are."""
    whole = load(
        {
            "format": 1,
            "name": "one",
            "inputs": [],
            "stages": [{"name": "f", "dims": ["x"], "value": "x"}],
            "outputs": ["f"],
            "estimates": {"f": [[0, 8]]},
        }
    )
    return replace(whole, stages=(replace(whole.stages[0], values=(e,)),))
