"""Factored reductions, compiled: parts by threads and in vectors, of images of every size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of
from support.threads import threads

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Factor, Group, Placement, Schedule, UpdateLoops, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.rewrites.rfactor import factored
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule

INPUT = {"name": "input", "type": "uint8", "dims": ["x", "y"]}
LOOPS = "for r in range(input.min.x, input.min.x + input.extent.x) for s in range(input.min.y, input.min.y + input.extent.y)"  # fmt: skip  # noqa: E501


def pipeline(*stages: dict[str, object]) -> Pipeline:
    document = {"format": 1, "name": "parts", "inputs": [INPUT], "stages": list(stages), "outputs": ["out"]}
    return load(document | {"estimates": {"out": [[0, 32]], "input": [[0, 200], [0, 100]]}})


SUM = pipeline(
    {"name": "total", "dims": [], "value": f"sum(int32(input(r, s)) * (s % 4 - 1) {LOOPS})"},
    {"name": "out", "dims": ["x"], "value": "total() + x"},
)
HISTOGRAM = pipeline(
    {
        "name": "hist",
        "dims": ["i"],
        "value": "uint32(0)",
        "updates": [
            {
                "domain": {"rx": ["input.min.x", "input.extent.x"], "ry": ["input.min.y", "input.extent.y"]},
                "at": ["input(rx, ry)"],
                "value": "hist(input(rx, ry)) + 1",
            }
        ],
    },
    {"name": "out", "dims": ["x"], "value": "hist(x * 8)"},
)
ROWS, LANES = Factor("total", 0, "s", 4, "strips"), Factor("strips", 0, "r", 16, "lanes", interleaved=True)
THREADS = Factor("hist", 0, "ry", 8, "strips")


def alone(output: str, loops: str, vector: str | None = None, *placements: Placement, parallel: bool = False) -> Group:
    """A group without tiles; `loops` are dims, innermost first."""
    names = tuple(f"{d}.inner" for d in loops.split())
    return Group(
        output, names, (), names[-1] if parallel else None, Vector(vector, 8) if vector else None, (), placements
    )


def inline(stage: str) -> Placement:
    return Placement(stage, INLINE, INLINE)


CASES = {
    "strips by threads": (SUM, (ROWS,), (alone("strips", "s", parallel=True), alone("out", "x", "x", inline("total")))),
    "lanes in vectors inside strips by threads": (
        SUM,
        (ROWS, LANES),
        (
            Group("strips", ("s.inner",), (), "s.inner", None, (), (
                Placement("lanes", "s.inner", "s.inner", vector=Vector("r", 8)),
            )),
            alone("out", "x", "x", inline("total")),
        ),
    ),
    "lanes in vectors alone": (
        SUM,
        (replace(LANES, stage="total"),),
        (alone("lanes", "r", "r"), alone("total", ""), alone("out", "x", "x")),
    ),
    "histograms by threads": (
        HISTOGRAM,
        (THREADS,),
        (
            Group("strips", ("i.inner", "ry.inner"), (), "ry.inner", Vector("i", 8), (), (), (
                UpdateLoops(("rx", "ry_0", "ry")),
            )),
            alone("hist", "i", "i"),
            alone("out", "x", "x"),
        ),
    ),
    "histograms side by side": (
        HISTOGRAM,
        (replace(THREADS, variable="rx", interleaved=True),),
        (
            Group("strips", ("rx.inner", "i.inner"), (), None, Vector("rx", 8), (), (), (
                UpdateLoops(("rx", "rx_0", "ry"), Vector("rx", 8)),
            )),
            alone("hist", "i", "i"),
            alone("out", "x"),
        ),
    ),
}  # fmt: skip
SIZES = ((1, 1), (3, 2), (15, 3), (16, 4), (37, 11), (64, 33))


@pytest.mark.parametrize("case", sorted(CASES))
def test_parts_compute_what_the_whole_does(case: str) -> None:
    of, factors, groups = CASES[case]
    chosen = Schedule("parts", "hand", groups, factors=factors)
    check(rewrite(of, chosen))
    judge(of, chosen)


@pytest.mark.parametrize("case", sorted(CASES))
def test_parts_at_root(case: str) -> None:
    of, factors, _ = CASES[case]
    judge(of, replace(root_schedule(factored(of, factors), here()), factors=factors))


def judge(of: Pipeline, chosen: Schedule) -> None:
    source = source_of(of, chosen, here())
    library = build(source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    rng = np.random.default_rng(3)
    for width, height in SIZES:
        image = Image(rng.integers(0, 256, (height, width), dtype=np.uint8), (-2, 1))
        regions = {"out": ((3, 29),)}
        expected = interpret(of, {"input": image}, {}, regions)
        for count in (1, 3):
            with threads(count):
                status, got = call(library, source, of, {"input": image}, {}, regions)
            assert status == 0
            np.testing.assert_array_equal(got["out"][0], expected["out"][0], err_msg=f"{width} x {height}")
