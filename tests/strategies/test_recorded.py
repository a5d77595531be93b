"""Schedules as strategies: the strategy that is printed makes the same schedule, for all shipped pipelines
and for random ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.random_pipelines import random_pipeline
from support.random_stencils import random_stencils
from support.random_updates import random_updates
from support.shipped import loaded, scheduled

from tilesmith.platforms.catalog import get
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Options, compile_pipeline
from tilesmith.scheduler.errors import ScheduleError
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.strategies.document import from_document, load_text, to_yaml
from tilesmith.scheduler.strategies.recorded import recorded

QUICK = ("blur", "gaussian3x3", "sobel")
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in pipelines.names()]
PLATFORMS = ("i7-6700", "cortex-a73")


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        pytest.param(name, PLATFORMS[number % 2], marks=[] if name in QUICK else pytest.mark.slow)
        for number, name in enumerate(pipelines.names())
    ],
)
def test_the_recorded_strategy_makes_the_same_schedule(name: str, platform: str) -> None:
    """Each pipeline on one of the machines, in turn."""
    machine = get(platform)
    found = scheduled(name, machine)
    document = recorded(found.plan, machine, name)
    read = load_text(to_yaml(document))
    assert read == document
    assert from_document(document.to_document()) == document
    made = compile_pipeline(loaded(name), machine, Options(strategy=read))
    for part in ("groups", "factors", "separations", "joinings"):
        assert getattr(made.schedule, part) == getattr(found.schedule, part)
    assert made.source.code.splitlines()[1:] == found.source.code.splitlines()[1:]  # the first names the method


@pytest.mark.parametrize("seed", [14, *(pytest.param(n, marks=pytest.mark.slow) for n in range(6))])
@pytest.mark.parametrize("family", [random_stencils, random_pipeline, random_updates])
def test_so_it_does_of_random_pipelines(family: Callable[[int], dict[str, object]], seed: int) -> None:
    """Each family on each kind of machine."""
    pipeline, machine, strict = load(family(seed)), get((*PLATFORMS, "nvidia-a100")[seed % 3]), seed % 4 == 0
    found = compile_pipeline(pipeline, machine, Options(strict=strict))
    read = load_text(to_yaml(recorded(found.plan, machine, pipeline.name)))
    made = compile_pipeline(pipeline, machine, Options(strategy=read, strict=strict))
    assert made.source.code.splitlines()[1:] == found.source.code.splitlines()[1:]


def test_reductions_that_are_hoisted_have_partial_results() -> None:
    row = "sum(a(k, y) for k in range(512))"
    pipeline = load(
        {
            "format": 1, "name": "normed", "inputs": [{"name": "a", "type": "float32", "dims": ["x", "y"]}],
            "stages": [{"name": "out", "dims": ["x", "y"], "value": f"a(x, y) / {row}"}],
            "outputs": ["out"], "estimates": {"out": [[0, 512], [0, 512]]},
        }
    )  # fmt: skip
    machine = get("i7-6700")
    found = compile_pipeline(pipeline, machine)
    assert [f.stage for f in found.schedule.factors] == ["out_sum"]
    made = compile_pipeline(pipeline, machine, Options(strategy=recorded(found.plan, machine, "normed")))
    assert made.schedule.factors == found.schedule.factors
    assert made.schedule.groups == found.schedule.groups


def test_what_rules_over_expressions_made_is_not_recorded() -> None:
    machine = get("i7-6700")
    written = load_text("strategy: other\nsteps: [{commute_sum: {stage: blur_x}}]")
    made = compile_pipeline(loaded("blur"), machine, Options(strategy=written))
    with pytest.raises(ScheduleError, match="commute_sum"):
        recorded(made.plan, machine, "blur")
