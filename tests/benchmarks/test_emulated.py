"""Benchmarks of machines that are not here: contenders compared, and runs that go on where they ended."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tools import require_tool

from benchmarks import emulated, everywhere
from benchmarks.documents import pipeline_of
from benchmarks.emulated import Counted, Emulated, machines, with_fewer_rows, work
from benchmarks.emulated_findings import CONTENDERS, Finding, finding, tables
from benchmarks.everywhere import Contenders
from benchmarks.findings import DEFAULT, PAPER, ROOT
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.document import to_document
from tilesmith.scheduler.search import root_schedule


def small(value: str = "s(x, y - 1) + s(x, y + 1)") -> Pipeline:
    document = {
        "format": 1,
        "name": "small",
        "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {"name": "s", "dims": ["x", "y"], "value": "a(x - 1, y) + a(x + 1, y)"},
            {"name": "t", "dims": ["x", "y"], "value": value},
        ],
        "outputs": ["t"],
        "estimates": {"t": [[0, 80], [0, 16]], "a": [[0, 80], [0, 16]]},
    }
    return load(document)


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Emulated:
    """A small pipeline for a small machine; `other` is the name of one that computes something else."""
    named = {"small": small(), "other": small("s(x, y - 1) - s(x, y + 1)")}
    for module in (everywhere, emulated):
        monkeypatch.setattr(module, "pipeline_of", named.__getitem__)
    return Emulated.of("small", "cortex-a53", 1)


def require_tools() -> None:
    for tool in ("gcc", "aarch64-linux-gnu-gcc", "qemu-aarch64"):
        require_tool(tool)


def prepared(job: Emulated, folder: Path) -> dict[str, dict[str, Any]]:
    contenders = Contenders(folder, names=CONTENDERS)
    contenders.prepare(job)
    return contenders.known(job)


def test_contenders_are_called_and_compared(job: Emulated, tmp_path: Path) -> None:
    require_tools()
    made = prepared(job, tmp_path)
    assert set(made) == {DEFAULT, PAPER, ROOT}
    counted = Counted(tmp_path).count(job, made)
    assert counted["errors"] == {}
    found = finding(job, job.platform(), made, counted)
    assert not found.left
    assert all(c.instructions > 80 * 16 / 4 and c.vector and not c.unseen for c in found.counts.values())
    assert set(found.ratios) == {
        ((DEFAULT, its), figure) for its in (PAPER, ROOT) for figure in ("instructions", "cycles")
    }


def test_a_run_goes_on_where_it_ended(job: Emulated, tmp_path: Path) -> None:
    require_tools()

    def steps(prepare_only: bool = False) -> list[str]:
        found = work([job], Contenders(tmp_path, names=CONTENDERS), Counted(tmp_path), prepare_only)
        return [s.partition(" ")[0] for s in found]

    assert steps(prepare_only=True) == ["making"]
    assert steps() == ["counting"]
    assert steps() == []


def test_who_computes_something_else_is_told(job: Emulated, tmp_path: Path) -> None:
    require_tools()
    made = prepared(job, tmp_path)
    other = prepared(replace(job, pipeline="other"), tmp_path)
    counted = Counted(tmp_path).count(job, {DEFAULT: made[DEFAULT], ROOT: other[ROOT]})
    assert set(counted["counts"]) == {DEFAULT}
    assert "disagrees" in counted["errors"][ROOT]
    assert "failed: small, cortex-a53, threads: 1: root: disagrees" in tables(
        [finding(job, job.platform(), made, counted)]
    )


def test_who_does_not_run_is_told(job: Emulated, tmp_path: Path) -> None:
    require_tools()
    broken = {"library": str(tmp_path / "none.so"), "runner": str(tmp_path / "none"), "entry": "none"}
    counted = Counted(tmp_path).count(job, {DEFAULT: broken})
    assert "exit status" in counted["errors"][DEFAULT]


def counts(**kinds: int) -> dict[str, Any]:
    names = ("integer", "vector", "load", "store", "branch", "unseen")
    return {**dict.fromkeys(names, 0), **kinds, "lines": [[0, 0]] * 3}


def test_losses_are_told_the_worst_first(job: Emulated) -> None:
    schedule = to_document(root_schedule(small(), job.platform()))
    made = {n: {"library": n, "schedule": schedule, "predicted_ms": 1.0} for n in CONTENDERS}

    def at(threads: int, vectors: int) -> Finding:
        found = {DEFAULT: counts(vector=vectors), PAPER: counts(vector=100), ROOT: counts(vector=150)}
        job = Emulated.of("small", "cortex-a53", threads)
        return finding(job, job.platform(), made, {"counts": found, "errors": {}})

    found = [at(1, 110), at(2, 160), at(4, 100)]
    assert [f.losses for f in found] == [[(DEFAULT, PAPER)], [(DEFAULT, PAPER), (DEFAULT, ROOT)], []]
    assert found[0].ratios[(DEFAULT, PAPER), "instructions"] == pytest.approx(1.1)
    told = [line.split(" | ") for line in tables(found).split("\n\n")[2].splitlines()[2:]]
    assert [(t[0].split()[-1], t[2].strip()) for t in told] == [("2", "1.600"), ("1", "1.100"), ("2", "1.067")]


def test_what_the_model_does_not_see_is_told(job: Emulated) -> None:
    made = {DEFAULT: {"library": "a"}}
    found = finding(job, job.platform(), made, {"counts": {DEFAULT: counts(load=100, unseen=1)}, "errors": {}})
    assert "unknown to the model: small, cortex-a53, threads: 1: default" in tables([found])


def test_nothing_counted_is_left_to_do(job: Emulated) -> None:
    found = finding(job, job.platform(), {}, None)
    assert found.left
    assert "left to do: 1 of 1" in tables([found])


@pytest.mark.parametrize("name", ["harris", "drawn_4", "camera_pipe", "lens_blur"])
def test_rows_stay_as_long_as_they_are(name: str) -> None:
    sized = with_fewer_rows(name, 200_000)
    before, after = dict(pipeline_of(name).estimates), dict(pipeline_of(sized).estimates)
    rows = {f: (old[1][1], new[1][1]) for (f, old), new in zip(before.items(), after.values(), strict=True)}
    assert all(old[0] == after[f][0] for f, old in before.items())
    assert all(0 < new <= old for old, new in rows.values())
    pixels = max(int(np.prod([n for _, n in region[:2]])) for region in after.values())
    assert pixels <= 300_000


def test_jobs_are_every_pipeline_on_every_platform() -> None:
    arguments = argparse.Namespace(
        pipelines=["blur"], drawn=2, seed=5, platforms=["cortex-a53", "graviton4"], threads=[1], pixels=100_000
    )
    found = emulated.jobs(arguments)
    assert {j.pipeline.partition("@")[0] for j in found} == {"blur", "drawn_5", "drawn_6"}
    assert len(found) == 6


def test_the_machines_are_those_of_aarch64() -> None:
    assert {"cortex-a53", "graviton4"} <= set(machines())
    assert "cortex-a7" not in machines()
