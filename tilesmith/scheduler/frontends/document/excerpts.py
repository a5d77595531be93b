"""Problems of documents as lines for a terminal: the place, what is wrong, the line of the text, the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tilesmith.scheduler.errors import Problem

if TYPE_CHECKING:
    from tilesmith.platforms.errors import PlatformProblem
    from tilesmith.scheduler.frontends.document.positions import Position, Positions

EXCERPT = 96
"""Columns of a line that are shown around a problem."""


def problem_lines(
    problems: Sequence[Problem | PlatformProblem], source: str, text: str | bytes | None
) -> Iterator[str]:
    """Lines that tell every problem of a document; those of one that is text name its line and column, as editors and
    compilers do."""
    from tilesmith.scheduler.frontends.document.positions import Positions

    positions = None if text is None else Positions(text if isinstance(text, str) else text.decode(errors="replace"))
    for problem in problems:
        found = problem if isinstance(problem, Problem) else Problem(problem.code, problem.pointer, problem.message)
        yield ""
        yield from _told(found, source, positions)
        if problem.hint:
            yield f"    hint: {problem.hint}"


def _told(problem: Problem, source: str, positions: Positions | None) -> Iterator[str]:
    position = None if positions is None else positions.of(problem)
    if positions is None or position is None:
        column = "" if problem.column is None else f", column {problem.column}"
        yield f"  at {problem.pointer or '/'}{column}: {problem.message} [{problem.code}]"
        return
    message = problem.message.removeprefix(f"Line {position.line}, column {position.column}: ")
    yield f"  {source}:{position.line}:{position.column}: {message} [{problem.code}]"
    if problem.pointer:
        yield f"    at {problem.pointer}{_of(positions, problem.pointer)}"
        yield from _marked(positions, position)


def _of(positions: Positions, pointer: str) -> str:
    name = positions.named(pointer)
    kind = pointer.split("/")[1].removesuffix("s")
    return "" if name is None else f", of {kind} {name[:64]!r}"


def _marked(positions: Positions, position: Position) -> Iterator[str]:
    line, mark = excerpt(positions.line(position), position.column)
    number = f"{position.line:>6} | "
    yield number + line
    yield " " * (len(number) - 2) + "| " + mark


def excerpt(line: str, column: int) -> tuple[str, str]:
    """The part of a line around the 1-based `column`, and a caret under that column."""
    text = "".join(c if c.isprintable() else " " for c in line)
    start = max(0, column - 1 - EXCERPT // 2) if len(text) > EXCERPT else 0
    part = text[start : start + EXCERPT]
    left = "..." if start else ""
    right = "..." if start + EXCERPT < len(text) else ""
    return left + part + right, " " * (len(left) + column - 1 - start) + "^"
