"""Reads within a boundary: which of them a copy with a margin can be made for."""

from __future__ import annotations

from typing import Any

import pytest

from tilesmith.scheduler.analysis.bounded_reads import bounded_reads
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Access, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise

CONSTANT = {"kind": "constant", "value": "0"}


def pipeline(value: str, boundary: dict[str, str] | None = CONSTANT) -> Pipeline:
    """`f(x, y)` with that value, of an image `a` with that boundary and of `b` without one; normal."""
    a: dict[str, Any] = {"name": "a", "type": "float32", "dims": ["x", "y"]}
    if boundary is not None:
        a["boundary"] = boundary
    inputs = [a, {"name": "b", "type": "int32", "dims": ["x"]}]
    stage = {"name": "f", "dims": ["x", "y"], "value": value}
    of = {"format": 1, "name": "reads", "inputs": [i for i in inputs if f"{i['name']}(" in value], "stages": [stage]}
    return normalise(load({**of, "outputs": ["f"], "estimates": {"f": [[0, 64], [0, 48]]}}))


WINDOW = "sum(a(2 * x + 3 * i - 4, y + j) for j in range(9) for i in range(9))"


@pytest.mark.parametrize(
    "boundary",
    [CONSTANT, *({"kind": k} for k in ("repeat_edge", "repeat_image", "mirror_image", "mirror_interior"))],
)
def test_the_boundary_is_a_function_of_the_place(boundary: dict[str, str]) -> None:
    p = pipeline(WINDOW, boundary)
    (read,) = bounded_reads(p.stages[0], p.inputs[0], "x").values()
    assert not any(isinstance(n, Access) for i in read.indices for n in walk(i))
    assert read.value == pipeline("a(x, y)", boundary).stages[0].values[0]


def test_clamps_are_a_boundary() -> None:
    p = pipeline("sum(a(clamp(x + i, 0, 63), clamp(y - i, 2, 47)) for i in range(80))", None)
    assert len(bounded_reads(p.stages[0], p.inputs[0], "x")) == 1


@pytest.mark.parametrize(
    ("value", "boundary"),
    [
        (WINDOW, None),
        ("sum(a(x + i, y) + a(clamp(x - i, 0, 9), y) for i in range(80))", None),  # two boundaries
        ("sum(a(clamp(x + i, 0, y), 2 * y) for i in range(80))", None),  # an end that moves
        ("sum(a(x * i, y) for i in range(80))", CONSTANT),  # ends that are not known
        ("sum(a(clamp(b(x), 0, 9), y + i) for i in range(80))", CONSTANT),  # places that are data
        ("sum(a(x, x) * i for i in range(80))", CONSTANT),  # one index for two dims
    ],
)
def test_other_reads_have_none(value: str, boundary: dict[str, str] | None) -> None:
    p = pipeline(value, boundary)
    assert not bounded_reads(p.stages[0], p.inputs[0], "x")
