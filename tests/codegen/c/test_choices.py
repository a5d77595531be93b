"""Choices between two values in vectors."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of
from support.vectors import pairs

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector


@pytest.mark.parametrize(
    ("type_", "value", "masked"),
    [
        ("float32", "select(a(x) > b(x), a(x), 0.0)", True),
        ("float32", "select(a(x) > b(x), 0.0, a(x))", True),
        ("float32", "select(a(x) > b(x), a(x), -0.0)", False),  # a bit of it is set
        ("uint8", "select(a(x) > b(x), uint8(1), uint8(0))", True),
        ("int32", "select(a(x) > b(x), a(x), 0)", True),
    ],
)
def test_a_choice_of_zero_is_one_mask(type_: str, value: str, masked: bool) -> None:
    pipeline = load(
        {
            "format": 1,
            "name": "choice",
            "inputs": [{"name": name, "type": type_, "dims": ["x"]} for name in "ab"],
            "stages": [{"name": "out", "dims": ["x"], "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 4096]]},
        }
    )
    group = Group("out", ("x.inner",), (), None, Vector("x", 8), (), ())
    source = source_of(pipeline, Schedule("choice", "by hand", (group,)), here())
    assert (re.search(r"& .* \| .* & ~", source.code) is None) == masked
    a, b = (v.astype(type_) for v in pairs(np.array([-0.0, 0.0, 1, 2, 100])))
    images, region = {"a": Image(a, (0,)), "b": Image(b, (0,))}, {"out": ((0, len(a)),)}
    status, found = call(build(source), source, pipeline, images, {}, region)
    assert status == 0
    assert found["out"][0].tobytes() == interpret(pipeline, images, {}, region)["out"][0].tobytes()
