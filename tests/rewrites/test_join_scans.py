"""Scans of a chain: which are one stage."""

from __future__ import annotations

import numpy as np
import pytest
from support.calls import call
from support.machines import machine
from support.native import build

from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule
from tilesmith.scheduler.rewrites.passes import normalise, rewrite

ALONG = {"domain": {"r": [1, "input.extent.x - 1"]}, "at": ["r", "y"], "value": "rows(r - 1, y) + rows(r, y)"}
DOWN = {"domain": {"r": [1, "input.extent.y - 1"]}, "at": ["x", "r"], "value": "table(x, r - 1) + table(x, r)"}
UP = {"domain": {"r": [1, "input.extent.y - 1"]}, "at": ["x", "input.extent.y - 1 - r"]}
UP |= {"value": "table(x, input.extent.y - r) + table(x, input.extent.y - 1 - r)"}


def chain(
    value: str = "rows(x, y)",
    down: dict[str, object] = DOWN,
    along: dict[str, object] = ALONG,
    outputs: tuple[str, ...] = ("table",),
    **more: object,
) -> Pipeline:
    stages = [
        {"name": "rows", "dims": ["x", "y"], "value": "int32(input(x, y))", "updates": [along]},
        {"name": "table", "dims": ["x", "y"], "value": value, "updates": [down], **more},
        {"name": "other", "dims": ["x", "y"], "value": "rows(x, 0)"},
    ]
    names = (*outputs, "input")
    document = {
        "format": 1,
        "name": "chain",
        "inputs": [{"name": "input", "type": "uint8", "dims": ["x", "y"]}],
        "stages": stages[: 3 if "other" in outputs else 2],
        "outputs": list(outputs),
        "estimates": {name: [[0, 640], [0, 480]] for name in names},
    }
    return load(document)


@pytest.mark.parametrize(
    ("of", "joined"),
    [
        (chain(), True),
        (chain(along=ALONG | {"where": "input(r, y) > 9"}), True),
        (chain("rows(x, y) + 1"), False),
        (chain("rows(y, x)"), False),
        (chain(down=UP), True),
        (chain(down=DOWN | {"value": "table(x, r - 1) + input(x, r)"}), False),  # more of the input would be required
        (chain(outputs=("rows", "table")), False),
        (chain(outputs=("table", "other")), False),
        (chain(storage=["y", "x"]), False),
    ],
)
def test_a_scan_that_only_another_one_takes_is_part_of_it(of: Pipeline, joined: bool) -> None:
    made = normalise(of)
    assert ("rows" not in {s.name for s in made.stages}) == joined
    if joined:
        (table,) = made.stages
        assert (table.name, len(table.updates)) == ("table", 2)


def test_a_schedule_that_has_both_stages_keeps_both() -> None:
    groups = tuple(Group(name, ("x.inner", "y.inner"), (), None, None, (), ()) for name in ("rows", "table"))
    stages = rewrite(chain(), Schedule("chain", "custom", groups)).pipeline.stages
    assert [s.name for s in stages] == ["rows", "table"]
    assert [s.name for s in rewrite(chain(), Schedule("chain", "custom", groups[1:])).pipeline.stages] == ["table"]


@pytest.mark.parametrize("of", [chain(), chain(along=ALONG | {"where": "input(r, y) > 9"})])
def test_joined_scans_compute_the_same_and_require_the_same(of: Pipeline) -> None:
    made = compile_pipeline(of, machine(vector_bytes=32))
    library = build(made.source, ("-O0",))
    image = Image(np.random.default_rng(7).integers(0, 256, (21, 75)).astype("uint8"), (0, 0))
    for region in (((0, 75), (0, 21)), ((30, 8), (5, 9))):
        (expected,) = interpret(of, {"input": image}, {}, {"table": region})["table"]
        status, got = call(library, made.source, of, {"input": image}, {}, {"table": region})
        assert status == 0
        np.testing.assert_array_equal(got["table"][0], expected)
