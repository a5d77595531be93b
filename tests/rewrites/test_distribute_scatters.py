"""Loop distribution of scatters: functions before a place that data says are stages, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.machines import here

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.printer import to_text
from tilesmith.scheduler.ir.pipeline.value_bounds import RUNTIME, Interval, interval
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search import autoschedule

ANGLE = "atan2(a({0}, {1}), a({0} + 1, {1}))"
BLOCK = "8 * x + r", "8 * y + s"


def pipeline_of(at: str, value: str = "1.0", more: str = "", **update: Any) -> Pipeline:
    """Votes for one of eight bins by `at`, in blocks of 8 x 8 of an image `a`."""
    domain = {"r": [0, 8], "s": [0, 8]}
    votes = {"domain": domain, "at": [at, "x", "y"], "value": f"votes({at}, x, y) + {value}{more}", **update}
    return load(
        {
            "format": 1,
            "name": "test",
            "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [{"name": "votes", "dims": ["k", "x", "y"], "value": "0.0", "updates": [votes]}],
            "outputs": ["votes"],
            "estimates": {"votes": [[0, 8], [0, 64], [0, 48]], "a": [[0, 512], [0, 384]]},
        }
    )


def operands(of: Pipeline) -> dict[str, str]:
    """The stages that the normal form has beside those of the pipeline; it computes the same, bit for bit."""
    normal = normalise(of, strict=True)
    assert normalise(normal, strict=True) is normal
    image = Image(np.random.default_rng(0).uniform(-1, 1, (23, 19)).astype(np.float32), (0, 0))
    before, after = (interpret(p, {"a": image}, {}, {"votes": ((0, 8), (-1, 4), (0, 3))}) for p in (of, normal))
    np.testing.assert_array_equal(after["votes"][0], before["votes"][0])
    return {f"{s.name}({', '.join(s.dims)})": to_text(s.values[0]) for s in normal.stages[:-1]}


def test_what_takes_functions_is_a_stage_of_coordinates() -> None:
    angle = ANGLE.format(*BLOCK)
    found = operands(pipeline_of(f"int32({angle} * 2.0) % 8", "sqrt(abs(a(8 * x + r, 8 * y + s)))"))
    assert [*found] == ["votes_operand(x, y)", "votes_operand1(x, y)"]
    assert all("8 *" not in text for text in found.values())


@pytest.mark.parametrize(("most", "operand"), [("7.0", "clamp("), ("float32(a.extent.x - 1)", "atan2(")])
def test_places_keep_their_bounds(most: str, operand: str) -> None:
    """Ends that are numbers are those of the read; a clamp to others, known once the code is called, stays."""
    of = pipeline_of(f"int32(clamp({ANGLE.format(*BLOCK)}, 0.0, {most}))")
    assert all(text.startswith(operand) for text in operands(of).values())
    normal = normalise(of)
    bounds = [interval(normal.stages[-1].updates[0].at[0]), interval(of.stages[-1].updates[0].at[0])]
    assert bounds[0] == bounds[1] == Interval(0, 7 if most == "7.0" else RUNTIME)


@pytest.mark.parametrize(
    ("columns", "dims"),
    [("10 * x + r", None), ("6 * x + r", "x, y"), ("x + r", "x, y"), ("r", "r, y"), ("r + 2 * s", None)],
)
def test_blocks_are_whole(columns: str, dims: str | None) -> None:
    found = operands(pipeline_of(f"int32({ANGLE.format(columns, BLOCK[1])} * 2.0) % 8"))
    assert [*found] == ([] if dims is None else [f"votes_operand({dims})"])


@pytest.mark.parametrize(
    "p",
    [
        pipeline_of("int32(a(8 * x + r, 8 * y + s) * 9.0) % 8", "sqrt(abs(a(8 * x + r, 8 * y + s)))"),
        pipeline_of("r", f"{ANGLE.format(*BLOCK)}"),
        pipeline_of(f"int32({ANGLE.format(*BLOCK)} * 2.0) % 8", where="a(8 * x + r, 8 * y + s) > 0.9"),
        pipeline_of("int32(a(8 * x + r, s)) % 8", "0.0", " + exp(-votes(int32(a(8 * x + r, s)) % 8, x, y))"),
    ],
    ids=["no function", "no scatter", "condition", "own values"],
)  # fmt: skip
def test_others_stay_as_they_are(p: Pipeline) -> None:
    assert operands(p) == {}


def test_schedules_without_the_stage_have_functions_where_they_were() -> None:
    p = pipeline_of(f"int32({ANGLE.format(*BLOCK)} * 2.0) % 8")
    by_hand = Schedule(p.name, "", (Group("votes", ("k.inner", "x.inner", "y.inner"), (), None, None, (), ()),))
    assert [s.name for s in rewrite(p, by_hand).pipeline.stages] == ["votes"]
    found = autoschedule(p, here())
    named = {name for g in found.schedule.groups for name in (g.output, *(q.stage for q in g.placements))}
    assert "votes_operand" in named
