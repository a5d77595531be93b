"""Summary of all contests of a run: against the best of each kind, and on the mean.

Ratios are our time over the other's, the median over the rounds: below 1 we are faster. Means are geometric.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from benchmarks import earlier, halide_peers, report

OURS = "tilesmith"
AT_ROOT = "tilesmith at root"
PAPER = "tilesmith taco2019"
AUTOSCHEDULERS = tuple(halide_peers.METHODS)
SCHEDULERS = (halide_peers.EXPERT, *AUTOSCHEDULERS)
"""Schedulers for Halide: a person or a program."""
CARRIERS = tuple(p for p in AUTOSCHEDULERS if p in earlier.SCHEDULERS)
TUNED = "tilesmith tuned"
OWN = (OURS, AT_ROOT, PAPER, TUNED)
"""Ours in all its forms: not among the best of all."""


def mean(ratios: Iterable[float]) -> float | None:
    """The geometric mean; None of nothing."""
    logs = [math.log(r) for r in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None


def best(contest: dict[str, Any], among: Collection[str] | None = None) -> tuple[str, float] | None:
    """The fastest contender `among` those named (else of all that are not ours), and our ratio to it."""
    able = [
        (c["name"], c["ratio"])
        for c in contest["contenders"]
        if c["ratio"] is not None and (c["name"] in among if among is not None else not is_ours(c["name"]))
    ]
    return max(able, key=lambda pair: pair[1], default=None)


def is_ours(name: str) -> bool:
    return name.startswith(OURS)


def row(contest: dict[str, Any], threads: int) -> dict[str, Any]:
    """One pipeline's line of the summary, as data."""
    mine = contest["contenders"][0]
    ratios = {c["name"]: c["ratio"] for c in contest["contenders"][1:] if c["ratio"] is not None}
    return {
        "pipeline": contest["pipeline"],
        "best_ms": mine["best_ms"],
        "share_of_bound": mine["share_of_bound"],
        "bound_by": contest.get("bound_by"),
        "ratios": ratios,
        "best_autoscheduler": best(contest, AUTOSCHEDULERS),
        "best_of_all": best(contest),
        "carried": {
            by: earlier.carried(contest["pipeline"], by, ratios.get(by), threads)
            for by in CARRIERS
            if by in ratios and contest["pipeline"] in earlier.MILLISECONDS
        },
    }


def summary(contests: Sequence[dict[str, Any]], threads: int) -> dict[str, Any]:
    """Every pipeline's row, and the means: per contender, to the best of Halide's autoschedulers, to the best of all
    here, and carried to the best of all by each autoscheduler that the earlier table has."""
    rows = [row(c, threads) for c in contests]
    names = dict.fromkeys(name for r in rows for name in r["ratios"])
    return {
        "rows": rows,
        "means": {
            "each": {n: mean(r["ratios"][n] for r in rows if n in r["ratios"]) for n in names},
            "best_autoscheduler": mean(r["best_autoscheduler"][1] for r in rows if r["best_autoscheduler"]),
            "best_of_all": mean(r["best_of_all"][1] for r in rows if r["best_of_all"]),
            "carried": {
                by: mean(c for r in rows if (c := r["carried"].get(by)) is not None)
                for by in CARRIERS
                if any(r["carried"].get(by) is not None for r in rows)
            },
        },
    }


def table(found: dict[str, Any]) -> str:
    """The summary as a table, the means its last line."""
    means = found["means"]
    head = ["pipeline", "bound by", "ours ms", "of bound", "over taco2019", "over expert", "over best autoscheduler",
            "over best of all", *(f"carried by {by}" for by in CARRIERS)]  # fmt: skip
    rows = []
    for r in found["rows"]:
        rows.append(
            [
                r["pipeline"],
                r["bound_by"] or "",
                report.number(r["best_ms"]),
                report.number(r["share_of_bound"]),
                report.number(r["ratios"].get(PAPER)),
                report.number(r["ratios"].get(halide_peers.EXPERT)),
                _named(r["best_autoscheduler"]),
                _named(r["best_of_all"]),
                *(report.number(r["carried"].get(by)) for by in CARRIERS),
            ]
        )
    rows.append(
        [
            "geometric mean", "", "", "",
            report.number(means["each"].get(PAPER)),
            report.number(means["each"].get(halide_peers.EXPERT)),
            report.number(means["best_autoscheduler"]),
            report.number(means["best_of_all"]),
            *(report.number(means["carried"].get(by)) for by in CARRIERS),
        ]
    )  # fmt: skip
    each = [[n, report.number(m)] for n, m in means["each"].items()]
    return f"{report.table(head, rows)}\n\n{report.table(['contender', 'ours over its, geometric mean'], each)}"


def against_schedulers(runs: Sequence[dict[str, Any]]) -> str:
    """A table with a line for every run: ours over the best of `SCHEDULERS`, the mean and the worst."""
    rows = []
    for run in runs:
        found = {c["pipeline"]: pair for c in run["contests"] if (pair := best(c, SCHEDULERS))}
        ratios = {pipeline: ratio for pipeline, (_, ratio) in found.items()}
        worst = max(ratios, key=ratios.__getitem__, default=None)
        told = "" if worst is None else f"{worst} {report.number(ratios[worst])} ({found[worst][0]})"
        compared = f"{len(found)} of {len(run['contests'])}"
        rows.append([build_name(run), compared, report.number(mean(ratios.values())), told])
    head = ["ours over the best of expert and autoschedulers", "pipelines", "geometric mean", "worst"]
    return report.table(head, rows)


def build_name(run: dict[str, Any]) -> str:
    """The build of a run, for people. Runs of before have none but their threads."""
    return ", ".join([*(run[key] for key in ("isa", "compiler") if key in run), f"threads: {run['threads']}"])


def _named(pair: tuple[str, float] | list[Any] | None) -> str:
    return "" if pair is None else f"{pair[0]} {report.number(pair[1])}"
