"""Estimates: indices as numbers at the sizes that the document expects."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.lowered import buffer, pipeline

from tilesmith.scheduler.analysis.estimated_bounds import estimates
from tilesmith.scheduler.ir.index import const, divide, maximum, minimum, sym
from tilesmith.scheduler.ir.loop.program import Allocate, Extents, If, Let, Loop
from tilesmith.scheduler.ir.loop.signature import Argument
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary
from tilesmith.scheduler.ir.pipeline.types import FLOAT32
from tilesmith.scheduler.lowering.estimates import Estimates, estimated_strides, estimated_symbols
from tilesmith.scheduler.rewrites.passes import normalise


def test_symbols_have_their_estimates_and_what_is_unknown_is_one() -> None:
    found = Estimates({"n": 40})
    assert found.value(sym("n").scaled(2) + 1) == 81
    assert found.value(maximum(divide(sym("n"), 16), sym("unknown"))) == 2
    assert found.value(sym("unknown") - 5) == -4


def test_definitions_are_what_they_stand_for_also_inside_of_loops() -> None:
    found = Estimates({"n": 40})
    inner = Let("half", divide(sym("whole"), 2))
    found.add((Let("whole", sym("n") + 2), Loop("y", const(0), const(9), const(1), (inner,))))
    assert found.value(sym("half")) == 21
    assert found.value(sym("half")) == 21, "and what was worked out once is kept"


def test_loops_with_known_ends_are_in_the_middle() -> None:
    found = Estimates({"n": 40}, {"y": (const(10), sym("n"))})
    assert found.value(sym("y")) == 25


def test_loops_of_a_block_are_in_the_middle_as_well() -> None:
    found, y = Estimates({"n": 40}), sym("y")
    tile = If((y,), (Let("last", minimum(sym("n"), y + 15)),))
    found.add((Loop("y", const(0), sym("n"), const(16), (tile,)),))
    assert (found.value(y), found.value(sym("last"))) == (20, 35)


def test_a_range_is_where_it_begins_and_how_much_it_is() -> None:
    assert Estimates({"n": 40}).range((const(-2), sym("n") - 1)) == (-2, 42)
    assert Estimates({}).range((const(5), const(4))) == (5, 0)


def test_regions_of_outputs_are_those_of_the_document() -> None:
    p = pipeline("f(x, y) + 1.0", dims=("x", "y"))
    found = estimated_symbols(p, p)
    assert found["out.min.x"] == 0
    assert found["out.extent.y"] == 64


@pytest.mark.parametrize(("boundary", "first", "extent"), [(None, -1, 66), (Boundary("repeat_edge"), 0, 64)])
def test_inputs_have_the_size_that_the_schedule_is_made_for(boundary: Boundary | None, first: int, extent: int) -> None:
    p = pipeline("f(x - 1) + f(x + 1)")
    p = normalise(replace(p, inputs=(replace(p.input("f"), boundary=boundary),)))
    found = estimated_symbols(p, p)
    assert (found["f.min.x"], found["f.extent.x"]) == (first, extent)
    assert estimates(p).symbols.items() <= found.items()


def test_inputs_that_nothing_reads_are_a_point() -> None:
    p = pipeline("float32(x)")
    assert estimated_symbols(p, p)["f.extent.x"] == 1


def test_images_lie_dense_in_the_order_of_their_storage() -> None:
    f = Argument("f", "f_0", FLOAT32, ("x", "y", "c"), ("c", "x", "y"), False)
    symbols = {"f.extent.x": 640, "f.extent.y": 480, "f.extent.c": 3}
    assert estimated_strides([f], symbols) == {"f_0.stride.c": 1, "f_0.stride.x": 3, "f_0.stride.y": 1920}


def test_buffers_of_a_call_lie_dense_in_the_order_of_their_storage() -> None:
    memory = buffer("g", FLOAT32, ("x", "y", "c"))
    memory.stride = [sym("stride_x"), sym("stride_y"), const(1)]
    found = Estimates({"n": 40})
    allocate = Allocate(Extents(memory, (2, 0, 1), (const(3), sym("width"), sym("n"))))
    found.add((Let("width", sym("n") + 2), allocate))
    assert [found.value(step) for step in memory.stride] == [3, 126, 1]
