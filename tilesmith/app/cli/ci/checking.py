"""`ci check`: the results of a commit, compared with a baseline, and told in every form that is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from tilesmith.app.cli.ci import exports, told
from tilesmith.app.cli.ci.documents import Asked, sources
from tilesmith.app.cli.ci.outcome import Invalid, Report
from tilesmith.app.cli.ci.status import FINE
from tilesmith.app.cli.ci.target import Target
from tilesmith.app.cli.report import UsageError, print_error, print_json, print_warning, progress
from tilesmith.app.client import ServiceError
from tilesmith.app.comparison.compare import Comparison, compare, with_evidence
from tilesmith.app.comparison.results import Result, Series
from tilesmith.scheduler.errors import TilesmithError


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of a check: `limit` is a share."""

    baseline: str | None
    limit: float
    measure: bool = False
    gate_measured: bool = False
    record: bool = False


@dataclass(frozen=True, slots=True)
class Files:
    """Files to write."""

    markdown: Path | None = None
    junit: Path | None = None
    bencher: Path | None = None


def share(text: str) -> float:
    """The share that a percentage is: `5%` and `5` are 0.05. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%?\s*", text)
    if match is None:
        raise UsageError((f"--fail-above {text!r} is no percentage", "such as 5%"))
    return float(match[1]) / 100


def check(asked: Asked, wishes: Wishes, target: Target, files: Files, as_json: bool) -> None:
    """Prints the comparison and writes the files. Exit status 1 if one has regressed, 2 if a document is wrong."""
    if wishes.gate_measured and not wishes.measure:
        raise UsageError(("--gate-measured goes with --measure", None))
    ref = target.reference(wishes.baseline)
    found, invalid = scheduled(asked, target)
    kind, before = target.baseline(ref)
    if kind is None:
        print_warning(f"nothing was recorded for {ref}: there is nothing to compare with (tilesmith ci record does it)")
    compared = compare(found, _of_the_same_kind(before, found, asked), wishes.limit)
    if wishes.measure:
        compared = tuple(_measured(c, target, wishes.gate_measured) for c in compared)
    report = Report(ref, kind, wishes.limit, _kept(compared, invalid), invalid)
    _write(report, files)
    print_json(exports.to_document(report)) if as_json else told.to_terminal(report)
    for wrong in invalid:
        print_error(wrong.error)
    if wishes.record and report.exit_status == FINE:
        target.record(found)
    elif wishes.record:
        print_warning("nothing was recorded: the check has failed")
    raise typer.Exit(report.exit_status)


def scheduled(asked: Asked, target: Target) -> tuple[tuple[Result, ...], tuple[Invalid, ...]]:
    """The results of all documents on all platforms, and those that have none. Raises UsageError where two documents
    are of one name, and what is no matter of a document."""
    found: dict[Series, tuple[str, Result]] = {}
    invalid = []
    for source in sources(asked.docs):
        for machine in asked.platforms:
            try:
                with progress(f"scheduling {source} for {machine}"):
                    result = target.schedule(source, machine, asked)
            except ServiceError:
                raise
            except TilesmithError as error:
                invalid.append(Invalid(source, machine, error))
                continue
            other, _ = found.setdefault(result.series, (source, result))
            if other != source:
                message = f"{other} and {source} are both called {result.series.pipeline}"
                raise UsageError((message, "the name of a pipeline is what its history is kept under"))
    return tuple(result for _, result in found.values()), tuple(invalid)


def _of_the_same_kind(before: Sequence[Result], found: Sequence[Result], asked: Asked) -> list[Result]:
    """Results of the baseline on the platforms, and in the way of scheduling, that were asked for: others are not
    removed, nobody looked for them."""
    kinds = {(r.series.platform, r.series.variant) for r in found}
    return [r for r in before if (r.series.platform, r.series.variant) in kinds]


def _kept(compared: tuple[Comparison, ...], invalid: Sequence[Invalid]) -> tuple[Comparison, ...]:
    """The comparisons without those that only seem to be removed, since a document is wrong: it may be theirs."""
    return tuple(c for c in compared if not invalid or c.status != "removed")


def _measured(comparison: Comparison, target: Target, gates: bool) -> Comparison:
    """The comparison with evidence, where there are two codes to run. Advice that fails costs a warning, a gate that
    fails is an error."""
    now, before = comparison.now, comparison.before
    if now is None or before is None or now.schedule_id == before.schedule_id:
        return comparison
    try:
        with progress(f"running {comparison.series.in_words()} and its baseline in turns"):
            evidence = target.evidence(now, before)
    except ServiceError as error:
        if gates:
            raise
        print_warning(f"{comparison.series.in_words()} could not be measured: {error}")
        return comparison
    return with_evidence(replace(comparison), evidence, gates)


def _write(report: Report, files: Files) -> None:
    if files.markdown is not None:
        files.markdown.write_text(told.to_markdown(report), encoding="utf-8")
    if files.junit is not None:
        files.junit.write_bytes(exports.to_junit(report))
    if files.bencher is not None:
        files.bencher.write_text(exports.to_bencher(report), encoding="utf-8")
