"""Reports: what others wrote stays text, whatever it is."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tilesmith.app.cli.ci import exports, told
from tilesmith.app.cli.ci.outcome import Invalid, Report
from tilesmith.app.cli.report import BadDocument
from tilesmith.app.comparison.compare import compare, with_evidence
from tilesmith.app.comparison.noise import Evidence
from tilesmith.app.comparison.results import Measured, Result, Series
from tilesmith.scheduler.errors import Problem

EVIL = "a | b\n# c <script>`x` [d](https://e.org) @someone \x00\x1b[31m ~~s~~"


def result(predicted, reason=None, measured=None):
    return Result(
        Series("harris", "i7-6700", "default"), str(predicted), "p", predicted, "microseconds", measured, reason
    )


def report(now, before, invalid=(), evidence=None, gates=False):
    (found,) = compare([now], [before], 0.05)
    return Report("main", "branch", 0.05, (with_evidence(found, evidence, gates),), tuple(invalid))


def wrong():
    return Invalid("`evil`\n.json", "i7-6700", BadDocument([Problem("bad", "/stages/0", EVIL)], "evil.json"))


def test_markdown_shows_what_others_wrote_as_text():
    text = told.to_markdown(report(result(120.0), result(100.0, EVIL), [wrong()]))
    (line,) = [line for line in text.splitlines() if line.startswith("| harris")]
    assert line.replace("\\|", "").count("|") == len(told.HEAD) + 1
    for part in ("<script>", " [d]", "@someone", "~~s", "\x00", "\x1b", "\n#  c", "`x`"):
        assert part not in text.replace("### tilesmith", "")
    assert "https:\u200b//e.org" in text
    assert "` evil  .json`" in text


def test_junit_is_xml_whatever_the_problem_says():
    tree = ElementTree.fromstring(exports.to_junit(report(result(120.0), result(100.0, EVIL), [wrong()])))
    failure, error = tree.iter("failure"), tree.iter("error")
    assert "harris on i7-6700: regressed" in next(failure).get("message")
    assert "<script>" in next(error).get("message")
    assert tree.find("testsuite").get("failures") == "1"


def test_measured_time_is_told_with_its_interval():
    evidence = Evidence(1.12, 1.08, 1.16, 60)
    advice = report(result(100.0), result(100.0), evidence=evidence)
    assert (advice.exit_status, "+12.0 % (+8.0 to +16.0 %)" in told.to_markdown(advice)) == (0, True)
    gated = report(result(100.0), result(100.0), evidence=evidence, gates=True)
    assert gated.exit_status == 1


def test_bencher_has_nanoseconds_of_what_was_measured():
    times = Measured(1.5, 1.4, 1.75, 60)
    found = exports.to_bencher(report(result(100.0, measured=times), result(100.0)))
    assert (
        '"latency": {\n      "value": 1500000.0,\n      "lower_value": 1400000.0,\n      "upper_value": 1750000.0'
        in found
    )
    few = exports.to_bencher(report(result(100.0, measured=Measured(1.5, None, None, 2)), result(100.0)))
    assert "upper_value" not in few


@pytest.mark.parametrize("width", ["40", "200"])
def test_the_table_has_every_figure_at_any_width(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", width)
    told.to_terminal(report(result(120.0), result(100.0, "why [bold]not[/bold]")))
    out = capsys.readouterr().out
    assert "+20.0 %" in out
    assert "[bold]not[/bold]" in out
