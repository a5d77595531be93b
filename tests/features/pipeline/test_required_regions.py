"""Required regions of whole pipelines: never too small, and kept by inclusion, which is what sizes buffers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from random import Random

import pytest
from support.random_pipelines import random_inputs, random_params, random_pipeline, random_regions

from tilesmith.scheduler.features.pipeline.required_regions import UnknownSize, required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter import interpreter
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.rewrites.split_separable import put_in

SEEDS = range(80)


@cache
def drawn(seed: int) -> Pipeline:
    return load(random_pipeline(seed))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(5))
def test_required_regions_cover_what_is_read(chunk: int) -> None:
    """The interpreter finds its own, from the values that are asked for, one after the other; of stages that inherit an
    edge what readers that stop there ask for."""
    for seed in SEEDS[chunk::5]:
        pipeline = drawn(seed)
        params, regions = random_params(pipeline, seed), random_regions(pipeline, seed)
        inputs = random_inputs(pipeline, seed, regions, params)
        places = {n: tuple(zip(i.min, i.array.shape[::-1], strict=True)) for n, i in inputs.items()}
        ours = required_regions(normalise(pipeline), regions, params, places)
        theirs = interpreter.required_regions(normalise(pipeline), inputs, params, regions)
        read = interpreter.required_regions(pipeline, inputs, params, regions)
        for name, region in [*theirs.items(), *((n, region) for n, region in read.items() if n in inputs)]:
            for (lo, extent), (low, length) in zip(region, ours[name], strict=True):
                assert low <= lo, (seed, name)
                assert lo + extent <= low + length, (seed, name)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(5))
def test_a_larger_output_never_needs_less(chunk: int) -> None:
    for seed in SEEDS[chunk::5]:
        random = Random(seed)
        pipeline = drawn(seed)
        params, regions = random_params(pipeline, seed), random_regions(pipeline, seed)
        inputs = random_inputs(pipeline, seed, regions, params)
        places = {n: tuple(zip(i.min, i.array.shape[::-1], strict=True)) for n, i in inputs.items()}
        wide = {}
        for name, region in regions.items():
            grown = [(random.randint(0, 3), random.randint(0, 3)) for _ in region]
            wide[name] = tuple((lo - a, n + a + b) for (lo, n), (a, b) in zip(region, grown, strict=True))
        small = required_regions(normalise(pipeline), regions, params, places)
        large = required_regions(normalise(pipeline), wide, params, places)
        assert small.keys() == large.keys()
        for name, region in small.items():
            for (lo, extent), (low, length) in zip(region, large[name], strict=True):
                assert low <= lo, (seed, name)
                assert lo + extent <= low + length, (seed, name)


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("input(2 * x, y) + input(2 * x + 2, y)", "inner(x // 2, y) + inner((x + 2) // 2, y)"),
        ("input(x, clamp(y, -1, 7))", "inner(x, clamp(clamp(y % 24, 1, 13), -1 - 2, 7))"),
    ],
)
def test_a_stage_that_is_put_into_its_reader_needs_the_same(inner: str, outer: str) -> None:
    """As when a window is split through it."""
    document = {
        "format": 1,
        "name": "chain",
        "inputs": [{"name": "input", "type": "int32", "dims": ["x", "y"]}],
        "stages": [
            {"name": "inner", "dims": ["x", "y"], "value": inner},
            {"name": "outer", "dims": ["x", "y"], "value": outer},
        ],
        "outputs": ["outer"],
        "estimates": {"outer": [[0, 64], [0, 64]]},
    }
    pipeline = load(document)
    put = put_in(pipeline.stage("outer"), pipeline.stage("inner"))
    together = replace(pipeline, stages=(put,))
    for lo, extent in product(range(-5, 5), (1, 2, 5)):
        regions = {"outer": ((lo, extent), (lo, extent))}
        before, after = (required_regions(p, regions, {}, {})["input"] for p in (pipeline, together))
        assert before == after


def test_a_size_that_is_not_given_is_named() -> None:
    pipeline = normalise(
        load(
            {
                "format": 1,
                "name": "total",
                "params": [{"name": "n", "type": "int32"}],
                "inputs": [{"name": "lab", "type": "float32", "dims": ["x"]}],
                "stages": [
                    {"name": "whole", "dims": [], "value": "sum(lab(r) for r in range(lab.extent.x))"},
                    {"name": "some", "dims": [], "value": "sum(lab(r) for r in range(n))"},
                ],
                "outputs": ["whole", "some"],
                "estimates": {"whole": [], "some": []},
            }
        )
    )
    with pytest.raises(UnknownSize, match=r"depends on lab\.extent\.x, which is not given"):
        required_regions(pipeline, {"whole": ()}, {}, {})
    with pytest.raises(UnknownSize, match="depends on n, which is not given"):
        required_regions(pipeline, {"some": ()}, {}, {})
    assert required_regions(pipeline, {"whole": ()}, {}, {"lab": ((2, 5),)})["lab"] == ((0, 5),)
