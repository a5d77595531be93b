"""Folding of updates: pipelines compute what they computed before, and what should be folded is."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tilesmith.scheduler.analysis.stage_graph import is_plain
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.expressions import Access, Binary, Const, Reduce, RVar, Var, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.substitution import substituted
from tilesmith.scheduler.ir.pipeline.types import INT32
from tilesmith.scheduler.rewrites.fold_updates import folded
from tilesmith.scheduler.rewrites.passes import normalise

ROW = {"name": "input", "type": "uint8", "dims": ["x"], "boundary": {"kind": "repeat_edge"}}
REALS = {"name": "reals", "type": "float32", "dims": ["x"], "boundary": {"kind": "repeat_edge"}}


def pipeline_of(value: object, *updates: dict[str, object], dims: str = "x", components: int = 1) -> Pipeline:
    """Stage f with these updates, and the output that reads all of it."""
    zeros = ", ".join(dims)
    reads = [f"f({zeros})"] if components == 1 else [f"f({zeros})[{k}]" for k in range(components)]
    stages = [
        {"name": "f", "dims": list(dims), "value": value, "updates": list(updates)},
        {"name": "out", "dims": list(dims), "value": reads if components > 1 else reads[0]},
    ]
    return load(
        {
            "format": 1,
            "name": "test",
            "inputs": [ROW, REALS],
            "params": [{"name": "n", "type": "int32", "min": 1, "max": 9, "default": 3}],
            "stages": stages,
            "outputs": ["out"],
            "estimates": {"out": [[0, 8]] * len(dims)},
        }
    )


def update(value: object, at: str = "x", where: str | None = None, **domain: list[object]) -> dict[str, object]:
    found: dict[str, object] = {"domain": domain, "at": at.split(), "value": value}
    return found if where is None else {**found, "where": where}


def assert_same(pipeline: Pipeline, strict: bool = False, exact: bool = True) -> Stage:
    """Compares the values of the pipeline and of its normal form; the folded stage."""
    plain = normalise(pipeline, strict)
    rng = np.random.default_rng(0)
    inputs = {
        "input": Image(rng.integers(0, 256, 31).astype(np.uint8), (-4,)),
        "reals": Image(rng.random(31).astype(np.float32), (-4,)),
    }
    regions = {"out": tuple((-3, 9) for _ in pipeline.stage("out").dims)}
    for a, b in zip(*(interpret(p, inputs, {}, regions)["out"] for p in (pipeline, plain)), strict=True):
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5)
    return plain.stage("f")


SUM = update("f(x) + reals(x + r)", r=[-2, 5])


def test_a_short_sum_is_a_reduction() -> None:
    f = assert_same(pipeline_of("0.0", SUM))
    assert is_plain(f)
    assert isinstance(f.values[0], Reduce)


def test_a_sum_that_starts_at_zero_is_exact_and_folded_under_strict_floats() -> None:
    f = assert_same(
        pipeline_of("0.0", update("f(x) + reals(x + r) * reals(x - 3 * s)", r=[-2, 5], s=[1, 3])), strict=True
    )
    assert isinstance(f.values[0], Reduce)
    assert [r.name for r in f.values[0].domain] == ["s", "r"]


def test_a_sum_that_starts_elsewhere_keeps_its_order_under_strict_floats() -> None:
    long = update("f(x) + reals(x + r)", r=[-20, 41])
    assert not is_plain(assert_same(pipeline_of("reals(x)", long), strict=True))
    assert not is_plain(assert_same(pipeline_of("-0.0", long), strict=True))
    assert is_plain(assert_same(pipeline_of("reals(x)", long), exact=False))
    few = assert_same(pipeline_of("reals(x)", SUM), strict=True)
    assert is_plain(few)
    assert not any(isinstance(e, Reduce) for e in walk(few.values[0]))


@pytest.mark.parametrize(
    "value",
    ["f(x) + input(x + r)", "f(x) * input(x + r)", "min(f(x), input(x + r), r)", "max(n, f(x), input(x + r))"],
)
@pytest.mark.parametrize("start", ["0", "7", "int32(input(x))"])
def test_integers_are_exact(value: str, start: str) -> None:
    for where in (None, "input(x + r) > 90"):
        f = assert_same(pipeline_of(start, update(value, where=where, r=[-9, 20])), strict=True)
        assert is_plain(f)
        assert sum(isinstance(e, Reduce) for e in walk(f.values[0])) == 1


@pytest.mark.parametrize("value", ["f(x) and input(x + r) > 40", "f(x) or input(x + r) < 4"])
def test_bools_are_folded(value: str) -> None:
    for start in ("True", "False", "input(x) < 128"):
        assert is_plain(assert_same(pipeline_of(start, update(value, r=[-9, 20])), strict=True))


@pytest.mark.parametrize("value", ["f(x) ^ input(x + r)", "f(x) & (input(x + r) | 3)", "f(x) | input(x - r)"])
def test_bits_are_folded_if_they_are_few(value: str) -> None:
    assert is_plain(assert_same(pipeline_of("int32(input(x))", update(value, r=[0, 9]))))
    assert not is_plain(assert_same(pipeline_of("int32(input(x))", update(value, r=[0, 20]))))


def test_long_and_unknown_domains_stay_where_points_share_no_terms() -> None:
    for domain in ([0, 65], [0, "n"], ["n", 4], [0, "input.extent.x"]):
        for alone in ("f(x) + input(x) * r", "f(x) + input(x) * (r + 1)"):
            assert len(assert_same(pipeline_of("0", update(alone, r=domain))).updates) == 1
        for shared in ("f(x) + input(x + r)", "f(x) + input(r)", "f(x) + input(x) * input(r)"):
            assert is_plain(assert_same(pipeline_of("0", update(shared, r=domain))))
    for value in ("f(x) + input(x + r)", "f(x) + input(x) * r"):
        assert is_plain(assert_same(pipeline_of("0", update(value, r=[0, 64]))))


def test_a_product_of_matrices_is_the_same_as_an_update_and_as_a_sum() -> None:
    product = "float32(input(r)) * reals(x) * reals(y + r)"
    updated = pipeline_of("0.0", update(f"f(x, y) + {product}", at="x y", r=[0, 100]), dims="xy")
    summed = pipeline_of(f"sum({product} for r in range(100))", dims="xy")
    assert normalise(updated) == normalise(summed)


def test_a_point_by_itself() -> None:
    for value in ("min(f(x), 200) * 2", "f(x) * f(x) - f(x)", "int32(input(f(x) % 8))", "3"):
        for where in (None, "f(x) > 50 and x % 2 == 0"):
            f = assert_same(pipeline_of("int32(input(x))", update(value, where=where)), strict=True)
            # where nothing is left of the value, what it reads is still required
            assert is_plain(f) == (value != "3" or where is not None)


def test_a_recurrence_of_each_point() -> None:
    f = assert_same(pipeline_of("reals(x)", update("f(x) * 0.5 + reals(x + r)", r=[0, 4])), strict=True)
    assert is_plain(f)


def test_updates_are_folded_in_order_until_one_is_not() -> None:
    clamp, scatter = update("min(f(x), 300)"), update("f(3) + f(r) * 2", at="r", r=[-3, 9])
    first = assert_same(pipeline_of("0", update("f(x) + input(x + r)", r=[0, 9]), clamp, scatter, clamp))
    assert len(first.updates) == 2
    assert len(first.values) == 1
    assert is_plain(assert_same(pipeline_of("0", update("f(x) + input(x + r)", r=[0, 9]), clamp, clamp)))
    assert len(assert_same(pipeline_of("0", scatter, clamp)).updates) == 2


def test_tuples() -> None:
    two = ["0", "uint8(255)"]
    both = update(["f(x)[0] + input(x + r)", "f(x)[1] + input(x + r)"], r=[-9, 30])
    f = assert_same(pipeline_of(two, both, components=2))
    assert not f.updates
    swap = update(["int32(f(x)[1])", "uint8(f(x)[0])"])
    f = assert_same(pipeline_of(["int32(input(x))", "uint8(9)"], swap, components=2))
    assert not f.updates
    closer = "input(x + r) < f(x)[1]"
    least = update([f"r if {closer} else f(x)[0]", f"input(x + r) if {closer} else f(x)[1]"], r=[-2, 30])
    f = assert_same(pipeline_of(two, least, components=2))
    assert len(f.updates) == 1


def test_what_would_grow_stays() -> None:
    square = update("f(x) * f(x) * f(x)", r=[0, 9])
    assert len(assert_same(pipeline_of("reals(x)", square)).updates) == 1
    f = assert_same(pipeline_of("reals(x)", *[update("f(x) * 0.5 + f(x) * 0.5")] * 20))
    assert 10 < len(f.updates) < 20
    chain = assert_same(pipeline_of("reals(x)", *[update("f(x) * 0.5 + reals(x + 1)")] * 100))
    assert not chain.updates


def test_what_would_grow_is_not_made() -> None:
    """Half a million parts, and with each update so many times more."""
    many = " + ".join(["input(x)"] * 500)
    product = update(" * ".join(["f(x)"] * 500))
    assert folded(pipeline_of(many, *[product] * 9).stage("f")).updates


def test_nothing_is_computed_once_a_term() -> None:
    inside = update("sum(f(x) * input(x + q) for q in range(9))")
    assert len(assert_same(pipeline_of("int32(input(x))", inside)).updates) == 1
    outside = update("f(x) * sum(int32(input(x + q)) for q in range(9))")
    assert is_plain(assert_same(pipeline_of("int32(input(x))", outside)))


def test_what_another_stage_holds_there_is_a_term() -> None:
    """The first of what is joined is not the stage's own value, though it is read at the same place."""
    stages = [
        {"name": "g", "dims": ["x"], "value": "int32(input(x)) - 9"},
        {"name": "f", "dims": ["x"], "value": "x", "updates": [update("min(g(x), f(x))", r=[0, 4])]},
        {"name": "out", "dims": ["x"], "value": "f(x)"},
    ]
    document = {"format": 1, "name": "test", "inputs": [ROW, REALS], "stages": stages, "outputs": ["out"]}
    f = assert_same(load(document | {"estimates": {"out": [[0, 8]]}}))
    assert is_plain(f)
    assert {n.name for n in walk(f.values[0]) if isinstance(n, Access)} == {"g"}


