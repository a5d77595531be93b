"""Arithmetic on amounts, numbers or arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilesmith.cost_models.amounts import summed


@given(st.lists(st.floats(0.0, 1e9)))
def test_a_sum_adds_up_from_the_first_on(amounts: list[float]) -> None:
    assert summed(amounts) == sum(amounts)


def test_of_numbers_and_arrays_it_is_one_for_each_candidate() -> None:
    amounts = [1.0, np.array([2.0, 3.0]), np.array([[4.0], [5.0]])]
    assert np.array_equal(summed(amounts), np.array([[7.0, 8.0], [8.0, 9.0]]))
    assert amounts[1].tolist() == [2.0, 3.0]
