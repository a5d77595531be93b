"""Register tiles of long reductions: what the search decides of products of matrices and convolutions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilesmith.cost_models import Ecm
from tilesmith.platforms import catalog
from tilesmith.scheduler.features.pipeline.pipeline_features import gather
from tilesmith.scheduler.features.schedule_features import predict
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Group, Schedule, Tile, Vector
from tilesmith.scheduler.rewrites.passes import normalise, rewrite
from tilesmith.scheduler.search.driver import SearchOptions, autoschedule
from tilesmith.scheduler.search.ecm import register_tiles


def product(value: str, updates: list[dict[str, object]], **inputs: list[str]) -> Pipeline:
    return load(
        {
            "format": 1,
            "name": "product",
            "inputs": [{"name": n, "type": "float32", "dims": dims} for n, dims in inputs.items()],
            "stages": [{"name": "c", "dims": ["j", "i"], "value": value, "updates": updates}],
            "outputs": ["c"],
            "estimates": {"c": [[0, 512], [0, 512]]},
        }
    )


def convolution(size: tuple[int, int], inputs: int, channels: int) -> Pipeline:
    """A 3 x 3 convolution of planes, with so many channels in and out."""
    taps = f"sum(a(x + p, y + q, k) * w(p, q, k, c) for k in range({inputs}) for q in range(3) for p in range(3))"
    return load(
        {
            "format": 1,
            "name": "convolution",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["x", "y", "k"]},
                {"name": "w", "type": "float32", "dims": ["p", "q", "k", "c"]},
            ],
            "stages": [{"name": "f", "dims": ["x", "y", "c"], "value": taps}],
            "outputs": ["f"],
            "estimates": {
                "a": [*([0, n + 2] for n in size), [0, inputs]],
                "w": [[0, 3], [0, 3], [0, inputs], [0, channels]],
                "f": [*([0, n] for n in size), [0, channels]],
            },
        }
    )


def group_of(pipeline: Pipeline, platform: str) -> Group:
    """The group of the pipeline on two threads, behind what all lanes multiply by, where that is one."""
    machine = catalog.load(platform).model_copy(update={"threads": 2})
    *wide, group = autoschedule(pipeline, machine).schedule.groups
    assert all(g.output.endswith("_wide") for g in wide)
    return group


def tile_of(group: Group) -> tuple[int, int]:
    """Points along i, and lanes along j."""
    tile = group.tile("i")
    assert group.unroll == ("i",)
    assert group.vector is not None
    assert group.vector.dim == "j"
    assert tile is not None
    assert tile.size is not None
    return tile.size, group.vector.lanes


def test_sums_of_a_tile_fit_the_registers_and_do_not_wait_for_themselves() -> None:
    matrices = product("sum(a(k, i) * b(j, k) for k in range(512))", [], a=["k", "i"], b=["j", "k"])
    for name in ("i7-6700", "epyc-9655"):
        platform = catalog.load(name)
        points, lanes = tile_of(group_of(matrices, name))
        vectors = points * lanes * 4 // platform.vector_bytes
        assert 8 <= vectors < platform.vector_registers - 1


def test_sums_that_are_longer_than_what_is_stored_fit_the_registers_too() -> None:
    """A vector of the bytes that they become takes four of the sums' registers."""
    value = "sat_uint8(sum(int32(a(k, i)) * int32(b(j, k)) for k in range(512)) >> 7)"
    inputs = [{"name": n, "type": "uint8", "dims": dims} for n, dims in (("a", ["k", "i"]), ("b", ["j", "k"]))]
    stages = [{"name": "c", "dims": ["j", "i"], "value": value}]
    sizes = {"c": [[0, 384], [0, 384]]}
    of = load({"format": 1, "name": "bytes", "inputs": inputs, "stages": stages, "outputs": ["c"], "estimates": sizes})
    platform = catalog.load("epyc-9655")
    points, lanes = tile_of(group_of(of, "epyc-9655"))
    assert points * lanes * 4 // platform.vector_bytes < platform.vector_registers


def test_an_update_and_a_sum_have_the_same_schedule() -> None:
    update = {"domain": {"k": [0, 512]}, "at": ["j", "i"], "value": "c(j, i) + a(k, i) * b(j, k)"}
    summed = product("sum(a(k, i) * b(j, k) for k in range(512))", [], a=["k", "i"], b=["j", "k"])
    updated = product("0.0", [update], a=["k", "i"], b=["j", "k"])
    assert group_of(summed, "i7-6700") == group_of(updated, "i7-6700")


