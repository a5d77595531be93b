"""Random pipelines of real size: the same again, valid, schedulable, and of values that tell results apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.machines import machine

from benchmarks.documents import drawn_name, pipeline_of
from benchmarks.drawing import drawn
from benchmarks.drawing.compose import MOST_WORK, STAGES
from benchmarks.drawing.work import work
from benchmarks.problem import at_estimates
from tilesmith.scheduler.frontends.document.document import canonical_json, load
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.arguments import Image
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import autoschedule

SEEDS = range(60)
SMALL = (96, 64)
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_seed_gives_a_bounded_pipeline(seed: int) -> None:
    pipeline = drawn(seed)
    assert pipeline.name == drawn_name(seed)
    assert STAGES[0] <= len(pipeline.stages) <= STAGES[1]
    assert work(pipeline) <= MOST_WORK


def test_the_same_seed_gives_the_same_bytes_in_every_process() -> None:
    told = [canonical_json(drawn(seed)) for seed in range(8)]
    code = "from benchmarks.drawing import drawn\n"
    code += "from tilesmith.scheduler.frontends.document.document import canonical_json\n"
    code += "print(*(canonical_json(drawn(n)) for n in range(8)), sep='\\n')"
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
    )
    assert done.stdout.splitlines() == told
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_values_are_finite_and_differ(seed: int) -> None:
    problem = at_estimates(drawn(seed, SMALL))
    images = {n: Image(a, tuple(low for low, _ in problem.input_regions[n])) for n, a in problem.inputs.items()}
    results = interpret(problem.pipeline, images, problem.params, problem.output_regions)
    for array in (a for arrays in results.values() for a in arrays):
        assert np.isfinite(array).all()
        assert len(np.unique(array)) >= 8


@pytest.mark.parametrize("seed", [4, 16, 28, 49])
def test_it_is_scheduled(seed: int) -> None:
    pipeline = drawn(seed)
    schedule = autoschedule(pipeline, machine()).schedule
    check(rewrite(pipeline, schedule))
    assert not schedule.degraded


def test_it_has_a_name_as_every_pipeline() -> None:
    assert pipeline_of("drawn_3") == drawn(3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("f(x) + f(x + 1)", 8 * 22), ("sum(f(x + r) for r in range(5))", 8 * 36), ("exp(f(x))", 8 * 30), ("f(x)", 8 * 18)],
)
def test_work_counts_operations_of_points(value: str, expected: float) -> None:
    document = {
        "format": 1,
        "name": "p",
        "inputs": [{"name": "f", "type": "float32", "dims": ["x"]}],
        "stages": [{"name": "s", "dims": ["x"], "value": value}],
        "outputs": ["s"],
        "estimates": {"s": [[0, 8]]},
    }
    assert work(load(document)) == expected
