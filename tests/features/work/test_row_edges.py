"""Edges of rows: how wide they are, and what is computed there."""

from __future__ import annotations

import pytest
from support.group_work import ORDERS, works

from tilesmith.cost_models.work import Transfer, Way, Work
from tilesmith.scheduler.features.work.row_edges import REMAINDER
from tilesmith.scheduler.frontends.document.document import load

WIDTH = 64


def work_of(value: str, boundary: str = "repeat_edge", images: tuple[str, ...] = ("image",)) -> Work:
    """The work of the output of stages over an image of 64 columns, in vectors of 8 lanes; with estimates of the output
    and of those images."""
    image = {"name": "image", "type": "int32", "dims": ["x", "y"], "boundary": {"kind": boundary}}
    document = {
        "format": 1, "name": "edges", "inputs": [image],
        "stages": [
            {"name": "halved", "dims": ["x", "y"], "value": "image(2 * x, y) + image(2 * x + 1, y)"},
            {"name": "out", "dims": ["x", "y"], "value": value},
        ],
        "outputs": ["out"], "estimates": {name: [[0, WIDTH], [0, 8]] for name in (*images, "out")},
    }  # fmt: skip
    return works(load(document), ORDERS[0], {}, {"x": WIDTH, "y": 8}, 8)["out"]


@pytest.mark.parametrize(
    ("value", "points", "vectors"),
    [
        ("image(2 * x, y) + image(2 * x + 1, y)", 32, 4),
        ("halved(x, y)", 32, 4),
        ("halved(min(x, 30), y)", 33, 5),
        ("halved(x - 16, y)", 32, 4),
        ("halved(50 - x, y)", 32, 5),
        ("select(x < 20, image(min(x, 19), y), image(max(x - 20, 0), y))", 64, 8),
        ("image(x - 1, y) + image(x + 1, y)", 2, 2),
        ("image(x - 9, y)", 9, 2),
        ("image((x - 9) // 2, y)", 10, 2),
        ("image(x // 16 * 16 + 15 - x % 16, y)", 32, 4),
    ],
)
def test_edges_are_what_whole_vectors_that_clamp_nothing_leave(value: str, points: int, vectors: int) -> None:
    edges = work_of(value).edges
    assert edges is not None
    assert edges.share == points / WIDTH
    assert edges.steps == vectors * 8 / WIDTH


def test_an_image_without_an_estimate_has_edges_where_its_expected_size_ends() -> None:
    near, far = (work_of(value, images=()).edges for value in ("image(x - 1, y) + image(x + 1, y)", "image(2 * x, y)"))
    assert near == work_of("image(x - 1, y) + image(x + 1, y)").edges
    assert far is None


@pytest.mark.parametrize(
    "value",
    ["image(x, y)", "image(x, 2 * y)", "image(clamp(x + image(x, y) % 64, 0, 63), y)"],
    ids=["a point", "across rows", "at a place that data says"],
)
def test_rows_without_clamps_have_no_edges(value: str) -> None:
    assert work_of(value).edges is None


@pytest.mark.parametrize(("value", "way"), [("image(x + 32, y)", "clamped"), ("image(2 * x, y)", "alone")])
def test_edges_load_what_is_near_a_row_as_vectors_and_strides_lane_by_lane(value: str, way: Way) -> None:
    edges = work_of(value).edges
    assert edges is not None
    assert edges.loads == (Transfer(way, 4, 1.0),)


@pytest.mark.parametrize("boundary", ["mirror_image", "mirror_interior", "repeat_image"])
def test_places_that_turn_at_an_end_take_a_remainder_and_are_of_vectors_at_the_ends(boundary: str) -> None:
    turned, clamped = (work_of("image(x + 32, y)", kind).edges for kind in (boundary, "repeat_edge"))
    assert turned is not None
    assert clamped is not None
    assert turned.loads == (Transfer("turned", 4, 1.0),)
    added = [dict(edges.operations)["i32"].add for edges in (turned, clamped)]
    assert added[0] - added[1] == REMAINDER


@pytest.mark.parametrize(
    "value", ["image(x + 32, y - 2)", "image(x + 32, y) + image(x + 32, y + 1)"], ids=["across rows", "of several rows"]
)
def test_indices_of_edges_are_operations_of_each_vector_once_along_the_row(value: str) -> None:
    one, found = (work_of(v).edges for v in ("image(x + 32, y)", value))
    assert one is not None
    assert found is not None
    assert dict(one.operations)["i32"].select == dict(found.operations)["i32"].select > 0


def test_choices_by_places_are_compared_and_narrowed_to_what_is_chosen() -> None:
    """Choices are two comparisons of places, what joins them, and a mask as wide as what is chosen."""
    edges = work_of("select(x >= 0 and x < 40, image(x + 32, y), 7)").edges
    clamped = work_of("image(x + 32, y)").edges
    assert clamped is not None
    assert edges is not None
    more = dict(edges.operations)["i32"] + dict(clamped.operations)["i32"].scaled(-1)
    assert more.select == 4  # with the choice itself
    assert more.narrow == 0
    narrow = work_of("int32(select(x < 40, uint8(image(x, y)), uint8(image(x + 32, y))))").edges
    assert narrow is not None
    assert dict(narrow.operations)["i8"].narrow == 2


def test_places_that_begin_anew_in_blocks_are_lane_by_lane() -> None:
    edges = work_of("image(x // 4 * 4 + 2 - x % 4, y)").edges
    assert edges is not None
    assert {t.way for t in edges.loads} == {"alone"}
