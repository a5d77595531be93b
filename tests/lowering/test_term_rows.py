"""Rows that long reductions come to: which loops move them, how many there are, and when they are late."""

from __future__ import annotations

import pytest

from tilesmith.platforms.core import Pages
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.lowering.term_rows import TermRows, rows_of_terms


def sums(terms: str) -> Pipeline:
    """`out(x, y, c)` of an image `a(x, y, c)` and weights, of so many terms."""
    inputs = [{"name": n, "type": "float32", "dims": ["x", "y", "c"]} for n in "aw"]
    stages = [
        {"name": "inside", "dims": ["u", "v", "c"], "value": f"sum({terms})"},
        {"name": "out", "dims": ["x", "y", "c"], "value": "inside(x, y, c) + 1.0"},
    ]
    estimates = {"out": [[0, 64], [0, 64], [0, 8]]} | {n: [[-64, 200]] * 3 for n in "aw"}
    return load(
        {"format": 1, "name": "p", "inputs": inputs, "stages": stages, "outputs": ["out"], "estimates": estimates}
    )


OVER = "for r in range(32) for q in range(3) for p in range(3)"
WINDOW = TermRows("a", 2, 1, "r", "q", 96)


@pytest.mark.parametrize(
    ("terms", "rows"),
    [
        (f"a(u + p, v + q, r) * w(p, q, c) {OVER}", (WINDOW,)),
        (f"a(u + p, v + q, 2 * r + 1) {OVER}", (TermRows("a", 2, 2, "r", "q", 96),)),
        ("a(u + p, v, r) for r in range(32) for p in range(3)", (TermRows("a", 2, 1, "r", "r", 32),)),
        ("a(u, v, r) for r in range(96)", ()),
        ("a(u + r, v, p) for r in range(32) for p in range(3)", ()),
        ("a(u, r, r) * a(p, v, c) for r in range(32) for p in range(3)", ()),
        ("a(v, u, r) for r in range(32) for p in range(3)", (TermRows("a", 2, 1, "r", "r", 32),)),
    ],
)
def test_rows_of_terms_are_found_through_what_is_inline(terms: str, rows: tuple[TermRows, ...]) -> None:
    """Not those of one variable, nor where the outermost one walks along the row, or moves two dims."""
    p = sums(terms)
    inside = p.stage("inside")
    assert rows_of_terms(inside, "u", {}) == rows
    assert rows_of_terms(p.stage("out"), "x", {"inside": inside}) == rows
    assert rows_of_terms(p.stage("out"), "x", {}) == ()


def test_rows_are_late_in_other_pages_of_which_a_tlb_finds_some() -> None:
    assert WINDOW.are_late(4096, Pages())
    assert not WINDOW.are_late(4095, Pages())
    assert not TermRows("a", 2, 1, "r", "q", 64).are_late(4096, Pages())
    assert TermRows("a", 2, -2, "r", "q", 65).are_late(2048, Pages())
    assert TermRows("a", 2, 1, "r", "q", 1).are_late(4096, Pages(tlb=()))
