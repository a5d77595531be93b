"""Memory: loads of points, neighbours, some way apart, anywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.lowered import body, buffer, evaluated, group, pipeline
from support.lowered_values import execute_body
from support.planes import X, Y, open_row, planes, statements

from tilesmith.platforms.base import VectorUnit
from tilesmith.scheduler.ir.index import const
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.interpreter_memory import MemoryFault
from tilesmith.scheduler.ir.loop.ops import Load, Lookup
from tilesmith.scheduler.ir.loop.program import Define
from tilesmith.scheduler.ir.loop.values import Buffer, Lane, Value
from tilesmith.scheduler.ir.pipeline.boundary_conditions import without_boundaries
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary
from tilesmith.scheduler.ir.pipeline.types import FLOAT32, INT32, UINT8, UINT16, ScalarType
from tilesmith.scheduler.lowering.memory import load, store


def test_every_other_element_is_picked_of_two_vectors() -> None:
    p = pipeline("f(2 * x + 1)")
    assert (
        evaluated(p).text().splitlines()
        == """
%f_0 = load f[2*x + 1] : f32x8
%f_1 = load f[2*x + 8] : f32x8
%f_0_0 = shuffle %f_0, %f_1 [0, 2, 4, 6, 9, 11, 13, 15] : f32x8
""".strip().splitlines()
    )


def test_far_apart_elements_are_gathered() -> None:
    p = pipeline("f(100 * x)")
    assert (
        evaluated(p).text().splitlines()
        == """
row f_0 = @f + 100*x
%f_1 = gather f_0[<0; [0, 100, 200, 300, 400, 500, 600, 700]> origin 0 stride 1] : f32x8
""".strip().splitlines()
    )


def test_a_row_has_one_pointer() -> None:
    p = pipeline("f(x, y + 2) + f(x + 3, y + 2)", dims=("x", "y"))
    assert (
        evaluated(p).text().splitlines()
        == """
row f_0 = @f + mul(f_stride_y, y + 2)
%f_1 = load f_0[x] : f32x8
%f_2 = load f_0[x + 3] : f32x8
%t_0 = %f_1 + %f_2 : f32x8
""".strip().splitlines()
    )


def test_columns_are_gathered_by_the_stride() -> None:
    p = pipeline("f(y, x)", dims=("x", "y"))
    assert (
        evaluated(p).text().splitlines()
        == """
row f_0 = @f + mul(f_stride_y, x) + y
%f_1 = gather f_0[<0; [0, 1, 2, 3, 4, 5, 6, 7]> origin 0 stride f_stride_y] : f32x8
""".strip().splitlines()
    )


def test_clamps_of_rows_have_names() -> None:
    p = pipeline("f(x, clamp(y, 0, 9)) + f(x + 1, clamp(y, 0, 9))", dims=("x", "y"))
    assert (
        evaluated(p).text().splitlines()
        == """
let y_0 = max(0, min(y, 9))
row f_0 = @f + mul(f_stride_y, y_0)
%f_1 = load f_0[x] : f32x8
%f_2 = load f_0[x + 1] : f32x8
%t_0 = %f_1 + %f_2 : f32x8
""".strip().splitlines()
    )


def test_safe_loads_stay_inside_the_buffer() -> None:
    p = pipeline("f(x + 1)")
    assert (
        evaluated(p, exact=True, safe=True).text().splitlines()
        == """
