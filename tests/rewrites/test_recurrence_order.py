"""Terms of a scan that the step before computes are added last, on the left; the values stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.passes import normalise

CLAMPED = "a(clamp(r, a.min.x, a.min.x + a.extent.x - 1), clamp(s, a.min.y, a.min.y + a.extent.y - 1))"
"""The input as the recurrences below read it, in normal form."""


def scan(value: str, type: str = "float32") -> Pipeline:
    """A scan along rows, and down columns where it reads these, after two columns that are given."""
    update = {
        "domain": {"r": [2, "a.extent.x - 2"], "s": [1, "a.extent.y - 1"]},
        "at": ["r", "s"],
        "value": value,
    }
    return load(
        {
            "format": 1,
            "name": "scan",
            "inputs": [{"name": "a", "type": type, "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [{"name": "out", "dims": ["x", "y"], "value": "a(x, y)", "updates": [update]}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 20], [0, 9]]},
        }
    )


def ordered(value: str, strict: bool = False, type: str = "float32") -> str:
    """The update's value in normal form, after a comparison of what it computes."""
    of = scan(value, type)
    normal = normalise(of, strict)
    assert normalise(normal, strict) is normal
    rng = np.random.default_rng(0)
    inputs = {"a": Image(rng.integers(0, 9, (9, 20)).astype(type), (0, 0))}
    a, b = (interpret(p, inputs, {}, {"out": ((0, 20), (0, 9))})["out"][0] for p in (of, normal))
    np.testing.assert_allclose(b, a, rtol=0 if strict else 1e-4, atol=0 if strict else 1e-4)
    return to_text(normal.stage("out").updates[0].values[0])


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("0.5 * a(r, s) + 0.25 * out(r - 1, s)", "0.25 * out(r - 1, s) + 0.5 * "),
        ("0.25 * out(r - 1, s) + 0.5 * a(r, s)", "0.25 * out(r - 1, s) + 0.5 * "),
        ("0.5 * out(r - 1, s) - 0.25 * out(r - 2, s) + a(r, s)", "0.5 * out(r - 1, s) + (-0.25 * out(r - 2, s) + "),
        ("0.25 * out(r - 1, s) + 0.5 * out(r, s - 1)", "0.25 * out(r - 1, s) + 0.5 * out(r, s - 1)"),
        ("0.5 * out(r, s - 1) + 0.25 * out(r - 1, s)", "0.25 * out(r - 1, s) + 0.5 * out(r, s - 1)"),
        ("max(a(r, s), 0.5 * a(r, s) - 0.25 * out(r - 1, s))", ", -0.25 * out(r - 1, s) + 0.5 * "),
    ],
)
def test_the_latest_is_added_last(written: str, found: str) -> None:
    assert found in ordered(written)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("written", "found"),
    [
        (
            "min(a(r, s), out(r - 1, s) + 3, out(r, s - 1) + 3, out(r - 1, s - 1) + 4)",
            "min(a(r, s), out(r - 1, s - 1) + 4, out(r, s - 1) + 3, out(r - 1, s) + 3)",
        ),
        ("max(out(r - 1, s), max(out(r, s - 1), a(r, s)))", "max(a(r, s), out(r, s - 1), out(r - 1, s))"),
        ("max(out(r - 1, s), a(r, s))", "max(out(r - 1, s), a(r, s))"),
        ("max(out(r - 1, s), min(a(r, s), 5), a(r, s))", "max(min(a(r, s), 5), a(r, s), out(r - 1, s))"),
    ],
)
def test_the_latest_of_an_extreme_of_integers_comes_last(written: str, found: str, strict: bool) -> None:
    """Two terms keep their order, which does not matter."""
    assert ordered(written, strict, "int32").replace(CLAMPED, "a(r, s)") == found


def test_extremes_of_floats_are_as_written() -> None:
    """Floats keep their order: what a NaN makes of an extreme depends on it."""
    written = "max(out(r - 1, s), max(out(r, s - 1), a(r, s)))"
    assert ordered(written).replace(CLAMPED, "a(r, s)") == written


def test_the_order_stays_where_it_may_not_change() -> None:
    assert ordered("0.5 * a(r, s) + 0.25 * out(r - 1, s)", strict=True).endswith(" + 0.25 * out(r - 1, s)")
    assert ordered("a(r, s) + out(r - 1, s)", type="int32").endswith(" + out(r - 1, s)")


def test_ties_stay_as_they_are() -> None:
    ordered("a(r, s) - out(r - 1, s) * a(r, s) + out(r - 1, s) * a(r, s - 1) - a(r, s) * out(r - 1, s)")
