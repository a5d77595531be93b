"""Loops and functions that differ in names and in numbers of rows alone."""

from __future__ import annotations

import re

import pytest

from tilesmith import platforms
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.codegen.c.outlining import mentioned, normal_form
from tilesmith.scheduler.codegen.c.repeated_loops import RepeatedLoops, is_over_rows
from tilesmith.scheduler.codegen.c.row_macros import RowMacro
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.ir.index import const, sym
from tilesmith.scheduler.ir.loop.ops import Load
from tilesmith.scheduler.ir.loop.program import Assign, Body, Define, Free, Loop, RowPointer, Store
from tilesmith.scheduler.ir.loop.values import Buffer, Pointer, Value
from tilesmith.scheduler.ir.pipeline.types import FLOAT32


def buffer(level: int) -> Buffer:
    return Buffer(f"level_{level}", 0, FLOAT32, ("x",), 0, "call", pointer=Pointer(f"level_{level}_0"))


def over(var: str, *body: object) -> Loop:
    return Loop(var, const(0), sym("last"), const(1), body)  # type: ignore[arg-type]


def rows(level: int) -> Loop:
    """A loop over rows of a level, which are copied from the level before it."""
    a, b, x = Pointer(f"a_{level}"), Pointer(f"b_{level}"), f"x_{level}"
    value = Value(FLOAT32, 1, f"t_{level}")
    row: Body = (Define(value, Load(a, sym(x))), Store(buffer(level), b, sym(x), value))
    heads = (RowPointer(a, buffer(level - 1), sym(f"y_{level}")), RowPointer(b, buffer(level), sym(f"y_{level}")))
    return over(f"y_{level}", *heads, over(x, *row))


def lines(level: int, sign: str = "+") -> list[str]:
    """Lines for it, long enough for a function to be worth while."""
    n = level
    return [
        f"for (int64_t y_{n} = 0; y_{n} <= last_{n}; y_{n}++) {{",
        f"    float *const a_{n} = level_{n - 1}_0 + y_{n};",
        f"    float *const b_{n} = ROW_{n}(y_{n});",
        *[f"    b_{n}[{x}] = a_{n}[{x}] {sign} {'1.0f + ' * 10} 2.0f;" for x in range(5)],
        "}",
    ]


def macro(level: int, row: str) -> RowMacro:
    names = frozenset({f"level_{level}_0", f"pitch_{level}"})
    return RowMacro(f"ROW_{level}", f"(y) (level_{level}_0 + {row})", (True,), names, {})


MACROS = {Pointer(f"level_{n}_0"): macro(n, f"pitch_{n} * (y)") for n in range(1, 4)}
TYPES = {
    f"{name}_{n}{suffix}": c_type
    for n in range(4)
    for name, suffix, c_type in (("level", "_0", "float *"), ("pitch", "", "int64_t"), ("last", "", "int64_t"))
}


def test_loops_that_differ_in_names_are_one_function() -> None:
    repeated = RepeatedLoops()
    text = [f"    {repeated.add(rows(n), lines(n))}" for n in (1, 2, 3)]
    functions, made = repeated.resolved(["before;", *text], TYPES, MACROS)
    assert functions[:2] == [
        "/* rows of level_1, level_2, level_3, in the names of the first */",
        "static void rows0(int64_t last_1, int64_t pitch_1, float *level_0_0, float *level_1_0) {",
    ]
    assert functions[2:-2] == ["    " + line for line in lines(1)]
    assert made == [
        "before;",
        "    rows0(last_1, pitch_1, level_0_0, level_1_0);",
        "    rows0(last_2, pitch_2, level_1_0, level_2_0);",
        "    rows0(last_3, pitch_3, level_2_0, level_3_0);",
    ]


def test_numbers_of_rows_that_differ_are_parameters() -> None:
    """Numbers that are the same everywhere stay, and so do all that are about no row."""
    repeated, layers = RepeatedLoops(), {1: (5, 7), 2: (9, 7), 3: (5, 7)}
    text = []
    for level, (a, b) in layers.items():
        head, _, *body = lines(level)
        row = f"    float *const a_{level} = LAYER_0({a}, y_{level}, {b}) + level_{level - 1}_0;"
        text.append(repeated.add(rows(level), [head, row, *body]))
    functions, made = repeated.resolved(text, TYPES, MACROS)
    assert "float *level_1_0, int64_t n0) {" in functions[1]
    assert functions[3] == "        float *const a_1 = LAYER_0(n0, y_1, 7) + level_0_0;"
    assert [re.findall(r"\d+(?=\);)", call) for call in made] == [["5"], ["9"], ["5"]]
    other = [line.replace("2.0f", "3.0f").replace("= 0;", "= 1;") for line in lines(2)]
    repeated = RepeatedLoops()
    text = [repeated.add(rows(1), lines(1)), repeated.add(rows(2), other)]
    assert repeated.resolved(text, TYPES, MACROS) == ([], [*lines(1), *other])


