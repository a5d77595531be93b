"""Every shipped pipeline at every size with every number of threads: what the interpreter computes."""

from __future__ import annotations

import ctypes
from functools import cache

import pytest
from support.machines import here
from support.native import build, call, source_of
from support.random_stencils import sliding_schedule
from support.shipped import assert_right, cases, loaded, problem, scheduled
from support.threads import threads

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import methods, root_schedule

NAMES = pipelines.names()


@cache
def library_of(name: str, how: str) -> tuple[ctypes.CDLL, CSource]:
    pipeline = loaded(name)
    if how == "root":
        schedule = root_schedule(pipeline, here())
        check(rewrite(pipeline, schedule))
        source = source_of(pipeline, schedule, here())
    else:
        source = scheduled(name, here(), how).source
    return build(source, ("-O1",) if how == "default" else ("-O0",)), source


@pytest.mark.parametrize(("name", "size"), cases(NAMES))
@pytest.mark.parametrize("method", methods())
def test_the_methods_schedule_computes_what_the_pipeline_says(name: str, size: str, method: str) -> None:
    library, source = library_of(name, method)
    p = problem(name, size)
    for count in (1, 2, 5):
        with threads(count):
            status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
        assert status == 0
        assert_right(got, p.expected, p.within)


@pytest.mark.parametrize(("name", "size"), cases(NAMES, ("7x3", "shifted")))
def test_the_root_schedule_computes_what_the_pipeline_says(name: str, size: str) -> None:
    library, source = library_of(name, "root")
    p = problem(name, size)
    with threads(2):
        status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
    assert status == 0
    assert_right(got, p.expected, p.within)


# A schedule drawn at random may compute the finest level of a pyramid again and again for every point.
DEEP = ("interpolate", "lens_blur", "local_laplacian", "machado_interpolation", "nl_means", "pyramid_blend", "vdsr")
CASES = [(name, seed) for name in NAMES for seed in range(4) if name not in DEEP]
CASES += [("interpolate", 2), ("nl_means", 1), ("nl_means", 2)]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_any_legal_schedule_computes_what_the_pipeline_says(name: str, seed: int) -> None:
    p = problem(name, "shifted")
    schedule = sliding_schedule(p.pipeline, seed)
    check(rewrite(p.pipeline, schedule))
    source = source_of(p.pipeline, schedule, here())
    with threads(2):
        status, got = call(build(source), source, p.pipeline, p.inputs, {}, p.regions)
    assert status == 0
    assert_right(got, p.expected, p.within)
