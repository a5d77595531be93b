"""Schedules of updates written by hand, compiled: updates inside tiles, in vectors, by threads, at inner loops."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.calls import call
from support.machines import here, machine
from support.native import build, source_of
from support.threads import threads

from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Tile, UpdateLoops, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import normalise, rewrite

INPUT = {"name": "input", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}
LOOPS = ("x.inner", "y.inner", "x.outer", "y.outer")
TILES = (Tile("x", 24), Tile("y", 5))


def pipeline(stages: list[dict[str, object]], outputs: list[str], extent: int = 32) -> Pipeline:
    dims = {s["name"]: len(s["dims"]) for s in stages}
    estimates = {o: [[0, extent]] * dims[o] for o in outputs}
    document = {"format": 1, "name": "updates", "inputs": [INPUT], "stages": stages, "outputs": outputs}
    return load(document | {"estimates": estimates})


COLUMN_SUMS = pipeline(
    [
        {"name": "twice", "dims": ["x", "y"], "value": "uint32(input(x, y)) + uint32(input(x + 1, y))"},
        {
            "name": "sums",
            "dims": ["x", "y"],
            "value": "twice(x, y)",
            "updates": [{"domain": {"r": [1, 31]}, "at": ["x", "r"], "value": "sums(x, r - 1) + sums(x, r)"}],
        },
        {"name": "out", "dims": ["x", "y"], "value": "sums(x - 1, y) // 2 + sums(x + 1, y)"},
    ],
    ["out"],
)
GRID = pipeline(
    [
        {
            "name": "grid",
            "dims": ["x", "y", "z"],
            "value": "int32(0)",
            "updates": [
                {
                    "domain": {"rx": [0, 4], "ry": [0, 4]},
                    "where": "input(4 * x + rx, 4 * y + ry) > 9",
                    "at": ["x", "y", "int32(input(4 * x + rx, 4 * y + ry)) // 32"],
                    "value": "grid(x, y, int32(input(4 * x + rx, 4 * y + ry)) // 32) + input(4 * x + rx, 4 * y + ry)",
                }
            ],
        },
        {"name": "soft", "dims": ["x", "y", "z"], "value": "grid(x, y - 1, z) + 2 * grid(x, y, z) + grid(x, y + 1, z)"},
        {"name": "out", "dims": ["x", "y"], "value": "soft(x // 4, y // 4, int32(input(x, y)) // 32)"},
    ],
    ["out"],
)
LARGEST = pipeline(
    [
        {
            "name": "best",
            "dims": ["x", "y"],
            "value": ["int32(0)", "int32(input(x, y))"],
            "updates": [
                {
                    "domain": {"r": [1, 6]},
                    "at": ["x", "y"],
                    "where": "int32(input(x + r, y)) > best(x, y)[1]",
                    "value": ["r", "int32(input(x + r, y))"],
                },
                {"domain": {}, "at": ["x", "y"], "value": ["best(x, y)[0] * 2", "best(x, y)[1] + 1"]},
            ],
        },
        {"name": "out", "dims": ["x", "y"], "value": "best(x, y)[0] * 1000 + best(x, y + 1)[1]"},
    ],
    ["out", "best"],
)
HISTOGRAM = pipeline(
    [
        {
            "name": "hist",
            "dims": ["i"],
            "value": "uint32(0)",
            "updates": [
                {
                    "domain": {"rx": [0, "input.extent.x"], "ry": [0, "input.extent.y"]},
                    "at": ["int32(input(rx + input.min.x, ry + input.min.y))"],
                    "value": "hist(int32(input(rx + input.min.x, ry + input.min.y))) + 1",
                },
                {"domain": {"b": [1, 255]}, "at": ["b"], "value": "hist(b - 1) + hist(b)"},
                {"domain": {"b": [0, 256]}, "at": ["b"], "value": "hist(b) * 3"},
            ],
        },
        {"name": "out", "dims": ["x", "y"], "value": "hist(int32(input(x, y)))"},
    ],
    ["out"],
)
DOUBLING = pipeline(
    [
        {
            "name": "best",
            "dims": ["x", "y", "t"],
            "value": "int32(input(x, y)) * 8 + t",
            "updates": [
                {
                    "domain": {"r": ["input.min.y", "input.extent.y - 24"], "s": [1, 3]},
                    "at": ["x", "r", "s"],
                    "value": "max(best(x, r, s - 1), best(x, r + clamp(1 << (s - 1), 0, 8), s - 1)) - s",
                }
            ],
        },
        {
            "name": "out",
            "dims": ["x", "y"],
            "value": "best(x, y, 0) + best(x - 1, y + 2, 3) + best(x, y - 1, 3 + x % 2)",
        },
    ],
    ["out"],
)
"""Which level is read is not written down: it stays one stage."""
ALONE = Group("out", ("x.inner", "y.inner"), (), "y.inner", Vector("x", 8), (), ())


def schedule(*groups: Group) -> Schedule:
    return Schedule("updates", "hand", groups)


def tiled(*placements: Placement, output: str = "out", updates: tuple[UpdateLoops, ...] = ()) -> Group:
    return Group(output, LOOPS, TILES, "y.outer", Vector("x", 8), (), placements, updates)


def at(stage: str, compute: str, store: str, *updates: UpdateLoops, dim: str | None = "x") -> Placement:
    return Placement(stage, compute, store, vector=None if dim is None else Vector(dim, 8), updates=updates)


DOWN = UpdateLoops(("x", "r"), Vector("x", 8))
BLOCK = UpdateLoops(("rx", "ry", "x", "y"), Vector("x", 4))
PICK = (UpdateLoops(("r", "x", "y"), Vector("x", 8)), UpdateLoops(("x", "y"), Vector("x", 8)))
CASES = {
    "scan as a member": (
        COLUMN_SUMS,
        schedule(tiled(Placement("twice", INLINE, INLINE), at("sums", "x.outer", "x.outer", DOWN))),
    ),
    "scan as a member, its producer beside it": (
        COLUMN_SUMS,
        schedule(tiled(at("twice", "y.outer", "y.outer"), at("sums", "x.outer", "y.outer", DOWN))),
    ),
    "scan as an output by threads, filled row by row": (
        COLUMN_SUMS,
        schedule(
            Group(
                "sums", ("y.inner", "x.inner", "x.outer"), (Tile("x", 16),), "x.outer", None, (),
                (at("twice", "x.outer", "x.outer"),), (DOWN,),
            ),
            ALONE,
        ),
    ),
    "doubling, of which the values fill the edges": (
        DOUBLING,
        schedule(tiled(at("best", "x.outer", "x.outer", UpdateLoops(("x", "r", "s"), Vector("x", 8))))),
    ),
    "doubling down columns": (
        DOUBLING,
        schedule(
            Group(
                "best", ("x.inner", "y.inner", "t.inner", "x.outer"), (Tile("x", 16),), "x.outer", Vector("x", 8), (),
                (), (UpdateLoops(("r", "s", "x"), Vector("x", 8)),),
            ),
            ALONE,
        ),
    ),
    "scan by threads of its own": (
        COLUMN_SUMS,
        schedule(
            Group(
                "sums", ("x.inner", "y.inner"), (), None, Vector("x", 8), (), (Placement("twice", INLINE, INLINE),),
                (UpdateLoops(("r", "x"), None, "x"),),
            ),
            ALONE,
        ),
    ),
    "histograms of blocks, sliding": (
        GRID,
        schedule(tiled(at("grid", "y.inner", "x.outer", BLOCK), at("soft", "y.inner", "y.inner"))),
    ),
    "histograms of blocks, in tiles": (
        GRID,
        schedule(
            Group(
                "grid", ("z.inner", "x.inner", "y.inner", "y.outer"), (Tile("y", 3),), "y.outer", None, (), (),
                (UpdateLoops(("x", "rx", "ry", "y"), Vector("x", 8)),),
            ),
            tiled(at("soft", "x.outer", "x.outer")),
        ),
    ),
    "argmin of a tuple, both outputs": (
        LARGEST,
        schedule(
            Group("best", LOOPS, TILES, "y.outer", Vector("x", 8), (), (), PICK),
            ALONE,
        ),
    ),
    "whole histogram, scan of its bins, product in vectors by threads": (
        HISTOGRAM,
        schedule(
            Group(
                "hist", ("i.inner",), (), None, Vector("i", 8), (), (),
                (
                    UpdateLoops(("rx", "ry")),
                    UpdateLoops(("b",)),
                    UpdateLoops(("b",), Vector("b", 8)),
                ),
            ),
            ALONE,
        ),
    ),
    "histogram in a tile": (
        HISTOGRAM,
        schedule(tiled(Placement("hist", "y.outer", "y.outer"))),
    ),
}  # fmt: skip


def test_channels_of_an_update_are_side_by_side() -> None:
    """Three are expected, and what each has of its own is loaded and stored for all of them at once; others are a
    loop. A condition is asked channel by channel."""
    samples = pipeline(
        [
            {"name": "colours", "dims": ["x", "y", "c"], "value": "int32(input(x, y)) * (c + 2)"},
            {
                "name": "out",
                "dims": ["x", "y", "c"],
                "value": "colours(x, y, c)",
                "updates": [
                    {
                        "domain": {"s": [0, "input.extent.y // 8"]},
                        "at": ["x", "y", "c"],
                        "value": "out(x, y, c) * 3 + colours(x + int32(input(x, y + s)) // 64, y - s, c)",
                    },
                    {
                        "domain": {"s": [0, "input.extent.y // 8"]},
                        "at": ["x", "y", "c"],
                        "where": "input(x + s, y) > 90",
                        "value": "out(x, y, c) - colours(x, y, 2 - c) * s",
                    },
                ],
            },
        ],
        ["out"],
        extent=3,
    )
    loops = UpdateLoops(("c", "s", "x", "y"), Vector("x", 8))
    group = Group(
        "out", ("x.inner", "y.inner", "c.inner"), (), None, Vector("x", 8), (),
        (Placement("colours", INLINE, INLINE),), (loops, loops),
    )  # fmt: skip
    chosen = schedule(group)
    check(rewrite(samples, chosen))
    source, code = source_of(samples, chosen, here()), source_of(samples, chosen, machine()).code
    update = code[code.index("update 0 of out") : code.index("update 1 of out")]
    three, other = update.split("} else {")[0], update.split("} else {")[-1]
    assert len(set(re.findall(r"STORE\(i32x8, out_\d+ \+ \w+, ", three))) == 3
    function = re.search(
        r" void " + re.findall(r"(seldom\d+)\(", other)[0] + r"\(.*?^}", code, re.DOTALL | re.MULTILINE
    )
    assert function is not None
    assert "for (int64_t c_" in function.group()
    library = build(source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    image = Image(np.random.default_rng(5).integers(0, 256, (40, 70), dtype=np.uint8), (-8, -8))
    for channels in ((0, 3), (1, 2), (-1, 5)):
        regions = {"out": ((0, 37), (0, 9), channels)}
        expected = interpret(samples, {"input": image}, {}, regions)["out"][0]
        status, got = call(library, source, samples, {"input": image}, {}, regions)
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], expected)


def test_values_that_an_update_replaces_are_not_computed() -> None:
    """What lies above and below in all planes, and of the rows between, plane 0 and plane 4."""
    of, chosen = CASES["doubling, of which the values fill the edges"]
    code = source_of(of, chosen, machine()).code
    values = code[code.index("best: computed at") : code.index("update 0 of best")]
    assert values.count("for (int64_t t_") == 2
    assert values.count("for (int64_t y_") == 4


SIZES = (((0, 1), (0, 1)), ((0, 7), (0, 3)), ((-3, 61), (5, 23)), ((0, 100), (0, 32)))


@pytest.mark.parametrize("case", sorted(CASES))
def test_updates_compute_what_the_pipeline_says(case: str) -> None:
    of, chosen = CASES[case]
    check(rewrite(of, chosen))
    source = source_of(of, chosen, here())
    library = build(source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    rng = np.random.default_rng(3)
    for n, region in enumerate(SIZES):
        regions = dict.fromkeys(of.outputs, region)
        places = {"input": ((-2, 50 + n), (1, 30 + n))}
        assert required_regions(normalise(of), regions, {}, places)
        image = Image(rng.integers(0, 256, (30 + n, 50 + n), dtype=np.uint8), (-2, 1))
        expected = interpret(of, {"input": image}, {}, regions)
        for count in (1, 3):
            with threads(count):
                status, got = call(library, source, of, {"input": image}, {}, regions)
            assert status == 0
            for name, arrays in expected.items():
                for a, b in zip(got[name], arrays, strict=True):
                    np.testing.assert_array_equal(a, b, err_msg=f"{name} {region}")
