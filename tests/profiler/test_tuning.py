"""Candidates compiled, compared and timed: the fastest is kept, and one that goes wrong costs the others nothing."""

from dataclasses import replace

import numpy as np
import pytest
from support.tools import require_tool

from tilesmith import platforms
from tilesmith.app.profiler.tuning import (
    Arguments,
    Contender,
    NothingRan,
    Sample,
    Tuned,
    difference,
    fastest,
    has_floats,
    tune,
)
from tilesmith.app.runtime import estimates
from tilesmith.app.runtime.build import build
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.frontends.document.document import load

pytestmark = pytest.mark.slow

TIMEOUT_S = 60.0
HOST = platforms.load("host")


def small(name):
    document = pipelines.document(name)
    return load(document | {"estimates": {o: [[2, 40], [2, 30]] for o in document["outputs"]}})


@pytest.fixture(scope="module")
def blur():
    require_tool("gcc")
    return small("blur")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """tuned(pipeline, source, ...): the candidates with these sources, on random inputs of the estimated sizes."""
    cache = tmp_path_factory.mktemp("builds")

    def run(pipeline, *sources, **more):
        contenders = [Contender(n, float(n), lambda s=s: s) for n, s in enumerate(sources, start=1)]
        regions = estimates.output_regions(pipeline)
        arguments = Arguments(pipeline, estimates.images(pipeline, {}), {}, regions, 2)
        return tune(contenders, arguments, lambda s: build(s, HOST, cache, TIMEOUT_S), **more)

    return run


@pytest.fixture(scope="module")
def source(blur):
    return compile_pipeline(blur, HOST).source


def spoilt(source, text, other):
    assert text in source.code
    return replace(source, code=source.code.replace(text, other))


def test_everybody_is_timed_and_one_is_chosen(tuned, blur, source):
    phases = []
    found = tuned(blur, source, source, say=phases.append)
    assert [s.rank for s in found.samples] == [1, 2]
    assert all(s.error is None and len(s.times_ms) > 3 for s in found.samples)
    assert all(s.minimum_ms <= s.median_ms for s in found.samples)
    assert found.chosen in (1, 2)
    assert phases == ["building", "running"]
    assert f"candidate {found.chosen} is the fastest of 2" in found.in_words()
    document = found.to_document()
    assert document["samples"][0]["times"] == len(found.samples[0].times_ms)


def test_whoever_fails_is_a_sample_with_an_error(tuned, blur, source):
    refused = replace(source, code="#error no\n")
    crashing = replace(
        source, code=source.code + "\n__attribute__((constructor)) static void f(void) { __builtin_trap(); }\n"
    )
    found = tuned(blur, refused, source, crashing, spoilt(source, "/ 3", "/ 4"), source)
    errors = [s.error for s in found.samples]
    assert errors[0].startswith("compile_failure: ")
    assert errors[1] is None
    assert errors[2].startswith("run_failure: ")
    assert errors[-1] is None
    assert found.chosen in (2, 5)
    assert "its result differs from that of candidate 2: " in errors[3]


def test_nobody_runs(tuned, blur, source):
    with pytest.raises(NothingRan, match="none of 1 candidates could be timed; the first: compile_failure"):
        tuned(blur, replace(source, code="#error no\n"))


def test_without_time_the_first_alone_is_tried(tuned, blur, source):
    found = tuned(blur, source, source, budget_s=0.0)
    assert [s.error for s in found.samples] == [None, "not tried: the time for compiling was over"]
    assert (found.chosen, len(found.samples[0].times_ms)) == (1, 2)


def test_of_equals_the_model_decides():
    def sample(rank, ms, error=None):
        return Sample(rank, 1.0, (ms, 2 * ms), None, error)

    assert fastest([sample(1, 1.005), sample(2, 1.0)]) == 1
    assert fastest([sample(1, 1.05), sample(2, 1.0)]) == 2
    assert fastest([sample(1, 1.0, "it crashed"), sample(2, 3.0)]) == 2
    assert fastest([Sample(1, 1.0)]) is None
    assert Tuned((sample(1, 1.0),), 1, 2, 0.5).to_document()["seconds"] == 0.5


def test_medians_decide_not_the_luckiest_call():
    lucky = Sample(1, 1.0, (0.1, *[2.0 + n / 100 for n in range(20)]))
    steady = Sample(2, 2.0, tuple(1.5 + n / 100 for n in range(21)))
    assert fastest([lucky, steady]) == 2


def test_of_those_that_times_cannot_tell_apart_the_model_decides():
    noisy = [Sample(rank, 1.0 * rank, tuple(1.0 + 0.03 * rank * (n % 7) for n in range(9))) for rank in (1, 2)]
    assert fastest(noisy[::-1]) == 1
    slower = Sample(1, 1.0, tuple(1.5 + n / 1000 for n in range(9)))
    assert fastest([slower, noisy[1]]) == 2


def test_results_are_compared():
    ramp = np.linspace(0, 1, 200, dtype=np.float32)
    assert difference({"o": (ramp,)}, {"o": (ramp + 1e-5,)}, True) is None
    assert difference({"o": (ramp,)}, {"o": (ramp + 0.1,)}, True) == "200 of 200 values of o"
    assert difference({"o": (ramp, ramp)}, {"o": (ramp, ramp * np.nan)}, True) == "200 of 200 values of o[1]"
    whole = np.arange(200, dtype=np.uint8)
    off = whole.copy()
    off[3] += 1
    assert difference({"o": (whole,)}, {"o": (off,)}, True) is None
    assert difference({"o": (whole,)}, {"o": (off,)}, False) == "1 of 200 values of o"
    assert difference({"o": (whole > 3,)}, {"o": (whole > 4,)}, False) == "1 of 200 values of o"


def test_what_has_floats():
    assert has_floats(pipelines.load("harris"))
    assert not has_floats(pipelines.load("blur"))