def test_a_place_that_is_not_each_point_stays() -> None:
    for changed in (update("f(r) + 1", at="r", r=[0, 4]), update("5", at="n"), update("f(0) + r", at="0", r=[1, 3])):
        assert len(assert_same(pipeline_of("int32(input(x))", changed)).updates) == 1


def test_a_stage_without_dims() -> None:
    f = assert_same(pipeline_of("0", update("f() + input(r)", at="", r=[-3, 20]), dims=""))
    assert isinstance(f.values[0], Reduce)


def test_folded_once_and_for_all() -> None:
    pipeline = pipeline_of("0.0", SUM)
    plain = normalise(pipeline)
    assert normalise(plain) is plain
    f = plain.stage("f")
    assert folded(f) is f


POOL = [
    update("f(x) + input(x + r)", r=[-2, 5]),
    update("f(x) - input(x + r) * input(x - s)", where="input(x + s) > r", r=[-2, 5], s=[0, 3]),
    update("f(x) * (input(x) + r)", r=[1, 3]),
    update("max(f(x), int32(input(x + r)))", where="r % 3 != x % 3", r=[0, 70]),
    update("min(f(x), 5000) - x"),
    update("f(x) // 2 + f(x) % 7"),
    update("f(x) ^ (r << 3)", r=[0, 5]),
    update("int32(input(f(x) % 16))", where="f(x) > 1000"),
    update("f(x) + argmin(input(x + q) for q in range(-3, 9))[0]"),
    update("f(r - 1) + f(r)", at="r", r=[-1, 4]),
]


@pytest.mark.parametrize("seed", range(40))
def test_random_updates_stay(seed: int) -> None:
    chosen = random.Random(seed).choices(POOL, weights=[1] * 9 + [0.3], k=4)
    pipeline = pipeline_of("int32(input(x))", *chosen)
    f = assert_same(pipeline, strict=True)
    assert len(f.updates) < 4 or chosen[0] in (POOL[3], POOL[9])


def test_a_bound_variable_is_not_replaced() -> None:
    body = Binary("+", Var("r"), Var("s"), INT32)
    total = Reduce("sum", body, (RVar("r", Const(0, INT32), Const(3, INT32)),), None, 0, INT32)
    both = Binary("+", Var("r"), total, INT32)
    one = Const(1, INT32)
    found = substituted(both, {"r": one, "s": one})
    assert found == Binary(
        "+", one, Reduce("sum", Binary("+", Var("r"), one, INT32), total.domain, None, 0, INT32), INT32
    )
