"""Contenders of `bench`: all compute the same, and who cannot take part says why."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilesmith.app.bench import peers
from tilesmith.app.bench.agreement import agreement
from tilesmith.app.bench.contest import Absent
from tilesmith.app.bench.problem import Problem, at_estimates
from tilesmith.app.cli import app
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Options
from tilesmith.scheduler.frontends.document.document import load

pytestmark = pytest.mark.slow
SIZES = {"input": [[0, 70], [0, 50]], "output": [[0, 70], [0, 50]]}
TWO = {
    "format": 1,
    "name": "two",
    "params": [{"name": "gain", "type": "float32", "default": 2.0}],
    "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
    "stages": [
        {"name": "f", "dims": ["x", "y"], "value": "gain * a(x + 1, y)"},
        {"name": "g", "dims": ["x", "y"], "value": "a(x, y) - 1.0"},
    ],
    "outputs": ["f", "g"],
    "estimates": {"f": [[3, 40], [2, 30]], "g": [[3, 40], [2, 30]]},
}
OWN = """
def right(a, gain):
    return gain * a[:, 1:], a[:, :-1] - 1.0

def wrong(a, gain):
    return a[:, 1:], a[:, :-1]
"""


def _small(name: str) -> Problem:
    return at_estimates(load(pipelines.document(name) | {"estimates": SIZES}), {})


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    return tmp_path / "own.py"


def test_contenders_compute_the_same(own: Path) -> None:
    problem = at_estimates(load(TWO), {"gain": 3.0})
    first = peers.tilesmith(problem, host(), Options(), 2).run()
    for other in (peers.naive(problem, host(), 1), peers.numpy(problem), peers.own(problem, f"{own}:right")):
        agreement(first, other.run())


def test_opencv_is_asked_for_the_shipped_pipeline_alone() -> None:
    cv2 = pytest.importorskip("cv2")
    problem = _small("sobel")
    agreement(peers.tilesmith(problem, host(), Options(), 1).run(), peers.opencv(problem, 1).run(), cut=problem.cut)
    assert cv2.getNumThreads() == 1
    changed = pipelines.document("sobel") | {"estimates": SIZES}
    changed["stages"][-1]["value"] = "uint8(0)"
    with pytest.raises(Absent, match="no equal"):
        peers.opencv(at_estimates(load(changed), {}), 1)


@pytest.mark.halide
@pytest.mark.parametrize("method", peers.HALIDE_METHODS)
def test_halide_takes_part(method: str) -> None:
    pytest.importorskip("halide")
    problem = _small("sobel")
    agreement(
        peers.tilesmith(problem, host(), Options(), 1).run(), peers.halide(problem, method, 1).run(), cut=problem.cut
    )


def test_what_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Absent, match="pip install"):
        peers.halide(_small("sobel"), "Mullapudi2016", 1)
    with pytest.raises(Absent, match="pip install"):
        peers.opencv(_small("sobel"), 1)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("own.py", "expected FILE.py:function"), ("none.py:f", "that is there"), ("own.py:none", "no function 'none'"),
        ("bad.py:f", "bad.py fails: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_functions_that_are_not_there(own: Path, monkeypatch: pytest.MonkeyPatch, spec: str, said: str) -> None:
    monkeypatch.chdir(own.parent)
    Path("bad.py").write_text("1 / 0", encoding="utf-8")
    with pytest.raises(Absent, match=said):
        peers.own(at_estimates(load(TWO), {}), spec)


def test_the_command_tells_medians_ratios_and_who_is_missing(own: Path, tmp_path: Path) -> None:
    (tmp_path / "two.json").write_text(json.dumps(TWO), encoding="utf-8")
    against = [part for name in ("right", "wrong") for part in ("--against", f"{own}:{name}")]
    command = ["bench", str(tmp_path / "two.json"), "--no-calibrate", "--rounds", "3", "--halide", "Li2018", *against]
    told = CliRunner().invoke(app, command, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    assert "3 rounds in turns" in told.stdout
    assert "not compared: wrong: disagrees" in told.stdout
    said = json.loads(CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False).stdout)
    names = [c["name"] for c in said["contenders"]]
    assert names[:3] == ["tilesmith", "naive C", "NumPy"]
    assert "right" in names
    assert all(len(c["rounds_ms"]) == 3 and c["ratio"]["low"] <= c["ratio"]["high"] for c in said["contenders"])
    assert said["absent"].keys() >= {"wrong", "OpenCV"}


def test_an_autoscheduler_that_is_none() -> None:
    told = CliRunner().invoke(app, ["bench", "sobel", "--halide", "Mullapudi"])
    assert told.exit_code == 2
    assert "one of Mullapudi2016, Adams2019, Li2018" in told.output
