"""Tables for people, JSON for programs, progress on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def number(value: float | None) -> str:
    """Three significant digits, never in powers of ten; nothing for nothing."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded so that it reads well as text; all columns but the first two are right-aligned."""
    columns = [[h, *(row[k] for row in rows)] for k, h in enumerate(head)]
    widths = [max(3, *(len(cell) for cell in column)) for column in columns]
    last = len(head) - 1

    def line(cells: Sequence[str]) -> str:
        padded = [
            c.ljust(w) if k < 2 or k == last else c.rjust(w) for k, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * w if k < 2 or k == last else "-" * (w - 1) + ":" for k, w in enumerate(widths)]
    return "\n".join([line(head), line(rule), *(line(row) for row in rows)])


def progress(text: str) -> None:
    """One line of progress."""
    print(text, file=sys.stderr, flush=True)


def write(path: Path | None, figures: dict[str, Any]) -> None:
    """The figures as a JSON file, where one was asked for."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(figures, indent=1) + "\n")
