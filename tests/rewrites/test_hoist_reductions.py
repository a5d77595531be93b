"""Reductions that do not depend on all loops around them become stages of their own."""

from __future__ import annotations

import numpy as np
import pytest

from tilesmith.scheduler.frontends.document.document import load, to_document
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.hoist_reductions import hoisted

ALL = "for k in range(0, 99)"


def pipeline(value: str, *updates: dict[str, object], dims: str = "xy") -> Pipeline:
    stage = {"name": "f", "dims": list(dims), "value": value, "updates": list(updates)}
    document = {
        "format": 1,
        "name": "hoisted",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [stage],
        "outputs": ["f"],
        "estimates": {"f": [[0, 99] for _ in dims]},
    }
    return load(document)


def stages(of: Pipeline) -> dict[str, tuple[tuple[str, ...], str]]:
    return {s["name"]: (tuple(s["dims"]), s["value"]) for s in to_document(of)["stages"]}


def test_a_sum_of_a_row_is_a_stage_of_its_rows() -> None:
    found = stages(hoisted(pipeline(f"a(x, y) / sum(a(k, y) {ALL})")))
    assert found == {"f_sum": (("y",), f"sum(a(k, y) {ALL})"), "f": (("x", "y"), "a(x, y) / f_sum(y)")}


def test_a_reduction_inside_of_another_is_computed_before_it_and_the_same_one_once() -> None:
    """Whatever its variables are called."""
    text = f"exp(a(x, y) - max(a(k, y) {ALL})) / sum(exp(a(k, y) - max(a(m, y) for m in range(0, 99))) {ALL})"
    found = stages(hoisted(pipeline(text)))
    assert {name: dims for name, (dims, _) in found.items()} == {"f_max": ("y",), "f_sum": ("y",), "f": ("x", "y")}
    assert found["f_sum"][1] == f"sum(exp(a(k, y) - f_max(y)) {ALL})"
    assert found["f"][1] == "exp(a(x, y) - f_max(y)) / f_sum(y)"


def test_what_depends_on_variables_of_a_reduction_around_it_is_a_stage_of_these() -> None:
    found = stages(hoisted(pipeline(f"sum(a(x, k) * sum(a(m, k) for m in range(0, 80)) {ALL})", dims="xy")))
    assert found["f_sum"] == (("k",), "sum(a(m, k) for m in range(0, 80))")


def test_a_reduction_of_all_is_a_single_value() -> None:
    assert stages(hoisted(pipeline(f"a(x, y) - sum(a(k, m) {ALL} for m in range(0, 9)) / 891.0")))["f_sum"][0] == ()


@pytest.mark.parametrize(
    "value",
    [
        f"sum(a(x + k, y) {ALL})",  # of all loops
        f"a(x, y) + sum(a(x, k) * float32(y) {ALL})",
        "a(x, y) / sum(a(k, y) for k in range(0, 9))",  # short
        f"a(x, y) * sum(exp(-float32(k)) {ALL})",  # of no data
        f"a(x + argmin(a(k, y) {ALL})[0], y)",  # a place
        f"float32(argmax(a(k, y) {ALL})[0]) + a(x, y)",  # a tuple
    ],
)
def test_what_stays(value: str) -> None:
    of = pipeline(value)
    assert hoisted(of) is of


def test_updates_stay() -> None:
    of = pipeline("0.0", {"domain": {"r": [0, 9]}, "at": ["r", "y"], "value": f"f(r, y) + sum(a(k, y) {ALL})"})
    assert hoisted(of) is of


@pytest.mark.parametrize(
    "value",
    [
        f"exp(a(x, y) - max(a(k, y) {ALL})) / sum(exp(a(k, y) - max(a(m, y) for m in range(0, 99))) {ALL})",
        f"sum(a(x, k) * sum(a(m, k) for m in range(0, 80) if m < k) {ALL} if k > y)",
        f"a(x, y) - sum(a(k, m) {ALL} for m in range(0, 9)) / 891.0",
    ],
)
def test_values_are_the_same_and_again_it_changes_nothing(value: str) -> None:
    of = pipeline(value)
    found = hoisted(of)
    assert found is not of
    assert hoisted(found) is found
    image = Image(np.random.default_rng(7).random((12, 17), np.float32), (0, 0))
    region = {"f": ((2, 7), (-1, 6))}
    (before,), (after,) = (interpret(p, {"a": image}, {}, region)["f"] for p in (of, found))
    np.testing.assert_array_equal(before, after)
