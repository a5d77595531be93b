"""The test of noise: a slowdown is found, noise is not taken for one, and the interval is the one of the sign test."""

from __future__ import annotations

import math
import statistics

import pytest
from support.noisy_machine import NoisyMachine

from tilesmith.app.comparison import noise
from tilesmith.app.comparison.noise import CALLS, ROUNDS, Evidence, evidence, measured
from tilesmith.app.profiler.statistics import interval

LIMIT = 0.05
TRIALS = 200
MACHINES = {
    "quiet": NoisyMachine(jitter=0.02, outliers=0.02, neighbour=0.02),
    "shared": NoisyMachine(),
    "loaded": NoisyMachine(jitter=0.12, outliers=0.15, neighbour=0.25, drift=0.02),
}


def found_slower(machine: NoisyMachine, slowdown: float, trials: int, first: int = 0) -> int:
    seeds = range(first, first + trials)
    return sum(evidence(*machine.rounds(seed, slowdown, ROUNDS, CALLS)).slower(LIMIT) for seed in seeds)


@pytest.mark.parametrize("name", MACHINES)
def test_ten_percent_among_noise_is_found(name: str) -> None:
    assert found_slower(MACHINES[name], 0.10, TRIALS) > 0.95 * TRIALS


@pytest.mark.parametrize("name", MACHINES)
def test_noise_alone_is_no_slowdown(name: str) -> None:
    assert found_slower(MACHINES[name], 0.0, 2 * TRIALS, first=10_000) < 0.01 * 2 * TRIALS


def test_least_times_would_not_do() -> None:
    """The noise is such that the simple rule, least time against least time, is wrong often: it is worth a test."""
    machine, wrong = MACHINES["loaded"], 0
    for seed in range(TRIALS):
        before, now = machine.rounds(seed, 0.0, 5, 3)
        wrong += min(now) / min(before) >= 1 + LIMIT
    assert wrong > 0.1 * TRIALS


def test_code_that_is_faster_is_not_slower() -> None:
    before, now = NoisyMachine().rounds(1, -0.2, ROUNDS, CALLS)
    found = evidence(before, now)
    assert not found.slower(LIMIT)
    assert found.high < 1


def test_a_few_percent_below_the_limit_do_not_fail() -> None:
    before = [1.0 + 0.001 * n for n in range(ROUNDS)]
    found = evidence(before, [1.02 * ms for ms in before])
    assert found.low > 1
    assert not found.slower(LIMIT)
    assert found.slower(0.01)


def sign_test_interval(values: list[float]) -> tuple[float, float]:
    """The interval by its definition: the order statistics that the binomial tail leaves room for."""
    ordered, n, tail = sorted(values), len(values), (1 - noise.CONFIDENCE) / 2
    cut = max(k for k in range(n) if sum(math.comb(n, i) for i in range(k)) / 2**n <= tail)
    return (ordered[cut - 1], ordered[n - cut]) if cut else (-math.inf, math.inf)


@pytest.mark.parametrize("count", [1, 7, 8, 20, 60, 61])
def test_the_interval_is_that_of_the_sign_test(count: int) -> None:
    values = [math.sin(7 * n) for n in range(count)]
    assert interval(values, noise.CONFIDENCE) == sign_test_interval(values)


@pytest.mark.parametrize(
    ("low", "high", "undecided"), [(0.9, 1.2, True), (0.99, 1.01, False), (1.08, 1.12, False), (0.0, math.inf, True)]
)
def test_noise_that_hides_the_answer_is_told(low: float, high: float, undecided: bool) -> None:
    assert Evidence(1.1, low, high, ROUNDS).undecided(LIMIT) is undecided


def test_with_too_few_rounds_there_is_no_slowdown() -> None:
    found = evidence([1.0] * 7, [2.0] * 7)
    assert found.ratio == pytest.approx(2)
    assert not found.slower(LIMIT)
    assert found.to_document() | {"ratio": 2.0} == {
        "ratio": 2.0, "low": None, "high": None, "rounds": 7, "confidence": noise.CONFIDENCE,
    }  # fmt: skip
    assert "too few" in found.in_words()
    assert evidence([1.0] * 60, [2.0] * 60).in_words() == "+100.0 % measured (+100.0 to +100.0 %)"


def test_sides_that_do_not_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        evidence([1.0, 2.0], [1.0])


def test_a_measurement_has_its_median_and_interval() -> None:
    times = [float(n) for n in range(1, 62)]
    found = measured(times, "a machine")
    assert (found.median_ms, found.runs, found.machine) == (statistics.median(times), 61, "a machine")
    assert (found.low_ms, found.high_ms) == sign_test_interval(times)
    assert measured([1.0, 2.0]).to_document() == {
        "median_ms": 1.5, "low_ms": None, "high_ms": None, "runs": 2, "machine": None,
    }  # fmt: skip
