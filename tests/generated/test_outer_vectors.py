"""Vectors of a stage that run outside of its other loops: what does not change in these is computed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of
from support.random_schedules import random_schedule
from support.shipped import assert_right, loaded, problem

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.schedule.schedule import Group, Placement, Schedule, Vector, inner
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

STRICT_FLAGS = ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover")


def turned(schedule: Schedule) -> Schedule:
    """`schedule` with the vectors of members outside of all their other loops, where that is legal."""

    def of(group: Group, p: Placement) -> Placement:
        row = None if group.vector is None else inner(group.vector.dim)
        if p.vector is None or not p.order or p.compute == row or p.storage == "registers":
            return p
        return replace(p, order=(*p.order[1:], p.order[0]))

    groups = tuple(replace(g, placements=tuple(of(g, p) for p in g.placements)) for g in schedule.groups)
    return replace(schedule, groups=groups)


@pytest.mark.parametrize("name", ["blur", "unsharp", "harris", "interpolate"])
def test_any_order_computes_the_same(name: str) -> None:
    """Windows slide, levels are sampled, boundaries clamp."""
    pipeline = loaded(name)
    tried = 0
    for seed in range(40):
        drawn = random_schedule(pipeline, seed)
        schedule = turned(drawn)
        if schedule == drawn:
            continue
        tried += 1
        check(rewrite(pipeline, schedule))
        source = source_of(pipeline, schedule, here())
        library = build(source, STRICT_FLAGS)
        for size in ("7x3", "shifted"):
            p = problem(name, size)
            status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
            assert status == 0
            assert_right(got, p.expected)
        if tried == (1 if name == "interpolate" else 2):  # compilers take seconds for each
            return
    raise AssertionError("no schedule has vectors to turn")


def test_slices_inside_of_vectors() -> None:
    """Clamps along the row that other loops move: its middle is where none of them is at work."""
    document = {
        "format": 1,
        "name": "slices",
        "inputs": [{"name": "image", "type": "uint8", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": "apart", "dims": ["x", "y", "z"], "value": "absd(image(x, y), image(x + 3 * z, y))"},
            {"name": "out", "dims": ["x", "y"], "value": "sum(uint32(apart(x, y, z)) * z for z in range(9))"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 90], [0, 20]]},
    }
    of = load(document)
    member = Placement("apart", "y.inner", "y.inner", False, "memory", ("z", "x", "y"), Vector("x", 16))
    group = Group("out", ("x.inner", "y.inner"), (), "y.inner", Vector("x", 16), (), (member,))
    schedule = Schedule("slices", "by hand", (group,))
    check(rewrite(of, schedule))
    source = source_of(of, schedule, here())
    rows = source.code[source.code.index("apart: computed at") :]
    assert rows.index("for (int64_t x_step_") < rows.index("for (int64_t z_")
    library = build(source, STRICT_FLAGS)
    image = Image(np.random.default_rng(2).integers(0, 256, (20, 90), dtype=np.uint8), (0, 0))
    for region in (((0, 90), (0, 20)), ((-5, 11), (3, 2)), ((60, 70), (0, 4))):
        expected = interpret(of, {"image": image}, {}, {"out": region})["out"][0]
        status, got = call(library, source, of, {"image": image}, {}, {"out": region})
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], expected)
