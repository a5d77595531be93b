"""The page of the corpus: what is known of it in tables of Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import report
from benchmarks.corpus.registry import for_reports
from benchmarks.everywhere import Job
from benchmarks.findings import BOUNDS, DEFAULT, PAPER, ROOT, Finding, finding
from benchmarks.verdicts import geometric_mean

FAR = 2.0
"""Times that a prediction may be off, either way."""
NEARLY_ALL = 0.9
"""The share of the pipelines whose regret is told besides the median."""
SLOW_S = 2.0
"""Seconds from a document to C that no pipeline should take."""


@dataclass(frozen=True)
class Row:
    """A pipeline in a build with all that is known of it; `left`: something was not done yet."""

    job: Job
    finding: Finding
    mine: Mapping[str, Any]
    values: Mapping[str, Any]
    halide: Mapping[str, Mapping[str, Any]]
    candidates: Mapping[str, Any]
    left: bool

    @classmethod
    def of(
        cls,
        job: Job,
        contenders: Mapping[str, Mapping[str, Any]],
        values: Mapping[str, Any] | None,
        timing: Mapping[str, Any] | None,
        halide: Mapping[str, Any] | None,
        candidates: Mapping[str, Any] | None,
    ) -> Row:
        mine = contenders.get(DEFAULT, {})
        failed = "error" in mine
        left = not mine or (not failed and None in (values, timing, halide, candidates))
        return cls(
            job, finding(asdict(job), contenders, timing), mine, values or {}, halide or {}, candidates or {}, left
        )

    def over(self, its: str) -> float | None:
        """Our time over that of another contender of ours."""
        found = self.finding.verdicts.get((DEFAULT, its))
        return found.ratio if found else None

    @property
    def over_library(self) -> float | None:
        """Our time over that of the library's function."""
        its = self.values.get("reference_ms")
        return self.values["ours_ms"] / its if its else None

    @property
    def over_halide(self) -> float | None:
        """Our time over the least of Halide's autoschedulers."""
        found = [h["ours_ms"] / h["its_ms"] for h in self.halide.values() if h.get("its_ms") and h.get("ours_ms")]
        return max(found, default=None)

    @property
    def regret(self) -> float | None:
        """The time of the pick over that of the fastest of the best candidates, less 1."""
        return self.candidates.get("regret")

    @property
    def measured_ms(self) -> float | None:
        return self.finding.best_ms.get(DEFAULT, self.values.get("ours_ms"))

    @property
    def prediction(self) -> float | None:
        """The time that was predicted over the measured one."""
        measured, predicted = self.measured_ms, self.mine.get("predicted_ms")
        return predicted / measured if measured and predicted else None

    @property
    def wrong(self) -> list[str]:
        """What is wrong with the values, or could not be made or called."""
        found = [f"{name}: {error}" for name, error in self.finding.errors.items()]
        found += [f"{key}: {self.values[key]}" for key in ("error", "interpreter", "reference") if self.values.get(key)]
        return found

    @property
    def told(self) -> str:
        return f"{self.job.pipeline}, {self.job.isa} {self.job.compiler}, threads: {self.job.threads}"


RATIOS: tuple[tuple[str, Callable[[Row], float | None]], ...] = (
    (f"over {PAPER}", lambda r: r.over(PAPER)),
    ("over root", lambda r: r.over(ROOT)),
    ("over the library", lambda r: r.over_library),
    ("over Halide", lambda r: r.over_halide),
)


