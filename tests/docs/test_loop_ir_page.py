"""docs/loop-ir.md and the loop IR say the same: every class with its text and its fields, every pass, the example."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from support.loop_text import before

from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.ir.loop import ops
from tilesmith.scheduler.ir.loop.printer import print_program
from tilesmith.scheduler.ir.loop.program import Statement
from tilesmith.scheduler.ir.loop.syntax import FORMATS, INFIX, UNARY
from tilesmith.scheduler.loop_passes.passes import PASSES
from tilesmith.scheduler.lowering.passes import LOWERING

PAGE = Path(__file__).parents[2] / "docs" / "loop-ir.md"
TEXT = PAGE.read_text(encoding="utf-8")
CLASSES = {kind.__name__: kind for kind in (*get_args(ops.Operation), *get_args(Statement), *FORMATS)}


def rows() -> Iterator[tuple[str, ...]]:
    """The cells of every row of a table."""
    for line in TEXT.splitlines():
        if line.startswith("| `"):
            yield tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1])


ROWS = {name.strip("`"): (text, operands) for name, text, operands, *meaning in rows() if meaning}


def test_every_class_is_on_the_page() -> None:
    assert ROWS.keys() == CLASSES.keys()


@pytest.mark.parametrize("name", ROWS)
def test_fields_of_a_class_are_its_operands(name: str) -> None:
    """No name but theirs is quoted there, except those that a field may have as its value."""
    quoted = re.findall(r"`([^`]+)`", ROWS[name][1])
    own = {f.name for f in fields(CLASSES[name])}
    assert own <= set(quoted)
    assert not {q for q in quoted if q.isidentifier()} - own - {"and", "or", "not", "argument", "call", "thread"}


def test_texts_are_those_that_are_printed() -> None:
    for kind, text in FORMATS.items():
        shown = re.sub(r"{(\w+[?]?):\w+}", r"{\1}", text)
        assert ROWS[kind.__name__][0] == f"`{shown}`"


def test_operators_are_on_the_page() -> None:
    words = set(re.findall(r"`(\w+) {a}`", ROWS["Unary"][0]))
    assert words == UNARY.keys()
    for kind in (ops.Binary, ops.Compare, ops.Logical):
        text, operands = ROWS[kind.__name__]
        assert text == "`{a} {op} {b}`"
        listed = re.findall(r"`([^`]+)`", operands.partition("`op`")[2])
        assert listed == [sign for sign, of in INFIX.items() if of is kind]


def test_passes_are_on_the_page() -> None:
    listed = [tuple(row) for row in rows() if len(row) == 3]
    assert listed == [(f"`{p.name}`", p.before, p.after) for p in (*LOWERING.passes, *PASSES.passes)]


def test_the_example_is_what_the_passes_leave(pytestconfig: pytest.Config) -> None:
    document, shown = re.findall(r"^```(?:yaml)?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    printed = print_program(before(None, load_text(document, yaml=True), None, 32))
    if pytestconfig.getoption("--renew-golden"):
        PAGE.write_text(TEXT.replace(shown, printed), encoding="utf-8")
        return
    assert shown == printed
