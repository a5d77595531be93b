"""Problems that benchmarks time."""

from __future__ import annotations

from support.places import document

from benchmarks.problem import at_estimates


def test_an_input_that_nothing_reads_is_a_point() -> None:
    problem = at_estimates(document({"out": "a(x, y)"}, {"a": "int32", "w": "int32"}))
    assert problem.input_regions["w"] == ((0, 1), (0, 1))
    assert problem.inputs["w"].shape == (1, 1)