def test_a_product_of_an_image_with_itself_is_read_by_two_accesses_that_are_known() -> None:
    covariance = product("sum(a(i, k) * a(j, k) for k in range(512))", [], a=["j", "k"])
    platform = catalog.load("i7-6700")
    facts = gather(normalise(covariance, False), line_bytes=platform.line_bytes, core=platform.core)
    (read,) = facts.stages["c"].reads
    assert [points for _, points in read.several] == [512.0, 512.0]


def test_of_a_convolution_some_rows_have_all_channels_in_turn() -> None:
    """Parts of the image that these rows need stay in the caches; the whole image does not."""
    group = group_of(convolution((200, 160), 128, 128), "i7-6700")
    assert group.unroll == ("c",)
    assert group.loops[-2:] == ("c.outer", "y.outer")
    rows = group.tile("y")
    assert rows is not None
    assert rows.size is not None
    assert rows.size <= 20


@pytest.mark.parametrize("platform", ["i7-6700", "epyc-9655"])
def test_of_orders_that_take_as_long_one_needs_little_of_what_cores_share(platform: str) -> None:
    """All channels of a row of one image in turn: those of many rows read these anew from the last level."""
    value = "sum(a(x + p, y + q, k, n) * w(p, q, k, c) for k in range(128) for q in range(3) for p in range(3))"
    sizes = {
        "a": [[0, 102], [0, 82], [0, 128], [0, 5]],
        "w": [[0, 3], [0, 3], [0, 128], [0, 128]],
        "f": [[0, 100], [0, 80], [0, 128], [0, 5]],
    }
    pipeline = load(
        {
            "format": 1,
            "name": "convolutions",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["x", "y", "k", "n"]},
                {"name": "w", "type": "float32", "dims": ["p", "q", "k", "c"]},
            ],
            "stages": [{"name": "f", "dims": ["x", "y", "c", "n"], "value": value}],
            "outputs": ["f"],
            "estimates": sizes,
        }
    )
    group = group_of(pipeline, platform)
    assert {t.dim: t.size for t in group.tiles if t.dim in ("y", "n")} == {"y": 1, "n": 1}


def test_vectors_of_reductions_that_share_nothing_are_as_wide_as_a_value_may_be() -> None:
    """Sums do not wait for each other, and of each row whole lines are read; what is gathered from rows has no more
    lanes than a register, and what shares loads with another row is a register tile."""
    platform = catalog.load("i7-6700")
    register = platform.vector_bytes // 4
    for value, dims, wide in (
        ("sum(a(j, i, k) for k in range(512))", ["j", "i", "k"], True),
        ("max(a(k, i, j) for k in range(512))", ["k", "i", "j"], False),
        ("sum(a(j + k, i) * a(k, i) for k in range(512))", ["j", "i"], True),
        ("sum(a(int32(uint8(a(j + k, i))), i) for k in range(512))", ["j", "i"], False),
        ("sum(a(j, i, k) for k in range(8))", ["j", "i", "k"], False),
    ):
        vector = group_of(product(value, [], a=dims), "i7-6700").vector
        assert vector is not None
        assert vector.dim == "j"
        assert vector.lanes == register * (platform.vector_unit.registers_per_value if wide else 1)


def test_tiles_that_threads_share_divide_the_dim() -> None:
    """The last of others is moved back over another, and a thread has both."""
    for n in (509, 512):
        for name in ("i7-6700", "epyc-9655"):
            matrices = product(f"sum(a(k, i) * b(j, k) for k in range({n}))", [], a=["k", "i"], b=["j", "k"])
            group = group_of(matrices, name)
            tile = group.tile("i")
            assert tile is None or tile.size is None or group.loops[-1] != "i.outer" or 512 % tile.size == 0


@pytest.mark.parametrize("channels", [16, 64])
def test_channels_that_have_rows_of_weights_are_few_and_of_two_vectors(channels: int) -> None:
    """One vector of eleven channels or more, or of all that there are, loads an address for half of its terms."""
    group = group_of(convolution((128, 128), 48, channels), "i7-6700")
    tile = group.tile("c")
    assert group.unroll == ("c",)
    assert group.vector is not None
    assert group.vector.lanes == 16
    assert tile is not None
    assert tile.size in (4, 5, 6)


