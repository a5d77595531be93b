"""Permutations of the longest registers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.calls import call
from support.machines import machine
from support.native import build, source_of

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector


@pytest.mark.parametrize(
    ("value", "twice"),
    [
        ("a(x // 2)", True),
        ("a(x // 16)", True),
        ("a(4095 - x)", True),
        ("a(x // 32 * 32 + (x + 16) % 32)", False),  # quarters change places, which is an instruction
        ("a(x // 16 * 16 + (x + 5) % 16)", False),  # bytes of a quarter do
        ("a(x // 64 * 64 + x * 3 % 64)", False),  # a quarter has bytes of all
        ("a(x + 1)", False),
    ],
)
def test_bytes_go_with_their_eighths_first(value: str, twice: bool) -> None:
    pipeline = load(
        {
            "format": 1,
            "name": "permuted",
            "inputs": [{"name": "a", "type": "uint8", "dims": ["x"]}],
            "stages": [{"name": "out", "dims": ["x"], "value": value}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 4095]]},
        }
    )
    group = Group("out", ("x.inner",), (), None, Vector("x", 64), (), ())
    source = source_of(pipeline, Schedule("permuted", "by hand", (group,)), machine(vector_bytes=64))
    assert (re.search(r"_X64\(\s*\(u8x64\)\s*LANES_\w+_X8\(", source.code) is not None) == twice
    images, region = {"a": Image(np.arange(4096).astype("uint8") * 7, (0,))}, {"out": ((0, 4095),)}
    status, found = call(build(source, vector_bytes=64), source, pipeline, images, {}, region)
    assert status == 0
    assert found["out"][0].tobytes() == interpret(pipeline, images, {}, region)["out"][0].tobytes()
