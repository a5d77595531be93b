"""The shipped pipelines at any size, with random images and what the interpreter makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from support.calls import Region
from support.machines import machine

from tilesmith.app.runtime.estimates import largest_weight
from tilesmith.platforms import Platform
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.compiler import Compiled, Options, compile_pipeline
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.loop.program import Program
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.pipeline.types import ScalarType
from tilesmith.scheduler.ir.plan import Plan
from tilesmith.scheduler.lowering import lower
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search import SearchOptions, SearchResult, autoschedule

TOLERANCE = 1e-5  # of the output's largest magnitude

# x and y; None is the size of the estimates
SIZES: dict[str, Region | None] = {
    "1x1": ((0, 1), (0, 1)),
    "7x3": ((0, 7), (0, 3)),
    "64x64": ((0, 64), (0, 64)),
    "shifted": ((5, 131), (-3, 67)),
    "1021x769": ((0, 1021), (0, 769)),
    "full": None,
}
LARGE = ("1021x769", "full")
LIGHT = (
    "blur", "gaussian3x3", "harris", "interpolate", "laplacian_sharpen", "machado_blur", "machado_interpolation",
    "pyramid_blend", "sobel", "unsharp",
)  # fmt: skip
"""The pipelines that the interpreter computes at large sizes in a second or two."""
HEAVY = {
    "lens_blur": ("shifted", *LARGE),
    "machado_interpolation": ("full",),
    "pyramid_blend": ("full",),
    "vdsr": ("64x64", "shifted", *LARGE),
}
"""Pipelines that take seconds at other sizes, and these sizes."""
LONG = ("lens_blur", "local_laplacian", "max_filter", "nl_means", "pyramid_blend", "vdsr")
"""The pipelines whose C a compiler works on for many seconds."""
WITHIN = {"local_laplacian": 75}
"""The tolerance of integers cut from floats, where contracting and reassociating takes them across a step: two entries
of a table."""


@dataclass(frozen=True)
class Problem:
    pipeline: Pipeline
    regions: dict[str, Region]
    inputs: dict[str, Image]
    expected: dict[str, tuple[np.ndarray, ...]]
    within: int = 0  # how far integers may be off


@cache
def loaded(name: str) -> Pipeline:
    return pipelines.load(name)


@cache
def scheduled(name: str, platform: Platform, method: str = "default") -> Compiled:
    """The schedule and the C of a shipped pipeline: many tests ask for the same."""
    return compile_pipeline(loaded(name), platform, Options(method))


def cases(names: Iterable[str], sizes: Iterable[str] = tuple(SIZES)) -> list[tuple[str, str]]:
    """Every pipeline with every size that the interpreter computes in reasonable time."""
    left_out = {name: () if name in LIGHT else LARGE for name in names} | HEAVY
    return [(name, size) for name in names for size in sizes if size not in left_out[name]]


def narrow_or_wide(name: str) -> Platform:
    """A machine for a shipped pipeline: its vectors have 16, 32 or 64 bytes, each for a third of the pipelines."""
    return machine(vector_bytes=(16, 64, 32)[pipelines.names().index(name) % 3])


@cache
def found(name: str) -> SearchResult:
    """The six best schedules of a shipped pipeline by the default method for `machine()`: many tests ask for some."""
    return autoschedule(loaded(name), machine(), SearchOptions("default", top=6))


@cache
def planned(name: str) -> Plan:
    """The plan of a shipped pipeline by the default method for `narrow_or_wide`: many tests ask for the same."""
    return autoschedule(loaded(name), narrow_or_wide(name)).plan


@cache
def lowered(name: str) -> Program:
    """The loop program of `planned`, ahead of all passes over it."""
    return lower(planned(name), narrow_or_wide(name))


@cache
def problem(name: str, size: str) -> Problem:
    """Inputs without boundary have what is required, the others are as large as the output."""
    pipeline = loaded(name)
    plane = SIZES[size]
    regions = {o: _region(pipeline, o, pipeline.stage(o).dims, plane) for o in pipeline.outputs}
    whole = {i.name: _region(pipeline, i.name, i.dims, plane) for i in pipeline.inputs}
    params = {p.name: p.default for p in pipeline.params if p.default is not None}
    required = required_regions(normalise(pipeline), regions, params, whole)
    rng = np.random.default_rng(7)
    inputs = {}
    for i in pipeline.inputs:
        region = whole[i.name] if i.boundary is not None else required[i.name]
        inputs[i.name] = Image(random_array(i.type, region, rng), tuple(lo for lo, _ in region))
    expected = interpret(pipeline, inputs, {}, regions)
    return Problem(pipeline, regions, inputs, expected, WITHIN.get(name, 0))


def _region(pipeline: Pipeline, name: str, dims: tuple[str, ...], plane: Region | None) -> Region:
    """x and y are the plane's, further dims as estimated."""
    estimate = pipeline.estimate(name) or pipeline.estimate(pipeline.outputs[0]) or ()
    if plane is None:
        return estimate
    return tuple(plane["xy".index(d)] if d in "xy" else estimate[n] for n, d in enumerate(dims))


def random_array(type_: ScalarType, region: Region, rng: np.random.Generator) -> np.ndarray:
    shape = tuple(extent for _, extent in reversed(region))
    if type_.is_float and len(shape) > 3:
        limit = largest_weight(shape)
        return rng.uniform(-limit, limit, shape).astype(type_.numpy)
    if type_.is_float:
        return rng.random(shape, dtype=type_.numpy) + type_.numpy.type(0.01)
    return rng.integers(type_.min, type_.max, shape, dtype=type_.numpy, endpoint=True)


def assert_right(
    got: dict[str, tuple[np.ndarray, ...]], expected: dict[str, tuple[np.ndarray, ...]], within: int = 0
) -> None:
    """Integers equal, or at most `within` off and few by more than 1; floats within TOLERANCE of the largest
    magnitude."""
    assert got.keys() == expected.keys()
    for name, arrays in expected.items():
        for a, b in zip(got[name], arrays, strict=True):
            if b.dtype.kind != "f":
                if not within:
                    np.testing.assert_array_equal(a, b, err_msg=name)
                    continue
                assert a.dtype == b.dtype, name
                apart = np.maximum(a, b) - np.minimum(a, b)
                assert int(apart.max()) <= within, name
                assert np.mean(apart > 1) <= 0.01, name
                continue
            assert np.isfinite(b).all(), name
            largest = float(np.abs(b).max())
            np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE * largest, err_msg=name)
