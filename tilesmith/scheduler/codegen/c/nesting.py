"""Expressions of definitions that are used once, nested in what uses them."""

from __future__ import annotations

import re
from typing import NamedTuple

WIDTH = 120
"""Columns of a line of C."""
LINES = 2
"""Lines of an expression, at most: what would be longer keeps its names."""

_PROMOTED = ("int8_t", "uint8_t", "int16_t", "uint16_t")
"""Types whose arithmetic is of type int."""


class _Pending(NamedTuple):
    """A definition that waits for its use."""

    name: str
    c_type: str
    text: str

    @property
    def line(self) -> str:
        return f"const {self.c_type} {self.name} = {self.text};"


class Nesting:
    """The definitions of a block that wait for the line that uses them: those of `single` have one use.

    What is nested is computed in the order of the definitions, as if all had names: compilers allocate registers by the
    order that they read, and one definition that moves past others costs up to 8 % of a loop's time. So the last one
    that waits is nested first, and a line comes after all that waits.
    """

    def __init__(self, single: frozenset[str], indent: int) -> None:
        self.single = single
        self.room = LINES * (WIDTH - 2 * indent)
        self._pending: list[_Pending] = []

    def define(self, name: str, c_type: str, text: str) -> list[str]:
        """The lines of a definition: none, where it waits for its use."""
        text = self._nested(text, len(f"const {c_type} {name} = ;"))
        one = _Pending(name, c_type, text)
        warned = c_type == "_Bool" or (c_type in _PROMOTED and f"({c_type})~" in text)  # of, where they are nested
        if name not in self.single or warned:
            return [*self.flush(), one.line]
        if c_type in _PROMOTED and not _is_primary(text) and not text.startswith(f"({c_type})"):
            one = _Pending(name, c_type, f"({c_type})({text})")
        self._pending.append(one)
        return []

    def use(self, line: str) -> list[str]:
        """A line with what it uses, after all that waits."""
        line = self._nested(line, 0)
        return [*self.flush(), line]

    def flush(self) -> list[str]:
        """The lines of all definitions that wait."""
        lines = [p.line for p in self._pending]
        self._pending.clear()
        return lines

    def _nested(self, text: str, beside: int) -> str:
        """`text` with what is nested in it. The line has `beside` other characters."""
        whole, end = text, len(text)
        while self._pending:
            p = self._pending[-1]
            at = _place_of(p.name, whole)
            if at is None or at >= end or whole.startswith("[", at + len(p.name)):
                break
            nested = _with(text, at, p)
            if len(nested) + beside > self.room:
                break
            text, end = nested, at
            self._pending.pop()
        return text


def _place_of(word: str, text: str) -> int | None:
    """The only place of a word in a text; None where there is none or more than one."""
    found, end = None, 0
    while (at := text.find(word, end)) >= 0:
        end = at + len(word)
        if not _is_in_word(text[at - 1 : at]) and not _is_in_word(text[end : end + 1]):
            if found is not None:
                return None
            found = at
    return found


def _is_in_word(c: str) -> bool:
    return c.isalnum() or c == "_"


def wrapped(line: str) -> list[str]:
    """A line, continued on others where it is too long: parted in as few parentheses as possible."""
    if len(line) <= WIDTH:
        return [line]
    lines, pad = [], " " * (len(line) - len(line.lstrip()) + 4)
    going_on = " \\" if line.startswith("#define") else ""
    while len(line) > WIDTH + (len(line) - len(line.lstrip())) // 2 and (at := _break(line, len(pad))) is not None:
        lines.append(line[:at].rstrip() + going_on)
        line = pad + line[at:].lstrip()
    return [*lines, line]


def _break(line: str, start: int) -> int | None:
    """The place to break a line: after a comma, or before an operator."""
    depth, best = 0, None
    for m in _PARTS.finditer(line):
        n, c = m.start(), m.group()
        if n >= WIDTH:
            break
        if c != " ":
            depth += 1 if c in "([{" else -1
        elif n > start:
            depths = depth + (n <= WIDTH // 2) + 0.5 * (line[n + 1] in "*/")
            if best is None or depths <= best[0]:
                best = depths, n
    return None if best is None else best[1]


_PARTS = re.compile(r"[][(){}]|(?<=[,;]) | (?=[-+*/&|<>?:]+ )")
"""Parentheses, and the spaces where a line may be parted."""


def _with(text: str, at: int, value: _Pending) -> str:
    """`text` with a value in the place of its name."""
    before, after = text[:at], text[at + len(value.name) :]
    cast = _CAST.fullmatch(before, before.rfind("(")) if before.endswith(")") else None
    if cast is not None and value.text.startswith(f"({value.c_type})(({cast.group(1)})"):
        start = len(value.c_type) + 2
        if _closing(value.text, start) == len(value.text) - 1:  # cast to and fro
            inner = _Pending(value.name, cast.group(1), value.text[start + 1 : -1])
            return _with(before[: cast.start()] + value.name + after, cast.start(), inner)
    return before + _operand(value.text, before, after) + after


_CAST = re.compile(r"\((u\d+x\d+)\)")


_SUMS, _PRODUCTS = frozenset("+-"), frozenset("*/")


def _operand(text: str, before: str, after: str) -> str:
    """`text` as an operand between `before` and `after`, in parentheses where it needs them."""
    braces = "){" in text  # their commas would part the arguments of a macro
    first = not braces and (not before or before.endswith(("(", ",", "( ", ", ", " = ")))
    if (first and (not after or after[0] in "),;")) or _is_primary(text):
        return text
    following = after[1:2] if first and after[:1] == " " else ""
    if following in _SUMS and _signs(text) <= _SUMS | _PRODUCTS:
        return text
    product_in_sum = following in _PRODUCTS or (before.endswith((" + ", " - ")) and not text.startswith("-"))
    if product_in_sum and _signs(text) <= _PRODUCTS:
        return text
    return f"({text})"


def _is_primary(text: str) -> bool:
    """True for a name, a number, an element, or a call."""
    match = _NAME.match(text)
    if match is None:
        return False
    end = match.end()
    while text.startswith(("(", "["), end):
        end = _closing(text, end) + 1
    return end == len(text)


_NAME = re.compile(r"[\w.]+")


def _closing(text: str, start: int) -> int:
    depth = 0
    for m in _PARENTHESES.finditer(text, start):
        depth += 1 if m.group() in "([{" else -1
        if not depth:
            return m.start()
    return len(text)


_PARENTHESES = re.compile(r"[][(){}]")


def _signs(text: str) -> set[str]:
    """The binary operators of a text that stand in no parentheses."""
    depth, signs = 0, set()
    for m in _OPERATORS.finditer(text):
        part = m.group()
        if part in "([{":
            depth += 1
        elif part in ")]}":
            depth -= 1
        elif not depth:
            signs.add(part.strip())
    return signs


_OPERATORS = re.compile(r"[][(){}]|(?<= )[^][(){}\w ]+(?= )")