@pytest.mark.parametrize(("columns", "panels"), [(500, {"i7-6700": 24, "epyc-9655": 64}), (512, {"epyc-9655": 32})])
def test_panels_are_as_narrow_as_leave_a_vector_for_the_last_one(columns: int, panels: dict[str, int]) -> None:
    """The product of a matrix with itself, transposed, of which more is read than stays near: panels of one vector
    would leave 500 columns none for the last."""
    rows = 1000
    value = f"sum(a(j, k) * a(i, k) for k in range({rows}))"
    of = product(value, [], a=["j", "k"])
    estimates = (("a", ((0, columns), (0, rows))), ("c", ((0, columns), (0, columns))))
    for name, panel in panels.items():
        machine = catalog.load(name).model_copy(update={"threads": 2})
        *_, group = autoschedule(replace(of, estimates=estimates), machine).schedule.groups
        tile = group.tile("j")
        assert tile is not None
        assert tile.size == panel


def test_points_that_are_computed_twice_are_priced() -> None:
    """The last of six tiles of six channels is moved back over the one before: 31 channels take as long as 36."""
    platform = catalog.load("i7-6700").model_copy(update={"threads": 1})
    loops = ("c.inner", "x.inner", "y.inner", "x.outer", "c.outer", "y.outer")
    tiles = (Tile("x", None), Tile("y", 8), Tile("c", 6))
    group = Group("f", loops, tiles, None, Vector("x", 16), ("c",), ())
    schedule = Schedule("convolution", "by hand", (group,))
    few, whole = (predict(rewrite(convolution((64, 64), 32, n), schedule), platform, Ecm()).total for n in (31, 36))
    assert few == pytest.approx(whole, rel=0.03)


@pytest.mark.parametrize("platform", ["i7-6700", "epyc-9655"])
def test_a_dim_is_cut_into_as_few_tiles_as_there_are_registers_for(platform: str) -> None:
    """Tiles of 31 channels, which no number divides."""
    group = group_of(convolution((128, 128), 48, 31), platform)
    tile = group.tile("c")
    assert group.unroll == ("c",)
    assert tile is not None
    assert tile.size is not None
    assert tile.size > 4


def test_copies_of_operands_are_made_once_for_all_tiles_where_that_is_cheaper() -> None:
    """Every tile of channels would make the copy of an image with its margin anew."""
    taps = "a(x + 4 * p - 4, y + 4 * q - 4, k) * w(p, q, k, c) for k in range(32) for q in range(3) for p in range(3)"
    zeros = {"kind": "constant", "value": 0}
    dilated = load(
        {
            "format": 1,
            "name": "dilated",
            "inputs": [
                {"name": "a", "type": "float32", "dims": ["x", "y", "k"], "boundary": zeros},
                {"name": "w", "type": "float32", "dims": ["p", "q", "k", "c"]},
            ],
            "stages": [{"name": "f", "dims": ["x", "y", "c"], "value": f"sum({taps})"}],
            "outputs": ["f"],
            "estimates": {
                "a": [[0, 64], [0, 64], [0, 32]],
                "w": [[0, 3], [0, 3], [0, 32], [0, 32]],
                "f": [[0, 64], [0, 64], [0, 32]],
            },
        }
    )
    machine = catalog.load("i7-6700").model_copy(update={"threads": 1})
    schedule = autoschedule(dilated, machine).schedule
    assert [g.output for g in schedule.groups] == ["a_for_f", "f"]
    assert schedule.groups[-1].unroll == ("c",)


def test_tiles_for_which_the_core_alone_takes_longer_are_tried_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best is the same where others are asked for, too, and all orders of all tiles are tried."""
    pipeline, machine = convolution((64, 64), 64, 64), catalog.load("epyc-9655").model_copy(update={"threads": 1})
    tried: list[object] = []
    priced = register_tiles._priced
    monkeypatch.setattr(register_tiles, "_priced", lambda *asked: tried.append(asked[4]) or priced(*asked))
    best = autoschedule(pipeline, machine)
    fewer = len(tried)
    tried.clear()
    assert autoschedule(pipeline, machine, SearchOptions(top=2)).schedule == best.schedule
    assert 0 < fewer < len(tried)
