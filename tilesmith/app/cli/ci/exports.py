"""Reports for programs: JSON, JUnit XML, and the Bencher Metric Format."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import TYPE_CHECKING, Any

from tilesmith.app.comparison.compare import Comparison

if TYPE_CHECKING:
    from tilesmith.app.cli.ci.outcome import Report

NS_PER_MS = 1e6
OUTCOMES = ("fine", "regressed", "error")


def to_document(report: Report) -> dict[str, Any]:
    """The report as plain data, for JSON."""
    return {
        "outcome": OUTCOMES[report.exit_status],
        "baseline": {"ref": report.ref, "kind": report.kind},
        "limit": report.limit,
        "comparisons": [c.to_document() for c in report.comparisons],
        "invalid": [{"source": i.source, "platform": i.platform, "problems": i.lines()} for i in report.invalid],
    }


def to_junit(report: Report) -> bytes:
    """JUnit XML: a test for each series, which fails if it has regressed, and an error for each wrong document."""
    from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

    suite = TestSuite("tilesmith")
    for comparison in report.comparisons:
        case = TestCase(comparison.series.in_words(), f"tilesmith.{comparison.series.platform}", 0.0)
        if comparison.status == "regressed":
            case.result = [Failure(_legal(comparison.in_words()), "regressed")]
        elif comparison.status == "removed":
            case.result = [Skipped(_legal(comparison.in_words()))]
        suite.add_testcase(case)
    for wrong in report.invalid:
        case = TestCase(_legal(wrong.source), f"tilesmith.{_legal(wrong.platform)}", 0.0)
        case.result = [Error(_legal("\n".join(wrong.lines())), wrong.error.code)]
        suite.add_testcase(case)
    xml, written = JUnitXml("tilesmith"), BytesIO()
    xml.add_testsuite(suite)
    xml.write(written)
    return written.getvalue()


def _legal(text: str) -> str:
    """Text without the characters that XML does not have."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)


def to_bencher(report: Report) -> str:
    """Bencher Metric Format: for each series `predicted`, in the model's unit, and `latency`, nanoseconds, where it was
    measured."""
    metrics = {c.series.in_words(): _metrics(c) for c in report.comparisons if c.now is not None}
    return json.dumps(metrics, indent=2) + "\n"


def _metrics(comparison: Comparison) -> dict[str, dict[str, float]]:
    assert comparison.now is not None
    found = {"predicted": {"value": comparison.now.predicted}}
    measured = comparison.now.measured
    if measured is not None:
        ends = {"lower_value": measured.low_ms, "upper_value": measured.high_ms}
        bounds = {name: NS_PER_MS * ms for name, ms in ends.items() if ms is not None}
        found["latency"] = {"value": NS_PER_MS * measured.median_ms} | bounds
    return found
