"""Loops over rows that differ in names alone, or in the numbers of rows, as those of the levels of a pyramid and of the
layers of a network do: one function for all of them, with those inside."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tilesmith.scheduler.codegen.c.outlining import captured, mentioned, names_inside, normal_form, parameters
from tilesmith.scheduler.codegen.c.row_macros import RowMacros
from tilesmith.scheduler.ir.loop.program import (
    Accumulator,
    Assign,
    AssignIndex,
    Define,
    If,
    Let,
    Loop,
    MutableIndex,
    PeelVectors,
    Prefetch,
    RowPointer,
    Scatter,
    Store,
    StreamAligned,
    StreamLine,
)
from tilesmith.scheduler.ir.loop.traversal import assigned, defined, used, walk

_STORES = (Store, Scatter, StreamAligned, StreamLine)
_PLAIN = (
    *_STORES, Accumulator, Assign, AssignIndex, Define, If, Let, Loop, MutableIndex, PeelVectors, Prefetch, RowPointer,
)  # fmt: skip
"""Statements that are about rows alone, not about the call, its threads or its memory."""


def is_over_rows(s: Loop, but: Collection[str]) -> bool:
    """True for a loop over rows that may be a function: it changes nothing but memory, and uses none of the names
    `but`."""
    inside = list(walk(s.body))
    if (
        s.parallel
        or not any(isinstance(x, RowPointer) for x in inside)
        or not all(isinstance(x, _PLAIN) for x in inside)
    ):
        return False
    own = {name for x in inside for name in defined(x)}
    changed = {name for x in inside if (name := assigned(x)) is not None}
    return own.issuperset(changed) and not (but and any(name in but for x in inside for name in used(x)))


class _Named(NamedTuple):
    """A loop that is repeated: its place among those found, what it is given, the names in it in the order of its text,
    and the numbers there that may be parameters."""

    loop: int
    given: Mapping[str, str]
    names: Sequence[str]
    numbers: Sequence[str]


@dataclass(slots=True)
class RepeatedLoops:
    """Loops that may be repeated, those inside of others first, with their lines, and what holds where there are rows;
    each has one line in the text for now."""

    found: list[tuple[Loop, Sequence[str], str]] = field(default_factory=list)

    def add(self, s: Loop, lines: Sequence[str], some: str = "") -> str:
        """The line of a loop for now. `some` is the condition under which there are rows, if there may be none: a call
        takes as long as a vector or two, and of a level of a pyramid most have none."""
        self.found.append((s, lines, some))
        return f"{_MARK}{len(self.found) - 1}"

    def resolved(
        self, lines: Sequence[str], types: Mapping[str, str], macros: RowMacros, ahead: Sequence[str] = ()
    ) -> tuple[list[str], list[str]]:
        """The functions for loops that are repeated, and those `ahead` of the text, which may have such loops, too; and
        the lines of the text. Both have calls of the former, and the other loops. All names have `types`."""
        functions: list[str] = []
        calls: dict[int, str] = {}
        for k, same in enumerate(self._alike(types, macros)):
            name = f"rows{k}"
            columns = dict.fromkeys(c for c in zip(*(x.numbers for x in same), strict=True) if len(set(c)) > 1)
            told = {column: f"n{n}" for n, column in enumerate(columns)}
            functions += self._function(name, same, told)
            order = [same[0].names.index(x) for x in same[0].given]
            for n, x in enumerate(same):
                arguments = [*(x.names[place] for place in order), *(column[n] for column in told)]
                calls[x.loop] = self._call(name, x, arguments)
        return [*functions, *self._written(ahead, calls)], list(self._written(lines, calls))

    def whole(self, lines: Sequence[str]) -> list[str]:
        """The lines with those of all loops."""
        return list(self._written(lines, {}))

    def _written(self, lines: Sequence[str], calls: Mapping[int, str]) -> Iterator[str]:
        """Lines with what their marks stand for: a call, if there is one."""
        for line in lines:
            pad, mark, number = line.partition(_MARK)
            if not mark or pad.strip():
                yield line
                continue
            n = int(number)
            inside = [calls[n]] if n in calls else self._written(self.found[n][1], calls)
            yield from (pad + x if x else x for x in inside)

    def _call(self, name: str, x: _Named, arguments: Sequence[str]) -> str:
        _, _, some = self.found[x.loop]
        call = f"{name}({', '.join(arguments)});"
        return f"if ({some}) {call}" if some else call

    def _alike(self, types: Mapping[str, str], macros: RowMacros) -> list[list[_Named]]:
        """The loops that are alike, where a function for them is shorter: no loop inside of one that is."""
        whole = [self.whole(lines) for _, lines, _ in self.found]
        chosen: list[list[_Named]] = []
        gone: set[int] = set()
        for several in self._of_one_shape(whole):
            alike: dict[object, list[_Named]] = defaultdict(list)
            for n in several:
                if n in gone:
                    continue
                inside = set(names_inside((self.found[n][0],)))
                read = mentioned(whole[n], macros) - inside
                given = captured(read, {name: types[name] for name in sorted(read & types.keys())})
                lines, numbers = _marked(whole[n])
                text, names = normal_form(lines, inside.union(given), macros)
                alike[text, tuple(map(given.get, names))].append(_Named(n, given, names, numbers))
            for same in alike.values():
                if self._is_shorter(same, whole[same[0].loop]):
                    chosen.append(same)
                    gone.update(m for x in same for m in self._inside(x.loop))
        return sorted(chosen, key=lambda same: same[0].loop)

    def _inside(self, n: int) -> Iterator[int]:
        """The loops inside of a loop."""
        for line in self.found[n][1]:
            pad, mark, number = line.partition(_MARK)
            if mark and not pad.strip():
                yield int(number)
                yield from self._inside(int(number))

    def _of_one_shape(self, whole: Sequence[Sequence[str]]) -> list[list[int]]:
        """The loops whose texts are the same but for words, the longest first."""
        shapes: dict[bytes, list[int]] = defaultdict(list)
        for n, lines in enumerate(whole):
            shapes["\n".join(lines).encode().translate(None, _WORDS)].append(n)
        repeated = [several for several in shapes.values() if len(several) > 1]
        return sorted(repeated, key=lambda several: -len(whole[several[0]]))

    def _is_shorter(self, same: Sequence[_Named], lines: Sequence[str]) -> bool:
        differ = sum(len(set(column)) > 1 for column in zip(*(x.numbers for x in same), strict=True))
        call = sum(len(name) + 2 for name in same[0].given) + NUMBER * differ
        return (len(same) - 1) * sum(map(len, lines)) > (len(same) + 1) * call + BESIDE

    def _function(self, name: str, same: Sequence[_Named], told: Mapping[tuple[str, ...], str]) -> list[str]:
        """The function of the first of them, with parameters for the numbers that are `told`."""
        first = same[0]
        stages = {x.buffer.stage: None for n, *_ in same for x in walk(self.found[n][0].body) if isinstance(x, _STORES)}
        lines, numbers = _marked(self.whole(self.found[first.loop][1]))
        columns = zip(*(x.numbers for x in same), strict=True)
        words = iter([told.get(column, number) for column, number in zip(columns, numbers, strict=True)])
        given = {**first.given, **dict.fromkeys(told.values(), "int64_t")}
        return [
            f"/* rows of {', '.join(stages)}, in the names of the first */",
            f"static void {name}({parameters(given)}) {{",
            *("    " + re.sub(_NUMBER, lambda _: next(words), line) for line in lines),
            "}",
            "",
        ]


def _marked(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines with a mark for each number in a row, and these: elsewhere compilers want constants, or do better by
    them."""
    numbers: list[str] = []

    def mark(found: re.Match[str]) -> str:
        numbers.append(found.group())
        return _NUMBER

    return [_INTEGER.sub(mark, line) if _ROW.match(line) else line for line in lines], numbers


BESIDE = 200
"""Characters of a function beside its lines and its parameters, or thereabouts."""
NUMBER = 4
"""Characters of a number that is an argument, or thereabouts."""
_MARK = "@"
_NUMBER = "#"
_INTEGER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_ROW = re.compile(r" *(const )?\w+ \*const ")
_WORDS = bytes(n for n in range(128) if chr(n).isalnum() or chr(n) == "_")
