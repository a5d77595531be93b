"""The corpus: all are pipelines; some are compiled and held to the interpreter (`make corpus` does all)."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build
from support.tools import require_compiler

from benchmarks.corpus import page
from benchmarks.corpus.__main__ import Judgements
from benchmarks.corpus.differences import difference
from benchmarks.corpus.registry import SMALL_SUFFIX, TOPICS, cases, differ_as_the_case_says, for_reports
from benchmarks.documents import pipeline_of
from benchmarks.everywhere import Job
from benchmarks.findings import DEFAULT, PAPER, ROOT
from benchmarks.problem import at_estimates
from tilesmith.app.bench.agreement import agreement
from tilesmith.app.profiler.tuning import has_floats
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.arguments import Image

NAMES = list(cases())
EVERY = 12


def test_names_are_its_own_and_every_topic_has_some() -> None:
    assert not set(NAMES) & set(pipelines.names())
    assert {case.topic for case in cases().values()} == set(TOPICS)
    assert all(case.doc for case in cases().values())


def test_a_hash_halves_it() -> None:
    share = sum(map(for_reports, NAMES)) / len(NAMES)
    assert 0.35 < share < 0.65
    assert for_reports("drawn_1001") == for_reports("drawn_1001")


@pytest.mark.parametrize("topic", TOPICS)
def test_every_case_is_a_pipeline_at_both_sizes(topic: str) -> None:
    for name, case in cases().items():
        if case.topic == topic:
            assert pipeline_of(name).stages == pipeline_of(name + SMALL_SUFFIX).stages


WRONG_ONCE = ("thinning",)
"""GCC 12 made wrong code of it at -O2, by vectors of sums of comparisons."""


@pytest.mark.parametrize(
    ("name", "level"), [*((name, "-O0") for name in NAMES[::EVERY]), *((name, "-O2") for name in WRONG_ONCE)]
)
def test_some_compute_what_the_interpreter_does(name: str, level: str) -> None:
    require_compiler("gcc")
    made = compile_pipeline(pipeline_of(name), here())
    p = at_estimates(pipeline_of(name + SMALL_SUFFIX))
    images = {n: Image(a, tuple(low for low, _ in p.input_regions[n])) for n, a in p.inputs.items()}
    expected = interpret(p.pipeline, images, p.params, p.output_regions)
    status, got = call(build(made.source, (level,)), made.source, p.pipeline, images, p.params, p.output_regions)
    assert status == 0
    for output in p.pipeline.outputs:
        agreement(expected[output], got[output], cut=[has_floats(p.pipeline)] * len(got[output]))


def test_differences_are_told() -> None:
    one = np.array([1.0, 2.0, 4.0], np.float32)
    assert difference(one, one + np.float32(1e-5), 1e-4, 0.0) == ""
    assert "1 of 3 values are off by up to 2.5e-01" in difference(one, one + np.array([0, 1, 0], np.float32), 1e-4, 0.0)
    assert difference(one, one + np.array([0, 1, 0], np.float32), 1e-4, 0.4) == ""
    assert "1 of 3" in difference(one, np.array([1, 2, math.nan], np.float32), 1e-4, 0.0)
    assert "shape" in difference(one, one[:2], 1e-4, 0.0)


def test_few_values_of_a_case_may_differ_where_it_says_so() -> None:
    one = np.ones(10_000, np.float32)
    few, many = one.copy(), one.copy()
    few[:5], many[:500] = 0.5, 0.5
    assert differ_as_the_case_says("kuwahara_filter", [one], [few])
    assert not differ_as_the_case_says("kuwahara_filter", [one], [many])
    assert not differ_as_the_case_says("dilated_convolution", [one], [few])
    assert not differ_as_the_case_says("harris", [one], [few])  # no case


def test_the_page_tells_losses_and_what_is_wrong() -> None:
    job = Job("sobel_gradient", "native", "gcc", 1)
    contenders = {
        name: {"library": name, "schedule": {}, "predicted_ms": 2.0, "to_c_s": 0.1, "characters": 9000}
        for name in (DEFAULT, PAPER, ROOT)
    }
    rounds = [{DEFAULT: 5.0, PAPER: 4.0, ROOT: 10.0}] * 2
    values: dict[str, Any] = {"interpreter": "", "reference": "7 of 8 values", "reference_ms": 20.0, "ours_ms": 5.0}
    halide = {"Adams2019": {"ours_ms": 5.0, "its_ms": 10.0}, "Li2018": {"error": "none in 3 s"}}
    candidates = {"regret": 0.25}
    row = page.Row.of(job, contenders, values, {"rounds": rounds}, halide, candidates)
    assert (row.over(PAPER), row.over(ROOT), row.over_library, row.over_halide) == (1.25, 0.5, 0.25, 0.5)
    assert row.prediction == pytest.approx(0.4)
    assert row.regret == pytest.approx(0.25)
    assert not row.left
    text = page.written([row, page.Row.of(Job("peaks", "native", "gcc", 1), {}, None, None, None, None)])
    assert "2 pipelines in builds, 1 of them done" in text
    assert "sobel_gradient, native gcc, threads: 1: reference: 7 of 8 values" in text
    assert "over taco2019 | 1.25" in text.replace("  ", "")


@pytest.mark.parametrize(("isa", "blas"), [("avx512", None), ("avx2", "Haswell"), ("native", None)])
def test_libraries_take_no_wider_instructions_than_the_build(
    isa: str, blas: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[Mapping[str, str]] = []

    def run(*_: Any, env: Mapping[str, str], **__: Any) -> subprocess.CompletedProcess[str]:
        told.append(env)
        return subprocess.CompletedProcess((), 0, "{}", "")

    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.setattr(subprocess, "run", run)
    mine = {"library": "library.so", "entry": "entry"}
    Judgements(tmp_path).judge(Job(NAMES[0], isa, "gcc", 1), mine, here())
    assert told[0].get("OPENBLAS_CORETYPE") == blas