@pytest.mark.parametrize("alike", [True, False])
def test_loops_inside_of_those_that_are_alike_are_in_their_function(alike: bool) -> None:
    repeated = RepeatedLoops()
    text = []
    for n in (1, 2):
        inner = repeated.add(rows(n), lines(n))
        around = [
            f"for (int64_t c_{n} = 0; c_{n} <= last_{n}; c_{n}++) {{",
            f"    {inner}",
            *["    f();"] * (alike or n),
            "}",
        ]
        text.append(repeated.add(over(f"c_{n}", rows(n)), around))
    functions, made = repeated.resolved(text, TYPES, MACROS)
    calls = [f"rows0(last_{n}, pitch_{n}, level_{n - 1}_0, level_{n}_0);" for n in (1, 2)]
    assert len([line for line in functions if line.startswith("static void")]) == 1
    assert ("    for (int64_t c_1 = 0; c_1 <= last_1; c_1++) {" in functions) == alike
    assert [line.strip() for line in made if "rows0" in line] == calls
    assert len(made) == (2 if alike else 3 + 1 + 3 + 2)


def test_a_function_is_called_where_there_are_rows() -> None:
    repeated = RepeatedLoops()
    text = [repeated.add(rows(n), lines(n), some) for n, some in ((1, ""), (2, "y <= last_2"))]
    assert repeated.resolved(text, TYPES, MACROS)[1] == [
        "rows0(last_1, pitch_1, level_0_0, level_1_0);",
        "if (y <= last_2) rows0(last_2, pitch_2, level_1_0, level_2_0);",
    ]


def test_levels_of_a_pyramid_are_asked_whether_they_have_rows() -> None:
    """Their windows slide by none most of the time."""
    code = compile_pipeline(pipelines.load("interpolate"), platforms.load("i7-6700")).source.code
    calls = re.findall(r"^ +(if \(\w+ <= \w+\) )?rows\d+\(", code, re.MULTILINE)
    assert len(calls) > 1
    assert all(calls)


@pytest.mark.parametrize("sign", ["*", "-"])
def test_loops_that_compute_other_things_stay_where_they_are(sign: str) -> None:
    repeated = RepeatedLoops()
    text = [repeated.add(rows(1), lines(1)), repeated.add(rows(2), lines(2, sign))]
    assert repeated.resolved(text, TYPES, MACROS) == ([], [*lines(1), *lines(2, sign)])


def test_rows_that_lie_otherwise_are_other_rows() -> None:
    repeated = RepeatedLoops()
    text = [repeated.add(rows(n), lines(n)) for n in (1, 2)]
    macros = MACROS | {Pointer("level_2_0"): macro(2, "pitch_2 * (y & 3)")}
    assert repeated.resolved(text, TYPES, macros) == ([], [*lines(1), *lines(2)])


def test_names_of_other_types_are_other_names() -> None:
    repeated = RepeatedLoops()
    text = [repeated.add(rows(n), lines(n)) for n in (1, 2)]
    types = TYPES | {"level_0_0": "uint8_t *"}
    assert repeated.resolved(text, types, MACROS) == ([], [*lines(1), *lines(2)])


def test_what_is_short_is_no_function() -> None:
    repeated = RepeatedLoops()
    text = [repeated.add(rows(n), lines(n)[:2]) for n in (1, 2)]
    assert repeated.resolved(text, TYPES, MACROS)[0] == []


def test_a_name_stands_for_one_name() -> None:
    one, _ = normal_form(["a + a - b"], {"a", "b"}, {})
    other, _ = normal_form(["a + b - b"], {"a", "b"}, {})
    assert one != other
    assert normal_form(["b + b - a"], {"a", "b"}, {}) == (one, ["b", "a"])
    assert normal_form(["c + c - d"], {"a", "b"}, {})[0] != one


def test_what_may_be_a_function_changes_memory_alone() -> None:
    loop = rows(1)
    assert is_over_rows(loop, ())
    assert not is_over_rows(loop, {"a_1"})
    assert not is_over_rows(over("x", *loop.body[2:]), ()), "no row of its own"
    assert is_over_rows(over("c", loop), ()), "rows inside"
    outside = Assign(Value(FLOAT32, 1, "sum"), Value(FLOAT32, 1, "t_1"))
    assert not is_over_rows(over("y", *loop.body, outside), ())
    assert not is_over_rows(over("y", *loop.body, Free(buffer(1))), ())


def test_macros_are_mentioned_where_they_are_called() -> None:
    """The pointer to a buffer's first row may have the name of the macro of its rows."""
    macros = {Pointer("T_0"): RowMacro("T_0", "(j) (T_0 + (j) * pitch)", (True,), frozenset({"T_0", "pitch"}), {})}
    assert "pitch" in mentioned(["a = T_0(j)[i];"], macros)
    assert "pitch" not in mentioned(["a = T_0[i];"], macros)
