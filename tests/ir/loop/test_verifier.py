"""The verifier of the loop IR: every rule refuses a program that breaks it, and says where."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.ir.loop.parser import parse_program
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.loop.verifier import VerificationError, verify

HEAD = """
program "p" {
  doc "" method "hand"
  machine "x86_64" line_bytes 64 register_bytes 32 carried_vectors 12 permuted_bytes 4 crowded_bytes 2048
  argument "a" as a : f32 dims(x, y) storage(x, y)
  argument "f" as f : f32 dims(x, y) storage(x, y) output made_by "f"
  param "n" as n_0 : i32
  buffer a_data "a" component 0 : f32 dims(x, y) unit 0 argument
    origin(a.origin.x, a.origin.y) stride(1, a.stride.y) ring(none, none) extent(a.extent.x, a.extent.y)
  buffer f_data "f" component 0 : f32 dims(x, y) unit 0 argument
    origin(f.origin.x, f.origin.y) stride(1, f.stride.y) ring(none, none) extent(f.extent.x, f.extent.y)
  buffer t_0 "t" component 0 : f32 dims(x) unit 0 thread origin(0) stride(1) ring(none) extent(8)
  derivation {} bounds {}
  body {
"""


def program(body: str) -> Program:
    return parse_program(HEAD + body + "}}")


RIGHT = """
  scratch s(@t_0 order(0) extents(8))
  for y = f.min.y to f.min.y + f.extent.y - 1 step 1 parallel {
    bind s
    row p = @f_data + mul(y - f.origin.y, f.stride.y) - f.origin.x
    row q = @a_data + mul(y - a.origin.y, a.stride.y) - a.origin.x
    %sum = accumulator 0.0:f32 : f32x8
    for x = 0 to 9 step 8 {
      %v = load q[x] : f32x8
      %more = %sum + %v : f32x8
      assign %sum = %more
      %big = %v > 1.0:f32 : b8x8m32
      %w = select %big, %v, 0.0:f32 : f32x8
      store %w to @t_0 at t_0[0]
      store %more to @f_data at p[x]
    }
  }"""

WRONG = [
    ("%v = %gone + 1.0:f32 : f32", "expected a name that is known here"),
    ("row q = @a_data + gone", "'gone' is not defined here"),
    ("let i = 1 let i = 2", "'i' is defined already"),
    ("for i = 0 to 3 step 1 { let i = 2 }", "'i' is defined already"),
    ("%v = 1:i32 + 1.0:f32 : f32", "an operand is int32, the result float32"),
    ("%v = lanes 0 [0, 1] : i32x2 %w = %v + 1:i32 : i32x4", "an operand has 2 lanes, the result 4"),
    ("%v = lanes 0 [0, 1, 2] : i32x3", "lanes are a power of two"),
    ("%v = lanes 0 [0, 1] : i32x4", "there is one number a lane"),
    ("%v = 1:i32 < 2:i32 : i32", "gives a bool"),
    ("%v = not 1:i32 : i32", "'not' of int32"),
    ("%v = 1:i32 and 2:i32 : i32", "operands are bools"),
    ("%v = select 1:i32, 2:i32, 3:i32 : i32", "a condition is a bool"),
    ("%v = 1:i32 << 1.0:f32 : i32", "a shift counts in integers"),
    ("%v = truncate 1.0:f32 : i64", "floats become integers of no more bits"),
    ("%v = copy 1:i32 : i32", "a value of the same lanes"),
    ("%v = broadcast 1:i32 : i16x4", "an operand is int32"),
    ("%v = lanes 0 [0, 1] : i32x2 %w = shuffle %v, %v [0, 4] : i32x2", "every lane of the result is one of those"),
    ("%v = lanes 0 [0, 1] : i32x2 %w = narrow %v, %v : i32x4", "two vectors become one of half their bits"),
    ("%v = lanes 0 [0, 1, 2, 3] : i32x4 %w = widen_part %v part 0 : i32x2", "as wide as a group"),
    ("%v = lanes 0 [0, 1, 2, 3] : i32x4 %w = widen_part %v part 2 : i64x2", "one of a group"),
    ("%v = lanes 0 [0, 1] : i32x2 %w = narrow %v, %v saturate by_parts : i16x4", "vectors of whole parts"),
    ("%v = lanes 0 [0, 1, 2, 3] : i32x4 %w = widen_lanes %v [0, 1] : i32x2", "as many bytes of longer ones"),
    ("%v = lanes 0 [0, 1, 2, 3, 4, 5, 6, 7] : i32x8 %w = widen_lanes %v [0, 4, 5, 6] : i64x4", "it goes to"),
    ("%v = lanes 0 [0, 1] : i32x2 %w = sum_neighbours %v, 0:i32 : i64", "unsigned neighbours"),
    ("%v = lanes 0 [0, 1] : i32x2 %w = dot_pairs %v, %v : i32", "pairs of int16"),
    ("%v = load a_data[0] : i32", "elements of @a_data are float32"),
    ("%v = load y[0] : f32", "'y' is not defined here"),
    ("let i = 0 %v = load i[0] : f32", "'i' is no pointer"),
    ("%v = gather a_data[<0; [0, 1, 2]> origin 0 stride 1] : f32x2", "an index has 3 lanes, the vector 2"),
    ("%v = clamped_load a_data[0] from 0 to 7 : f32", "what is clamped is a vector"),
    ("%v = from_index 3 : i64", "the result is an int32"),
    ("store 1:i32 to @f_data at f_data[0]", "elements of @f_data are float32"),
    ("store 1.0:f32 to @f_data at a_data[0]", "the pointer is that of another buffer"),
    ("%v = copy %n_0 : i32 assign %v = 3:i32", "'v' is not one of what changes"),
    ("let i = 0 set i = 1", "'i' is not one of what changes"),
    ("for i = 0 to 3 step 0 {}", "a step is a positive number"),
    ("let i = 0 peeled i = 0 to 3 skip 1 to 2 {} middle {}", "'i' is defined already"),
    ("peeled i = 0 to 3 skip 1 to 2 {} middle { let j = 0 } let k = j", "'j' is not defined here"),
    ("apart { let i = 0 } let k = i", "'i' is not defined here"),
    ("if () and 3:i32 {}", "a condition is one bool"),
    ("store 1.0:f32 to @t_0 at t_0[0]", "'t_0' is not defined here"),
    ("for i = 0 to 3 step 1 parallel { for j = 0 to 3 step 1 parallel {} }", "a parallel loop stands in another"),
    ("for i = 0 to 3 step 1 parallel { scratch s(@t_0 order(0) extents(8)) }", "a matter of one thread"),
    ("for i = 0 to 3 step 1 parallel { store 1.0:f32 to @f_data at f_data[0] }", "race"),
    (
        "for i = 0 to 3 step 1 parallel { ordered { store 1.0:f32 to @f_data at f_data[i] } fence }",
        "what runs in order is not the end of the body",
    ),
    ("mutable k = 0 for i = 0 to 3 step 1 parallel { set k = i }", "race: 'k' is one for all iterations"),
    (
        "%s = accumulator 0.0:f32 : f32 for i = 0 to 3 step 1 parallel { assign %s = 1.0:f32 }",
        "race: 's' is one for all iterations",
    ),
    (
        "%v = broadcast 1.0:f32 : f32x8 "
        "for i = 0 to 3 step 1 parallel { stream_line %v to @f_data at f_data[8*i] moved 0 part 0 }",
        "end without a fence",
    ),
]


def test_a_right_program_passes() -> None:
    verify(program(RIGHT))


@pytest.mark.parametrize(("body", "rule"), WRONG)
def test_what_breaks_a_rule_is_refused(body: str, rule: str) -> None:
    with pytest.raises(ValueError if "expected" in rule else VerificationError) as caught:
        verify(program(body))
    assert rule in str(caught.value)


GROUP = """
  function group_0 symbols(k_0) buffers(@g_0) {
    row p_0 = @g_0 + k_0
    store 1.0:f32 to @g_0 at p_0[0]
  }"""
MEMORY = """
  buffer g_0 "t" component 0 : f32 dims(x, y) unit 0 argument
    origin(0, 0) stride(1, 8) ring(none, none) extent(8, 8)
  derivation"""
GROUPS = [
    ("invoke group_1 symbols(3) buffers(@f_data)", "'group_1' is no function that is known here"),
    ("invoke group_0 symbols(3, 4) buffers(@f_data)", "given something for each of its names"),
    ("invoke group_0 symbols(3) buffers()", "given something for each of its names"),
    ("invoke group_0 symbols(gone) buffers(@f_data)", "'gone' is not defined here"),
    ("invoke group_0 symbols(3) buffers(@t_0)", "'t_0' is not defined here"),
    ("scratch s(@t_0 order(0) extents(8)) bind s invoke group_0 symbols(3) buffers(@t_0)", "is of another kind"),
    ("for i = 0 to 3 step 1 { invoke group_0 symbols(3) buffers(@f_data) }", "a function is invoked in a block"),
    ("for i = 0 to 3 step 1 { function f_0 symbols() buffers() {} }", "a function stands in a block"),
    ("function group_0 symbols() buffers() {}", "'group_0' is defined already"),
    ("let k = k_0", "'k_0' is not defined here"),
    ("row r = @g_0 + 1", "'g_0' is not defined here"),
]


@pytest.mark.parametrize(("body", "rule"), [("invoke group_0 symbols(3) buffers(@f_data)", None), *GROUPS])
def test_functions_are_given_what_they_have_names_for(body: str, rule: str | None) -> None:
    text = HEAD.replace("  derivation", MEMORY, 1) + GROUP + body + "}}"
    if rule is None:
        verify(parse_program(text))
        return
    with pytest.raises(VerificationError) as caught:
        verify(parse_program(text))
    assert rule in str(caught.value)


def test_errors_say_the_loops_around_and_the_statement() -> None:
    with pytest.raises(VerificationError) as caught:
        verify(program("for i = 0 to 3 step 1 { if (i >= 0) { let k = gone } }"))
    assert str(caught.value) == "for i = 0 to 3 step 1 / if (i >= 0) / let k = gone: 'gone' is not defined here"


def test_what_an_iteration_gives_its_own_place_is_no_race() -> None:
    for index in ("8*i", "k", "j", "m"):
        verify(
            program(f"""
            for i = 0 to 3 step 1 parallel {{
              let k = 2*i
              mutable m = 0
              for j = k to k + 1 step 1 {{
                set m = j
                store 1.0:f32 to @f_data at f_data[{index}]
              }}
            }}""")
        )
