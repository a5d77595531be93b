"""Pages with many schedules: a few here, every page answers."""

from __future__ import annotations

from benchmarks.pages import LIMIT_MS, measure


def test_every_page_is_timed() -> None:
    figures = measure(repeats=1, count=120)
    assert len({f.name for f in figures}) == len(figures) > 15
    assert {f.limit for f in figures} == {LIMIT_MS}
    assert all(len(f.samples) == 1 for f in figures)
