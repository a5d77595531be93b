"""Packed operands and register tiles that do not divide a dim: the values are those of the interpreter, whatever the
sizes, types and machine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.random_cases import case_of, judge
from support.tools import require_tool
from support.turns import in_turn

from tilesmith.platforms import CpuPlatform, catalog
from tilesmith.scheduler.errors import IllegalSchedule
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.expressions import Call, Select, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.document import from_document, to_document
from tilesmith.scheduler.ir.schedule.schedule import Group, Packing, Placement, Schedule, Tile, Vector
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search.driver import autoschedule
from tilesmith.scheduler.search.packing_choice import packings

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
    assert judge(case_of(product(value, type_), schedule, 1), ["-O0"]) is None


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


def few_threads(platform: str, threads: int = 8) -> CpuPlatform:
    """The platform with as many threads as have panels of their own."""
    found = catalog.load(platform)
    assert isinstance(found, CpuPlatform)
    return found.model_copy(update={"threads": threads})


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


def channels_innermost(size: tuple[int, int], inputs: int, channels: int, boundary: str | None = None) -> Pipeline:
    """A 3 x 3 convolution of images whose channels are innermost, with so many of them in and out, and a boundary."""
    taps = f"sum(a(i, x + p, y + q) * w(c, i, p, q) for i in range({inputs}) for q in range(3) for p in range(3))"
    dims = {"a": ["i", "x", "y"], "w": ["c", "i", "p", "q"]}
    held = {"kind": boundary} | ({"value": "3"} if boundary == "constant" else {})
    bounded = {"a": {"boundary": held}} if boundary else {}
    return load(
        {
            "format": 1,
            "name": "product",
            "inputs": [{"name": n, "type": "float32", "dims": d, **bounded.get(n, {})} for n, d in dims.items()],
            "stages": [{"name": "f", "dims": ["c", "x", "y"], "value": taps}],
            "outputs": ["f"],
            "estimates": {"f": [[0, channels], *([0, n] for n in size)]},
        }
    )


@pytest.mark.parametrize("platform", ["i7-6700", "epyc-9655"])
def test_weights_of_channels_are_panels_of_several_vectors_beside_points(platform: str) -> None:
    """Rows of weights are half a kilobyte; of each element of the image several vectors are products."""
    found = autoschedule(channels_innermost((100, 80), 128, 128), few_threads(platform, 2))
    (group,) = found.schedule.groups
    (packing,), (copy,) = found.schedule.packings, group.placements
    assert (packing.operand, packing.dim, copy.compute) == ("w", "c", "c.outer")
    assert group.vector is not None
    assert group.vector.lanes * 4 > few_threads(platform).vector_bytes
    assert group.unroll in (("x",), ("y",))


@pytest.mark.parametrize("seed", [1, 2])
def test_panels_of_weights_of_channels_are_right(seed: int) -> None:
    require_tool("gcc")
    copy = Placement("panel", "c.outer", "c.outer", order=("c", "i", "p", "q"), vector=Vector("c", 4))
    loops = ("x.inner", "c.inner", "y.inner", "x.outer", "c.outer", "y.outer")
    tiles = (Tile("c", 8), Tile("x", 5), Tile("y", 3))
    group = Group("f", loops, tiles, "y.outer", Vector("c", 8), ("x",), (copy,))
    schedule = Schedule("product", "written", (group,), packings=(Packing("f", "w", "c", "panel"),))
    assert judge(case_of(channels_innermost((13, 7), 9, 21), schedule, seed), ["-O0"]) is None


BOUNDARIES = ("constant", "repeat_edge", "repeat_image", "mirror_image", "mirror_interior")


def convolution(boundary: str, type_: str = "float32", size: int = 64) -> Pipeline:
    """3 x 3 with every fourth pixel, 16 channels to 20, of images that end at a boundary."""
    held = {"kind": boundary} | ({"value": "3"} if boundary == "constant" else {})
    value = "sum(a(x + 4 * p - 4, y + 4 * q - 4, r) * w(p, q, r, c)"
    stage = {
        "name": "f",
        "dims": ["x", "y", "c"],
        "value": f"{value} for r in range(16) for q in range(3) for p in range(3))",
    }
    inputs = [
        {"name": "a", "type": type_, "dims": ["x", "y", "c"], "boundary": held},
        {"name": "w", "type": type_, "dims": ["p", "q", "m", "n"]},
    ]
    estimates = {"a": [[0, size], [0, size], [0, 16]], "f": [[0, size], [0, size], [0, 20]]}
    return load(
        {"format": 1, "name": "dilated", "inputs": inputs, "stages": [stage], "outputs": ["f"], "estimates": estimates}
    )


@pytest.mark.parametrize(("boundary", "type_"), in_turn(BOUNDARIES, ("float32", "int16")))
def test_a_copy_has_the_boundary(boundary: str, type_: str) -> None:
    require_tool("gcc")
    packing = Packing("f", "a", "x", "a_for_f")
    copy = Placement("a_for_f", "y.outer", "y.outer", vector=Vector("x", 4))
    loops = ("c.inner", "x.inner", "y.inner", "y.outer")
    group = Group("f", loops, (Tile("y", 3),), None, Vector("x", 8), ("c",), (copy,))
    schedule = Schedule("dilated", "written", (group,), packings=(packing,))
    assert judge(case_of(convolution(boundary, type_, 9), schedule, 0), ["-O0"]) is None
    plan = rewrite(convolution(boundary), replace(schedule, groups=()))
    assert not any(isinstance(e, Call | Select) for v in plan.pipeline.stage("f").values for e in walk(v))


@pytest.mark.parametrize("platform", ["i7-6700", "epyc-9655"])
@pytest.mark.parametrize("size", [64, 320])
def test_rows_of_convolutions_are_copied_with_a_margin(platform: str, size: int) -> None:
    found = autoschedule(convolution("constant", size=size), few_threads(platform, 1))
    assert found.schedule.packings == (Packing("f", "a", "x", "a_for_f"),)


def test_rows_that_windows_share_are_copied_for_few_channels() -> None:
    """Three channels of output read each element of 64 x 9 terms 27 times."""
    found = autoschedule(channels_innermost((64, 64), 64, 3, "constant"), few_threads("epyc-9655", 1))
    assert Packing("f", "a", "x", "a_for_f") in found.schedule.packings


@pytest.mark.parametrize("boundary", ["constant", "mirror_interior"])
def test_elements_for_all_lanes_are_copied_with_a_margin(boundary: str) -> None:
    """Each is read again for all vectors of channels, and the boundary would be tested for each term."""
    found = autoschedule(channels_innermost((28, 28), 64, 64, boundary), few_threads("epyc-9655", 1))
    (packing,) = (p for p in found.schedule.packings if p.operand == "a")
    assert (packing.stage, packing.dim) == ("f", "x")


@pytest.mark.parametrize(("channels", "copied"), [(1, False), (8, True)])
def test_elements_that_few_terms_read_are_read_where_they_are(channels: int, copied: bool) -> None:
    """Each is read for nine terms of a channel."""
    found = autoschedule(channels_innermost((28, 28), 64, channels, "constant"), few_threads("epyc-9655", 1))
    assert any(p.operand == "a" for p in found.schedule.packings) == copied


def test_elements_whose_boundary_is_the_same_for_all_terms_are_read_where_they_are() -> None:
    """The boundary of a pointwise convolution that a window reads is asked once a point."""
    of = load(
        {
            "format": 1,
            "name": "pointwise",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["i", "x", "y"], "boundary": {"kind": "repeat_edge"}},
                {"name": "w", "type": "float32", "dims": ["c", "i"]},
            ],
            "stages": [
                {"name": "p", "dims": ["c", "x", "y"], "value": "sum(w(c, i) * a(i, x, y) for i in range(32))"},
                {"name": "f", "dims": ["c", "x", "y"], "value": "max(p(c, x + r, y) for r in range(-1, 2))"},
            ],
            "outputs": ["f"],
            "estimates": {"f": [[0, 64], [0, 112], [0, 112]], "a": [[0, 32], [0, 112], [0, 112]]},
        }
    )
    found = packings(gather(normalise(of)), few_threads("epyc-9655", 1))
    assert "a" not in {p.operand for p in found}


@pytest.mark.parametrize(("boundary", "seed"), in_turn(BOUNDARIES, (1, 2)))
def test_copies_of_elements_for_all_lanes_are_right(boundary: str, seed: int) -> None:
    require_tool("gcc")
    copy = Group("margin", ("x.inner", "i.inner", "y.inner"), (), None, Vector("x", 4), (), ())
    loops = ("x.inner", "c.inner", "y.inner", "x.outer", "y.outer")
    group = Group("f", loops, (Tile("x", 5), Tile("y", 3)), "y.outer", Vector("c", 8), ("x",), ())
    schedule = Schedule("product", "written", (copy, group), packings=(Packing("f", "a", "x", "margin"),))
    assert judge(case_of(channels_innermost((13, 7), 9, 21, boundary), schedule, seed), ["-O0"]) is None
