"""Findings of `everywhere` for a pipeline in a build, and their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from benchmarks import report
from benchmarks.verdicts import Verdict, geometric_mean, verdict
from tilesmith.scheduler.ir.schedule.difference import differences, in_a_line
from tilesmith.scheduler.ir.schedule.document import from_document

DEFAULT, PAPER, ROOT, ESTIMATED = "default", "taco2019", "root", "estimated"
Pair = tuple[str, str]
BOUNDS: dict[Pair, float] = {(DEFAULT, PAPER): 1.03, (DEFAULT, ROOT): 1.03, (DEFAULT, ESTIMATED): 1.02}
"""Bounds of the time of the first over that of the second."""
MEAN = 0.75
"""Bound of the geometric mean over the method of the paper."""
SAME = Verdict((1.0,))
"""Ratio of two contenders with the same C."""

Contender = Mapping[str, Any]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Finding:
    """A job with the verdicts over its contenders, their least times in milliseconds, and who failed, with the reason.
    `left`: it was not timed yet."""

    job: Mapping[str, Any]
    verdicts: Mapping[Pair, Verdict]
    best_ms: Mapping[str, float]
    contenders: Mapping[str, Contender]
    errors: Mapping[str, str]
    disturbed: int
    left: bool

    @property
    def build(self) -> str:
        return f"{self.job['isa']} {self.job['compiler']}, threads: {self.job['threads']}"

    @property
    def losses(self) -> list[Pair]:
        """The pairs whose ratio is above its bound."""
        return [pair for pair, v in self.verdicts.items() if v.ratio > BOUNDS[pair]]

    @property
    def missed(self) -> bool:
        return bool(self.losses or self.errors)


def finding(job: Mapping[str, Any], contenders: Mapping[str, Contender], timing: Mapping[str, Any] | None) -> Finding:
    """The finding of what was made and timed so far."""
    errors = {n: c["error"] for n, c in contenders.items() if "error" in c}
    if timing is not None and "error" in timing:
        errors["timing"] = timing["error"]
    rounds = timing.get("rounds", []) if timing is not None else []
    same = same_code(contenders)
    best = {n: min(r[s] for r in rounds if s in r) for n, s in same.items() if rounds and s in rounds[0]}
    ready = timing is not None and "error" not in timing
    found = dict(verdicts(rounds, same)) if ready else {}
    return Finding(job, found, best, contenders, errors, (timing or {}).get("disturbed", 0), timing is None)


def same_code(contenders: Mapping[str, Contender]) -> dict[str, str]:
    """The first contender that has the same library, by every one that was compiled."""
    first: dict[str, str] = {}
    return {n: first.setdefault(c["library"], n) for n, c in contenders.items() if "library" in c}


def verdicts(rounds: Sequence[Mapping[str, float]], same: Mapping[str, str]) -> Iterator[tuple[Pair, Verdict]]:
    """The verdict over every pair with a bound that took part; `same` says in whose name each was timed."""
    for mine, its in BOUNDS:
        if mine in same and its in same:
            one, other = same[mine], same[its]
            yield (mine, its), SAME if one == other else verdict(rounds, one, other)


def tables(found: Sequence[Finding]) -> str:
    """Means per build, means per layout where there are several, and all that is above a bound, the worst first."""
    parts = [_means(found, lambda f: f.build, "build")]
    if len({f.job["layout"] for f in found}) > 1:
        parts.append(_means(found, lambda f: f"{f.job['layout']}, {f.build}", "layout and build"))
    missed = [(f, pair) for f in found for pair in f.losses]
    missed.sort(key=lambda m: -m[0].verdicts[m[1]].ratio)
    if missed:
        parts.append(_losses(missed))
    failed = [f"failed: {_told(f)}: {name}: {error}" for f in found for name, error in f.errors.items()]
    left = sum(f.left for f in found)
    disturbed = sum(f.disturbed > 0 for f in found)
    notes = [f"left to do: {left} of {len(found)}"] if left else []
    notes += [f"with rounds that other programs disturbed: {disturbed} of {len(found)}"] if disturbed else []
    return "\n\n".join(filter(None, (*parts, "\n".join((*slow_builds(found), *failed)), "\n".join(notes))))


def slow_builds(found: Sequence[Finding]) -> list[str]:
    """A line for every build in which the mean over the method of the paper is not below MEAN."""
    lines = []
    for build, those in grouped(found, lambda f: f.build):
        mean = geometric_mean([f.verdicts[DEFAULT, PAPER].ratio for f in those if (DEFAULT, PAPER) in f.verdicts])
        if mean is not None and mean >= MEAN:
            lines.append(f"missed: {build}: the mean over {PAPER} is {report.number(mean)}, not below {MEAN:g}")
    return lines


def grouped(found: Sequence[Found], key: Callable[[Found], str]) -> list[tuple[str, list[Found]]]:
    """Findings by that key, in its order."""
    return [(name, list(those)) for name, those in groupby(sorted(found, key=key), key=key)]


def _told(f: Finding) -> str:
    return f"{f.job['pipeline']}, {f.build}, {f.job['layout']}"


def _means(found: Sequence[Finding], key: Callable[[Finding], str], head: str) -> str:
    rows = []
    for name, group in grouped(found, key):
        row = [name, str(sum(not f.left for f in group))]
        for pair in BOUNDS:
            ratios = [f.verdicts[pair].ratio for f in group if pair in f.verdicts]
            above = sum(r > BOUNDS[pair] for r in ratios)
            row += [report.number(geometric_mean(ratios)), report.number(max(ratios, default=None)), str(above)]
        rows.append(row)
    columns = [h for mine, its in BOUNDS for h in (f"{mine}/{its}", "worst", f"> {BOUNDS[mine, its]:g}")]
    return report.table([head, "done", *columns], rows)


def _losses(missed: Sequence[tuple[Finding, Pair]]) -> str:
    rows = []
    for f, (mine, its) in missed:
        v = f.verdicts[mine, its]
        figures = [
            report.number(value)
            for name in (mine, its)
            for value in (f.best_ms.get(name), f.contenders[name].get("predicted_ms"))
        ]
        above = f"{v.above(BOUNDS[mine, its])} of {len(v.figures)}"
        rows.append([_told(f), its, f"{v.ratio:.3f}", above, *figures, differs(f.contenders[mine], f.contenders[its])])
    head = [
        "pipeline and build",
        "over",
        "ratio",
        "figures",
        "ms",
        "predicted",
        "its ms",
        "its predicted",
        "differs in",
    ]
    return report.table(head, rows)


def differs(mine: Contender, its: Contender) -> str:
    """Differences between the schedules of two contenders."""
    one, other = (from_document(c["schedule"]) for c in (mine, its))
    return in_a_line(differences(one, other))
