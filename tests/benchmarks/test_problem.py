"""Problems that benchmarks time."""

from __future__ import annotations

from support.places import document

from benchmarks.problem import at_estimates


def test_an_input_that_nothing_reads_is_a_point() -> None:
    problem = at_estimates(document({"out": "a(x, y)"}, {"a": "int32", "w": "int32"}))
    assert problem.input_regions["w"] == ((0, 1), (0, 1))
    assert problem.inputs["w"].shape == (1, 1)


def test_the_size_of_an_input_is_known_to_those_before_it() -> None:
    length = "sum(a(x + r, y) for r in range(0, w.extent.x))"
    problem = at_estimates(document({"out": length}, {"a": "int32", "w": "int32"}, estimates={"w": [[0, 5], [0, 1]]}))
    assert problem.input_regions["a"][0] == (0, problem.output_regions["out"][0][1] + 4)
