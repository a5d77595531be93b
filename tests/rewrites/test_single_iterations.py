"""Loops of one iteration: none is left in inline reductions, and values stay."""

from __future__ import annotations

import numpy as np
import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.expressions import Reduce, walk
from tilesmith.scheduler.rewrites.passes import normalise

R, ONE = "for r in range(5)", "for p in range(2, 3)"


def loops(value: str) -> list[str]:
    """The loops of every reduction of a value in normal form, after a comparison of the values, to the bit."""
    document = {
        "format": 1,
        "name": "single",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
        "stages": [{"name": "out", "dims": ["x"], "value": value}],
        "outputs": ["out"],
        "estimates": {"out": [[0, 4]]},
    }
    of = load(document)
    plain = normalise(of, strict=True)
    assert normalise(plain, strict=True) is plain
    inputs = {"a": Image(np.random.default_rng(0).random((20, 20), np.float32), (0, 0))}
    before, after = (interpret(p, inputs, {}, {"out": ((0, 5),)})["out"][0] for p in (of, plain))
    np.testing.assert_array_equal(before, after)
    return ["".join(r.name for r in e.domain) for e in walk(plain.stages[-1].values[0]) if isinstance(e, Reduce)]


@pytest.mark.parametrize("op", ["sum", "max"])
def test_the_loops_that_are_left(op: str) -> None:
    assert loops(f"{op}(a(x + p, r) {R} {ONE})") == ["r"]
    assert loops(f"{op}(a(x + p, r) {ONE} {R} if p < r)") == ["r"]


def test_one_loop_is_left() -> None:
    assert loops(f"sum(a(x + p, q) for q in range(1) {ONE})") == ["p"]


def test_reductions_inside_of_others() -> None:
    assert loops(f"sum(a(x + p, r) * sum(a(q, p) for q in range(3) for s in range(1)) {R} {ONE})") == ["r", "q"]


def test_places_of_extremes_keep_their_loops() -> None:
    assert loops(f"float32(argmax(a(x + p, r) {R} {ONE})[1])") == ["rp"]
