"""Findings of `emulated` for a pipeline on a platform, and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import report
from benchmarks.emulation import Counts
from benchmarks.everywhere import Job
from benchmarks.findings import DEFAULT, PAPER, ROOT, Contender, Pair, differs, grouped, same_code
from benchmarks.verdicts import geometric_mean
from tilesmith.platforms import CpuPlatform

CONTENDERS = (DEFAULT, PAPER, ROOT)
PAIRS: tuple[Pair, ...] = ((DEFAULT, PAPER), (DEFAULT, ROOT))
FIGURES = ("instructions", "cycles")
BOUND = 1.03
"""Bounds of the figure of the first of a pair over that of the second."""


@dataclass(frozen=True)
class Finding:
    """A job with what its contenders counted, the ratio of every figure of every pair, and who failed, with the reason.
    `left`: it was not counted yet."""

    job: Job
    platform: CpuPlatform
    contenders: Mapping[str, Contender]
    counts: Mapping[str, Counts]
    ratios: Mapping[tuple[Pair, str], float]
    errors: Mapping[str, str]
    left: bool

    @property
    def build(self) -> str:
        return f"{self.job.isa}, threads: {self.job.threads}"

    @property
    def losses(self) -> list[Pair]:
        """The pairs of which a ratio is above the bound."""
        return [pair for pair in PAIRS if self.worst(pair) > BOUND]

    def worst(self, pair: Pair) -> float:
        """The largest ratio of a pair; 0 where there is none."""
        return max((self.ratios.get((pair, figure), 0.0) for figure in FIGURES), default=0.0)


def finding(
    job: Job, platform: CpuPlatform, contenders: Mapping[str, Contender], counted: Mapping[str, Any] | None
) -> Finding:
    """The finding of what was made and counted so far."""
    errors = {n: c["error"] for n, c in contenders.items() if "error" in c} | dict((counted or {}).get("errors", {}))
    of_code = {n: Counts.of(document) for n, document in (counted or {}).get("counts", {}).items()}
    counts = {n: of_code[same] for n, same in same_code(contenders).items() if same in of_code}
    ratios = {
        ((mine, its), figure): _figure(counts[mine], figure, platform) / _figure(counts[its], figure, platform)
        for mine, its in PAIRS
        for figure in FIGURES
        if mine in counts and its in counts
    }
    return Finding(job, platform, contenders, counts, ratios, errors, counted is None)


def _figure(counts: Counts, figure: str, platform: CpuPlatform) -> float:
    return counts.instructions if figure == "instructions" else counts.cycles(platform)


def tables(found: Sequence[Finding]) -> str:
    """Means per platform, all ratios of every pipeline, and all that is above the bound, the worst first."""
    parts = [_means(found), _ratios(found)]
    missed = [(f, pair) for f in found for pair in f.losses]
    missed.sort(key=lambda m: -m[0].worst(m[1]))
    if missed:
        parts.append(_losses(missed))
    notes = [f"failed: {_told(f)}: {name}: {error}" for f in found for name, error in f.errors.items()]
    unseen = [f"{_told(f)}: {n}" for f in found for n, c in f.counts.items() if c.unseen * 1000 > c.load + c.store]
    notes += [f"touches memory unknown to the model: {told}" for told in unseen]
    left = sum(f.left for f in found)
    notes += [f"left to do: {left} of {len(found)}"] if left else []
    return "\n\n".join(filter(None, (*parts, "\n".join(notes))))


def _told(f: Finding) -> str:
    return f"{f.job.pipeline}, {f.build}"


def _means(found: Sequence[Finding]) -> str:
    rows = []
    for build, group in grouped(found, lambda f: f.build):
        row = [build, str(sum(not f.left for f in group))]
        for key in _keys():
            ratios = [f.ratios[key] for f in group if key in f.ratios]
            above = sum(r > BOUND for r in ratios)
            row += [report.number(geometric_mean(ratios)), report.number(max(ratios, default=None)), str(above)]
        rows.append(row)
    columns = [h for (_, its), figure in _keys() for h in (f"{figure} / {its}", "worst", f"> {BOUND:g}")]
    return report.table(["platform", "done", *columns], rows)


def _ratios(found: Sequence[Finding]) -> str:
    ordered = sorted((f for f in found if f.ratios), key=lambda f: (f.build, f.job.pipeline))
    rows = [
        [f.job.pipeline, f.build, *(report.number(f.ratios.get(key)) for key in _keys()), _moved_share(f)]
        for f in ordered
    ]
    head = ["pipeline", "platform", *(f"{figure} / {its}" for (_, its), figure in _keys()), "moving of its cycles"]
    return report.table(head, rows)


def _moved_share(f: Finding) -> str:
    """The share of the cycles of `default` that are those of moving lines."""
    mine = f.counts[DEFAULT]
    return f"{mine.moved_cycles(f.platform) / mine.cycles(f.platform):.0%}"


def _keys() -> list[tuple[Pair, str]]:
    return [(pair, figure) for pair in PAIRS for figure in FIGURES]


def _losses(missed: Sequence[tuple[Finding, Pair]]) -> str:
    rows = []
    for f, pair in missed:
        mine, its = (f.contenders[name] for name in pair)
        predicted = mine["predicted_ms"] / its["predicted_ms"]
        ratios = [f"{f.ratios[pair, figure]:.3f}" for figure in FIGURES]
        told = [_counted(f.counts[name], f.platform) for name in pair]
        rows.append([_told(f), pair[1], *ratios, report.number(predicted), *told, differs(mine, its)])
    head = ["pipeline and platform", "over", *FIGURES, "predicted", "core + moving", "its", "differs in"]
    return report.table(head, rows)


def _counted(counts: Counts, platform: CpuPlatform) -> str:
    """Millions of cycles of both."""
    both = (counts.core_cycles(platform), counts.moved_cycles(platform))
    return " + ".join(report.number(cycles / 1e6) for cycles in both)
