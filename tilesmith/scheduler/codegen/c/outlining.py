"""Blocks that are functions of their own in C: the parameters, or the structs, with what they read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tilesmith.scheduler.codegen.c.row_macros import RowMacros
from tilesmith.scheduler.codegen.c.types import words
from tilesmith.scheduler.ir.loop.program import Body, Function
from tilesmith.scheduler.ir.loop.traversal import defined, defined_inside, walk

WORTH_A_CALL = 80
"""Statements of the ends of a row from which on calls, which move each window four times, take little of the time that
the row does: with half as many, and ten windows, they took 3 % of rows of 100 vectors."""


def names_inside(body: Body) -> Iterator[str]:
    """The names that a block defines, those inside of its statements too."""
    return (name for s in walk(body) for name in (*defined(s), *defined_inside(s)))


def mentioned(lines: Iterable[str], macros: RowMacros) -> set[str]:
    """The words of lines, and those of the macros that are called there: a buffer's first row has its macro's name."""
    text = "\n".join(lines)
    found = words(text)
    called = [macro for macro in macros.values() if macro.name in found and f"{macro.name}(" in text]
    return found.union(*[macro.names for macro in called])


def captured(read: Collection[str], outside: Mapping[str, str]) -> dict[str, str]:
    """The names from outside that are read, with their types in C, those of a type together."""
    found = {name: t for name, t in outside.items() if name in read}
    return {name: t for t in dict.fromkeys(found.values()) for name in found if found[name] == t}


def parameters(given: Mapping[str, str]) -> str:
    """The parameters of a function that is given names of some types."""
    return ", ".join(f"{t}{name}" if t.endswith("*") else f"{t} {name}" for name, t in given.items()) or "void"


def normal_form(lines: Iterable[str], names: Collection[str], macros: RowMacros) -> tuple[str, list[str]]:
    """The text of lines with numbers for `names`, in the order of their first appearance, and these: lines that differ
    in names alone have the same text. What macros stand for is part of it."""
    rows = {macro.name: macro.arguments_and_row for macro in macros.values()}
    parts = _NAME.split("\n".join(lines))
    for macro in [word for word in dict.fromkeys(parts[1::2]) if word in rows]:
        parts += ["\n", *_NAME.split(rows[macro])]
    own = [word for word in dict.fromkeys(parts[1::2]) if word in names or word in rows]
    numbers = {word: f"${n}" for n, word in enumerate(own)}
    return "".join([numbers.get(part, part) for part in parts]), own


_NAME = re.compile(r"([A-Za-z_]\w*)")


def struct(name: str, fields: Mapping[str, str], others: Sequence[str] = ()) -> list[str]:
    """The lines of a struct of fields with their types, a line a type."""
    lines = []
    for c_type in dict.fromkeys(fields.values()):
        star = "*" * c_type.endswith("*")
        names = ", ".join(star + field for field, t in fields.items() if t == c_type)
        lines.append(f"    {c_type.removesuffix(' *')} {names};")
    return [f"struct {name} {{", *lines, *(f"    {line}" for line in others), "};"]


def renamed(lines: list[str], names: Iterable[str], by: str) -> list[str]:
    """The lines with `by` ahead of those names, where they are no members of a struct."""
    joined = "|".join(names)
    found = re.compile(rf"(?<!\.)(?<!->)\b({joined})\b")
    return [found.sub(rf"{by}\1", line) for line in lines] if joined else lines


def shared(s: Function, given: Mapping[str, str], body: Sequence[str]) -> list[str]:
    """The function of groups that are alike: buffers that it is given are memory of their own."""
    memory = {b.pointer for b in s.buffers}
    told = {name: f"{t}restrict" if name in memory else t for name, t in given.items()}
    head = f"static void {s.name}({parameters(told)}) {{"
    return [f"/* {s.comment}: in the names of the first */", head, *body, "}", ""]


def seldom(name: str, given: Mapping[str, str], body: Sequence[str]) -> list[str]:
    """A function that is seldom called, with parameters."""
    return [f"SELDOM void {name}({parameters(given)}) {{", *body, "}", ""]


def part(name: str, given: Mapping[str, str], body: list[str]) -> list[str]:
    """A function for a part of every row, which reads a struct."""
    head = f"SMALL void {name}(const struct {name} *own) {{"
    return [*struct(name, given), head, *renamed(body, given, "own->"), "}", ""]
