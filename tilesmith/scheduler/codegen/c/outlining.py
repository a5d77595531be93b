"""Blocks that are functions of their own in C: the structs with what they read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

WORTH_A_CALL = 80
"""Statements of the ends of a row from which on calls, which move each window four times, take little of the time that
the row does: with half as many, and ten windows, they took 3 % of rows of 100 vectors."""

_WORD = re.compile(r"\w+")


def captured(lines: Iterable[str], outside: Mapping[str, str], but: Iterable[str]) -> dict[str, str]:
    """The names from outside that lines mention, all `but` some, with their types in C, those of a type together."""
    words = set(_WORD.findall("\n".join(lines))) - set(but)
    found = {name: t for name, t in outside.items() if name in words}
    return {name: t for t in dict.fromkeys(found.values()) for name in found if found[name] == t}


def struct(name: str, fields: Mapping[str, str], others: Sequence[str] = ()) -> list[str]:
    """The lines of a struct of fields with their types, a line a type."""
    lines = []
    for c_type in dict.fromkeys(fields.values()):
        star = "*" * c_type.endswith("*")
        names = ", ".join(star + field for field, t in fields.items() if t == c_type)
        lines.append(f"    {c_type.removesuffix(' *')} {names};")
    return [f"struct {name} {{", *lines, *(f"    {line}" for line in others), "};"]


def renamed(lines: list[str], names: Iterable[str], by: str) -> list[str]:
    """The lines with `by` ahead of those names."""
    joined = "|".join(names)
    found = re.compile(rf"\b({joined})\b")
    return [found.sub(rf"{by}\1", line) for line in lines] if joined else lines
