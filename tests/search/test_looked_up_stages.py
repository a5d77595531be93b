"""Stages that are read at places that data says: computed there, each costs as often as it is read."""

import pytest

from tilesmith.platforms import get
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.search import SearchOptions, autoschedule

TABLE = {
    "format": 1,
    "name": "gamma",
    "params": [{"name": "g", "type": "float32", "default": 0.45, "min": 0.1, "max": 10.0}],
    "inputs": [{"name": "a", "type": "uint8", "dims": ["x", "y"]}],
    "stages": [
        {"name": "table", "dims": ["i"], "value": "uint8(pow(float32(i) / 255.0, g) * 255.0 + 0.5)"},
        {"name": "out", "dims": ["x", "y"], "value": "table(a(x, y))"},
    ],
    "outputs": ["out"],
    "estimates": {"out": [[0, 1536], [0, 1024]]},
}


@pytest.mark.parametrize("platform", ["i7-6700", "epyc-9655"])
def test_a_table_of_few_entries_is_not_computed_anew_for_each_pixel(platform: str) -> None:
    schedule = autoschedule(load(TABLE), get(platform), SearchOptions()).schedule
    inline = {p.stage for g in schedule.groups for p in g.placements if p.compute == "inline"}
    assert "table" not in inline
