"""Calibration: what it measures is there and possible, and makes a platform like any other. No test is about time."""

from __future__ import annotations

import math
import statistics

import pytest
from support.calibration import quick_calibration
from support.tools import require_tool

from app.platforms.calibrated import calibrated, evidence, to_yaml, warnings, write
from app.workers import calibrate
from app.workers.calibrate import QUICK, Measured, Samples, measure, working_sets
from app.workers.errors import CompileError, RunError
from platforms import Compiler, get, load_text
from platforms.detect import host
from platforms.ecm import EcmParameters, derived
from scheduler import pipelines
from scheduler.compile import compile_pipeline


@pytest.fixture(scope="module")
def measured() -> Measured:
    return quick_calibration()


def test_every_figure_is_a_time(measured):
    assert {"clock", "load", "level1.latency", "memory.load.all", "memory.in_order", "region", "row"} <= set(
        measured.samples
    )
    for name, samples in measured.samples.items():
        assert len(samples.ns) == len(samples.cycles) >= QUICK.rounds, name
        assert all(math.isfinite(n) and n >= 0 for n in samples.ns), name
    assert measured.clock_ghz > 0
    assert measured.compiler


def test_a_calibrated_host_is_a_platform_like_any_other(measured):
    platform = calibrated(host(), measured, "desk")
    assert load_text(to_yaml(platform)) == platform
    assert platform.name == "desk"
    assert platform.ecm is not None
    assert platform.load_weight == platform.caches[-1].latency_cycles
    assert [level.level for level in platform.ecm.levels] == [c.level for c in platform.caches[1:]]
    assert compile_pipeline(pipelines.load("blur"), platform).schedule.groups


def test_every_measured_figure_has_its_evidence(measured):
    platform = calibrated(host(), measured)
    said = evidence(platform, measured)
    assert {f"ecm.{name}" for name in EcmParameters.model_fields} <= set(said)
    assert all(platform.source_of(figure) == text for figure, text in said.items())
    assert all("measured" in text or "estimate" in text or figure == "load_weight" for figure, text in said.items())
    assert platform.source_of("ecm").startswith(f"measured with {measured.compiler}")


def test_what_cannot_be_measured_stays_derived(measured):
    plain = host().model_copy(update={"vector_bytes": 0})
    kept = {n: s for n, s in measured.samples.items() if "." not in n or n[0] in "lm"}
    platform = calibrated(plain, Measured(kept, measured.rounds, "cc"))
    assert platform.ecm.f32 == derived(platform).f32
    assert platform.source_of("ecm.f32") == platform.source_of("ecm")


def test_rounds_that_are_far_apart_are_warned_of():
    steady, wild = Samples((1.0, 1.01, 1.0, 1.02), (1.0,) * 4), Samples((1.0, 3.0, 1.0, 2.0), (1.0,) * 4)
    assert steady.spread < 0.05 < wild.spread
    found = warnings(Measured({"a": steady, "b": wild}, 4, "cc", 1.0, busy=0.9))
    assert len(found) == 2
    assert "0.9 of a core" in found[0]
    assert found[1].endswith(": b")


def test_the_median_counts():
    samples = {"clock": Samples((0.25, 0.5, 0.2), (1.0, 1.0, 1.0))}
    assert Measured(samples).clock_ghz == 1 / statistics.median((0.25, 0.5, 0.2))


@pytest.mark.parametrize("name", ["epyc-9655", "i7-6700", "cortex-a53", "graviton4"])
def test_working_sets_fit_their_level_and_not_the_one_inside(name):
    platform = get(name)
    *levels, memory = working_sets(platform, calibrate.Effort())
    for size, cache in zip(levels, platform.caches, strict=True):
        assert size < cache.size_bytes
    assert memory > platform.llc_bytes


def test_a_file_is_written_whole(measured, tmp_path):
    path = tmp_path / "host.yaml"
    write(calibrated(host(), measured), path)
    assert load_text(path.read_bytes()).name == "host"
    assert [p.name for p in tmp_path.iterdir()] == ["host.yaml"]


def test_a_compiler_that_is_not_there(tmp_path):
    platform = host().model_copy(update={"compiler": Compiler(command="gcc-99")})
    with pytest.raises(CompileError, match="not installed"):
        measure(platform, tmp_path, QUICK)


def test_a_program_that_fails_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(calibrate, "source", lambda _: "int main(void) { return 3; }")
    require_tool("gcc")
    with pytest.raises(RunError, match="bytes of memory"):
        measure(host(), tmp_path, QUICK)
