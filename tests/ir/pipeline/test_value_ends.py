"""Ends of the values of stages are found once for each stage, however often they are asked for."""

from __future__ import annotations

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.value_bounds import Interval
from tilesmith.scheduler.ir.pipeline.value_ends import ValueEnds


def _ends() -> ValueEnds:
    pipeline = load(
        {
            "format": 1,
            "name": "ends",
            "inputs": [{"name": "a", "type": "uint8", "dims": ["x"]}],
            "stages": [
                {"name": "f", "dims": ["x"], "value": "int16(a(x)) - 16"},
                {"name": "g", "dims": ["x"], "value": "f(x) * 2"},
            ],
            "outputs": ["g"],
            "estimates": {"g": [[0, 64]]},
        }
    )
    return ValueEnds(pipeline.stages)


def test_ends_follow_from_those_of_what_is_read() -> None:
    ends = _ends()
    assert ends.of("g", 0) == Interval(-32, 478)
    assert ends.of("a", 0) is None


def test_a_stage_is_looked_at_once() -> None:
    ends = _ends()
    assert ends.of("g", 0) is ends.of("g", 0)
    assert ends.of("f", 0) is ends.of("f", 0)
