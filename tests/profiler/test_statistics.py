"""Figures of times: the least, the median, and the interval in which the true median is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilesmith.app.profiler.statistics import CONFIDENCE, summary


def test_few_times_have_no_interval():
    for count in range(1, 6):
        found = summary([1.0] * count)
        assert (found.minimum, found.median, found.interval) == (1.0, 1.0, None)


@pytest.mark.parametrize("count", [6, 9, 10, 25, 50])
def test_the_interval_is_of_the_ranks_that_the_binomial_distribution_has(count):
    low, high = summary([float(n) for n in range(count)]).interval

    def within(below, above):
        """The probability that the median of a distribution is between those ranks."""
        return sum(math.comb(count, k) for k in range(int(below) + 1, int(above) + 1)) / 2**count

    assert low + high == count - 1
    assert within(low, high) >= CONFIDENCE
    assert within(low + 1, high - 1) < CONFIDENCE


def test_the_interval_has_the_true_median_as_often_as_it_says():
    random = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        low, high = summary(random.lognormal(0.0, 0.5, 25).tolist()).interval
        hits += low <= 1.0 <= high
    assert hits / 400 > 0.93
