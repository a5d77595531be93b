"""Schedules by hand that compute several rows side by side: tiles of rows unrolled inside the loop over vectors."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from support.calls import call
from support.machines import here, machine
from support.native import build, source_of
from support.shipped import assert_right, loaded
from support.threads import threads

from benchmarks.problem import at_regions
from tilesmith.scheduler.features.schedule_features import counts_of
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary, BoundaryKind
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

ROWS = 4


def side_by_side(pipeline: str, output: str, *placements: Placement, planes: bool = False) -> Schedule:
    group = Group(
        output=output,
        loops=("y.inner", "x.inner", *(("c.inner",) if planes else ()), "x.outer", "y.outer"),
        tiles=(Tile("x", None), Tile("y", ROWS)),
        parallel="y.outer",
        vector=Vector("x", 32),
        unroll=("y",),
        placements=placements,
    )
    return Schedule(pipeline, "by hand", (group,))


def registers(stage: str, store: str) -> Placement:
    return Placement(stage, "x.inner", store, storage="registers", vector=Vector("x", 32))


def inline(stage: str) -> Placement:
    return Placement(stage, INLINE, INLINE)


SCHEDULES = {
    "inline": side_by_side("blur", "blur_y", inline("blur_x")),
    "in registers": side_by_side("blur", "blur_y", registers("blur_x", "x.outer")),
    "windows that rotate": side_by_side(
        "gaussian3x3", "output", registers("wide", "c.inner"), inline("blur_x"), planes=True
    ),
    "in a buffer": side_by_side(
        "gaussian3x3", "output", Placement("wide", "c.inner", "c.inner", vector=Vector("x", 32)), inline("blur_x"),
        planes=True,
    ),
}  # fmt: skip
SCHEDULES |= {
    f"{name}, past the caches": replace(s, groups=(replace(s.groups[0], stream=True, prefetch=2048),))
    for name, s in SCHEDULES.items()
}


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_rows_of_every_number_and_width(name: str) -> None:
    """Fewer than a tile has, whole tiles and some more; narrower than a vector and wider; begun anywhere."""
    schedule = SCHEDULES[name]
    pipeline = loaded(schedule.pipeline)
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    library = build(source)
    for height in (1, 3, 4, 5, 8, 23):
        for width in (1, 31, 70, 200):
            region = ((width % 23 - 11, width), (height * 5 % 9 - 4, height), (0, 3))
            regions = {output: region[: len(pipeline.stage(output).dims)] for output in pipeline.outputs}
            p = at_regions(pipeline, regions, use_estimates=False)
            inputs = {n: Image(a, tuple(lo for lo, _ in p.input_regions[n])) for n, a in p.inputs.items()}
            expected = interpret(pipeline, inputs, {}, regions)
            for count in (1, 2):
                with threads(count):
                    status, got = call(library, source, pipeline, inputs, {}, regions)
                assert status == 0
                assert_right(got, expected)


@pytest.mark.parametrize("name", ["inline", "in registers"])
def test_what_rows_share_is_loaded_and_computed_once(name: str) -> None:
    """Three rows are read for each, six for four side by side, at three places each; one division a row of both."""
    code = source_of(loaded("blur"), SCHEDULES[name], machine()).code
    loop = re.findall(r"(?<=\n)( *)for \(int64_t x[^\n]*\{\n(.*?)\n\1\}", code, re.DOTALL)
    whole = [body for _, body in loop if body.count("LOAD(u16x32, input") == 18 and "for (" not in body]
    assert len(whole) == 1
    assert whole[0].count(" / 3") == 6 + 4
    kept = [body for _, body in loop if body.count("_kept = ") == 6]
    assert [body.count("LOAD(u16x32, input") for body in kept] == ([12] if name == "in registers" else [])


@pytest.mark.parametrize("kind", ["repeat_edge", "repeat_image", "mirror_image", "mirror_interior"])
def test_the_next_rows_are_asked_for_and_threads_take_neighbours(kind: BoundaryKind) -> None:
    blur = loaded("blur")
    bounded = replace(blur, inputs=tuple(replace(i, boundary=Boundary(kind)) for i in blur.inputs))
    code = source_of(bounded, SCHEDULES["inline, past the caches"], here()).code
    asked = re.findall(r"__builtin_prefetch\(input_\d+ \+ (\w+), 0, 2\);", code)
    assert any(re.search(rf" {at} = [^;]*\b{ROWS} \* input_0_stride1\b", code) for at in asked)
    assert "PARALLEL(ts_share(" in code


@pytest.mark.parametrize(("name", "loads"), [("inline", 6 * 3 / 4), ("in registers", 3.0)])
def test_counts_have_what_is_shared(name: str, loads: float) -> None:
    counts = counts_of(rewrite(loaded("blur"), SCHEDULES[name]), here())[0]
    works = {s.stage: s.work for s in counts.stages if s.work is not None}
    reader = works["blur_y" if name == "inline" else "blur_x"]
    assert sum(t.times for t in reader.loads) == loads
    points = {s.stage: s.points for s in counts.stages}
    assert points["blur_x"] == pytest.approx(6 / 4 * points["blur_y"], rel=1e-3)
