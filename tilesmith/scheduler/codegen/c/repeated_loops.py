"""Loops over rows that differ in names alone, as those of the levels of a pyramid do: one function for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
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
from tilesmith.scheduler.ir.loop.traversal import assigned, defined, regions, used, walk

_STORES = (Store, Scatter, StreamAligned, StreamLine)
_PLAIN = (
    *_STORES, Accumulator, Assign, AssignIndex, Define, If, Let, Loop, MutableIndex, PeelVectors, Prefetch, RowPointer,
)  # fmt: skip
"""Statements that are about rows alone, not about the call, its threads or its memory."""


def is_over_rows(s: Loop, but: Collection[str]) -> bool:
    """Whether a loop is over rows, none inside of another, and may be a function: it changes nothing but memory, and
    uses none of the names `but`."""
    if s.parallel or not any(isinstance(x, RowPointer) for x in s.body):
        return False
    if any(isinstance(x, RowPointer) for part in s.body for region in regions(part) for x in walk(region)):
        return False
    inside = list(walk(s.body))
    own = {name for x in inside for name in defined(x)}
    changed = {name for x in inside if (name := assigned(x)) is not None}
    return (
        all(isinstance(x, _PLAIN) for x in inside)
        and own.issuperset(changed)
        and not (but and any(name in but for x in inside for name in used(x)))
    )


class _Named(NamedTuple):
    """A loop that is repeated: its number, what it is given, and the names in it in the order of its text."""

    number: int
    given: Mapping[str, str]
    names: Sequence[str]


@dataclass(slots=True)
class RepeatedLoops:
    """Loops that may be repeated, with their lines, and what holds where there are rows; each has one line in the text
    for now."""

    found: list[tuple[Loop, Sequence[str], str]] = field(default_factory=list)

    def add(self, s: Loop, lines: Sequence[str], some: str = "") -> str:
        """The line of a loop for now. `some` is the condition under which there are rows, if there may be none: a call
        takes as long as a vector or two, and of a level of a pyramid most have none."""
        self.found.append((s, lines, some))
        return f"{_MARK}{len(self.found) - 1}"

    def resolved(
        self, lines: Sequence[str], types: Mapping[str, str], macros: RowMacros
    ) -> tuple[list[str], list[str]]:
        """The functions for loops that are repeated, and the lines of the text with calls of them, and the other loops.
        All names of the text have `types`."""
        functions: list[str] = []
        calls: dict[int, Sequence[str]] = {}
        for k, same in enumerate(self._alike(types, macros)):
            first, name = same[0], f"rows{k}"
            functions += self._function(name, same)
            order = [first.names.index(x) for x in first.given]
            calls |= {x.number: [self._call(name, x, order)] for x in same}
        made: list[str] = []
        for line in lines:
            pad, mark, number = line.partition(_MARK)
            if mark and not pad.strip():
                n = int(number)
                made += [pad + x if x else x for x in calls.get(n, self.found[n][1])]
            else:
                made.append(line)
        return functions, made

    def _call(self, name: str, x: _Named, order: Sequence[int]) -> str:
        _, _, some = self.found[x.number]
        call = f"{name}({', '.join(x.names[place] for place in order)});"
        return f"if ({some}) {call}" if some else call

    def _alike(self, types: Mapping[str, str], macros: RowMacros) -> list[list[_Named]]:
        """The loops that differ in names alone, where a function for them is shorter."""
        alike: dict[object, list[_Named]] = defaultdict(list)
        for several in self._of_one_shape():
            for n in several:
                s, lines, _ = self.found[n]
                inside = set(names_inside((s,)))
                read = mentioned(lines, macros) - inside
                given = captured(read, {name: types[name] for name in sorted(read & types.keys())})
                text, names = normal_form(lines, inside.union(given), macros)
                alike[text, tuple(map(given.get, names))].append(_Named(n, given, names))
        return [same for same in alike.values() if self._is_shorter(same)]

    def _of_one_shape(self) -> list[list[int]]:
        """The loops whose texts are the same but for words."""
        shapes: dict[bytes, list[int]] = defaultdict(list)
        for n, (_, lines, _) in enumerate(self.found):
            shapes["\n".join(lines).encode().translate(None, _WORDS)].append(n)
        return [several for several in shapes.values() if len(several) > 1]

    def _is_shorter(self, same: Sequence[_Named]) -> bool:
        _, lines, _ = self.found[same[0].number]
        call = sum(len(name) + 2 for name in same[0].given)
        return (len(same) - 1) * sum(map(len, lines)) > (len(same) + 1) * call + BESIDE

    def _function(self, name: str, same: Sequence[_Named]) -> list[str]:
        """The function of the first of them."""
        stages = {x.buffer.stage: None for n, *_ in same for x in walk(self.found[n][0].body) if isinstance(x, _STORES)}
        return [
            f"/* rows of {', '.join(stages)}, in the names of the first */",
            f"static void {name}({parameters(same[0].given)}) {{",
            *("    " + line for line in self.found[same[0].number][1]),
            "}",
            "",
        ]


BESIDE = 200
"""Characters of a function beside its lines and its parameters, or thereabouts."""
_MARK = "@"
_WORDS = bytes(n for n in range(128) if chr(n).isalnum() or chr(n) == "_")