%f_0 = clamped_load f[x + 1] from 0 to f_x - 1 : f32x8
""".strip().splitlines()
    )


@pytest.mark.parametrize("kind", ["mirror_image", "mirror_interior", "repeat_image"])
@pytest.mark.parametrize("safe", [False, True])
def test_images_that_turn_at_their_ends_are_loaded_whole_inside(kind: str, safe: bool) -> None:
    """The places of lanes are those of neighbours where all of them are inside of the image."""
    p = pipeline("f(x - 3)")
    p = without_boundaries(replace(p, inputs=(replace(p.inputs[0], boundary=Boundary(kind)),)))
    found = evaluated(p, exact=True, safe=safe).text().splitlines()[-1]
    assert found.startswith("%f_0 = edge_gather f[%")
    assert found.endswith("first x - 3 from f.min.x to f.extent.x + f.min.x - 1 : f32x8")


IMAGE = np.arange(1, 1 + 7 * 40, dtype=np.float32).reshape(7, 40)


def data(b: Builder, lanes: np.ndarray, type_: ScalarType = INT32) -> tuple[Value, Buffer]:
    """A vector of indices that memory holds."""
    memory = buffer("at", type_)
    return b.define(Load(memory.pointer, const(0)), type_, len(lanes)), memory


def loaded(
    lanes: tuple[Lane, ...], x: int = 2, y: int = 3, safe: bool = False, ring: int | None = None, columns: bool = False
) -> list[float]:
    """The elements at `lanes`, with x and y there."""
    b, memory = open_row(), planes(ring=ring, columns=columns)
    value = load(b, memory, lanes, FLOAT32, False, 0, safe)
    out = buffer("out", FLOAT32)
    store(b, out, (Lane(const(0), tuple(range(value.lanes)) if value.lanes > 1 else None),), value)
    result, elements = np.zeros(value.lanes, np.float32), IMAGE.T.copy().T if columns else IMAGE
    execute_body(statements(b), [(memory, elements), (out, result)], x=x, y=y)
    return result.tolist()


PATTERNS = [
    tuple(range(8)),
    (3, 3, 3, 3, 3, 3, 3, 3),
    (0, 0, 1, 1, 2, 2, 3, 3),
    (7, 6, 5, 4, 3, 2, 1, 0),
    (0, 2, 4, 6, 8, 10, 12, 14),
    (0, 3, 6, 9, 12, 15, 18, 21),
    (5, 1, 0, 30, 2, 2, 9, 4),
    (0, 1),
    (1, 0),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_along_a_row_has_its_elements(pattern: tuple[int, ...]) -> None:
    assert loaded((Lane(X + 1, pattern), Lane(Y))) == [IMAGE[3, 3 + p] for p in pattern]
    assert loaded((Lane(X + 1, pattern), Lane(Y)), safe=True) == [IMAGE[3, 3 + p] for p in pattern]


@pytest.mark.parametrize("pattern", PATTERNS[:6])
@pytest.mark.parametrize("x", [-9, -3, 36, 50])
def test_safe_lanes_beyond_the_buffer_have_some_element_of_it(pattern: tuple[int, ...], x: int) -> None:
    """Those inside have their own."""
    found = loaded((Lane(X, pattern), Lane(Y)), x=x, safe=True)
    for lane, p in zip(found, pattern, strict=True):
        assert lane in IMAGE[3]
        assert not 0 <= x + p < 40 or lane == IMAGE[3, x + p]


def test_what_is_not_safe_is_noticed_beyond_the_buffer() -> None:
    with pytest.raises(MemoryFault):
        loaded((Lane(X, tuple(range(8))), Lane(const(6))), x=36)


@pytest.mark.parametrize("columns", [False, True])
def test_lanes_may_move_in_any_dim(columns: bool) -> None:
    down = (0, 1, 2, 3)
    assert loaded((Lane(X), Lane(Y, down)), columns=columns) == IMAGE[3:7, 2].tolist()
    assert loaded((Lane(X, (4, 3, 2, 1)), Lane(Y, down)), columns=columns) == [IMAGE[3 + n, 6 - n] for n in range(4)]
    assert loaded((Lane(X), Lane(Y)), columns=columns) == [IMAGE[3, 2]]


def test_rings_have_rows_by_their_remainder() -> None:
    assert loaded((Lane(X, tuple(range(4))), Lane(Y + 3)), ring=4) == IMAGE[(3 + 3) % 4, 2:6].tolist()
    assert loaded((Lane(X), Lane(Y, (0, 1, 2, 3))), ring=4) == [IMAGE[(3 + n) % 4, 2] for n in range(4)]


@pytest.mark.parametrize("safe", [False, True])
def test_lanes_that_data_says(safe: bool) -> None:
    at = np.array([5, 0, 39, 7, 7, 1, 12, 3], np.int32)
    b, memory = open_row(), planes()
    places, told = data(b, at)
    value = load(b, memory, (Lane(const(0), None, places), Lane(Y)), FLOAT32, False, 0, safe)
    out, result = buffer("out", FLOAT32), np.zeros(8, np.float32)
    store(b, out, (Lane(const(0), tuple(range(8))),), value)
    execute_body(statements(b), [(memory, IMAGE), (told, at), (out, result)], y=2)
    assert result.tolist() == IMAGE[2, at].tolist()


@pytest.mark.parametrize(
    ("type_", "lanes", "looked_up"), [(UINT8, 16, 1), (UINT8, 8, 0), (UINT16, 16, 0), (INT32, 16, 0)]
)
def test_tables_of_bytes_are_looked_up_by_short_places(type_: ScalarType, lanes: int, looked_up: int) -> None:
    """In vectors as wide as the instruction's, of which those that are asked for are taken."""
    at = np.arange(lanes, dtype=type_.numpy) * 3
    b, memory = open_row(VectorUnit(64, 64)), buffer("f", UINT8)
    places, told = data(b, at, type_)
    value = load(b, memory, (Lane(const(1), None, places),), UINT8, False, 0)
    assert sum(isinstance(s.op, Lookup) for s in statements(b) if isinstance(s, Define)) == looked_up
    table, result, out = np.arange(255, -1, -1, dtype=np.uint8), np.zeros(lanes, np.uint8), buffer("out", UINT8)
    store(b, out, (Lane(const(0), tuple(range(lanes))),), value)
    execute_body(statements(b), [(memory, table), (told, at), (out, result)])
    assert result.tolist() == table[at.astype(int) + 1].tolist()


