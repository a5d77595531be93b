"""Pairs of terms: contractions of 16 bits have two products an iteration, and the values stay."""

from __future__ import annotations

import numpy as np
import pytest
from support.random_cases import case_of, judge
from support.tools import require_tool

from tilesmith.platforms import catalog
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.expressions import Binary, Const, Reduce, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search.driver import autoschedule

PRODUCT = "sum(int32(a(r, y)) * int32(b(x, r)) for r in range({}))"


def product(value: str, types: tuple[str, str]) -> Pipeline:
    inputs = [
        {"name": "a", "type": types[0], "dims": ["r", "y"]},
        {"name": "b", "type": types[1], "dims": ["x", "r"]},
    ]
    stage = {"name": "out", "dims": ["x", "y"], "value": value}
    estimates = {"out": [[0, 40], [0, 9]]}
    return load(
        {
            "format": 1,
            "name": "product",
            "inputs": inputs,
            "stages": [stage],
            "outputs": ["out"],
            "estimates": estimates,
        }
    )


def trips(of: Pipeline) -> list[tuple[int, ...]]:
    """The iterations of the loops of every reduction in normal form whose iterations add two products."""
    normal = normalise(of)
    assert normalise(normal) is normal
    return [
        tuple(int(r.extent.value) for r in e.domain if isinstance(r.extent, Const))
        for e in walk(normal.stage("out").values[0])
        if isinstance(e, Reduce) and isinstance(e.body, Binary) and e.body.op == "+"
    ]


@pytest.mark.parametrize("types", [("uint8", "int8"), ("uint8", "uint8"), ("int16", "int16"), ("int16", "uint8")])
@pytest.mark.parametrize(("terms", "pairs"), [(130, 65), (131, 65)])
def test_two_terms_an_iteration(types: tuple[str, str], terms: int, pairs: int) -> None:
    of = product(PRODUCT.format(terms), types)
    assert trips(of) == [(pairs,)]
    rng = np.random.default_rng(0)
    ends = [np.iinfo(t) for t in types]
    a, b = (
        rng.choice([e.min, e.max], size).astype(t) for e, t, size in zip(ends, types, [(5, 200), (200, 7)], strict=True)
    )
    inputs = {"a": Image(a, (0, 0)), "b": Image(b, (0, 0))}
    before, after = (interpret(p, inputs, {}, {"out": ((0, 7), (0, 5))})["out"][0] for p in (of, normalise(of)))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("value", "types"),
    [
        (PRODUCT.format(130), ("int32", "int16")),
        (PRODUCT.format(130), ("uint16", "int16")),
        ("sum(a(r, y) * b(x, r) for r in range(130))", ("float32", "float32")),
        (PRODUCT.format(3), ("int16", "int16")),
        ("sum(int32(a(r, y + p)) * int32(b(x + p, r)) for r in range(16) for p in range(3))", ("int16", "int16")),
        ("sum(int32(a(r, y)) * int32(b(3, r)) for r in range(130))", ("int16", "int16")),
        ("sum(int32(a(r, y)) * int32(b(x, r)) for r in range(130) if r != y)", ("int16", "int16")),
    ],
)
def test_other_sums_stay(value: str, types: tuple[str, str]) -> None:
    assert trips(product(value, types)) == []


def test_products_of_what_is_quantised_are_paired() -> None:
    """Factors less their zero points have 16 bits."""
    value = "sum((int32(a(r, y)) - 128) * (int32(b(x, r)) - int32(b(0, 0))) for r in range(130))"
    assert trips(product(value, ("uint8", "uint8"))) == [(65,)]
    assert trips(product(value, ("int16", "uint8"))) == []


def test_windows_are_paired_along_channels() -> None:
    """The last of an odd number of channels is a sum of its own, of windows."""
    value = "sum(int32(a(r, y + p)) * int32(b(x + p, r)) for r in range({}) for p in range(3))"
    assert trips(product(value.format(64), ("uint8", "int8"))) == [(32, 3)]
    assert trips(product(value.format(65), ("uint8", "int8"))) == [(32, 3)]


@pytest.mark.parametrize("platform", ["i7-6700", "epyc-9655"])
@pytest.mark.parametrize("types", [("uint8", "int8"), ("int8", "int16"), ("int16", "int16")])
def test_products_of_pairs_are_right(platform: str, types: tuple[str, str]) -> None:
    require_tool("gcc")
    of = product(PRODUCT.format(131), types)
    schedule = autoschedule(of, catalog.load(platform)).schedule
    assert judge(case_of(of, schedule, 1), ["-O0"]) is None
