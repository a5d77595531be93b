"""`make fuzz` ends, tells how it went, and keeps what does it again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import fuzz
import pytest
from support.random_cases import Verdict, random_case
from support.tools import require_tool

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.schedule.document import from_document
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite

pytestmark = pytest.mark.slow


def test_a_short_run(tmp_path: Path) -> None:
    require_tool("gcc")
    command = [sys.executable, fuzz.__file__, "--cases", "4", "--seed", "77000", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("4 cases in ")
    assert "0 wrong" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_tool("gcc")

    def judged(seeds: range, how: str) -> Verdict:
        return Verdict({13: "one of 9 wrong"} if 13 in seeds else {}, (14,) if 14 in seeds else ())

    monkeypatch.setattr(fuzz, "judged", judged)
    assert fuzz.fuzz(60, 30, 0, tmp_path) == 1
    told = capsys.readouterr().out
    assert "seed 13, gcc-O1: one of 9 wrong" in told
    assert "30 cases in " in told
    assert "1 wrong, 1 too long to compile" in told
    folder = tmp_path / "13-gcc-O1"
    assert (folder / "wrong.txt").read_text() == "one of 9 wrong\n"
    case = random_case(13)
    assert load(json.loads((folder / "pipeline.json").read_text())) == case.pipeline
    schedule = from_document(json.loads((folder / "schedule.json").read_text()))
    check(rewrite(case.pipeline, schedule))
    assert schedule.groups == case.schedule.groups
    again = (folder / "again.sh").read_text().strip()
    assert again in told
    done = subprocess.run(again.split(), capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"wrong": None})


def test_builds_take_turns() -> None:
    chunks = list(fuzz.chunks(5, fuzz.CHUNK * 9 + 1))
    assert [build for build, _ in chunks[:8]] == list(fuzz.MIX)
    assert [s for _, seeds in chunks for s in seeds] == list(range(5, 5 + fuzz.CHUNK * 9 + 1))
