"""Regret: what the pick of a search takes beyond the fastest candidate."""

from __future__ import annotations

from benchmarks.regret import most_over


def test_the_pick_has_no_regret_where_it_is_the_fastest() -> None:
    assert most_over([{"1": 2.0, "2": 3.0}, {"1": 2.5, "2": 2.5}]) == 0.0


def test_regret_is_the_median_of_rounds_over_the_fastest_other() -> None:
    assert most_over([{"1": 3.0, "2": 2.0, "3": 4.0}, {"1": 2.2, "2": 2.0}, {"1": 2.0, "2": 2.0}]) == 2.2 / 2.0 - 1.0
