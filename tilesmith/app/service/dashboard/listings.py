"""Loop nest and code as numbered lines of HTML, with a place to lead to on each, and a way back to the stage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape

from markupsafe import Markup

from tilesmith.app.service.dashboard.stages import Part, Sources, StageView

_TOKENS = re.compile(
    r"""(?P<c1>/\*.*?\*/)|(?P<s>"(?:[^"\\\n]|\\.)*")|(?P<cp>^\#[^\n]*)"""
    r"|\b(?P<k>if|else|for|while|return|goto|struct|const|restrict|static|inline|enum|sizeof|kernel|global|local)\b"
    r"|\b(?P<kt>void|char|int|long|float|double|u?int(?:8|16|32|64)_t|[iuf](?:8|16|32|64)x\d+)\b",
    re.DOTALL | re.MULTILINE,
)
"""Tokens of the code that backends print which are coloured, by the classes of the style sheet. A lexer of all of C
takes 0.4 s for 200 KB, and its spans are ten times the text."""


@lru_cache(maxsize=32)
def code_listing(code: str, parts: tuple[Part, ...]) -> Markup:
    """The lines of code, highlighted; the first of each part leads to its stage."""
    backs = {part.first: part.stage for part in parts}
    lines = _highlighted(code).splitlines()
    return Markup("\n".join(_line(f"L{n}", line, backs.get(n)) for n, line in enumerate(lines, start=1)))


def nest_listing(loopnest: str, sources: Sources, stages: Mapping[str, StageView]) -> Markup:
    """The lines of a loop nest; where a stage is computed, they lead to it."""
    backs = {n: stage for n, stage in sources.loops if stage in stages}
    lines = enumerate(loopnest.splitlines(), start=1)
    return Markup("\n".join(_line(f"nest-{n}", escape(line), backs.get(n)) for n, line in lines))


def _line(anchor: str, inner: str, stage: str | None) -> str:
    name = escape(stage or "")
    back = f' <a href="#node-{name}" aria-label="{name} in the stage graph">{name}</a>' if name else ""
    return f'<span id="{anchor}">{inner}{back}</span>'


def _highlighted(code: str) -> str:
    """Code with spans that begin and end within a line."""
    parts, end = [], 0
    for found in _TOKENS.finditer(code):
        parts += [escape(code[end : found.start()], quote=False), _spans(str(found.lastgroup), found[0])]
        end = found.end()
    return "".join([*parts, escape(code[end:], quote=False)])


def _spans(kind: str, text: str) -> str:
    return "\n".join(f'<span class="{kind}">{escape(line, quote=False)}</span>' for line in text.split("\n"))
