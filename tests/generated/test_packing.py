"""Packed operands and register tiles that do not divide a dim: the values are those of the interpreter, whatever the
sizes, types and machine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.random_cases import case_of, judge
from support.tools import require_tool

from tilesmith.platforms import CpuPlatform, catalog
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.schedule import Group, Packing, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search.driver import autoschedule

SUM = "sum(a(k, i) * b(j, k) for k in range(80))"
TRANSPOSED = "sum(a(k, i) * a(k, j) for k in range(80))"


def product(value: str, type_: str = "float32", sizes: tuple[int, int] = (53, 23)) -> Pipeline:
    inputs = {"a": ["k", "i"], "b": ["j", "k"]}
    return load(
        {
            "format": 1,
            "name": "product",
            "inputs": [{"name": n, "type": type_, "dims": dims} for n, dims in inputs.items() if f"{n}(" in value],
            "stages": [{"name": "c", "dims": ["j", "i"], "value": value}],
            "outputs": ["c"],
            "estimates": {"c": [[0, n] for n in sizes]},
        }
    )


def packed(packing: Packing, lanes: int, points: int) -> Schedule:
    """Panels of so many columns, and tiles of so many rows."""
    columns = "j" if packing.operand == "b" else "i"  # as the operand calls them
    copy = Placement(packing.packed, "j.outer", "j.outer", order=(columns, "k"), vector=Vector(columns, 4))
    loops = ("i.inner", "j.inner", "i.outer", "j.outer")
    tiles = (Tile("j", lanes), Tile("i", points))
    group = Group("c", loops, tiles, "j.outer", Vector("j", lanes), ("i",), (copy,))
    return Schedule("product", "written", (group,), packings=(packing,))


@pytest.mark.parametrize("type_", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize(("value", "operand"), [(SUM, "b"), (TRANSPOSED, "a")])
def test_sizes_need_not_divide(value: str, operand: str, type_: str) -> None:
    require_tool("gcc")
    schedule = packed(Packing("c", operand, "j", "panel"), 8, 6)
    for seed in (1, 2):
        assert judge(case_of(product(value, type_), schedule, seed), ["-O0"]) is None


def test_fewer_points_than_a_tile_has_are_right() -> None:
    require_tool("gcc")
    schedule = packed(Packing("c", "b", "j", "panel"), 8, 6)
    assert judge(case_of(product(SUM, sizes=(5, 4)), schedule, 3), ["-O0"]) is None


def test_a_packing_is_read_and_written() -> None:
    schedule = packed(Packing("c", "b", "j", "panel"), 8, 6)
    assert from_document(to_document(schedule)) == schedule


@pytest.mark.parametrize(
    ("packing", "why"),
    [
        (Packing("d", "b", "j", "panel"), "there is no such stage"),
        (Packing("c", "b", "k", "panel"), "has no dim 'k'"),
        (Packing("c", "d", "j", "panel"), "no input and no other stage 'd'"),
        (Packing("c", "c", "j", "panel"), "no input and no other stage 'c'"),
        (Packing("c", "a", "j", "panel"), "do not read 'a' along 'j'"),
        (Packing("c", "b", "j", "a"), "the name is taken"),
    ],
)
def test_a_packing_that_cannot_be_is_refused(packing: Packing, why: str) -> None:
    with pytest.raises(IllegalSchedule, match=why):
        rewrite(product(SUM), replace(packed(packing, 8, 6), groups=()))


def few_threads(platform: str) -> CpuPlatform:
    """The platform with as many threads as have panels of their own."""
    found = catalog.load(platform)
    assert isinstance(found, CpuPlatform)
    return found.model_copy(update={"threads": 8})


@pytest.mark.parametrize("platform", ["i7-6700", "epyc-9655"])
def test_columns_a_power_of_two_apart_are_packed(platform: str) -> None:
    large = product("sum(a(k, i) * b(j, k) for k in range(1024))", sizes=(1024, 1024))
    found = autoschedule(large, few_threads(platform))
    assert found.schedule.packings == (Packing("c", "b", "j", "b_for_c"),)
    (copy,) = found.schedule.groups[0].placements
    assert (copy.compute, copy.order[0]) == ("j.outer", "j")
    (told,) = (d for d in found.trace.decisions if d.kind == "packing")
    assert "b for c, as b_for_c" in told.chosen


@pytest.mark.parametrize("platform", ["i7-6700", "epyc-9655"])
def test_columns_that_lie_along_memory_are_packed_instead_of_summed_in_parts(platform: str) -> None:
    large = product("sum(a(k, i) * a(k, j) for k in range(800))", sizes=(600, 600))
    found = autoschedule(large, few_threads(platform))
    assert found.schedule.packings == (Packing("c", "a", "j", "a_for_c"),)
    assert not found.schedule.factors
    assert not any(d.kind == "factor" for d in found.trace.decisions)
