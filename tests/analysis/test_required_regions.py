"""Intervals and required regions: never too small, and kept by inclusion, which is what sizes buffers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from random import Random

import pytest
from support.random_indices import Indices, number, value_of
from support.random_pipelines import random_inputs, random_params, random_pipeline, random_regions

from scheduler.analysis.bounds_inference import interval_of, required_boxes
from scheduler.features.required_regions import required_regions
from scheduler.frontends.document.document import load
from scheduler.interpreter import interpreter
from scheduler.ir.index import Index, const, sym
from scheduler.ir.pipeline.expressions import Access, Binary, Cast, Const, Expr, Unary, Var
from scheduler.ir.pipeline.pipeline import Pipeline
from scheduler.ir.pipeline.types import INT32, UINT8, UINT16
from scheduler.rewrites.normalize import normalise
from scheduler.rewrites.split_separable import put_in

R = range(-2, 3)
Ends = tuple[int, int]


def ends_of(e: Expr, boxes: dict[str, Ends], symbols: dict[str, int], symbolic: bool) -> Ends:
    """The interval of `e` as numbers; with `symbolic`, from intervals between symbols."""
    env = {"r": (const(R.start), const(R.stop - 1))}
    known = dict(symbols)
    for name, (lo, hi) in boxes.items():
        known[f"{name}.lo"], known[f"{name}.hi"] = lo, hi
        env[name] = (sym(f"{name}.lo"), sym(f"{name}.hi")) if symbolic else (const(lo), const(hi))
    low, high = interval_of(e, env)
    known.update({f"param.{n}": v for n, v in symbols.items()})
    return low.value(known), high.value(known)


def _box(random: Random) -> Ends:
    lo = random.randint(-12, 12)
    return lo, lo + random.choice((0, 0, 1, 2, 5, 11))


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_an_index_stays_within_its_interval(depth: int, symbolic: bool) -> None:
    for seed in range(700):
        random = Random(seed)
        e = Indices(seed * 10 + depth, ("x", "y", "r")).draw(depth)
        boxes = {"x": _box(random), "y": _box(random)}
        symbols = {"n": random.randint(-9, 9), "image.min.x": random.randint(-9, 9), "image.extent.x": 4}
        low, high = ends_of(e, boxes, symbols, symbolic)
        for _ in range(40):
            at = {n: random.randint(*box) for n, box in boxes.items()}
            v = value_of(e, {**symbols, **at, "r": random.choice(R)}, random)
            assert low <= v <= high, (e, boxes, at)


def test_intervals_are_kept_by_inclusion() -> None:
    for seed in range(2500):
        random = Random(seed)
        e = Indices(seed, ("x", "y", "r")).draw(3)
        boxes = {"x": _box(random), "y": _box(random)}
        wide = {n: (lo - random.randint(0, 4), hi + random.randint(0, 4)) for n, (lo, hi) in boxes.items()}
        symbols = {"n": random.randint(-9, 9), "image.min.x": random.randint(-9, 9), "image.extent.x": 4}
        inner = ends_of(e, boxes, symbols, symbolic=False)
        for symbolic in (False, True):
            outer = ends_of(e, wide, symbols, symbolic)
            assert outer[0] <= inner[0], (e, boxes, wide)
            assert inner[1] <= outer[1], (e, boxes, wide)


BYTE = Access("bytes", (Var("x"),), 0, UINT8)


@pytest.mark.parametrize(
    ("e", "ends"),
    [
        (Cast(Binary("-", BYTE, number(1, UINT8), UINT8), INT32), (0, 255)),
        (Cast(Binary("+", BYTE, number(1, UINT8), UINT8), INT32), (0, 255)),
        (Cast(Binary("+", Cast(BYTE, UINT16), number(1, UINT16), UINT16), INT32), (1, 256)),
        (Cast(Unary("-", BYTE, UINT8), INT32), (0, 255)),
        (Cast(Binary("<<", BYTE, number(4, UINT8), UINT8), INT32), (0, 255)),
        (Cast(Binary("//", BYTE, number(2, UINT8), UINT8), INT32), (0, 127)),
    ],
    ids=["minus", "plus", "wide", "negated", "shifted", "halved"],
)
def test_arithmetic_of_narrow_types_wraps(e: Expr, ends: Ends) -> None:
    assert ends_of(e, {"x": (0, 9)}, {}, symbolic=False) == ends


def test_affine_indices_have_exact_ends() -> None:
    e = Binary("//", Binary("-", Binary("*", Const(3, INT32), Var("x"), INT32), number(2), INT32), number(2), INT32)
    assert ends_of(e, {"x": (-3, 5)}, {}, symbolic=True) == ((3 * -3 - 2) // 2, (3 * 5 - 2) // 2)


# Whole pipelines

SEEDS = range(150)


@cache
def drawn(seed: int) -> Pipeline:
    return load(random_pipeline(seed))


@pytest.mark.parametrize("chunk", range(5))
def test_required_regions_cover_what_is_read(chunk: int) -> None:
    """The interpreter finds its own, from the values that are asked for, one after the other; of stages that inherit an
    edge what readers that stop there ask for."""
    for seed in SEEDS[chunk::5]:
        pipeline = drawn(seed)
        params, regions = random_params(pipeline, seed), random_regions(pipeline, seed)
        inputs = random_inputs(pipeline, seed, regions, params)
        places = {n: tuple(zip(i.min, i.array.shape[::-1], strict=True)) for n, i in inputs.items()}
        ours = required_regions(pipeline, regions, params, places)
        theirs = interpreter.required_regions(normalise(pipeline), inputs, params, regions)
        read = interpreter.required_regions(pipeline, inputs, params, regions)
        for name, region in [*theirs.items(), *((n, region) for n, region in read.items() if n in inputs)]:
            for (lo, extent), (low, length) in zip(region, ours[name], strict=True):
                assert low <= lo, (seed, name)
                assert lo + extent <= low + length, (seed, name)


@pytest.mark.parametrize("chunk", range(5))
def test_a_larger_output_never_needs_less(chunk: int) -> None:
    for seed in SEEDS[chunk::5]:
        random = Random(seed)
        pipeline = drawn(seed)
        params, regions = random_params(pipeline, seed), random_regions(pipeline, seed)
        inputs = random_inputs(pipeline, seed, regions, params)
        places = {n: tuple(zip(i.min, i.array.shape[::-1], strict=True)) for n, i in inputs.items()}
        wide = {}
        for name, region in regions.items():
            grown = [(random.randint(0, 3), random.randint(0, 3)) for _ in region]
            wide[name] = tuple((lo - a, n + a + b) for (lo, n), (a, b) in zip(region, grown, strict=True))
        small = required_regions(pipeline, regions, params, places)
        large = required_regions(pipeline, wide, params, places)
        assert small.keys() == large.keys()
        for name, region in small.items():
            for (lo, extent), (low, length) in zip(region, large[name], strict=True):
                assert low <= lo, (seed, name)
                assert lo + extent <= low + length, (seed, name)


def test_bounds_stay_short_with_names() -> None:
    """A chain of stencils: every bound is one name, and each name a short sum."""
    document = {
        "format": 1,
        "name": "chain",
        "inputs": [{"name": "input", "type": "int32", "dims": ["x"]}],
        "stages": [
            {"name": f"s{n}", "dims": ["x"], "value": f"{f's{n - 1}' if n else 'input'}(x - 1) + 1"} for n in range(40)
        ],
        "outputs": ["s39"],
        "estimates": {"s39": [[0, 64]]},
    }
    named: dict[str, Index] = {}

    def name(value: Index, hint: str) -> Index:
        named[f"{hint}{len(named)}"] = value
        return sym(f"{hint}{len(named) - 1}")

    boxes = required_boxes(load(document), {"s39": ((sym("lo"), sym("hi")),)}, name)
    assert set(boxes) == {"input", *(f"s{n}" for n in range(40))}
    assert max(len(v.key) for v in named.values()) < 30


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("input(2 * x, y) + input(2 * x + 2, y)", "inner(x // 2, y) + inner((x + 2) // 2, y)"),
        ("input(x, clamp(y, -1, 7))", "inner(x, clamp(clamp(y % 24, 1, 13), -1 - 2, 7))"),
    ],
)
def test_a_stage_that_is_put_into_its_reader_needs_the_same(inner: str, outer: str) -> None:
    """As when a window is split through it."""
    document = {
        "format": 1,
        "name": "chain",
        "inputs": [{"name": "input", "type": "int32", "dims": ["x", "y"]}],
        "stages": [
            {"name": "inner", "dims": ["x", "y"], "value": inner},
            {"name": "outer", "dims": ["x", "y"], "value": outer},
        ],
        "outputs": ["outer"],
        "estimates": {"outer": [[0, 64], [0, 64]]},
    }
    pipeline = load(document)
    put = put_in(pipeline.stage("outer"), pipeline.stage("inner"))
    together = replace(pipeline, stages=(put,))
    for lo, extent in product(range(-5, 5), (1, 2, 5)):
        regions = {"outer": ((lo, extent), (lo, extent))}
        before, after = (required_regions(p, regions, {}, {})["input"] for p in (pipeline, together))
        assert before == after
