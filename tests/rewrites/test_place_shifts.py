"""Shifts and masks of places: the same values as the quotients and remainders in their place, and the same code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.machines import machine

from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.rewrites.place_shifts import with_quotients
from tilesmith.scheduler.search import autoschedule


def pipeline(value: str, boundary: bool = True) -> Pipeline:
    image = {"name": "a", "type": "int32", "dims": ["x", "y"]}
    return load(
        {
            "format": 1,
            "name": "tiles",
            "inputs": [image | ({"boundary": {"kind": "repeat_edge"}} if boundary else {})],
            "stages": [{"name": "out", "dims": ["x", "y"], "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 1024], [0, 512]]},
        }
    )


def text(value: str) -> str:
    (stage,) = pipeline(value).stages
    return to_text(with_quotients(stage).values[0])


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("a(x >> 6, y & 63)", "a(x // 64, y % 64)"),
        ("a(63 & x, y << 2)", "a(x % 64, y * 4)"),
        ("a(x & -8, y & 0)", "a(x // 8 * 8, y % 1)"),
        ("a(x & 4, y & 24)", "a(x // 4 % 2 * 4, y // 8 % 4 * 8)"),
        ("a(x & -1, y >> 0)", "a(x, y)"),
        ("a((x + 3) >> 1 & 1, y)", "a((x + 3) // 2 % 2, y)"),
        ("select(x & 1 == 0, x, y)", "select(x % 2 == 0, x, y)"),
        ("a(select(x % 2 == 0, x // 2 - 1, x // 2 + 1), y)", "a(x // 2 - 1 + x % 2 * 2, y)"),
        ("a(select(x & 1 == 1, x // 2, x // 2 - 1), y)", "a(x // 2 - 1 + x % 2, y)"),
        ("a(x, select(y % 2 != 0, y - 1, y + 3 - 2))", "a(x, y + 3 - 2 + y % 2 * -2)"),
    ],
)
def test_places_have_quotients(written: str, found: str) -> None:
    assert text(written) == text(found) == found


@pytest.mark.parametrize(
    "value",
    [
        "a(x & 5, y)",
        "a(x & -6, y)",
        "a(x, y) >> 2",
        "a(x, y) & 7",
        "a(x >> (y & 5), y)",
        "a(x << 31, y)",
        "a(select(x % 2 == 0, x, x // 2), y)",
        "a(select(x % 4 == 0, x, x + 1), y)",
        "select(x % 2 == 0, x, x + 1)",
    ],
)
def test_data_other_masks_and_other_counts_stay(value: str) -> None:
    (stage,) = pipeline(value).stages
    kept = with_quotients(stage)
    assert to_text(kept.values[0]) == to_text(stage.values[0])


@given(
    st.integers(-70, 70),
    st.integers(0, 7),
    st.sampled_from(["x >> {k}", "x & {m}", "x & -{n}", "x & {n}", "x & {n} * 3", "x << {k}"]),
)
def test_the_values_of_negative_places_stay(low: int, k: int, form: str) -> None:
    of = pipeline(form.format(k=k, m=(1 << k) - 1, n=1 << k) + " + a(x, y) * 0", boundary=True)
    arguments = {"a": Image(np.zeros((1, 1), np.int32), (0, 0))}, {}, {"out": ((low, 9), (0, 1))}
    (before,), (after,) = interpret(of, *arguments)["out"], interpret(normalise(of), *arguments)["out"]
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("shifts", "quotients"),
    [
        ("a(x >> 6, y >> 5) + (x & 63)", "a(x // 64, y // 32) + x % 64"),
        ("a(x - (x & 15) + 15 - (x & 15), y)", "a(x - x % 16 + 15 - x % 16, y)"),
    ],
)
def test_blocks_that_are_shifted_to_are_vectorised_as_quotients(shifts: str, quotients: str) -> None:
    platform = machine()
    first, second = (
        generate(p, autoschedule(p, platform).schedule, platform) for p in map(pipeline, (shifts, quotients))
    )
    assert first.code == second.code
