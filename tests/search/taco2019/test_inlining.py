"""Inlining has an end: chains without overlap neither multiply nor nest without bound."""

from __future__ import annotations

import pytest
from machines import machine
from support.methods import PAPER_OPTIONS

from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.errors import IllegalSchedule, ScheduleError
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Group, Placement, Schedule, Vector
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite


def chain(stages: int, value: str) -> dict:
    """`value` reads the stage before as `f`."""
    names = [f"s{k}" for k in range(stages)]
    return {
        "format": 1,
        "name": "chain",
        "inputs": [{"name": "image", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": name, "dims": ["x", "y"], "value": value.replace("f(", f"{names[k - 1] if k else 'image'}(")}
            for k, name in enumerate(names)
        ],
        "outputs": [names[-1]],
        "estimates": {names[-1]: [[0, 64], [0, 64]]},
    }


MEAN = "(f(2 * x, 2 * y) + f(2 * x + 1, 2 * y) + f(2 * x, 2 * y + 1) + f(2 * x + 1, 2 * y + 1)) * 0.25"


@pytest.mark.parametrize(("stages", "value"), [(9, MEAN), (200, "f(x, y) + 1.0")])
def test_inlining_neither_multiplies_nor_nests_without_end(stages, value):
    compiled = compile_pipeline(load(chain(stages, value)), machine(), PAPER_OPTIONS)
    placements = [p for g in compiled.schedule.groups for p in g.placements]
    assert any(p.compute != INLINE for p in placements)
    assert len(compiled.source.code) < 1_000_000
    assert "a limit of ours" in {d.source for d in compiled.trace.decisions}


def test_a_pipeline_that_reaches_beyond_every_image_is_refused():
    with pytest.raises(ScheduleError, match="no image reaches that far"):
        compile_pipeline(load(chain(30, MEAN)), machine(), PAPER_OPTIONS)


def test_short_chains_stay_inline():
    compiled = compile_pipeline(load(chain(3, MEAN)), machine(), PAPER_OPTIONS)
    assert all(p.compute == INLINE for g in compiled.schedule.groups for p in g.placements)


BOUNDED = {"boundary": {"kind": "constant", "value": "0.0", "domain": [[0, "image.extent.x"], [0, "image.extent.y"]]}}


@pytest.mark.parametrize(
    ("stages", "value", "more"),
    [
        (20, "f(x, y) + f(x + 1, y)", {}),  # so small an image inherits edges: every read is clamped
        (20, "f(clamp(x - 1, 0, 63), y) + f(clamp(x + 1, 0, 63), y)", {}),
        (20, "f(x - 1, y) + f(x + 1, y)", BOUNDED),
        (2, "f(x - 1048576, y) + f(x + 1048576, y)", {}),
    ],
)
def test_what_is_in_registers_is_bounded_at_the_ends_of_rows_and_along_them(stages, value, more):
    document = chain(stages, value)
    for s in document["stages"][:-1]:
        s |= more
    document["estimates"]["image"] = [[0, 64], [0, 64]]
    compiled = compile_pipeline(load(document), machine())
    assert len(compiled.source.code) < 500_000


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("f(x - 200, y) + f(x + 200, y)", "elements of each row would be held at once"),
        (" + ".join(f"f(clamp(x + {n}, 0, 63), y)" for n in range(101)), "computed at more than 100 places"),
    ],
)
def test_registers_by_hand_are_refused_before_they_are_too_many(value, why):
    pipeline = load(chain(2, value))
    held = Placement("s0", "x.inner", "y.inner", True, "registers", (), None)
    loops = ("x.inner", "y.inner")
    group = Group("s1", loops, (), None, Vector("x", 8), (), (held,))
    with pytest.raises(IllegalSchedule, match=why):
        check(rewrite(pipeline, Schedule("chain", "by hand", (group,))))


@pytest.mark.slow
def test_reductions_inside_of_reductions_are_not_all_written_out():
    deep = "f(x, y)"
    for n in range(24):
        deep = f"sum({deep} for r{n} in range(2))"
    for n in range(24, 40):
        deep = f"sum({deep} for r{n} in range(image.extent.x))"
    assert len(compile_pipeline(load(chain(1, deep)), machine()).source.code) < 500_000
