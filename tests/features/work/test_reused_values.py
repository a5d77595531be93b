"""Values that are used more than once."""

from __future__ import annotations

import pytest
from support.group_work import ORDERS, works

from tilesmith.cost_models.work import Reuse
from tilesmith.scheduler.frontends.document.document import load

FILTER = "f({0} - 1, y) * 0.25 + f({0}, y) * 0.5 + f({0} + 1, y) * 0.25"


def reused(out: str, lanes: int = 8, **stages: str) -> tuple[Reuse, ...]:
    """Values that a point of `out` reuses, all other stages inline in it."""
    values = {**stages, "out": out}
    document = {
        "format": 1, "name": "p", "inputs": [{"name": "f", "type": "float32", "dims": ["x", "y"]}],
        "stages": [{"name": name, "dims": ["x", "y"], "value": value} for name, value in values.items()],
        "outputs": ["out"], "estimates": {"out": [[0, 32], [0, 8]]},
    }  # fmt: skip
    (work,) = works(load(document), ORDERS[0], {}, {"x": 32, "y": 8}, lanes).values()
    return work.reused


def test_a_stage_alone_uses_its_literals_again_only() -> None:
    assert reused(FILTER.format("x")) == (Reuse(4, 2.0, 3.0, 0.0, uniform=True),)


def test_loads_that_several_inline_stages_use_are_live_together() -> None:
    """Loads of two stages, four different ones of six, two of which are stored where there are no registers."""
    sides = {"a": "f(x - 1, y) + f(x, y) + f(x + 1, y)", "b": "f(x, y) + f(x + 1, y) + f(x + 2, y)"}
    assert reused("a(x, y) * b(x, y)", **sides) == (Reuse(4, 4.0, 2.0, 2.0),)


def test_inline_values_that_several_use_are_live() -> None:
    found = reused("a(x, y) + b(x, y)", root="f(x, y) * f(x, y)", a="root(x, y) * f(x, y)", b="root(x, y) - f(x, y)")
    assert Reuse(4, 1.0, 1.0, 1.0) in found


@pytest.mark.parametrize("lanes", [1])
def test_scalar_code_has_registers_of_its_own(lanes: int) -> None:
    assert reused(FILTER.format("x"), lanes) == ()