def written(rows: Sequence[Row]) -> str:
    """The page."""
    done = [r for r in rows if not r.left]
    wrong = [f"- {r.told}: {reason}" for r in rows for reason in r.wrong]
    parts = [
        "# The corpus",
        f"{len(rows)} pipelines in builds, {len(done)} of them done. With a library's function:"
        f" {sum('reference_ms' in r.values for r in rows)}. Wrong, or failed: {len(wrong)}.",
        "\n".join(wrong),
        "## Time over that of others",
        _means(rows),
        f"## Above {BOUNDS[DEFAULT, PAPER]:g}",
        _losses(rows),
        "## Prediction, search, C",
        _costs(rows),
        "## Every pipeline",
        _all(rows),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _groups(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The rows by build and half."""
    found: dict[str, list[Row]] = {}
    for r in rows:
        half = "reporting" if for_reports(r.job.pipeline) else "developing"
        found.setdefault(f"{r.job.isa} {r.job.compiler}, threads: {r.job.threads}, {half}", []).append(r)
    return sorted(found.items())


def _means(rows: Sequence[Row]) -> str:
    lines = []
    for name, those in _groups(rows):
        for what, ratio in RATIOS:
            values = [(v, r.job.pipeline) for r in those if (v := ratio(r)) is not None]
            if values:
                most, worst = max(values)
                above = sum(v > BOUNDS[DEFAULT, PAPER] for v, _ in values)
                mean = geometric_mean([v for v, _ in values])
                lines.append(
                    [name, what, str(len(values)), report.number(mean), report.number(most), str(above), worst]
                )
    return report.table(["build and half", "ratio", "pipelines", "mean", "most", "> 1.03", "the most is"], lines)


def _losses(rows: Sequence[Row]) -> str:
    bound = BOUNDS[DEFAULT, PAPER]
    found = [(v, r, what) for r in rows for what, ratio in RATIOS if (v := ratio(r)) is not None and v > bound]
    found.sort(key=lambda f: (-f[0], f[1].told, f[2]))
    lines = [
        [r.told, what, report.number(v), report.number(r.measured_ms), report.number(r.mine.get("predicted_ms"))]
        for v, r, what in found
    ]
    return report.table(["pipeline and build", "ratio", "", "ms", "predicted"], lines) if lines else "None."


def _costs(rows: Sequence[Row]) -> str:
    lines = []
    for name, those in _groups(rows):
        off = sorted(max(p, 1 / p) for r in those if (p := r.prediction))
        to_c = [r.mine["to_c_s"] for r in those if "to_c_s" in r.mine]
        if not to_c:
            continue
        regrets = sorted(g for r in those if (g := r.regret) is not None)
        near = sum(o <= FAR for o in off) / len(off) if off else None
        lines.append(
            [
                name,
                f"{near:.0%}" if near is not None else "",
                report.number(statistics.median(off) if off else None),
                report.number(max(off, default=None)),
                f"{statistics.median(regrets):.1%}" if regrets else "",
                f"{regrets[int(NEARLY_ALL * (len(regrets) - 1))]:.1%}" if regrets else "",
                report.number(statistics.median(to_c)),
                report.number(max(to_c)),
                str(sum(s > SLOW_S for s in to_c)),
                report.number(statistics.median(r.mine.get("compile_s", 0.0) for r in those)),
                str(max(r.mine.get("characters", 0) for r in those) // 1000),
            ]
        )
    head = [
        "build and half", f"predicted within {FAR:g} x", "median off", "most", "regret", f"{NEARLY_ALL:.0%} below",
        "to C, s", "most", f"> {SLOW_S:g} s",
        "C compiler, s", "most C, KB",
    ]  # fmt: skip
    return report.table(head, lines)


def _all(rows: Sequence[Row]) -> str:
    lines = []
    for r in sorted(rows, key=lambda r: r.told):
        lines.append(
            [
                r.told,
                "left" if r.left else "wrong" if r.wrong else "right",
                report.number(r.measured_ms),
                *(report.number(ratio(r)) for _, ratio in RATIOS),
                report.number(r.prediction),
                report.number(r.mine.get("to_c_s")),
                report.number(r.mine.get("compile_s")),
                str(r.mine.get("characters", 0) // 1000),
            ]
        )
    head = [
        "pipeline and build",
        "values",
        "ms",
        *(what for what, _ in RATIOS),
        "predicted / ms",
        "to C, s",
        "C compiler, s",
        "C, KB",
    ]
    return report.table(head, lines)