def stored(
    lanes: tuple[Lane, ...], value: list[float], within: tuple[int, int] | None = None, ring: int | None = None
) -> dict[tuple[int, int], float]:
    """The elements that are written, by x and y, with those there."""
    b, memory, given = open_row(), planes(ring=ring, name="out"), buffer("given", FLOAT32)
    ends = None if within is None else (const(within[0]), const(within[1]))
    store(b, memory, lanes, b.define(Load(given.pointer, const(0)), FLOAT32, len(value)), ends)
    result = np.zeros_like(IMAGE)
    execute_body(statements(b), [(memory, result), (given, np.array(value, np.float32))], x=2, y=3)
    return {(int(x), int(y)): float(result[y, x]) for y, x in np.argwhere(result)}


def test_neighbours_are_stored_as_they_are() -> None:
    lanes = Lane(X + 1, (0, 1, 2, 3)), Lane(Y)
    assert stored(lanes, [1, 2, 3, 4]) == {(3, 3): 1, (4, 3): 2, (5, 3): 3, (6, 3): 4}
    assert stored(lanes, [7]) == {(3, 3): 7, (4, 3): 7, (5, 3): 7, (6, 3): 7}
    assert stored(lanes, [1, 2, 3, 4], within=(4, 5)) == {(4, 3): 2, (5, 3): 3}
    assert stored(lanes, [1, 2, 3, 4], within=(9, 20)) == {}


def test_lanes_apart_are_stored_one_by_one() -> None:
    assert stored((Lane(X, (0, 2, 4, 6)), Lane(Y)), [1, 2, 3, 4]) == {(2, 3): 1, (4, 3): 2, (6, 3): 3, (8, 3): 4}
    assert stored((Lane(X, (0, 2, 4, 6)), Lane(Y)), [1, 2, 3, 4], within=(3, 7)) == {(4, 3): 2, (6, 3): 3}
    assert stored((Lane(X), Lane(Y, (0, 1, 2))), [1, 2, 3]) == {(2, 3): 1, (2, 4): 2, (2, 5): 3}
    assert stored((Lane(X), Lane(Y, (0, 1, 2))), [1, 2, 3], within=(4, 9)) == {(2, 4): 2, (2, 5): 3}


def test_rings_are_written_by_the_remainder() -> None:
    assert stored((Lane(X, (0, 1)), Lane(Y + 2)), [1, 2], ring=4) == {(2, 1): 1, (3, 1): 2}
    assert stored((Lane(X), Lane(Y)), [9], ring=2) == {(2, 1): 9}


def test_places_in_several_rows_are_offsets_of_32_bits_where_the_image_spans_no_more() -> None:
    """Vectors rely on the span, which is asked ahead of the row."""
    at = "clamp(int32(f(x, y)), 0, 63)"
    text = body(pipeline(f"f({at}, {at}) + f({at} + 1, {at})", dims=("x", "y")), (group("x.inner y.inner"),))
    peel = next(line for line in text.splitlines() if "peel" in line)
    gathers = [line for line in text.splitlines() if "= gather " in line and "x8" in line]
    assert len(gathers) == 2
    assert all(line.split(" : ")[0].endswith("narrow") for line in gathers), text
    assert ".extent.y" in peel.split("given")[1]


def test_places_in_one_row_rely_on_nothing() -> None:
    text = body(pipeline("f(clamp(int32(f(x)), 0, 63))"), (group("x.inner"),))
    assert "gather" in text
    assert "narrow" not in text
    assert "given" not in text
