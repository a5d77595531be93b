"""The candidates of a search as the command prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilesmith.app.profiler.tuning import Tuned
    from tilesmith.scheduler.search import Candidate


def table(candidates: Sequence[Candidate], tuned: Tuned | None = None) -> str:
    """A line a candidate, under a head; `*` marks those that no other beats in everything, `>` the fastest timed."""
    from tilesmith.scheduler.search.candidate_table import ranked

    unit = candidates[0].predicted.unit
    measured = {} if tuned is None else {s.rank: s for s in tuned.samples}
    rows = [["", f"predicted ({unit})", "median (ms)", "memory", "recompute", "parallel", "", "differs"]]
    for r in ranked(candidates):
        c, sample = r.candidate, measured.get(r.rank)
        cost, size = f"{float(c.predicted.total):,.1f}", f"{c.memory_bytes / 1024:,.0f} KiB"
        time = "-" if sample is None or sample.median_ms is None else f"{sample.median_ms:,.3f}"
        rank = f"{'> ' if tuned is not None and tuned.chosen == r.rank else ''}{r.rank}"
        words = r.differs if sample is None or sample.error is None else f"ERROR {' '.join(sample.error.split())}"
        figures = [f"{c.recompute:.3f}", f"{c.parallelism:,.0f}", "*" if r.pareto else ""]
        rows.append([rank, cost, time, size, *figures, words])
    if tuned is None:
        rows = [[*row[:2], *row[3:]] for row in rows]
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]) - 1)]
    lines = ["  ".join([*map(str.rjust, row, widths), row[-1]]).rstrip() for row in rows]
    lines.append("* nothing beats it in predicted cost, memory, recomputation and parallelism at once")
    return "\n".join(lines if tuned is None else [*lines, f"> {tuned.in_words()}"])


def documents(candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """The candidates as data, each with its schedule as `schedule.json` has it."""
    from tilesmith.scheduler.ir.schedule.document import to_document as schedule_document
    from tilesmith.scheduler.search.candidate_table import to_document

    figures = to_document(candidates)
    return [{**d, "schedule": schedule_document(c.schedule)} for d, c in zip(figures, candidates, strict=True)]
