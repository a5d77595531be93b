"""Expressions of definitions that are used once, nested in what uses them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

WIDTH = 120
"""Columns of a line of C."""
LINES = 2
"""Lines of an expression, at most: what would be longer keeps its names."""

_PROMOTED = ("int8_t", "uint8_t", "int16_t", "uint16_t")
"""Types whose arithmetic is of type int."""

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class _Pending:
    """A definition that waits for its use. One that is `bound` reads what may change."""

    name: str
    c_type: str
    text: str
    bound: bool

    @property
    def line(self) -> str:
        return f"const {self.c_type} {self.name} = {self.text};"


class Nesting:
    """The definitions of a block that wait for the line that uses them: those of `single` have one use. What reads
    memory, or one of the `changing` names, does not wait beyond a line that orders."""

    def __init__(self, single: frozenset[str], changing: frozenset[str], indent: int) -> None:
        self.single = single
        self.changing = changing
        self.room = LINES * (WIDTH - 2 * indent)
        self._pending: dict[str, _Pending] = {}

    def define(self, name: str, c_type: str, text: str, reads: bool) -> list[str]:
        """The lines of a definition: none, where it waits for its use."""
        before, text, bound = self._nested(text, len(f"const {c_type} {name} = ;"))
        one = _Pending(name, c_type, text, bound or reads or not self.changing.isdisjoint(_WORD.findall(text)))
        warned = c_type == "_Bool" or (c_type in _PROMOTED and f"({c_type})~" in text)  # of, where they are nested
        if name not in self.single or warned:
            return [*before, one.line]
        if c_type in _PROMOTED and not _is_primary(text) and not text.startswith(f"({c_type})"):
            one = replace(one, text=f"({c_type})({text})")
        self._pending[name] = one
        return before

    def use(self, line: str, orders: bool) -> list[str]:
        """A line with what it uses. Where it `orders`, what is bound is printed before it."""
        before, line, _ = self._nested(line, 0)
        bound = [p.name for p in self._pending.values() if p.bound] if orders else []
        return [*before, *self._printed(bound), line]

    def flush(self) -> list[str]:
        """The lines of all definitions that wait."""
        return self._printed(list(self._pending))

    def _printed(self, names: list[str]) -> list[str]:
        return [self._pending.pop(name).line for name in names]

    def _nested(self, text: str, beside: int) -> tuple[list[str], str, bool]:
        """The lines of what is not nested in `text`, and it with what is; whether that is bound. The line has `beside`
        other characters."""
        found = [m for m in _WORD.finditer(text) if m.group() in self._pending] if self._pending else []
        names = [m.group() for m in found]
        before, bound = [], False
        for m in reversed(found):
            p = self._pending.get(m.group())
            if p is None:
                continue
            nested = _with(text, m.start(), p)
            if names.count(p.name) > 1 or text[m.end() :][:1] == "[" or len(nested) + beside > self.room:
                before.append(p.name)
            else:
                text, bound = nested, bound or p.bound
                del self._pending[p.name]
        waiting = [name for name in self._pending if name in before]
        return self._printed(waiting), text, bound


def wrapped(line: str) -> list[str]:
    """A line, continued on others where it is too long: parted in as few parentheses as possible."""
    lines, pad = [], " " * (len(line) - len(line.lstrip()) + 4)
    while len(line) > WIDTH + (len(line) - len(line.lstrip())) // 2 and (at := _break(line, len(pad))) is not None:
        lines.append(line[:at].rstrip())
        line = pad + line[at:].lstrip()
    return [*lines, line]


def _break(line: str, start: int) -> int | None:
    """Where to part a line: after a comma, or before an operator."""
    depth, best = 0, None
    for n, c in enumerate(line[:WIDTH]):
        depth += (c in "([{") - (c in ")]}")
        if c == " " and n > start and (line[n - 1] in ",;" or re.match(r"[-+*/&|<>?:]+ ", line[n + 1 :])):
            depths = depth + (n <= WIDTH // 2) + 0.5 * (line[n + 1] in "*/")
            if best is None or depths <= best[0]:
                best = depths, n
    return None if best is None else best[1]


def _with(text: str, at: int, value: _Pending) -> str:
    """`text` with a value in the place of its name."""
    before, after = text[:at], text[at + len(value.name) :]
    cast = re.search(r"\((u\d+x\d+)\)$", before)
    if cast is not None and value.text.startswith(f"({value.c_type})(({cast.group(1)})"):
        start = len(value.c_type) + 2
        if _closing(value.text, start) == len(value.text) - 1:  # cast to and fro
            inner = _Pending(value.name, cast.group(1), value.text[start + 1 : -1], value.bound)
            return _with(before[: cast.start()] + value.name + after, cast.start(), inner)
    return before + _operand(value.text, before, after) + after


def _operand(text: str, before: str, after: str) -> str:
    """`text` as an operand between `before` and `after`, in parentheses where it needs them."""
    first = re.search(r"(^|[(,] ?| = )$", before) is not None
    whole = first and (not after or after[0] in "),;")
    braces = "){" in text  # their commas would part the arguments of a macro
    if _is_primary(text) or (whole and not braces):
        return text
    signs = _signs(text)
    if first and not braces and signs <= {"+", "-", "*", "/"}:
        following = after[1:2] if after[:1] == " " else ""
        if following in ("+", "-") or (following in ("*", "/") and signs <= {"*", "/"}):
            return text
    if before.endswith((" + ", " - ")) and signs <= {"*", "/"} and not text.startswith("-"):
        return text
    return f"({text})"


def _is_primary(text: str) -> bool:
    """Whether a text is a name, a number, an element, or a call."""
    match = re.match(r"[\w.]+", text)
    if match is None:
        return False
    end = match.end()
    while end < len(text) and text[end] in "([":
        end = _closing(text, end) + 1
    return end == len(text)


def _closing(text: str, start: int) -> int:
    depth = 0
    for n in range(start, len(text)):
        depth += (text[n] in "([{") - (text[n] in ")]}")
        if not depth:
            return n
    return len(text)


def _signs(text: str) -> set[str]:
    """The binary operators of a text that stand in no parentheses."""
    depth, signs = 0, set()
    for word in text.split(" "):
        if not depth and not re.search(r"[\w)\]}]", word):
            signs.add(word)
        depth += sum(map(word.count, "([{")) - sum(map(word.count, ")]}"))
    return signs
