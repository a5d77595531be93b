"""Loops of reductions run along memory, and nothing else about them changes."""

from __future__ import annotations

import numpy as np
import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.expressions import Reduce, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise

X, Y = "for r in range(20)", "for s in range(input.extent.y)"


def pipeline(value: str, storage: str = "xy") -> Pipeline:
    document = {
        "format": 1,
        "name": "order",
        "inputs": [
            {"name": "input", "type": "uint8", "dims": ["x", "y"], "storage": list(storage)},
            {"name": "reals", "type": "float32", "dims": ["x", "y"], "storage": list(storage)},
        ],
        "stages": [{"name": "out", "dims": ["x"], "value": value}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 4]]},
    }
    return load(document)


def orders(of: Pipeline, strict: bool = False) -> list[str]:
    """The loops of every reduction, innermost last, after a comparison of the values."""
    plain = normalise(of, strict)
    assert normalise(plain, strict) is plain
    rng = np.random.default_rng(0)
    inputs = {
        "input": Image(rng.integers(0, 256, (25, 40), dtype=np.uint8), (0, 0)),
        "reals": Image(rng.random((25, 40), dtype=np.float32), (0, 0)),
    }
    a, b = (interpret(p, inputs, {}, {"out": ((0, 5),)})["out"][0] for p in (of, plain))
    np.testing.assert_allclose(b, a, rtol=0 if strict else 1e-5)
    values = (v for s in plain.stages[::-1] for v in s.values)
    return ["".join(r.name for r in e.domain) for v in values for e in walk(v) if isinstance(e, Reduce)]


@pytest.mark.parametrize("op", ["sum", "product", "min", "max"])
def test_along_memory(op: str) -> None:
    terms = "int32(input(r + x, s)) | 1"
    assert orders(pipeline(f"{op}({terms} {X} {Y})"), strict=True) == ["sr"]
    assert orders(pipeline(f"{op}({terms} {Y} {X})"), strict=True) == ["sr"]
    assert orders(pipeline(f"{op}({terms} {Y} {X})", "yx"), strict=True) == ["rs"]
    assert orders(pipeline(f"{op}({terms} {X} {Y} if input(r, s) > 9)"), strict=True) == ["sr"]


def test_what_keeps_its_order() -> None:
    assert orders(pipeline(f"argmin(input(r, s) {X} {Y})[0]")) == ["rs"]
    assert orders(pipeline("sum(int32(input(r, s)) for r in range(8) for s in range(8))")) == ["rs"]
    assert orders(pipeline(f"sum(reals(r, s) {X} {Y})")) == ["sr"]
    assert orders(pipeline(f"sum(reals(r, s) {X} {Y})"), strict=True) == ["rs"]
    assert orders(pipeline(f"sum(r * s {X} {Y})")) == ["rs"]
    assert orders(pipeline("sum(reals(r, 0) * reals(0, r) for r in range(9))")) == ["r"]


def test_most_accesses_decide() -> None:
    assert orders(pipeline(f"sum(reals(s, r) * reals(r, s) * reals(s + 1, r) {X} for s in range(9))")) == ["rs"]
    assert orders(pipeline(f"sum(reals(r, s) * reals(s, r) {X} for s in range(9))")) == ["rs"]


def test_inside_each_other() -> None:
    inner = f"sum(int32(input(r, s)) * t {X} {Y})"
    assert orders(pipeline(f"max({inner} for t in range(3)) + {inner.replace(' t ', ' 2 ')}")) == ["t", "sr", "sr"]
