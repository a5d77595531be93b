"""Harris by strategies: the figures and what is missed of them."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.strategies import STRATEGIES, TIMED, Bound, ratio, show
from tilesmith.scheduler.strategies import catalog


def figures(**rounds: list[float | None]) -> dict[str, dict[str, Any]]:
    return {n: {"best": min(v for v in r if v is not None), "rounds": r, "error": None} for n, r in rounds.items()}


FOUND = figures(cbuf=[2.0, 4.0, 2.0], rrot=[1.0, 3.0, 1.0], slow=[8.0, None, None])


def test_ratios_are_medians_over_the_rounds() -> None:
    assert ratio(FOUND, "rrot", "cbuf") == 0.5
    assert ratio(FOUND, "slow", "cbuf") == 4.0
    assert ratio(FOUND, "rrot", "nobody") is None


@pytest.mark.parametrize(("most", "missed"), [(0.6, 0), (0.5, 1), (0.4, 1)])
def test_what_is_missed_is_said(most: float, missed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(show("harris", "best ms", FOUND, [Bound("rrot", "cbuf", most, "why")])) == missed
    assert "0.500" in capsys.readouterr().out


def test_who_fails_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    failed = FOUND | {"rrot": {"best": None, "rounds": [], "error": "it disagrees"}}
    assert show("harris", "best ms", failed, TIMED) == ["harris: rrot fails: it disagrees"]
    assert "cbuf" in capsys.readouterr().out


def test_the_strategies_are_shipped() -> None:
    assert set(STRATEGIES) <= set(catalog.names())
