"""Recurrences along rows: what is one, and what is joined."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tilesmith.scheduler.analysis.row_recurrences import along_recurrence, row_recurrence
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.schedule.schedule import UpdateLoops, Vector


def scan(value: str, type_: str = "float32", at: str = "r, y", **more: object) -> Stage:
    update = {"domain": {"r": [1, 90]}, "at": at.split(", "), "value": value, **more}
    return load(
        {
            "format": 1,
            "name": "scan",
            "inputs": [{"name": "a", "type": type_, "dims": ["x", "y"]}],
            "stages": [{"name": "f", "dims": ["x", "y"], "value": "a(x, y)", "updates": [update]}],
            "outputs": ["f"],
            "estimates": {name: [[0, 100], [0, 100]] for name in ("a", "f")},
        }
    ).stages[0]


JOINED = {
    "f(r - 1, y) + f(r, y)": ("+", 1, "f(r, y)"),
    "a(r, y) * 2.0 - f(r - 1, y) * 0.5": ("+", Fraction(-1, 2), "a(r, y)*2.0"),
    "f(r - 1, y) + 0.25 * (f(r, y) - f(r - 1, y))": ("+", Fraction(3, 4), "f(r, y)*0.25"),
    "max(a(r, y), max(f(r - 1, y), 7.0))": ("max", 1, "max(a(r, y), 7.0)"),
    "f(r - 1, y) + f(r + 1, y)": ("+", 1, "f(r + 1, y)"),
}


@pytest.mark.parametrize("value", JOINED)
def test_what_is_joined(value: str) -> None:
    stage = scan(value)
    found = row_recurrence(stage, stage.updates[0])
    assert found is not None
    assert (found.loop, found.step) == ("r", 1)
    assert (found.op, found.factor, to_text(found.rest).replace(" * ", "*")) == JOINED[value]
    assert row_recurrence(stage, stage.updates[0], strict=True) is None


def test_rows_may_be_gone_back_along() -> None:
    stage = scan("min(f(90 - r, y), f(91 - r, y))", "int16", "90 - r, y")
    found = row_recurrence(stage, stage.updates[0], strict=True)
    assert found is not None
    assert (found.step, found.op, to_text(found.rest)) == (-1, "min", "f(90 - r, y)")


def test_other_rows_are_read_as_they_are() -> None:
    stage = scan("f(r - 1, q) + f(r + 1, q - 1)", at="r, q", domain={"r": [1, 90], "q": [1, 90]})
    found = row_recurrence(stage, stage.updates[0])
    assert found is not None
    assert to_text(found.rest) == "f(r + 1, q - 1)"


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("f(r - 1, y) * 1.5 + a(r, y)", "float32"),  # powers overflow
        ("f(r - 1, y) * 0.001 + a(r, y)", "float32"),  # and vanish
        ("f(r - 1, y) * 0.999999 + a(r, y)", "float32"),  # and are rounded too coarsely
        ("f(r - 1, y) * a(r, y) + a(r, y)", "float32"),
        ("f(r - 1, y) * f(r - 1, y)", "float32"),
        ("f(r - 1, y) * 3 + a(r, y)", "int32"),
        ("f(r - 1, y) + f(r - 2, y)", "int32"),
        ("f(r - 2, y) + a(r, y)", "int32"),
        ("f(r - 1, y)", "int32"),
        ("min(f(r - 1, y) + 1, f(r, y))", "int32"),
        ("f(r - 1, y) + f(clamp(a(r, y), 0, 9), y)", "int32"),
        ("f(r - 1, y) + f(3, y)", "int32"),
        ("select(f(r - 1, y) > 3, f(r - 1, y), a(r, y))", "int32"),
    ],
)
def test_what_is_none(value: str, type_: str) -> None:
    stage = scan(value, type_)
    assert row_recurrence(stage, stage.updates[0]) is None


def test_a_scan_with_a_condition_and_one_across_rows_are_none() -> None:
    for stage in (
        scan("f(r - 1, y) + a(r, y)", where="a(r, y) > 3.0"),
        scan("f(x, r - 1) + a(x, r)", at="x, r"),
        scan("f(r - 1, r) + a(r, r)", at="r, r"),
    ):
        assert row_recurrence(stage, stage.updates[0]) is None


def test_vectors_along_it_are_the_innermost_loop() -> None:
    stage = scan("f(r - 1, y) + a(r, y)")
    (update,) = stage.updates
    assert along_recurrence(stage, update, UpdateLoops(("r", "y"), Vector("r", 8))) is not None
    for loops in (
        UpdateLoops(("y", "r"), Vector("r", 8)),
        UpdateLoops(("r", "y"), Vector("y", 8)),
        UpdateLoops(("r", "y"), Vector("r", 2)),
        UpdateLoops(("r", "y")),
    ):
        assert along_recurrence(stage, update, loops) is None
