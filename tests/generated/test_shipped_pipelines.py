"""Every shipped pipeline at every size with every number of threads: what the interpreter computes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of
from support.random_stencils import sliding_schedule
from support.shipped import LARGE, LONG, assert_right, cases, loaded, problem, scheduled
from support.threads import threads

from tilesmith.scheduler import pipelines
from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import rewrite
from tilesmith.scheduler.search import methods, root_schedule

NAMES = pipelines.names()


def sizes_of(name: str) -> list[str]:
    """All small sizes, and of those pipelines that the interpreter computes at large ones one of these, in turn: the
    other one is Halide's to judge."""
    left_out = LARGE[NAMES.index(name) % len(LARGE)]
    return [size for _, size in cases([name]) if size != left_out]


def assert_computes(name: str, library: ctypes.CDLL, source: CSource, size: str, counts: Iterable[int]) -> None:
    p = problem(name, size)
    for count in counts:
        with threads(count):
            status, got = call(library, source, p.pipeline, p.inputs, {}, p.regions)
        assert status == 0, size
        assert_right(got, p.expected, p.within)


@pytest.mark.parametrize("name", NAMES)
def test_the_methods_schedules_compute_what_the_pipeline_says(name: str) -> None:
    """Optimized, unless that takes many seconds, and as soon as the compiler is done with it: it warns of neither. As
    it makes the most of them they are held to Halide."""
    for method in methods():
        source = scheduled(name, here(), method).source
        library = build(source, ("-O1" if method == "default" and name not in LONG else "-O0",))
        for size in sizes_of(name):
            assert_computes(name, library, source, size, (1, 2, 5))


@pytest.mark.parametrize("name", NAMES)
def test_the_root_schedule_computes_what_the_pipeline_says(name: str) -> None:
    schedule = root_schedule(loaded(name), here())
    check(rewrite(loaded(name), schedule))
    source = source_of(loaded(name), schedule, here())
    for _, size in cases([name], ("7x3", "shifted")):
        assert_computes(name, build(source), source, size, (2,))


# A schedule drawn at random may compute the finest level of a pyramid again and again for every point.
DEEP = ("interpolate", "lens_blur", "local_laplacian", "machado_interpolation", "nl_means", "pyramid_blend", "vdsr")
CASES = [(name, 2 * (k % 2) + n) for k, name in enumerate(NAMES) for n in (0, 1) if name not in DEEP]
CASES += [("interpolate", 2), ("nl_means", 1), ("nl_means", 2)]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_any_legal_schedule_computes_what_the_pipeline_says(name: str, seed: int) -> None:
    schedule = sliding_schedule(loaded(name), seed)
    check(rewrite(loaded(name), schedule))
    source = source_of(loaded(name), schedule, here())
    assert_computes(name, build(source), source, "shifted", (2,))
