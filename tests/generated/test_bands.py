"""Schedules by hand whose windows slide along tiles of some rows, in columns that threads share."""

from __future__ import annotations

import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of
from support.shipped import assert_right, loaded
from support.threads import threads

from benchmarks.problem import at_regions
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

SLIDING = {
    "blur": ("blur_y", ["blur_x"], []),
    "harris": ("output", ["gray", "Ix", "Iy"], ["Ixx", "Ixy", "Iyy", "Sxx", "Sxy", "Syy", "det", "trace"]),
    "nl_means": ("output", ["clamped_with_alpha", "d", "w"], ["dc", "blur_d", "non_local_means_sum"]),
}  # fmt: skip
ONCE = {"nl_means": ["blur_d_y"]}


def in_bands(pipeline: str, rows: int) -> Schedule:
    output, sliding, inlined = SLIDING[pipeline]
    definition = loaded(pipeline)
    vector = Vector("x", 8)
    placed = {name: Placement(name, "y.outer", "x.outer", vector=vector) for name in sliding}
    placed |= {name: Placement(name, "y.outer", "y.outer", vector=vector) for name in ONCE.get(pipeline, [])}
    placed |= {name: Placement(name, INLINE, INLINE) for name in inlined}
    channels = "c" in definition.stage(output).dims
    group = Group(
        output,
        (*(("c.inner",) if channels else ()), "x.inner", "y.inner", "y.outer", "x.outer"),
        (Tile("x", 32), Tile("y", rows)),
        "x.outer",
        vector,
        ("c",) if channels else (),
        tuple(placed[s.name] for s in definition.stages if s.name in placed),
    )
    return Schedule(pipeline, "by hand", (group,))


@pytest.mark.parametrize("rows", [3, 4])
@pytest.mark.parametrize("name", sorted(SLIDING))
def test_bands_of_every_number_of_rows(name: str, rows: int) -> None:
    """Fewer than a tile has, whole tiles and some more, in one column and in several; begun anywhere."""
    schedule = in_bands(name, rows)
    pipeline = loaded(name)
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    library = build(source)
    for height in (1, 4, 23) if name == "nl_means" else (1, 3, 4, 8, 9, 23):
        for width in (7, 70):
            region = ((width % 23 - 11, width), (height * 5 % 9 - 4, height), (0, 3))
            regions = {output: region[: len(pipeline.stage(output).dims)] for output in pipeline.outputs}
            p = at_regions(pipeline, regions, use_estimates=False)
            inputs = {n: Image(a, tuple(lo for lo, _ in p.input_regions[n])) for n, a in p.inputs.items()}
            expected = interpret(pipeline, inputs, p.params, regions)
            for count in (1, 2):
                with threads(count):
                    status, got = call(library, source, pipeline, inputs, p.params, regions)
                assert status == 0
                assert_right(got, expected)
