"""Macros of rows."""

from __future__ import annotations

from tilesmith.scheduler.codegen.c.row_macros import row_macros
from tilesmith.scheduler.codegen.c.types import Symbols
from tilesmith.scheduler.ir.index import const, sym
from tilesmith.scheduler.ir.loop.program import RowPointer
from tilesmith.scheduler.ir.loop.row_coordinates import Coordinates, row_offset
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer
from tilesmith.scheduler.ir.pipeline.types import FLOAT32

SYMBOLS = Symbols({"image.origin.y": "image_0_min1"})
SEVERAL: tuple[Coordinates, ...] = tuple((sym("y_0") + n, sym("c_0")) for n in range(4))


def image(pointer: str = "image_0", dims: tuple[str, ...] = ("x", "y", "c"), ring: int | None = None) -> Buffer:
    return Buffer(
        "image", 0, FLOAT32, dims, 0, "call",
        pointer=Pointer(pointer),
        origin=[sym("x_lo"), sym("image.origin.y"), const(0)],
        stride=[const(1), sym("pitch"), sym("plane")],
        ring=[None, ring, None],
    )  # fmt: skip


def rows(b: Buffer, *at: Coordinates) -> list[RowPointer]:
    return [RowPointer(Pointer(f"row_{n}"), b, row_offset(b, x)) for n, x in enumerate(at)]


def known(*more: str) -> dict[str, str]:
    return dict.fromkeys(("image_0", "x_lo", "image_0_min1", "pitch", "plane", *more), "int64_t")


def test_rows_are_told_by_their_coordinates() -> None:
    made = rows(image(), *SEVERAL)
    macro = row_macros(SYMBOLS, made)[Pointer("image_0")]
    assert macro.definition == "#define IMAGE_0(y, c) (image_0 + ((c) * plane + ((y) - image_0_min1) * pitch - x_lo))"
    assert [macro.call(SYMBOLS, s, known()) for s in made[:2]] == ["IMAGE_0(y_0, c_0)", "IMAGE_0(y_0 + 1, c_0)"]


def test_one_row_needs_no_macro() -> None:
    assert not row_macros(SYMBOLS, rows(image(), SEVERAL[0]))


def test_a_dim_that_all_rows_begin_at_is_left_out() -> None:
    made = rows(image(), *((y, None) for y, _ in SEVERAL))
    macro = row_macros(SYMBOLS, made)[Pointer("image_0")]
    assert macro.definition.startswith("#define IMAGE_0(y) (image_0 + ((")
    assert macro.call(SYMBOLS, made[1], known()) == "IMAGE_0(y_0 + 1)"


def test_the_first_row_is_told_by_the_origin_and_in_a_ring_by_0() -> None:
    for ring, text in ((None, "IMAGE_0(image_0_min1, c_0)"), (4, "IMAGE_0(0, c_0)")):
        made = rows(image(ring=ring), *SEVERAL, (None, sym("c_0")))
        assert row_macros(SYMBOLS, made)[Pointer("image_0")].call(SYMBOLS, made[-1], known()) == text


def test_what_the_macro_mentions_is_in_scope() -> None:
    made = rows(image(), *SEVERAL, (None, sym("c_0")))
    macro = row_macros(SYMBOLS, made)[Pointer("image_0")]
    assert macro.call(SYMBOLS, made[-1], {"image_0": "float *", "x_lo": "int64_t", "plane": "int64_t"}) is None


def test_dims_are_not_called_as_what_the_macro_mentions() -> None:
    assert not row_macros(SYMBOLS, rows(image(dims=("x", "pitch", "c")), *SEVERAL))


def test_names_that_differ_in_case_alone_have_one_macro() -> None:
    found = row_macros(SYMBOLS, [*rows(image("image_0"), *SEVERAL), *rows(image("IMAGE_0"), *SEVERAL)])
    assert list(found) == ["image_0"]
