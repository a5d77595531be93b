"""Pipelines that the search once gave no legal schedule of, as random cases found them."""

from __future__ import annotations

import pytest
from support.machines import machine
from support.methods import PAPER

from tilesmith.platforms import CpuPlatform
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.schedule.schedule import INLINE, Schedule
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import SearchOptions, autoschedule
from tilesmith.scheduler.search.constraints.document import from_document


def tiny_caches() -> CpuPlatform:
    host = machine(threads=1, vector_bytes=16)
    caches = tuple(c.model_copy(update={"size_bytes": max(c.size_bytes // 32, 512)}) for c in host.caches)
    return host.model_copy(update={"caches": caches})


def scheduled(
    stages: list[dict], region: list[list[int]], host: CpuPlatform, options: SearchOptions = PAPER, **image: object
) -> Schedule:
    output = stages[-1]["name"]
    pipeline = load(
        {
            "format": 1, "name": "found", "inputs": [{"name": "input", "type": "int32", **image}], "stages": stages,
            "outputs": [output], "estimates": {output: region},
        }
    )  # fmt: skip
    schedule = autoschedule(pipeline, host, options).schedule
    check(rewrite(pipeline, schedule))
    return schedule


def test_a_change_of_every_point_has_no_parts() -> None:
    scan = {"domain": {"r": [1, 9]}, "at": ["r", "y"], "value": "f(r - 1, y) * 3"}
    change = {"domain": {}, "at": ["x", "y"], "value": "f(x, y) + input(x, y) * input(y, x)"}
    stage = {"name": "f", "dims": ["x", "y"], "storage": ["y", "x"], "value": "input(x, y)", "updates": [scan, change]}
    schedule = scheduled(
        [stage], [[0, 50000], [0, 3]], machine(), dims=["x", "y"], boundary={"kind": "repeat_edge"}
    )  # fmt: skip
    assert schedule.factors == ()


@pytest.mark.parametrize("size", [1, 50])
def test_what_a_shared_stage_reads_is_there_for_all_its_readers(size: int) -> None:
    """`f1` is inline in two groups, and `f0`, which only it reads, is computed in neither of them."""
    dims = ["x", "y", "c"]
    stages = [
        {"name": "f0", "dims": dims,
         "value": "input(-1 - x, clamp(0 - y, 2, 9), c) - 2 * input(1 - x, clamp(2 - y, 2, 9), c)"},
        {"name": "f1", "dims": dims, "value": "f0(clamp((x + 2) // 2, -1, 7), 0 - y, c)"},
        {"name": "f2", "dims": dims, "boundary": {"kind": "repeat_edge", "domain": [[-2, 6], [0, 8], [-2, 11]]},
         "value": "f1((x + 3) // 2, y // 2, c) ^ 2 * input(clamp(x, -1, 7), y // 2, c) - 3 * input(clamp(x + 2, -1, 7),"
                  " (y + 2) // 2, c) + 4 * input(clamp(x, -1, 7), (y + 1) // 2, c) ^ 5 * input(clamp(x + 2, -1, 7),"
                  " (y + 3) // 2, c) + c"},
        {"name": "f3", "dims": dims, "boundary": {"kind": "repeat_image", "domain": [[-1, 6], [0, 3], [0, 5]]},
         "value": "f2((x + 2) // 2, 2 * y - 1, c) - 2 * f2((x + 3) // 2, 2 * y + 3, c)"},
        {"name": "f4", "dims": dims,
         "value": "f3(clamp(x - 1, -1, 7), y, c) - 2 * f3(clamp(x, -1, 7), y - 2, c) - 3 * f3(clamp(x + 2, -1, 7),"
                  " y - 2, c) ^ 4 * f1(clamp(2 * x - 2, -1, 7), y + 1, c)"},
    ]  # fmt: skip
    schedule = scheduled(stages, [[0, 50 * size], [0, 26 * size], [0, 3]], tiny_caches(), dims=dims)
    if size == 50:
        inline = [g.output for g in schedule.groups for p in g.placements if p == type(p)("f1", INLINE, INLINE)]
        assert len(inline) > 1


def test_a_stage_in_the_row_of_vectors_has_no_loop_inside_of_its_own_vectors() -> None:
    """Most of `wide` is the same in all rows: a loop over them would be inside of its vectors, were it elsewhere."""
    dims, constant = ["x", "y"], {"kind": "constant", "value": "5"}
    stages = [
        {"name": "wide", "dims": dims,
         "value": "input(clamp(2 * x - 2, -1, 7), y) + input(clamp(2 * x - 2, -1, 7), y + 3)"},
        {"name": "out", "dims": dims,
         "value": "3 * wide(x, y) + wide(x + 17, y) + 3 * wide(x, y + 1) + wide(x + 17, y + 1)"},
    ]  # fmt: skip
    options = SearchOptions("default", fixed=from_document({"wide": {"compute": "x.inner"}}))
    schedule = scheduled(stages, [[0, 1650], [0, 450]], tiny_caches(), options, dims=dims, boundary=constant)
    (wide,) = [p for g in schedule.groups for p in g.placements if p.stage == "wide"]
    assert (wide.compute, wide.store, wide.order) == ("x.inner", "x.outer", ("x", "y"))
    assert wide.vector is not None


def test_a_stage_that_ends_a_chain_is_computed_outside_of_all_its_readers() -> None:
    """A softmax of bytes: `e` is read by the sum of a row, which is computed further out, and by the rows' values."""
    row = {"domain": {"r": [0, "input.extent.x"]}, "at": ["y"]}
    stages = [
        {"name": "top", "dims": ["y"], "value": "uint8(0)", "updates": [{**row, "value": "max(top(y), input(r, y))"}]},
        {"name": "table", "dims": ["i"], "value": "sat_int16(round(32767.0 * exp((0.0 - float32(i)) / 16.0)))"},
        {"name": "e", "dims": ["x", "y"], "value": "table(top(y) - input(x, y))"},
        {"name": "total", "dims": ["y"], "value": "0", "updates": [{**row, "value": "total(y) + int32(e(r, y))"}]},
        {"name": "part", "dims": ["y"], "value": "255.0 / float32(total(y))"},
        {"name": "out", "dims": ["x", "y"], "value": "sat_uint8(round(float32(e(x, y)) * part(y)))"},
    ]  # fmt: skip
    for vector_bytes in (32, 64):
        host = machine(threads=1, vector_bytes=vector_bytes)
        scheduled(stages, [[0, 1000], [0, 64]], host, SearchOptions("default"), type="uint8", dims=["x", "y"])
