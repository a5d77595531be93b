"""Pipelines that read at places to be bounded: what they require against what the interpreter finds that they read, and
their code on images of just that region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from support.calls import Region, call
from support.machines import here
from support.native import build, source_of

from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter import interpreter
from tilesmith.scheduler.interpreter.interpreter import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search import SearchOptions, autoschedule

Params = Mapping[str, int | float | bool]
DEFAULT, STRICT = False, True


def document(
    stages: Mapping[str, Any],
    inputs: Mapping[str, Any],
    params: Sequence[Mapping[str, object]] = (),
    size: Sequence[int] = (64, 48),
    estimates: Mapping[str, Region] | None = None,
) -> Pipeline:
    """A pipeline of stages by name, each a value or a stage's keys, of dims `x` and `y` where they have none; the last
    one is the output. Inputs have a type each."""
    whole = [{"name": n, "dims": ["x", "y"], **(s if isinstance(s, dict) else {"value": s})} for n, s in stages.items()]
    images = [{"name": n, "dims": ["x", "y"], **(t if isinstance(t, dict) else {"type": t})} for n, t in inputs.items()]
    last = whole[-1]
    region = [[0, n] for n in (size * 3)[: len(last["dims"])]]
    return load(
        {
            "format": 1,
            "name": "places",
            "params": list(params),
            "inputs": images,
            "stages": whole,
            "outputs": [last["name"]],
            "estimates": {last["name"]: region, **{n: list(map(list, r)) for n, r in (estimates or {}).items()}},
        }
    )


def image_of(pipeline: Pipeline, name: str, region: Region, seed: int = 1) -> Image:
    """Random pixels of an input on a region."""
    t, rng = pipeline.input(name).type, np.random.default_rng(seed)
    shape = tuple(extent for _, extent in reversed(region))
    if t.is_float:
        pixels = rng.random(shape, np.float32).astype(t.numpy)
    else:
        pixels = rng.integers(max(t.min, -1000), min(t.max, 1000), shape, endpoint=True).astype(t.numpy)
    return Image(pixels, tuple(lo for lo, _ in region))


def inferred(pipeline: Pipeline, region: Region, params: Params, images: Mapping[str, Region]) -> dict[str, Region]:
    """What compiled code requires of the inputs."""
    (output,) = pipeline.outputs
    found = required_regions(normalise(pipeline), {output: region}, params, images)
    return {i.name: found[i.name] for i in pipeline.inputs if i.name in found}


def assert_exact(pipeline: Pipeline, region: Region, params: Params, images: Mapping[str, Region]) -> None:
    """The regions that bounds say are those that the interpreter reads, and code runs on these."""
    (output,) = pipeline.outputs
    seen = inferred(pipeline, region, params, images)
    given = {i.name: image_of(pipeline, i.name, images.get(i.name) or seen[i.name]) for i in pipeline.inputs}
    read = interpreter.required_regions(pipeline, given, params, {output: region})
    assert seen == {name: read[name] for name in seen}


def assert_computes(pipeline: Pipeline, region: Region, params: Params, images: Mapping[str, Region]) -> None:
    """Code of both modes on images of just the region that bounds say, to the last bit."""
    (output,) = pipeline.outputs
    seen = inferred(pipeline, region, params, images)
    given = {i.name: image_of(pipeline, i.name, images.get(i.name) or seen[i.name]) for i in pipeline.inputs}
    expected = interpreter.interpret(pipeline, given, params, {output: region})[output][0]
    for strict in (DEFAULT, STRICT):
        schedule = autoschedule(pipeline, here(), SearchOptions(strict=strict)).schedule
        source = source_of(pipeline, schedule, here())
        status, got = call(build(source, ("-O1",)), source, pipeline, given, params, {output: region})
        assert status == 0
        np.testing.assert_array_equal(got[output][0], expected)
