"""Ends of the values of stages are found once for each stage, however often they are asked for."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Stage
from tilesmith.scheduler.ir.pipeline.value_bounds import Interval
from tilesmith.scheduler.ir.pipeline.value_ends import ValueEnds


def _ends(**values: str) -> ValueEnds:
    """The ends of stages of these values, of which the last is the output."""
    pipeline = load(
        {
            "format": 1,
            "name": "ends",
            "inputs": [{"name": "a", "type": "uint8", "dims": ["x"]}],
            "stages": [{"name": name, "dims": ["x"], "value": value} for name, value in values.items()],
            "outputs": [[*values][-1]],
            "estimates": {[*values][-1]: [[0, 64]]},
        }
    )
    return ValueEnds(pipeline.stages)


def test_ends_follow_from_those_of_what_is_read() -> None:
    ends = _ends(f="int16(a(x)) - 16", g="f(x) * 2")
    assert ends.of("g", 0) == Interval(-32, 478)
    assert ends.of("a", 0) is None


def test_a_stage_is_looked_at_once() -> None:
    ends = _ends(f="int16(a(x)) - 16", g="f(x) * 2")
    assert ends.of("g", 0) is ends.of("g", 0)
    assert ends.of("f", 0) is ends.of("f", 0)


def test_a_stage_that_is_read_in_many_places_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    found = ValueEnds._found

    def counted(self: ValueEnds, stage: Stage) -> tuple[Interval, ...]:
        looked_at.append(stage.name)
        return found(self, stage)

    monkeypatch.setattr(ValueEnds, "_found", counted)
    ends = _ends(f="int16(a(x)) - 16", g="f(x) + f(x + 1) + f(x + 2)", h="f(x) + g(x) + g(x + 1)")
    assert ends.of("h", 0) == Interval(-112, 1673)
    assert sorted(looked_at) == ["f", "g", "h"]
