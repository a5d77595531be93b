"""Definitions in what uses them: where they may stand, in which parentheses, on which lines."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.codegen.c.nesting import WIDTH, Nesting, wrapped


def nested(*definitions: tuple[str, str], use: str, c_type: str = "f32x8", single: str = "abcdefgh") -> list[str]:
    """The lines of a block of definitions and a line that uses them."""
    nesting = Nesting(frozenset(single), 0)
    lines = [line for name, text in definitions for line in nesting.define(name, c_type, text)]
    return [*lines, *nesting.use(use), *nesting.flush()]


@pytest.mark.parametrize(
    ("texts", "use", "expected"),
    [
        (["x + y"], "r = a + z;", "r = x + y + z;"),
        (["x + y"], "r = a * z;", "r = (x + y) * z;"),
        (["x * y"], "r = a + z;", "r = x * y + z;"),
        (["x * y"], "r = z - a;", "r = z - x * y;"),
        (["x + y"], "r = z - a;", "r = z - (x + y);"),
        (["x / y"], "r = z * a;", "r = z * (x / y);"),
        (["x < y"], "r = z != a;", "r = z != (x < y);"),
        (["x < y ? x : y"], "r = z <= a;", "r = z <= (x < y ? x : y);"),
        (["x & y"], "r = z + a;", "r = z + (x & y);"),
        (["c ? x : y"], "f(a, z);", "f(c ? x : y, z);"),
        (["f(x, y)"], "r = a * z;", "r = f(x, y) * z;"),
        (["row[x + 1]"], "r = -a;", "r = -row[x + 1];"),
        (["-x"], "r = z - a;", "r = z - (-x);"),
        (["x + y", "a * z"], "r = b;", "r = (x + y) * z;"),
        (["(f32x8){1, 2}"], "STORE(f32x8, p, a);", "STORE(f32x8, p, ((f32x8){1, 2}));"),
    ],
)
def test_operands_have_the_parentheses_that_they_need(texts: list[str], use: str, expected: str) -> None:
    assert nested(*zip("abcdefgh", texts, strict=False), use=use) == [expected]


def test_what_is_used_twice_or_by_lanes_keeps_its_name() -> None:
    assert nested(("a", "x + y"), use="r = a * a;") == ["const f32x8 a = x + y;", "r = a * a;"]
    assert nested(("a", "x + y"), use="r = a[0];") == ["const f32x8 a = x + y;", "r = a[0];"]
    assert nested(("a", "x + y"), use="r = a;", single="") == ["const f32x8 a = x + y;", "r = a;"]


def test_what_is_nested_is_computed_in_the_order_of_the_definitions() -> None:
    loaded = "LOAD(f32x8, p + x)"
    assert nested(("a", loaded), use="STORE(f32x8, q, a);") == [f"STORE(f32x8, q, {loaded});"]
    assert nested(("a", loaded), use="STORE(f32x8, q, z);") == [f"const f32x8 a = {loaded};", "STORE(f32x8, q, z);"]
    assert nested(("a", f"{loaded} + y"), ("b", "a * z"), use="sum = z;")[0] == f"const f32x8 b = ({loaded} + y) * z;"
    two = ("a", "x * y"), ("b", "x / y")
    assert nested(*two, use="r = a + b;") == ["r = x * y + x / y;"]
    assert nested(*two, use="r = b + a;") == ["const f32x8 a = x * y;", "r = x / y + a;"]
    assert nested(*two, use="r = a;") == ["const f32x8 a = x * y;", "const f32x8 b = x / y;", "r = a;"]


def test_types_less_than_an_int() -> None:
    assert nested(("a", "x & y"), use="r = a;", c_type="int16_t") == ["r = (int16_t)(x & y);"]
    assert nested(("a", "row[x]"), use="r = a;", c_type="int16_t") == ["r = row[x];"]
    assert nested(("a", "x == y"), use="r = a & z;", c_type="_Bool") == ["const _Bool a = x == y;", "r = a & z;"]
    named = ["const uint8_t a = (uint8_t)~x;", "r = a >= z;"]
    assert nested(("a", "(uint8_t)~x"), use="r = a >= z;", c_type="uint8_t") == named


def test_casts_to_and_fro_are_none() -> None:
    sums = [("a", "(i16x8)((u16x8)x + (u16x8)y)"), ("b", "(i16x8)((u16x8)a + (u16x8)z)")]
    assert nested(*sums, use="r = b;", c_type="i16x8") == ["r = (i16x8)((u16x8)x + (u16x8)y + (u16x8)z);"]


def test_long_lines_are_parted() -> None:
    line = f"    const f32x8 t = f({', '.join(f'argument_{n}' for n in range(20))}) + g(x);"
    parts = wrapped(line)
    assert len(parts) > 1
    assert all(len(part) <= WIDTH + 2 for part in parts)
    assert all(part.startswith("        ") for part in parts[1:])
    assert " ".join(part.strip() for part in parts) == line.strip()
