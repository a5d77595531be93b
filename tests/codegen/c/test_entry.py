"""The entry of a function: comments that are safe whatever a document says, facts of images, the header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilesmith.scheduler.codegen.c.entry import header_of, safe_comment, symbol_names, used_lines
from tilesmith.scheduler.ir.loop.parser import parse_program

PROGRAM = parse_program("""
program "p" {
  doc "" method "hand"
  machine "x86_64" line_bytes 64 register_bytes 16 carried_vectors 12 permuted_bytes 4 crowded_bytes 2048
  argument "f" as f_0 : f32 dims(x, y) storage(y, x)
  argument "g" as g_0 : i16 dims(x) storage(x) output made_by "g"
  param "gain" as gain_0 : f32 min 0.5 max 2.0
  buffer f_0_data "f" component 0 : f32 dims(x, y) unit 1 argument
    origin(f_0.origin.x, f_0.origin.y) stride(f_0.stride.x, 1) ring(none, none) extent(f_0.extent.x, f_0.extent.y)
  buffer g_0_data "g" component 0 : i16 dims(x) unit 0 argument
    origin(g_0.origin.x) stride(1) ring(none) extent(g_0.extent.x)
  derivation {} bounds {} body {}
}
""")


@given(st.text(st.characters() | st.sampled_from("*/?\\\n"), max_size=40))
def test_a_comment_never_ends_early(text: str) -> None:
    made = safe_comment(text)
    assert made.isascii()
    assert not {"*/", "/*", "\n", "\\", "??"} & {made[n : n + k] for n in range(len(made)) for k in (1, 2)}


@pytest.mark.parametrize(
    ("text", "made"),
    [("a */ b", "a * / b"), ("/*/", "/ * /"), ("what??/\nnext", "what / next"), ("naïve  text", "na ve text")],
)
def test_comments(text: str, made: str) -> None:
    assert safe_comment(text) == made


def test_facts_that_nothing_follows_up_are_left_out() -> None:
    used, unused = (f"    const int64_t f_0_{fact} = f_0->{fact};" for fact in ("min0", "min1"))
    kept, named = used_lines([used, unused, "    return f_0_min0;"])
    assert kept == [used, "    return f_0_min0;"]
    assert {"f_0_min0", "return"} <= named
    assert "f_0_min1" not in named


def test_symbols_have_the_names_of_what_they_are_of() -> None:
    names = symbol_names(PROGRAM)
    assert names["f_0.stride.y"] == "f_0_stride1"
    assert names["g.extent.x"] == "g_0_extent0"
    assert [n for n in names.values() if "gain" in n] == ["(int64_t)gain_0"]


def test_the_header_says_what_the_function_takes() -> None:
    header = header_of(PROGRAM, "tilesmith_p")
    for line in (
        "/* input f: float32 [x, y], y fastest in memory */",
        "/* output g: int16 [x] */",
        "int32_t tilesmith_p(tilesmith_buffer *f_0, float gain_0, tilesmith_buffer *g_0);",
        "int32_t tilesmith_p_argv(void **args);",
        "void tilesmith_p_release(void);",
        "/* param gain: float32, 0.5 to 2.0 */",
    ):
        assert line in header, header
