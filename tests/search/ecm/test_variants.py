"""Variants of a pipeline: packed operands in place of partial results."""

from __future__ import annotations

import pytest

from tilesmith.platforms import catalog
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.schedule.schedule import Packing
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.ecm import variants


def test_what_has_a_packed_operand_in_place_of_partial_results_may_leave_its_group() -> None:
    """With partial results of each score the sums of rows of them may as well be in its group."""
    scores = load(
        {
            "format": 1,
            "name": "scores",
            "inputs": [
                {"name": "q", "type": "float32", "dims": ["i", "t"]},
                {"name": "k", "type": "float32", "dims": ["i", "s"]},
            ],
            "stages": [
                {"name": "score", "dims": ["s", "t"], "value": "sum(q(i, t) * k(i, s) for i in range(64))"},
                {"name": "z", "dims": ["t"], "value": "sum(score(s, t) for s in range(512))"},
                {"name": "out", "dims": ["s", "t"], "value": "score(s, t) / z(t)"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 512], [0, 512]]},
        }
    )
    found = autoschedule(scores, catalog.get("i7-6700"), SearchOptions("default")).schedule
    assert [p.packed for p in found.packings] == ["k_for_score"]
    assert "score" in [g.output for g in found.groups]


def test_what_has_a_packed_operand_may_be_cut_from_what_else_it_reads() -> None:
    """A panel is then packed for all points, and not again for each tile of those that are computed in its group."""
    logits = load(
        {
            "format": 1,
            "name": "logits",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["k", "b"]},
                {"name": "table", "type": "float32", "dims": ["k", "n"]},
            ],
            "stages": [
                {"name": "mu", "dims": ["b"], "value": "sum(a(p, b) for p in range(64)) / 64"},
                {"name": "z", "dims": ["k", "b"], "value": "(a(k, b) - mu(b)) * 2.0"},
                {"name": "out", "dims": ["n", "b"], "value": "sum(z(s, b) * table(s, n) for s in range(64))"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 4096], [0, 64]]},
        }
    )
    found = autoschedule(logits, catalog.get("i7-6700"), SearchOptions("default")).schedule
    assert [p.packed for p in found.packings] == ["table_for_out"]
    assert "z" in [g.output for g in found.groups]


def test_points_that_gather_have_vectors_where_that_costs_less_than_partial_results() -> None:
    """Tables of the terms lie along memory, places in the image do not."""
    place = "int32((float32(x) * ct(r) + float32(y) * sn(r)) * 0.5)"
    angles = "float32(k) * 0.017"
    projected = load(
        {
            "format": 1,
            "name": "projected",
            "inputs": [{"name": "s", "type": "float32", "dims": ["i", "k"]}],
            "stages": [
                {"name": "ct", "dims": ["k"], "value": f"cos({angles})"},
                {"name": "sn", "dims": ["k"], "value": f"sin({angles})"},
                {"name": "out", "dims": ["x", "y"], "value": f"sum(s(clamp({place}, 0, 383), r) for r in range(180))"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 384], [0, 384]], "s": [[0, 384], [0, 180]]},
        }
    )
    found = autoschedule(projected, catalog.get("i7-6700"), SearchOptions("default")).schedule
    assert not found.factors
    (group,) = (g for g in found.groups if g.output == "out")
    assert group.vector is not None
    assert group.vector.dim == "x"


def test_groups_are_worked_out_alike_in_what_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A further copy that does not pay, of a group that none else is in, changes nothing."""
    taps = "for m in range({}) for q in range(3) for p in range(3))"
    stages = [
        {"name": "one", "dims": ["x", "y", "c"], "value": "sum(a(x + p - 1, y + q - 1, m) * u(p, q, m, c) " + taps},
        {"name": "two", "dims": ["x", "y", "c"], "value": "sum(one(x + p, y + q, m) * v(p, q, m, c) " + taps},
        {"name": "out", "dims": ["x", "y", "c"], "value": "max(two(2 * x, y, c), two(2 * x + 1, y, c))"},
    ]
    for stage, channels in zip(stages, (16, 32), strict=False):
        stage["value"] = str(stage["value"]).format(channels)
    steps = load(
        {
            "format": 1,
            "name": "steps",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["x", "y", "c"], "boundary": {"kind": "repeat_edge"}},
                *({"name": n, "type": "float32", "dims": ["p", "q", "m", "c"]} for n in "uv"),
            ],
            "stages": stages,
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 128], [0, 32]], "a": [[0, 128], [0, 128], [0, 16]]},
        }
    )

    first = autoschedule(steps, catalog.get("epyc-9655"), SearchOptions("default")).schedule
    assert [p.packed for p in first.packings] == ["a_for_one"]
    found = variants.packings
    monkeypatch.setattr(variants, "packings", lambda *a: (*found(*a), Packing("two", "v", "c", "v_for_two")))
    assert autoschedule(steps, catalog.get("epyc-9655"), SearchOptions("default")).schedule == first
