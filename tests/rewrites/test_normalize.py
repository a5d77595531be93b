"""Normalisation: a pipeline without boundaries computes what the pipeline with boundaries computes."""

from __future__ import annotations

import numpy as np
import pytest
from support.random_pipelines import random_inputs, random_params, random_pipeline, random_regions

from tilesmith.scheduler.analysis.stage_graph import expressions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.expressions import Access, walk
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise

KINDS = ("repeat_edge", "repeat_image", "mirror_image", "mirror_interior", "constant")


def boundary(kind: str, **more: object) -> dict[str, object]:
    return {"kind": kind, **({"value": "7"} if kind == "constant" else {}), **more}


def document(kind: str) -> dict[str, object]:
    """An input and a stage with a boundary; the stage reads itself in an update, which sees it as it is."""
    return {
        "format": 1,
        "name": "edges",
        "inputs": [{"name": "input", "type": "int32", "dims": ["x", "y"], "boundary": boundary(kind)}],
        "stages": [
            {
                "name": "f",
                "dims": ["x", "y"],
                "value": "input(x - 4, 2 * y) + 10 * input(x + 5, y)",
                "updates": [{"domain": {"r": [1, 3]}, "at": ["r", "y"], "value": "f(r - 1, y) + input(r + 9, y - 9)"}],
                "boundary": boundary(kind, domain=[[-1, "input.extent.x"], [0, 2]]),
            },
            {"name": "out", "dims": ["x", "y"], "value": "f(x - 3, y - 2) * 3 + f(2 * x, y + 3)"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 8], [0, 8]]},
    }


def assert_same(pipeline: Pipeline, inputs: dict[str, Image], params: dict, regions: dict) -> None:
    plain = normalise(pipeline)
    assert all(i.boundary is None for i in plain.inputs)
    assert all(s.boundary is None for s in plain.stages)
    expected, got = interpret(pipeline, inputs, params, regions), interpret(plain, inputs, params, regions)
    for name, arrays in expected.items():
        for a, b in zip(arrays, got[name], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (3, 2), (5, 4)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_values_stay(kind: str, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    for low in ((0, 0), (-3, 2)):
        image = Image(rng.integers(-999, 999, size[::-1]).astype(np.int32), low)
        assert_same(load(document(kind)), {"input": image}, {}, {"out": ((-6, 13), (-5, 12))})


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
def test_random_pipelines_stay(chunk: int) -> None:
    for seed in range(chunk, 60, 4):
        pipeline = load(random_pipeline(seed))
        params, regions = random_params(pipeline, seed), random_regions(pipeline, seed)
        assert_same(pipeline, random_inputs(pipeline, seed, regions, params), params, regions)


def test_a_pipeline_without_boundaries_is_itself() -> None:
    documents = map(random_pipeline, range(500))
    pipelines = (load(d) for d in documents if not any(word in str(d) for word in ("boundary", "updates", "%", "//")))
    assert any(normalise(pipeline) is pipeline for pipeline in pipelines)


@pytest.mark.parametrize("kind", KINDS)
def test_every_place_is_bounded_to_see(kind: str) -> None:
    """Interval arithmetic must see the bound: the last thing done to an index is a clamp to the domain."""
    plain = normalise(load(document(kind)))
    reads = [
        node
        for stage in plain.stages
        for e in expressions(stage)
        for node in walk(e)
        if isinstance(node, Access) and node.name == "input"
    ]
    assert reads
    assert all(getattr(i, "function", None) == "clamp" for node in reads for i in node.indices)


@pytest.mark.parametrize("kind", KINDS)
def test_places_that_are_the_same_are_one_expression_within_a_boundary(kind: str) -> None:
    """Analyses know parts by identity: of a window they see each of its rows and columns once."""
    window = " + ".join(f"input(x + {n % 3}, y + {n // 3})" for n in range(9))
    stages = [{"name": "out", "dims": ["x", "y"], "value": window}]
    of = load({**document(kind), "stages": stages})
    reads = [e for e in walk(normalise(of).stages[0].values[0]) if isinstance(e, Access)]
    assert len(reads) == 9
    assert [len({id(e.indices[d]) for e in reads}) for d in range(2)] == [3, 3]
