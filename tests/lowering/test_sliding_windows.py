"""Windows really slide and rings really fold: elements stored are counted, buffers measured, small cases run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from support.calls import Region, call
from support.executed import Executed, execute
from support.machines import here
from support.methods import PAPER_OPTIONS
from support.native import build, source_of
from support.planar import planar
from support.shipped import loaded

from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import rewrite

ROWS = ("x.inner", "y.inner", "x.outer", "y.outer")


def by_hand(
    pipeline: Pipeline, placements: Sequence[Placement], loops: tuple[str, ...] = ROWS, rows: int = 32
) -> Schedule:
    tiles = tuple(Tile(d, None if d == "x" else rows) for d in ("x", "y") if f"{d}.outer" in loops)
    parallel = loops[-1] if loops[-1].endswith("outer") else None
    group = Group(pipeline.outputs[0], loops, tiles, parallel, Vector("x", 8), (), tuple(placements))
    schedule = Schedule(pipeline.name, "hand", (group,))
    check(rewrite(pipeline, schedule))
    return schedule


def counted(pipeline: Pipeline, schedule: Schedule, regions: dict[str, Region]) -> Executed:
    return execute(lower(rewrite(pipeline, schedule), here()), pipeline, regions)


def sliding(name: str, **changes: object) -> Placement:
    fields: dict = {"compute": "y.inner", "store": "x.outer", "order": ("x", "y"), "vector": Vector("x", 8)}
    return Placement(name, **{**fields, **changes})


def test_blur_computes_every_row_once_a_strip() -> None:
    """64 x 96 points in strips of 32 rows: each strip needs two rows more than it has, and a ring of four."""
    regions = {"blur_y": ((0, 64), (0, 96)), "input": ((0, 66), (0, 98))}
    run = counted(loaded("blur"), by_hand(loaded("blur"), [sliding("blur_x")]), regions)
    assert run.stored == {"blur_x": 64 * (32 + 2) * 3, "blur_y": 64 * 96}
    assert run.elements == {"blur_x": (64, 4)}


@pytest.mark.parametrize(("rows", "width", "ring"), [(4, 64, 8), (4, 40, 8), (5, 64, 8), (7, 64, 16)])
def test_a_window_slides_along_tiles_of_some_rows(rows: int, width: int, ring: int) -> None:
    """In columns of so many elements every row is computed once; a tile needs two rows more than it has."""
    columns = ("x.inner", "y.inner", "y.outer", "x.outer")
    group = Group(
        "blur_y",
        columns,
        (Tile("x", width), Tile("y", rows)),
        "x.outer",
        Vector("x", 8),
        (),
        (sliding("blur_x", compute="y.outer", store="x.outer"),),
    )
    schedule = Schedule("blur", "hand", (group,))
    check(rewrite(loaded("blur"), schedule))
    regions = {"blur_y": ((0, 64), (0, 96)), "input": ((0, 66), (0, 98))}
    run = counted(loaded("blur"), schedule, regions)
    tail = 64 % width  # the last vector of a row overlaps the one before
    assert run.stored["blur_x"] == (64 if tail == 0 else width + -(-tail // 8) * 8) * 98
    assert run.elements == {"blur_x": (width, ring)}


def test_without_a_store_level_further_out_rows_are_computed_again() -> None:
    regions = {"blur_y": ((0, 64), (0, 96)), "input": ((0, 66), (0, 98))}
    run = counted(loaded("blur"), by_hand(loaded("blur"), [sliding("blur_x", store="y.inner")]), regions)
    assert run.stored == {"blur_x": 64 * 96 * 3, "blur_y": 64 * 96}
    assert run.elements == {"blur_x": (64, 3)}


def test_without_folding_the_whole_strip_is_kept() -> None:
    regions = {"blur_y": ((0, 64), (0, 96)), "input": ((0, 66), (0, 98))}
    run = counted(loaded("blur"), by_hand(loaded("blur"), [sliding("blur_x", fold=False)]), regions)
    assert run.stored == {"blur_x": 64 * (32 + 2) * 3, "blur_y": 64 * 96}
    assert run.elements == {"blur_x": (64, 34)}


def test_inlined_nothing_is_stored() -> None:
    regions = {"blur_y": ((0, 64), (0, 96)), "input": ((0, 66), (0, 98))}
    run = counted(loaded("blur"), by_hand(loaded("blur"), [Placement("blur_x", INLINE, INLINE)]), regions)
    assert run.stored == {"blur_y": 64 * 96}
    assert run.elements == {}


def test_harris_keeps_four_rows_of_each_stage() -> None:
    harris = loaded("harris")
    kept = ("gray", "Ix", "Iy", "Ixx", "Iyy", "Ixy")
    placements = [
        sliding(s.name) if s.name in kept else Placement(s.name, INLINE, INLINE)
        for s in harris.stages
        if s.name not in harris.outputs
    ]
    regions: dict[str, Region] = {"output": ((3, 56), (3, 64)), "input": ((0, 62), (0, 70), (0, 3))}
    run = counted(harris, by_hand(harris, placements), regions)
    for name, width, more in (("gray", 60, 4), ("Ixx", 58, 2), ("Iyy", 58, 2), ("Ixy", 58, 2)):
        assert run.elements[name] == (width, 4)
        vectors = -(-width // 8) * 8  # the last vector of a row overlaps the one before
        assert run.stored[name] == vectors * (32 + more) * 2, name
    assert run.elements["Ix"] == run.elements["Iy"] == (58, 1)
    assert run.stored["output"] == 56 * 64


def test_blocks_of_rows_slide_beside_the_row_within_them() -> None:
    """Blocks of 8 rows overlap by 4: a row of the output is one of the lower half of one and one of the upper half of
    the next. Each block is computed once, all its rows at once, and two of them are kept."""
    pipeline = load(
        {
            "format": 1,
            "name": "merged",
            "inputs": [{"name": "input", "type": "int32", "dims": ["x", "y"]}],
            "stages": [
                {"name": "block", "dims": ["x", "i", "t"], "value": "input(x, 4 * t + i) * (i + 1)"},
                {
                    "name": "out",
                    "dims": ["x", "y"],
                    "value": "block(x, y % 4 + 4, y // 4 - 1) + block(x, y % 4, y // 4)",
                },
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [8, 64]]},
        }
    )
    block = sliding("block", order=("x", "i", "t"))
    loops = ("x.inner", "y.inner", "x.outer")
    group = Group("out", loops, (Tile("x", None),), None, Vector("x", 8), (), (block,))
    schedule = Schedule("merged", "hand", (group,))
    check(rewrite(pipeline, schedule))
    run = counted(pipeline, schedule, {"out": ((0, 64), (8, 64)), "input": ((0, 64), (4, 72))})
    assert run.stored == {"block": 64 * 8 * 17, "out": 64 * 64}
    assert run.elements == {"block": (64, 8, 2)}


@pytest.mark.parametrize(("name", "ring"), [("blur", {"blur_x": 4}), ("unsharp", {"blur_y": 1})])
def test_what_the_method_decides_slides(name: str, ring: dict[str, int]) -> None:
    compiled = compile_pipeline(loaded(name), here(), PAPER_OPTIONS)
    estimates = {o: loaded(name).estimate(o) or () for o in loaded(name).outputs}
    width = next(iter(estimates.values()))[0][1]
    declared = dict(compiled.source.buffers)
    for stage, rows in ring.items():
        size = loaded(name).stage(stage).types[0].bytes
        assert declared[stage] <= width * 1.1 * rows * size * here().threads, declared


def test_a_pyramid_level_slides_at_its_own_rate() -> None:
    """Two rows of `down` are new for a row of the output; the rows between are computed once."""
    pipeline = load(
        {
            "format": 1,
            "name": "halved",
            "inputs": [{"name": "input", "type": "int32", "dims": ["x", "y"]}],
            "stages": [
                {"name": "a", "dims": ["x", "y"], "value": "input(x, y) * 3"},
                {"name": "out", "dims": ["x", "y"], "value": "a(x, 2 * y - 1) + a(x, 2 * y) + a(x, 2 * y + 1)"},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 64]]},
        }
    )
    regions = {"out": ((0, 64), (0, 32)), "input": ((0, 64), (-1, 65))}
    run = counted(pipeline, by_hand(pipeline, [sliding("a")], rows=16), regions)
    assert run.stored["a"] == 64 * (2 * 16 + 1) * 2
    assert run.elements["a"] == (64, 4)


# Small cases that went wrong

SIZE = 40


def assert_computes(
    stages: dict[str, str], placements: Sequence[Placement], loops: tuple[str, ...] = ROWS, rows: int = 32
) -> None:
    """Under AddressSanitizer a buffer that is too small would be seen at once; here its neighbour is overwritten."""
    pipeline = planar(stages, SIZE, SIZE, "int32", "mirror_image")
    output = pipeline.outputs[0]
    schedule = by_hand(pipeline, placements, loops, rows)
    source = source_of(pipeline, schedule, here())
    library = build(source)
    image = Image(np.random.default_rng(3).integers(-99, 99, (SIZE, SIZE)).astype(np.int32), (0, 0))
    for region in (((0, SIZE), (0, SIZE)), ((-9, 11), (5, 7))):
        regions: dict[str, Region] = {output: region}
        status, got = call(library, source, pipeline, {"input": image}, {}, regions)
        assert status == 0
        expected = interpret(pipeline, {"input": image}, {}, regions)[output]
        np.testing.assert_array_equal(got[output][0], expected[0])
        program = lower(rewrite(pipeline, schedule), here())
        run = execute(program, pipeline, {**regions, "input": ((0, SIZE), (0, SIZE))})
        assert run.stored[output] >= region[0][1] * region[1][1]


PLAIN = ("x.inner", "y.inner")
INSIDE = {"compute": "y.inner", "store": "y.inner", "vector": None}


def test_a_shifted_clamp_and_a_clamped_shift() -> None:
    read = "g(x, clamp(y, 0, 5) + 30) + g(x, clamp(y + 30, 0, 5))"
    assert_computes({"g": "input(x, y) * 2", "out": read}, [sliding("g", **INSIDE)], PLAIN)
    assert_computes({"g": "input(x, y) * 2", "out": read}, [sliding("g")])


@pytest.mark.parametrize("read", ["g(clamp(x, y, y + 2), y)", "g(x, clamp(x, y, y + 9))", "g(x, max(y, x - 8))"])
def test_a_clamp_to_another_loop(read: str) -> None:
    assert_computes({"g": "input(x, y) * 2", "out": read}, [sliding("g", **INSIDE)], PLAIN)
    assert_computes({"g": "input(x, y) * 2", "out": read}, [sliding("g")])


def test_a_clamp_to_a_reduction() -> None:
    read = "sum(g(x, clamp(y, r, r + 2)) for r in range(0, 30))"
    assert_computes({"g": "input(x, y) * 2", "out": read}, [sliding("g", **INSIDE)], PLAIN)


def test_rows_between_those_that_are_read() -> None:
    """f is read at every second row only: what it reads itself has room for one row of f at a time."""
    stages = {
        "e": "input(x, y) * 2",
        "f": "e(x, y - 2) - e(x, y + 3)",
        "out": "f(x, 2 * y + 1)",
    }
    for vector in (None, Vector("x", 8)):
        placements = [sliding("e", compute="y.inner", store="y.inner", vector=vector), sliding("f", vector=vector)]
        assert_computes(stages, placements)


def test_a_stage_read_from_its_end() -> None:
    stages = {
        "e": "input(x, y) * 2",
        "f": "e(x, y - 2) - e(x, y + 3)",
        "out": "f(x, 20 - y) * 2 + f(x, 21 - y)",
    }
    assert_computes(stages, [sliding("e", store="y.inner"), sliding("f")])
    assert_computes(stages, [sliding("e"), sliding("f")])


def test_a_stage_turned_around_twice() -> None:
    """What lies between runs backwards, in place: the rows of `e` are followed through it or not at all."""
    stages = {"e": "input(x, y) * 2", "f": "e(x, 2 - y)", "out": "f(x, 1 - y) - f(x, 2 - y)"}
    inline = Placement("f", INLINE, INLINE)
    assert_computes(stages, [sliding("e", vector=None), inline])
    assert_computes(stages, [sliding("e"), sliding("f", store="y.inner")])


def test_a_stage_read_up_and_down() -> None:
    stages = {"e": "input(x, y) * 2", "f": "e(x, y) + e(x, y // 2) * 3", "out": "f(x, y) + f(x, 2 * y)"}
    assert_computes(stages, [sliding("e", store="y.inner"), sliding("f")])
    assert_computes(stages, [sliding("e"), sliding("f", store="y.inner")])


def test_rows_that_come_again_later() -> None:
    """The first iteration has all rows up to its own one, whatever it reads: none of a later one is new."""
    stages = {"e": "input(x, y) * 2", "out": "e(20 - x, (y + 1) % 4)"}
    loops = ("x.inner", "y.inner", "y.outer", "x.outer")
    assert_computes(stages, [sliding("e", compute="x.inner", fold=False, order=("y", "x"), vector=None)], loops)


def test_tiles_of_one_row() -> None:
    """The loop over tiles runs row by row, but the stage is computed in the loop inside."""
    stages = {"f0": "input(x, y) * 2", "f1": "f0(x, y + 1)", "out": "f1(x, y - 1) + 2 * f1(x, y + 2)"}
    loops = ("x.inner", "y.inner", "y.outer", "x.outer")
    placements = [sliding("f0"), sliding("f1", store="y.inner")]
    for rows in (1, 2, 5):
        assert_computes(stages, placements, loops, rows)


@pytest.mark.parametrize("kind", ["constant", "repeat_edge"])
@pytest.mark.parametrize("length", [3, 5, 9])
def test_a_chain_of_stages_that_end_where_the_image_does(length: int, kind: str) -> None:
    """The first row of one needs two of the one before, three of the one before that: all at once."""
    boundary = {"kind": kind} | ({"value": "3"} if kind == "constant" else {})
    domain = [["input.min.x", "input.extent.x"], ["input.min.y", "input.extent.y"]]
    names = ["input", *(f"s{n}" for n in range(length)), "out"]
    stages = [
        {"name": name, "dims": ["x", "y"], "value": f"({before}(x, y - 1) ^ {before}(x + 1, y + 1)) * 3 + 1"}
        | ({} if name == "out" else {"boundary": boundary | {"domain": domain}})
        for before, name in pairwise(names)
    ]
    image = {"name": "input", "type": "int32", "dims": ["x", "y"], "boundary": boundary}
    plane = [[0, SIZE], [0, SIZE]]
    pipeline = load(
        {
            "format": 1,
            "name": "chain",
            "inputs": [image],
            "stages": stages,
            "outputs": ["out"],
            "estimates": {"input": plane, "out": plane},
        }
    )
    for rows in (32, 4):
        source = source_of(pipeline, by_hand(pipeline, list(map(sliding, names[1:-1])), rows=rows), here())
        library = build(source)
        given = {"input": Image(np.random.default_rng(3).integers(-99, 99, (SIZE, SIZE)).astype(np.int32), (0, 0))}
        for region in (((0, SIZE), (0, SIZE)), ((-9, 11), (-5, 17)), ((3, 20), (SIZE - 7, 20))):
            status, got = call(library, source, pipeline, given, {}, {"out": region})
            assert status == 0
            expected = interpret(pipeline, given, {}, {"out": region})["out"]
            np.testing.assert_array_equal(got["out"][0], expected[0])


def test_blocks_with_updates_are_computed_once_though_each_row_reads_one_of_their_points() -> None:
    """64 x 96 points, scanned down within blocks of eight rows: every iteration over y reads a row of a block."""
    block = {"name": "block", "dims": ["x", "i", "b"], "value": "input(x, 8 * b + i)"}
    scan = {"domain": {"r": [1, 7]}, "at": ["x", "r", "b"], "value": "max(block(x, r - 1, b), block(x, r, b))"}
    document = {
        "format": 1,
        "name": "blocks",
        "inputs": [{"name": "input", "type": "float32", "dims": ["x", "y"]}],
        "stages": [
            {**block, "updates": [scan]},
            {"name": "out", "dims": ["x", "y"], "value": "block(x, y % 8, y // 8)"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 64], [0, 96]]},
    }
    pipeline = load(document)
    schedule = by_hand(pipeline, [sliding("block", order=("x", "i", "b"))], rows=96)
    done = counted(pipeline, schedule, {"out": ((0, 64), (0, 96))})
    assert done.stored["block"] == 64 * 96
