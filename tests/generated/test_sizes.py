"""One library, every size from 1 up: smaller than a vector, a tile, a level of a pyramid, and wherever they lie."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest
from support.buffers import E_REGION, OK, invoke, region_of, view
from support.calls import Region, call
from support.machines import here
from support.native import build, source_of
from support.odd_sizes import DOCUMENTS
from support.random_schedules import random_schedule
from support.shipped import assert_right, loaded, random_array, scheduled

from tilesmith.scheduler.codegen.artifact import CSource
from tilesmith.scheduler.compiler import compile_pipeline
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.legality.verifier import check
from tilesmith.scheduler.rewrites.passes import normalise, rewrite

SMALL = ("blur", "harris", "machado_blur", "sobel", "unsharp")
LARGE = (
    "bilateral_grid", "camera_pipe", "interpolate", "lens_blur", "local_laplacian", "machado_interpolation",
    "max_filter", "nl_means", "pyramid_blend",
)  # fmt: skip
MOST = 40


@cache
def shipped(name: str) -> tuple[ctypes.CDLL, CSource]:
    source = scheduled(name, here()).source
    return build(source), source


def planes(pipeline: Pipeline, name: str, x: tuple[int, int], y: tuple[int, int]) -> Region:
    """x and y of that place and size, further dims as estimated."""
    owner = next(o for o in (*pipeline.inputs, *pipeline.stages) if o.name == name)
    estimate = pipeline.estimate(name) or ((0, 1),) * len(owner.dims)
    return tuple({"x": x, "y": y}.get(d, estimate[n]) for n, d in enumerate(owner.dims))


def images(pipeline: Pipeline, regions: dict[str, Region], x: tuple[int, int], y: tuple[int, int]) -> dict[str, Image]:
    """Images as the regions require them; inputs with a boundary are x by y."""
    whole = {i.name: planes(pipeline, i.name, x, y) for i in pipeline.inputs}
    params = {p.name: p.default for p in pipeline.params if p.default is not None}
    required = required_regions(normalise(pipeline), regions, params, whole)
    rng = np.random.default_rng(5)
    taken = {i.name: whole[i.name] if i.boundary is not None else required[i.name] for i in pipeline.inputs}
    return {
        i.name: Image(random_array(i.type, taken[i.name], rng), tuple(lo for lo, _ in taken[i.name]))
        for i in pipeline.inputs
    }


@pytest.mark.parametrize("name", SMALL)
def test_every_region_up_to_forty_by_forty(name: str) -> None:
    """On one image, so that the interpreter has to say only once what is right."""
    pipeline, (library, source) = loaded(name), shipped(name)
    (output,) = pipeline.outputs
    low = (-9, -5)
    all_of_it = {output: planes(pipeline, output, (low[0], MOST + 8), (low[1], MOST + 4))}
    inputs = images(pipeline, all_of_it, (-13, 61), (-7, 50))
    (whole,) = interpret(pipeline, inputs, {}, all_of_it)[output]
    for width in range(1, MOST + 1):
        for height in range(1, MOST + 1):
            x, y = low[0] + width % 8, low[1] + height % 4
            region = {output: planes(pipeline, output, (x, width), (y, height))}
            status, got = call(library, source, pipeline, inputs, {}, region)
            assert status == OK
            across = slice(x - low[0], x - low[0] + width)
            down = slice(y - low[1], y - low[1] + height)
            assert_right(got, {output: (whole[..., down, across],)})


SIZES = [
    ((0, 1), (0, 1)),
    ((-3, 1), (5, 2)),
    ((7, 2), (-1, 1)),
    ((1, 3), (1, 3)),
    ((-5, 9), (3, 4)),
    ((11, 5), (-7, 19)),
]


@pytest.mark.parametrize("name", LARGE)
def test_a_selection_of_sizes(name: str) -> None:
    """Images as small as their output."""
    pipeline, (library, source) = loaded(name), shipped(name)
    for x, y in SIZES[:3] if name in ("lens_blur", "local_laplacian", "pyramid_blend") else SIZES:
        regions = {o: planes(pipeline, o, x, y) for o in pipeline.outputs}
        inputs = images(pipeline, regions, x, y)
        status, got = call(library, source, pipeline, inputs, {}, regions)
        assert status == OK, (x, y)
        within = 75 if name == "local_laplacian" else 0
        expected = interpret(pipeline, inputs, {}, regions)
        for output, arrays in expected.items():
            if within:
                apart = np.abs(got[output][0].astype(int) - arrays[0].astype(int))
                assert apart.max() <= within, (x, y)
            else:
                assert_right({output: got[output]}, {output: arrays})


@pytest.mark.parametrize("how", ["method", 1, 2])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_updates_tuples_and_pyramids_of_every_small_size(name: str, how: str | int) -> None:
    pipeline = load(DOCUMENTS[name])
    if isinstance(how, int):
        schedule = random_schedule(pipeline, how)
        check(rewrite(pipeline, schedule))
        source = source_of(pipeline, schedule, here())
    else:
        source = compile_pipeline(pipeline, here()).source
    library = build(source)
    (output,) = pipeline.outputs
    widths, heights = ((1, 3, 9), (1, 5)) if name == "histogram" else ((1, 2, 3, 5, 8, 9, 17, 33), (1, 2, 5, 13))
    for width in widths:
        for height in heights:
            x, y = (width % 3 - 1, width), (3 - height % 5, height)
            regions = {output: planes(pipeline, output, x, y)}
            inputs = images(pipeline, regions, x, y)
            status, got = call(library, source, pipeline, inputs, {}, regions)
            assert status == OK, (x, y)
            assert_right(got, interpret(pipeline, inputs, {}, regions))


@pytest.mark.parametrize("name", ["blur", "harris", "machado_blur", "camera_pipe"])
def test_one_pixel_too_small(name: str) -> None:
    """Every side of every input without boundary: the call says what it needs, and writes nothing."""
    pipeline, (library, source) = loaded(name), shipped(name)
    (output,) = pipeline.outputs
    x, y = (3, 21), (-2, 14)
    regions = {output: planes(pipeline, output, x, y)}
    inputs = images(pipeline, regions, x, y)
    params = {p.name: p.default for p in pipeline.params}
    required = {i.name: tuple(zip(inputs[i.name].min, inputs[i.name].extent, strict=True)) for i in pipeline.inputs}
    scalars = [np.ctypeslib.as_ctypes(np.array(params[p.name], p.type.numpy)) for p in pipeline.params]
    out = np.full(tuple(n for _, n in reversed(regions[output])), 7, pipeline.stage(output).types[0].numpy)
    asked = view(out, [lo for lo, _ in regions[output]])
    for short in (i for i in pipeline.inputs if i.boundary is None):
        for d in range(len(short.dims)):
            for side in (0, 1):
                arguments = [view(inputs[i.name].array, inputs[i.name].min) for i in pipeline.inputs]
                b = arguments[pipeline.inputs.index(short)]
                b.min[d] += 1 - side
                b.extent[d] -= 1
                if b.extent[d] == 0:
                    continue
                assert invoke(library, source, [*arguments, *scalars, asked]) == E_REGION
                told = {i.name: region_of(a) for i, a in zip(pipeline.inputs, arguments, strict=True)}
                assert told == required
    assert (out == 7).all()
