"""The text of the loop IR: what is printed is read back to an equal program, whatever the program; the verifier finds
nothing wrong with those that passes make."""

from __future__ import annotations

from typing import get_args

import pytest
from support.machines import machine
from support.random_cases import random_case
from support.shipped import lowered

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.ir.index import const, divide, maximum, minimum, modulo, multiply, sym
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.parser import ParseError, parse_body, parse_program
from tilesmith.scheduler.ir.loop.printer import print_body, print_index, print_program
from tilesmith.scheduler.ir.loop.program import Let, Program, Statement
from tilesmith.scheduler.ir.loop.syntax import INFIX, SYNTAX
from tilesmith.scheduler.ir.loop.verifier import verify
from tilesmith.scheduler.ir.pass_manager import AfterEach
from tilesmith.scheduler.loop_passes.passes import optimize
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import rewrite

SHIPPED = [name for name in pipelines.names() if name != "vdsr"]


def assert_round_trip(program: Program) -> None:
    text = print_program(program)
    assert parse_program(text) == program
    assert print_program(parse_program(text)) == text


def assert_right_and_read_back(program: Program) -> None:
    """The verifier finds nothing wrong with the program as it was lowered and after each pass; what is lowered and what
    the last pass leaves are read back."""
    verify(program)
    assert_round_trip(program)
    assert_round_trip(optimize(program, AfterEach(lambda _, p: verify(p))))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_pipelines_are_right_and_read_back(name: str) -> None:
    assert_right_and_read_back(lowered(name))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_pipelines_are_right_and_read_back(seed: int) -> None:
    """One of each kind."""
    case = random_case(seed)
    assert_right_and_read_back(lower(rewrite(case.pipeline, case.schedule), machine(vector_bytes=case.vector_bytes)))


def test_every_operation_and_statement_has_a_format() -> None:
    infix = {*INFIX.values(), ops.Unary}
    assert not {*get_args(ops.Operation), *get_args(Statement)} - SYNTAX.keys() - infix


def test_indices_are_sums() -> None:
    x, y = sym("x"), sym("image.min.y")
    for index in (
        const(-3),
        x.scaled(-2) + y - 7,
        minimum(x, maximum(y + 1, const(0))) + 4,
        modulo(x - y, 8).scaled(-1) + divide(x.scaled(3) + 5, 2),
        multiply(x - 1, y).scaled(3),
        divide(x, y) + modulo(y, x),
    ):
        (read,) = parse_body(f"let n = {print_index(index)}")
        assert read == Let("n", index)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("let n = 3\nlet m 4", 2, "expected '='"),
        ("let n = ", 1, "expected a name, found 'the end'"),
        ("turn left", 1, "expected a statement, found 'turn'"),
        ("%a = %b + 1:i32 : i32", 1, "expected a name that is known here, found '%b'"),
        ("%a = 1:i32 ? 2:i32", 1, "unknown character '?'"),
        ("%a = 1:i32 , 2:i32 : i32", 1, "expected an operator"),
        ("%a = copy 1:i32 : i32y4", 1, "expected a type, such as f32x8"),
        ("%a = copy 1:z32 : i32", 1, "expected a name that is known here, found 'z32'"),
        ("for i = 0 to 9 step 1 { let n = i", 1, "expected '}', found 'the end'"),
        ("store 1:i32 to @f at p[0]", 1, "expected a name that is known here, found '@f'"),
    ],
)
def test_errors_say_the_line_and_what_was_expected(text: str, line: int, expected: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_body(text)
    assert str(caught.value).startswith(f"line {line}: ")
    assert expected in str(caught.value)


def test_names_live_in_their_block() -> None:
    inside = "if (n >= 0) { %a = copy 1:i32 : i32 } else { %a = copy 2:u8 : u8 }"
    assert print_body(parse_body(inside)).count("%a") == 2
    with pytest.raises(ParseError):
        parse_body(inside + " %b = copy %a : i32")
