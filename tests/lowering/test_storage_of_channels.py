"""Storage of stages that are looked up: the channels of a place lie side by side."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Vector
from tilesmith.scheduler.lowering.channel_layout import laid_out


def looked_up(at: str) -> Pipeline:
    return load(
        {
            "format": 1,
            "name": "pixels",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
                {"name": "i", "type": "int16", "dims": ["x"], "boundary": {"kind": "repeat_edge"}},
            ],
            "stages": [
                {"name": "table", "dims": ["x", "y", "c"], "value": "a(x + c, y) if c < 3 else 7.0"},
                {"name": "out", "dims": ["x", "y", "c"], "value": f"table({at}, y, c)"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 128], [0, 3], [0, 4]], "a": [[0, 64], [0, 64]], "i": [[0, 128]]},
        }
    )


def schedule(*unroll: str) -> Schedule:
    table = Group("table", ("c.inner", "x.inner", "y.inner"), (), None, Vector("x", 8), unroll, ())
    return Schedule("pixels", "by hand", (table,))


@pytest.mark.parametrize(
    ("at", "unroll", "storage"),
    [
        ("clamp(int32(i(x)), -1, 40)", ("c",), ("c", "x", "y")),
        ("clamp(int32(i(x)), -1, 40)", (), ("x", "y", "c")),  # vectors of one channel at a time
        ("x", ("c",), ("x", "y", "c")),  # rows are read in order
    ],
)
def test_what_data_looks_up_has_its_channels_side_by_side(
    at: str, unroll: tuple[str, ...], storage: tuple[str, ...]
) -> None:
    assert laid_out(looked_up(at), schedule(*unroll)).stages[0].storage == storage
