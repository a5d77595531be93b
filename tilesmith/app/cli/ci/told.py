"""Reports for people: a table on the terminal, Markdown for a pull request."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilesmith.app.comparison.compare import Comparison, percent
from tilesmith.app.comparison.results import Result

if TYPE_CHECKING:
    from tilesmith.app.cli.ci.outcome import Report

COLORS = {"regressed": "bold red", "slower": "yellow", "faster": "green", "new": "cyan", "removed": "cyan", "same": ""}
SHORT = {"microseconds": "µs", "milliseconds": "ms"}
HEAD = ("pipeline", "platform", "baseline", "now", "change", "outcome", "measured", "why")


def to_terminal(report: Report) -> None:
    """Prints the table, then the outcome in a line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    if report.comparisons:
        table = Table(*HEAD, box=None, pad_edge=False)
        for comparison in report.comparisons:
            cells = row(comparison)
            style = COLORS[comparison.status]
            table.add_row(*(Text(cell, style=style if n in (4, 5) else "") for n, cell in enumerate(cells)))
        console.print(table)
    console.print(Text(outcome(report)))


def outcome(report: Report) -> str:
    """The outcome in a line."""
    counts: dict[str, int] = {}
    for comparison in report.comparisons:
        counts[comparison.status] = counts.get(comparison.status, 0) + 1
    words = [f"{count} {status}" for status, count in sorted(counts.items())]
    words += [f"{len(report.invalid)} not valid"] if report.invalid else []
    against = f"against {report.ref}" if report.kind else f"no baseline: {report.ref}"
    return f"{', '.join(words) or 'nothing'} ({against}, limit {100 * report.limit:g} %)"


def row(comparison: Comparison) -> tuple[str, ...]:
    """The cells of a comparison, as HEAD names them."""
    series, change = comparison.series, comparison.change
    way = "" if series.variant == "default" else f" ({series.variant})"
    return (
        f"{series.pipeline}{way}",
        series.platform,
        _predicted(comparison.before),
        _predicted(comparison.now),
        "" if change is None else percent(change),
        comparison.status,
        comparison.measured_in_words.replace(" measured", ""),
        _why(comparison),
    )


def _why(comparison: Comparison) -> str:
    reason = comparison.before.reason if comparison.before else None
    if comparison.now is None:
        return "no document has it any more"
    if comparison.before is None:
        return "not in the baseline"
    return comparison.why() + (f"; against what was accepted: {reason}" if reason else "")


def _predicted(result: Result | None) -> str:
    return "" if result is None else f"{result.predicted:,.1f} {SHORT.get(result.unit, result.unit)}"


def to_markdown(report: Report) -> str:
    """The report for a pull request: what moved, and what is wrong; empty where that is nothing."""
    moved = [c for c in report.comparisons if c.moved and report.kind]
    if not moved and not report.invalid:
        return ""
    lines = [f"### tilesmith: {_escaped(outcome(report))}", ""]
    if moved:
        lines += [_line(HEAD), _line(["---"] * len(HEAD))]
        lines += [_line([_escaped(cell) for cell in row(c)]) for c in moved]
        lines += [""]
    for wrong in report.invalid:
        lines += [f"`{_plain(wrong.source)}` has no schedule for {_escaped(wrong.platform)}:", ""]
        lines += [f"- {_escaped(line)}" for line in wrong.lines()] + [""]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Text without what would end a code span."""
    return re.sub(r"[`\x00-\x1f\x7f]", " ", text)


def _escaped(text: str) -> str:
    """Text of whoever wrote a document or a reason, which Markdown shows as it is: no links, no names that notify."""
    without = re.sub(r"[\x00-\x1f\x7f]+", " ", text)
    marked = re.sub(r"([\\`*_{}\[\]<>#|!~&])", r"\\\1", without)
    return marked.replace("@", "@\u200b").replace("://", ":\u200b//")
