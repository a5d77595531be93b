"""Conditions of constant boundaries on quotients that all lanes of a vector agree in."""

from __future__ import annotations

import pytest
from support.machines import machine

from tilesmith.scheduler.compiler import generate
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.schedule.document import from_document


@pytest.mark.parametrize("place", ["3, y // 4", "y // 8, x"])
def test_conditions_are_of_one_number(place: str) -> None:
    """Conditions of C are no vectors."""
    document = {
        "format": 1, "name": "quotients",
        "inputs": [
            {"name": "in0", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "constant", "value": "5"}}
        ],
        "stages": [{"name": "f1", "dims": ["x", "y"], "value": f"in0({place})"}],
        "outputs": ["f1"], "estimates": {"f1": [[0, 33], [0, 64]]},
    }  # fmt: skip
    group = {
        "output": "f1", "loops": ["y.inner", "x.inner"], "tiles": [], "parallel": None,
        "vector": {"dim": "y", "lanes": 2}, "unroll": [], "placements": [],
    }  # fmt: skip
    schedule = from_document(
        {"format": 1, "pipeline": "quotients", "method": "random", "strict": False, "degraded": None, "groups": [group]}
    )
    code = generate(load(document), schedule, machine(vector_bytes=32)).code
    conditions = [line for line in code.splitlines() if "const _Bool" in line]
    assert conditions
    assert not any("x2)" in line for line in conditions)
