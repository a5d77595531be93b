"""An importer: stencils, written as sums of what lies around a point.

    photo: uint8 1536 x 2560
    rows = photo[-1, 0] + 2.0 * photo[0, 0] + photo[1, 0]
    soft = (rows[0, -1] + 2.0 * rows[0, 0] + rows[0, 1]) / 16.0

    tilesmith --plugin examples/extending/stencils.py schedule examples/extending/soft.stencil

The first line is the image, with its type and size; every other line is a stage, and the last one is the output. Beyond
its edges the image repeats. Expressions are those of documents (docs/pipeline-format.md), but for the brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.frontends.importer import ImportedPipeline, ImportFailed
from tilesmith.scheduler.frontends.registry import register

IMAGE = re.compile(r"(\w+): (\w+) (\d+) x (\d+)")
STAGE = re.compile(r"(\w+) = (.+)")
POINT = re.compile(r"(\w+)\[\s*(-?\d+)\s*,\s*(-?\d+)\s*\]")


@dataclass(frozen=True, slots=True)
class Stencils:
    """An importer of files that end in `.stencil`."""

    name: str = "stencils"
    suffixes: tuple[str, ...] = (".stencil",)

    def load(self, source: str) -> ImportedPipeline:
        """The pipeline of a file. The document that is made of it is checked like any other: names, types, bounds."""
        lines = [line.strip() for line in Path(source).read_text(encoding="utf-8").splitlines()]
        first, *rest = [(n, line) for n, line in enumerate(lines, start=1) if line and not line.startswith("#")] or [
            (1, "")
        ]
        image, type_, width, height = matched(IMAGE, source, *first, hint="write NAME: TYPE WIDTH x HEIGHT")
        stages = [matched(STAGE, source, *line, hint="write NAME = EXPRESSION") for line in rest]
        if not stages:
            raise ImportFailed((f"{source} has an image and no stage", "write NAME = EXPRESSION"))
        output, size = stages[-1][0], [[0, int(width)], [0, int(height)]]
        document = {
            "format": 1,
            "name": re.sub(r"\W", "_", Path(source).stem),
            "inputs": [{"name": image, "type": type_, "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
            "stages": [{"name": n, "dims": ["x", "y"], "value": POINT.sub(at, value)} for n, value in stages],
            "outputs": [output],
            "estimates": {output: size, image: size},
        }
        return ImportedPipeline(load(document))


def matched(pattern: re.Pattern[str], source: str, number: int, line: str, hint: str) -> tuple[str, ...]:
    """The parts of a line. Raises ImportFailed, with the line's number."""
    found = pattern.fullmatch(line)
    if found is None:
        raise ImportFailed((f"{source}:{number}: {line!r} is not understood", hint))
    return found.groups()


def at(point: re.Match[str]) -> str:
    """A point of the image or a stage, as documents have it."""
    name, dx, dy = point.groups()
    return f"{name}(x + ({dx}), y + ({dy}))"


register(Stencils())
