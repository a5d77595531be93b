"""Contests: who disagrees is out, ratios have intervals, and rounds are had by all."""

from __future__ import annotations

from itertools import count
from math import comb

import numpy as np
import pytest

from tilesmith.app.bench.contest import CONFIDENCE, Contender, Result, _skipped, hold, ratio

VALUES = np.arange(12, dtype=np.float32)


def _contender(name: str, values: np.ndarray = VALUES) -> Contender:
    return Contender(name, lambda: (values,), "a test")


def test_everyone_has_every_round_and_the_first_is_whom_others_agree_with() -> None:
    fine, wrong = _contender("fine"), _contender("wrong", VALUES + 1)
    first, second, third = hold([_contender("first"), fine, wrong], 5, (False,))
    assert len(first.rounds_ms) == len(second.rounds_ms) == 5
    assert third.rounds_ms == []
    assert third.error is not None
    assert "disagrees" in third.error


def test_a_contender_that_fails_is_told_and_the_others_go_on() -> None:
    def fails() -> tuple[np.ndarray, ...]:
        raise ValueError("no such\nfilter")

    _, failed, fine = hold([_contender("first"), Contender("fails", fails, ""), _contender("fine")], 3, (False,))
    assert failed.error == "no such filter"
    assert len(fine.rounds_ms) == 3


def test_results_of_the_first_are_kept_though_its_memory_is_used_again() -> None:
    numbers = count()
    memory = np.zeros(4)

    def counting() -> tuple[np.ndarray, ...]:
        memory[...] = next(numbers)
        return (memory,)

    _, other = hold([Contender("first", counting, ""), _contender("zeros", np.zeros(4))], 2, (False,))
    assert other.error is None


def test_masks_agree_where_they_are_equal() -> None:
    mask = VALUES > 5
    _, same, other = hold(
        [_contender("first", mask), _contender("same", mask.copy()), _contender("other", ~mask)], 1, (False,)
    )
    assert same.error is None
    assert other.error == "disagrees in 12 of 12 values"


def test_a_ratio_is_of_the_same_rounds_and_has_an_interval() -> None:
    mine = Result("mine", "", [1.0, 2.0, 4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    its = Result("its", "", [2.0 * ms for ms in mine.rounds_ms])
    found = ratio(its, mine)
    assert (found.median, found.low, found.high) == (2.0, 2.0, 2.0)
    its.rounds_ms[0] = 50.0  # one disturbed round is not in the interval of nine
    assert ratio(its, mine).high == 2.0
    few = ratio(Result("its", "", [1.0, 3.0]), Result("mine", "", [1.0, 1.0]))
    assert (few.low, few.high) == (1.0, 3.0)


@pytest.mark.parametrize("rounds", range(1, 60))
def test_the_interval_of_a_median_has_its_confidence_where_there_are_rounds_for_it(rounds: int) -> None:
    skipped = _skipped(rounds)
    assert 0 <= skipped <= (rounds - 1) // 2
    outside = 2 * sum(comb(rounds, k) for k in range(skipped)) / 2**rounds
    assert outside <= 1 - CONFIDENCE
