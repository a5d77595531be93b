"""Schedules written by hand that keep stages in registers: windows rotate along the row, and the values are right."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.calls import call
from support.interpreted import interpreted
from support.machines import here, machine
from support.native import build, loops_over_whole_vectors, source_of
from support.planar import planar
from support.random_cases import case_of, judge
from support.shipped import SIZES, assert_right, loaded, problem
from support.threads import threads

from benchmarks.problem import at_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite


def registers(stage: str, lanes: int = 16) -> Placement:
    return Placement(stage, "x.inner", "y.inner", storage="registers", vector=Vector("x", lanes))


def ring(stage: str) -> Placement:
    """Computed in the same loop over vectors, its rows kept in a ring."""
    return Placement(stage, "x.inner", "x.outer", vector=Vector("x", 16))


def inline(*stages: str) -> tuple[Placement, ...]:
    return tuple(Placement(s, INLINE, INLINE) for s in stages)


def rows(
    pipeline: str, output: str, placements: tuple[Placement, ...], lanes: int = 16, planes: bool = False
) -> Schedule:
    """Strips of 128 rows, columns whole."""
    loops = ("x.inner", "y.inner", "x.outer", "y.outer")
    group = Group(
        output=output,
        loops=("c.inner", *loops) if planes else loops,
        tiles=(Tile("x", None), Tile("y", 128)),
        parallel="y.outer",
        vector=Vector("x", lanes),
        unroll=("c",) if planes else (),
        placements=placements,
    )
    return Schedule(pipeline, "by hand", (group,))


SCHEDULES = {
    "blur": rows("blur", "blur_y", (registers("blur_x", 32),), lanes=32),
    "unsharp": rows(
        "unsharp",
        "output",
        (*inline("kernel"), ring("gray"), registers("blur_y"), *inline("blur_x", "sharpen", "ratio")),
        planes=True,
    ),
    "harris": rows(
        "harris",
        "output",
        (
            *(ring(s) for s in ("gray", "Ix", "Iy")),
            *(registers(s) for s in ("Ixx", "Ixy", "Iyy")),
            *inline("Sxx", "Sxy", "Syy", "det", "trace"),
        ),
    ),
}
SCHEDULES["blur in memory"] = rows(
    "blur", "blur_y", (Placement("blur_x", "y.inner", "x.outer", vector=Vector("x", 32)),), lanes=32
)
SCHEDULES |= {
    f"{name} past the caches": replace(s, groups=(replace(s.groups[0], stream=True, prefetch=32768),))
    for name, s in SCHEDULES.items()
}


def narrow(schedule: Schedule, lanes: int) -> Schedule:
    """The schedule with vectors of so many lanes."""
    (group,) = schedule.groups
    placements = tuple(p if p.vector is None else replace(p, vector=Vector("x", lanes)) for p in group.placements)
    return replace(schedule, groups=(replace(group, vector=Vector("x", lanes), placements=placements),))


PARTS_OF_LINES = {
    f"{name} past the caches, {count} vectors a line": narrow(SCHEDULES[f"{name} past the caches"], lanes)
    for name, lanes, count in (("blur", 16, 2), ("blur", 8, 4), ("unsharp", 8, 2), ("unsharp", 4, 4), ("harris", 8, 2))
}
SCHEDULES |= PARTS_OF_LINES


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_a_schedule_with_registers_computes_what_the_pipeline_says(name: str) -> None:
    schedule = SCHEDULES[name]
    pipeline = loaded(schedule.pipeline)
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    library = build(source)
    for size in SIZES:
        p = problem(schedule.pipeline, size)
        for count in (1, 2):
            with threads(count):
                status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
            assert status == 0, size
            assert_right(got, p.expected)


def test_vectors_that_go_past_the_caches_are_the_last_of_an_iteration() -> None:
    """Of three planes: what is loaded after such a store waits with it."""
    pipeline = loaded("unsharp")
    code = source_of(pipeline, SCHEDULES["unsharp past the caches"], machine()).code
    whole = loops_over_whole_vectors(code)[0]
    first = whole.index("ts_stream")
    assert whole.count("ts_stream") == 3
    assert "LOAD(" in whole[:first]
    assert "LOAD(" not in whole[first:]


@pytest.mark.parametrize(("lanes", "vectors"), [(16, 1), (8, 2), (4, 4)])
def test_vectors_of_a_line_follow_each_other(lanes: int, vectors: int) -> None:
    """The stores of one plane, then those of the next: a line that is written in parts loses its write combining."""
    pipeline = loaded("unsharp")
    schedule = narrow(SCHEDULES["unsharp past the caches"], lanes)
    code = source_of(pipeline, schedule, machine(vector_bytes=4 * lanes)).code
    ends, whole = re.split(r"(?:void row_ends0\(|/\* whole vectors \*/)", code)[1:3]
    stored = re.findall(r"ts_stream_f32x\d+\((\w+)\b[^;]*,\s(\w+)\);", whole)
    assert [row for row, _ in stored] == [row for row in dict(stored) for _ in range(vectors)]
    assert len(stored) == 3 * vectors
    apart = [decided for _, decided in stored[::vectors]]
    assert apart[0] == "0"
    assert vectors == 1 or all(re.match("apart_", x) for x in apart[1:])  # planes may not be alike
    assert re.search(rf"for \(.* xk_\d+ \+= {vectors}\)" if vectors > 1 else r"xk_\d+\+\+", whole)
    assert vectors == 1 or not re.search(r"ts_ends_\w+\([^;]*, 0, [^,]*, [^,]*\);", ends)


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_rows_of_every_width(name: str) -> None:
    """Narrower than a vector and a little wider, begun anywhere."""
    schedule = SCHEDULES[name]
    pipeline = loaded(schedule.pipeline)
    source = source_of(pipeline, schedule, here())
    library = build(source)
    for width in range(1, 71, 3):
        region = ((width * 7 % 23 - 11, width), (width * 5 % 9 - 4, 3), (0, 3))
        regions = {output: region[: len(pipeline.stage(output).dims)] for output in pipeline.outputs}
        p = at_regions(pipeline, regions, use_estimates=False)
        inputs = {n: Image(a, tuple(lo for lo, _ in p.input_regions[n])) for n, a in p.inputs.items()}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        assert_right(got, interpreted(pipeline, inputs, {}, regions))


@pytest.mark.parametrize("fused", [False, True])
def test_bools_past_the_caches(fused: bool) -> None:
    """They are masks in vectors, and bytes in memory."""
    pipeline = load(
        {
            "format": 1,
            "name": "edges",
            "inputs": [{"name": "input", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [
                {"name": "wide", "dims": ["x", "y"], "value": "input(x, y - 1) // 2 + input(x, y + 1) // 2"},
                {"name": "out", "dims": ["x", "y"], "value": "wide(x - 1, y) < wide(x + 1, y)"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 256], [0, 64]]},
        }
    )
    member = registers("wide", 64) if fused else inline("wide")[0]
    schedule = rows("edges", "out", (member,), lanes=64)
    schedule = replace(schedule, groups=(replace(schedule.groups[0], stream=True),))
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    library = build(source)
    data = np.random.default_rng(5).integers(0, 256, (9, 300), dtype=np.uint8)
    for width in (1, 63, 64, 65, 127, 130, 192, 257, 300):
        regions = {"out": ((3, width), (1, 5))}
        inputs = {"input": Image(data, (0, 0))}
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == 0
        assert_right(got, interpreted(pipeline, inputs, {}, regions))


def test_rows_of_pairs_are_written_past_the_caches() -> None:
    """Where every second column reads the same place, vectors begin at even ones."""
    pipeline = load(
        {
            "format": 1,
            "name": "pairs",
            "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y"]}],
            "stages": [{"name": "out", "dims": ["x", "y"], "value": "input(x // 2, y) + input((x + 1) // 2, y)"}],
            "outputs": ["out"],
            "estimates": {"out": [[0, 256], [0, 64]]},
        }
    )
    schedule = rows("pairs", "out", ())
    schedule = replace(schedule, groups=(replace(schedule.groups[0], stream=True),))
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    assert re.search(r"^ +ts_past_f32x\d+\(", source.code, re.M)
    library = build(source)
    for first in (0, 1, 3):
        for width in (1, 15, 16, 33, 64, 129):
            regions = {"out": ((first, width), (1, 5))}
            p = at_regions(pipeline, regions, use_estimates=False)
            inputs = {n: Image(a, tuple(lo for lo, _ in p.input_regions[n])) for n, a in p.inputs.items()}
            status, got = call(library, source, pipeline, inputs, {}, regions)
            assert status == 0
            assert_right(got, interpreted(pipeline, inputs, {}, regions))


def test_a_ring_of_which_several_rows_are_new_at_a_time() -> None:
    """Four rows of the output read the same rows of the ring, and the next four the next ones."""
    values = {
        "ring": "input(x, y) * 3.0",
        "strided": "ring(x, 4 * y) + ring(x, 4 * y + 3) * 2.0",
        "again": "strided(x, y // 4)",
        "out": "again(x - 1, y) + again(x + 1, y + 1)",
    }
    pipeline = planar(values, 256, 64)
    schedule = rows("planar", "out", (ring("ring"), ring("strided"), registers("again")))
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    regions = {"out": ((3, 70), (5, 31))}
    p = at_regions(pipeline, regions, use_estimates=False)
    inputs = {n: Image(a, tuple(lo for lo, _ in p.input_regions[n])) for n, a in p.inputs.items()}
    status, got = call(build(source, ("-O1",)), source, pipeline, inputs, {}, regions)
    assert status == 0
    assert_right(got, interpreted(pipeline, inputs, {}, regions))


@pytest.mark.parametrize(("name", "soon"), [("blur", False), ("harris", True), ("unsharp", True)])
def test_loops_of_many_rows_ask_for_them_twice(name: str, soon: bool) -> None:
    """Far ahead, and again when they come from the second level of caches."""
    code = source_of(loaded(name), SCHEDULES[f"{name} past the caches"], machine()).code
    asked = re.findall(r"__builtin_prefetch\([^;]*?(, 0, 2)?\);", code)
    assert ", 0, 2" in asked
    assert ("" in asked) == soon
    assert code.count("ts_ask_ends(output_") == (0 if name == "blur" else 1 if name == "harris" else 3)
    size = 2 if name == "blur" else 4
    ahead = [int(n) for n in re.findall(r"__builtin_prefetch\([^;]*\+ (\d+)\), 0, 2\);", code)]
    assert min(ahead) >= 32768 // size


@pytest.mark.parametrize(("every", "lines"), [(1, 1), (2, 2), (4, 4)])
def test_every_line_that_a_vector_spans_is_asked_for(every: int, lines: int) -> None:
    """Of every second column sixteen are two lines, whichever neighbours are read, too."""
    pipeline = load(
        {
            "format": 1,
            "name": "fewer",
            "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y"]}],
            "stages": [
                {"name": "out", "dims": ["x", "y"], "value": f"input({every} * x, y) + input({every} * x + 1, y)"}
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 256], [0, 64]]},
        }
    )
    schedule = rows("fewer", "out", ())
    schedule = replace(schedule, groups=(replace(schedule.groups[0], prefetch=32768),))
    code = source_of(pipeline, schedule, here()).code
    ahead = [int(n) for n in re.findall(r"__builtin_prefetch\([^;]*\+ (\d+)\), 0, 2\);", code)]
    assert ahead == [8192 + 16 * n for n in range(lines)]


@pytest.mark.parametrize(("value", "lines"), [("input(0, x, y) + input(2, x, y)", 3), ("input(1, x + 1, y)", 3)])
def test_of_interleaved_pixels_every_line_is_asked_for_once(value: str, lines: int) -> None:
    """Whichever of their channels are read: sixteen pixels of three are three lines."""
    pipeline = load(
        {
            "format": 1,
            "name": "pixels",
            "inputs": [{"name": "input", "type": "float32", "dims": ["c", "x", "y"]}],
            "stages": [{"name": "out", "dims": ["x", "y"], "value": value}],
            "outputs": ["out"],
            "estimates": {"input": [[0, 3], [0, 260], [0, 64]], "out": [[0, 256], [0, 64]]},
        }
    )
    schedule = rows("pixels", "out", ())
    schedule = replace(schedule, groups=(replace(schedule.groups[0], prefetch=32768),))
    code = source_of(pipeline, schedule, here()).code
    ahead = [int(n) for n in re.findall(r"__builtin_prefetch\([^;]*\+ (\d+)\), 0, 2\);", code)]
    assert len(ahead) == lines
    assert [b - a for a, b in pairwise(ahead)] == [16] * (lines - 1)


@pytest.mark.parametrize(("value", "asked"), [
    ("input(x, y - 1) + input(x, y + 1)", 1),
    ("input(x, y - 2) + input(x - 1, y - 1) + input(x + 1, y) + input(x, y + 1)", 1),
    ("input(x, 2 * y) + input(x, 2 * y + 1)", 2),
    ("input(x, 2 * y) + input(x, 2 * y + 1) + input(x, 2 * y + 2)", 2),
    ("input(x, y // 2) + input(x, y // 2 + 1)", 1),
])  # fmt: skip
def test_rows_are_asked_for_that_the_iteration_before_has_not_read(value: str, asked: int) -> None:
    for boundary in ("none", "repeat_edge"):
        image = {"name": "input", "type": "float32", "dims": ["x", "y"]}
        image |= {} if boundary == "none" else {"boundary": {"kind": boundary}}
        pipeline = load(
            {
                "format": 1,
                "name": "rows",
                "inputs": [image],
                "stages": [{"name": "out", "dims": ["x", "y"], "value": value}],
                "outputs": ["out"],
                "estimates": {"out": [[0, 256], [0, 64]]},
            }
        )
        schedule = rows("rows", "out", ())
        schedule = replace(schedule, groups=(replace(schedule.groups[0], prefetch=32768),))
        code = source_of(pipeline, schedule, here()).code
        assert len(re.findall(r"__builtin_prefetch\(.*, 0, 2\);", code)) == asked, boundary


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("type_", ["uint8", "uint16", "int32", "float32", "float64"])
def test_neighbours_are_lanes_of_two_vectors(type_: str, compiler: str) -> None:
    """As far as a vector reaches to either side; those that are no whole words apart take another instruction."""
    lanes = 64 // np.dtype(type_).itemsize
    steps = range(-lanes, lanes + 1, max(lanes // 8 - 1, 1))
    pipeline = load(
        {
            "format": 1,
            "name": "neighbours",
            "inputs": [{"name": "input", "type": type_, "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [
                {"name": "twice", "dims": ["x", "y"], "value": "input(x, y) + input(x, y)"},
                {"name": "out", "dims": ["x", "y"], "value": " - ".join(f"twice(x + {n}, y)" for n in steps)},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 1024], [0, 64]]},
        }
    )
    schedule = rows("neighbours", "out", (registers("twice", lanes),), lanes=lanes)
    check(rewrite(pipeline, schedule))
    source = source_of(pipeline, schedule, here())
    code = source_of(pipeline, schedule, machine()).code
    assert "ts_from" in code
    library = build(source, ("-O1",), compiler)
    data = np.random.default_rng(7).integers(0, 100, (3, 5 * lanes + 3)).astype(type_)
    regions = {"out": ((0, 5 * lanes + 3), (0, 3))}
    status, got = call(library, source, pipeline, {"input": Image(data, (0, 0))}, {}, regions)
    assert status == 0
    assert_right(got, interpreted(pipeline, {"input": Image(data, (0, 0))}, {}, regions))


def test_windows_rotate_and_need_no_memory() -> None:
    source = source_of(loaded("unsharp"), SCHEDULES["unsharp"], machine())
    code = source.code
    assert {name for name, _ in source.buffers} == {"gray"}
    assert "ts_from1_f32x16(w0.blur_y_before_0, " in code
    assert re.search(r"blur_y_before_0 = blur_y_\d+;|blur_y_before_0 = t_\d+;", code)


def test_rows_that_data_tells_of_are_no_windows() -> None:
    """Which row of `deep` a term reads is looked up for each row of the output."""
    document = {
        "format": 1, "name": "looked_up",
        "inputs": [
            {"name": "input", "type": "float32", "dims": ["x", "y"]},
            {"name": "table", "type": "uint8", "dims": ["k"]},
        ],
        "stages": [
            {"name": "deep", "dims": ["x", "y", "t"], "value": "input(x, y) * float32(t + 1)"},
            {"name": "output", "dims": ["x", "y"],
             "value": "sum(deep(x + k, y, clamp(int32(table(k)), 0, 3)) for k in range(0, 3))"},
        ],
        "outputs": ["output"], "estimates": {"output": [[0, 200], [0, 40]]},
    }  # fmt: skip
    pipeline = load(document)
    group = Group("output", ("x.inner", "y.inner"), (), "y.inner", Vector("x", 16), (), (registers("deep"),))
    schedule = Schedule("looked_up", "by hand", (group,))
    check(rewrite(pipeline, schedule))
    case = case_of(pipeline, schedule, seed=1)
    assert judge(case, ("-O1",)) is None


def test_a_row_in_registers_reads_a_value_without_dims() -> None:
    document = {
        "format": 1, "name": "scaled",
        "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": "scale", "dims": [], "value": "input(0, 0) + 1.5"},
            {"name": "wide", "dims": ["x", "y"], "value": "input(x, y) * scale()"},
            {"name": "output", "dims": ["x", "y"], "value": "wide(x - 1, y) + wide(x + 1, y) + scale()"},
        ],
        "outputs": ["output"], "estimates": {"output": [[0, 200], [0, 40]], "input": [[0, 200], [0, 40]]},
    }  # fmt: skip
    pipeline = load(document)
    scale = Group("scale", (), (), None, None, (), ())
    group = Group("output", ("x.inner", "y.inner"), (), "y.inner", Vector("x", 16), (), (registers("wide"),))
    schedule = Schedule("scaled", "by hand", (scale, group))
    assert judge(case_of(pipeline, schedule, seed=1), ("-O1",)) is None


TAPS = [{"name": "taps", "type": "int32", "default": 3, "min": 1, "max": 4}]
LOOP = "sum(input(x + k, y) for k in range(0, taps))"


@pytest.mark.parametrize(
    ("dims", "value"),
    [
        (["x", "y", "c"], "wide(x - 1, y) + wide(x + 1, y) * int32(c)"),
        (["x", "y"], "sum(wide(x - 1, y) + wide(x + 1, y) * k for k in range(0, taps))"),
        (["x", "y"], "sum(wide(x - 1, y) + wide(x + 1, y) * k for k in range(0, taps) if table(y) > 0)"),
    ],
    ids=["in a loop over planes", "in a reduction", "in a reduction with a condition"],
)
@pytest.mark.parametrize("wide", ["input(x, y) * 2", LOOP, f"table(x) + {LOOP}"], ids=["a load", "a loop", "both"])
def test_a_window_is_filled_outside_of_the_loops_that_read_it(dims: list[str], value: str, wide: str) -> None:
    """What is kept for the next vector is there whatever the loops and conditions are in which it is first read."""
    planes = "c" in dims
    document = {
        "format": 1, "name": "inside", "params": TAPS,
        "inputs": [
            {"name": "input", "type": "int32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}},
            {"name": "table", "type": "int32", "dims": ["y"], "boundary": {"kind": "repeat_edge"}},
        ],
        "stages": [
            {"name": "wide", "dims": ["x", "y"], "value": wide},
            {"name": "output", "dims": dims, "value": value},
        ],
        "outputs": ["output"],
        "estimates": {"output": [[0, 200], [0, 40], [0, 3]][: len(dims)]},
    }  # fmt: skip
    pipeline = load(document)
    loops = ("c.inner",) * planes + ("x.inner", "y.inner")
    unroll = ("c",) * planes
    group = Group("output", loops, (), "y.inner", Vector("x", 16), unroll, (registers("wide"),))
    schedule = Schedule("inside", "by hand", (group,))
    for seed in range(3):
        assert judge(case_of(pipeline, schedule, seed), ("-O0",)) is None
