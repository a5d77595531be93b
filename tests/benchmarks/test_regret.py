"""Regret: what the pick of a search takes beyond the fastest candidate."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import regret
from benchmarks.builds import NATIVE, machine_of
from benchmarks.regret import fastest


def test_the_pick_is_the_fastest_where_no_other_takes_less() -> None:
    assert fastest([{"2": 3.0, "1": 2.0}, {"2": 2.5, "1": 2.5}]) == "1"


def test_the_fastest_is_by_ratios_of_single_rounds_and_of_least_times() -> None:
    first = [{"1": 3.0, "2": 2.0, "3": 4.0}, {"1": 3.3, "2": 3.0, "3": 4.0}]
    rounds = [*first, {"1": 2.2, "2": 2.0}, {"1": 2.0, "2": 1.9}]
    assert fastest(rounds) == "2"


def test_regret_is_what_the_fastest_gains_when_it_is_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, set[str]]] = []

    def timed(name: str, platform: Any, rounds: int, libraries: dict[str, list[str]]) -> list[dict[str, float]]:
        asked.append((rounds, set(libraries)))
        taken = {n: 1.0 if n == "1" else 0.5 if len(asked) == 1 and n == "2" else 0.8 for n in libraries}
        return [taken, taken]

    monkeypatch.setattr(regret, "_timed", timed)
    assert regret.regret("blur", machine_of(NATIVE, "gcc", 1), 3) == 0.25
    assert asked[1] == (6, {"1", "2"})
    assert len(asked[0][1]) > 2
