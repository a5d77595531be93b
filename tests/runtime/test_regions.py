"""The largest region that the inputs allow: against closed forms, and against the compiled code's own answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hand_written_c import pairs

from tilesmith.app.runtime.regions import default_regions, largest_regions
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.arguments import Image, Region, RegionError
from tilesmith.scheduler.ir.pipeline.pipeline import Boundary, Input, Pipeline, Stage
from tilesmith.scheduler.ir.pipeline.types import FLOAT32
from tilesmith.scheduler.rewrites.passes import normalise

Need = Callable[[tuple[int, int]], tuple[int, int]]  # (first, last) of an output dim -> of an input dim


def search(needs: Mapping[str, tuple[str, Need]], image: Region, estimate: Region | None = None) -> Region:
    """The region found for an output with dims of `needs`, each of which needs a dim of the image by itself."""
    dims = tuple(needs)
    calls = []

    def query(regions: Mapping[str, Region]) -> Mapping[str, Region]:
        calls.append(regions)
        required: list[tuple[int, int]] = [(0, 0)] * len(image)
        for (low, extent), (name, need) in zip(regions["out"], needs.values(), strict=True):
            first, last = need((low, low + extent - 1))
            required["xyc".index(name)] = (first, last - first + 1)
        return {"in": tuple(required)}

    sizes = estimate or tuple((0, 100) for _ in dims)
    pipeline = Pipeline(
        name="p",
        doc="",
        params=(),
        inputs=(Input("in", FLOAT32, tuple("xyc"[: len(image)]), None, tuple("xyc"[: len(image)])),),
        stages=(Stage("out", dims, (), (), None, dims),),
        outputs=("out",),
        estimates=(("out", sizes),),
    )
    found = default_regions(query, pipeline, {"in": image}, {})["out"]
    assert len(calls) < 600
    return found


def stencil(before: int, after: int) -> Need:
    return lambda r: (r[0] - before, r[1] + after)


@settings(max_examples=60, deadline=None)
@given(st.integers(-50, 50), st.integers(8, 5000), st.integers(0, 3), st.integers(0, 3))
def test_a_stencil(low: int, extent: int, before: int, after: int) -> None:
    needs = {"x": ("x", stencil(before, after))}
    assert search(needs, ((low, extent),)) == ((low + before, extent - before - after),)


@settings(max_examples=60, deadline=None)
@given(st.integers(-50, 50), st.integers(8, 3000), st.integers(2, 5), st.integers(0, 2))
def test_a_downsampled_stage(low: int, extent: int, rate: int, after: int) -> None:
    found = search({"x": ("x", lambda r: (rate * r[0], rate * r[1] + after))}, ((low, extent),))
    first = -(-low // rate)
    last = (low + extent - 1 - after) // rate
    assert found == ((first, last - first + 1),)


@settings(max_examples=60, deadline=None)
@given(st.integers(-50, 50), st.integers(1, 3000), st.integers(2, 8))
def test_an_upsampled_stage(low: int, extent: int, rate: int) -> None:
    found = search({"x": ("x", lambda r: (r[0] // rate, r[1] // rate))}, ((low, extent),))
    assert found == ((rate * low, rate * extent),)


def test_a_mirrored_stage() -> None:
    assert search({"x": ("x", lambda r: (1000 - r[1], 1000 - r[0]))}, ((0, 100),)) == ((901, 100),)


def test_dims_of_other_names_and_orders() -> None:
    needs = {"j": ("y", stencil(1, 1)), "i": ("x", stencil(0, 2))}
    assert search(needs, ((0, 640), (0, 480))) == ((1, 478), (0, 638))


def test_far_from_the_origin() -> None:
    needs = {"i": ("x", stencil(1, 1)), "j": ("y", stencil(1, 1))}
    found = search(needs, ((5000, 64), (-9000, 32)), estimate=((0, 200), (0, 200)))
    assert found == ((5001, 62), (-8999, 30))


def test_a_boundary_gives_the_size_of_the_input() -> None:
    def clamped(r: tuple[int, int]) -> tuple[int, int]:
        return min(max(r[0] - 1, 5), 44), min(max(r[1] + 1, 5), 44)

    assert search({"x": ("x", clamped)}, ((5, 40),)) == ((5, 40),)
    assert search({"i": ("x", clamped)}, ((5, 40),)) == ((0, 100),)  # no dim of that name: the estimate


def test_one_dim_bounded_and_one_not() -> None:
    needs: dict[str, tuple[str, Need]] = {"x": ("x", stencil(1, 1)), "y": ("y", lambda r: (3, 3))}
    assert search(needs, ((0, 50), (0, 20))) == ((1, 48), (0, 20))


def test_a_side_that_grows_without_end() -> None:
    assert search({"x": ("x", lambda r: (max(r[0], 0), r[1]))}, ((0, 50),)) == ((0, 50),)


@pytest.mark.parametrize("extent", [1, 2])
def test_an_image_that_is_too_small(extent: int) -> None:
    with pytest.raises(RegionError, match="input in is too small, dim x"):
        search({"x": ("x", stencil(1, 1))}, ((0, extent),))


def test_a_table_that_is_too_short() -> None:
    with pytest.raises(RegionError, match=r"dim y: .* needs 0\.\.255, the image has 0\.\.99"):
        search({"x": ("x", stencil(0, 0)), "v": ("y", lambda r: (0, 255))}, ((0, 50), (0, 100)))


def grown(region: Region, dim: int, before: int, after: int) -> Region:
    low, extent = region[dim]
    return (*region[:dim], (low - before, extent + before + after), *region[dim + 1 :])


@pytest.mark.parametrize("name", pipelines.names())
@pytest.mark.parametrize("size", [(64, 48), (37, 101)])
def test_shipped_pipelines(name: str, size: tuple[int, int]) -> None:
    pipeline = pipelines.load(name)
    extent_of = {"x": size[0], "y": size[1], "c": 4}
    inputs = {}
    for i in pipeline.inputs:
        planned = pipeline.estimate(i.name) or ((0, 4),) * len(i.dims)
        extents = [extent_of.get(d, extent) for d, (_, extent) in zip(i.dims, planned, strict=True)]
        inputs[i.name] = Image(np.zeros(extents[::-1], i.type.numpy), (0,) * len(i.dims))
    params = {p.name: p.default if p.default is not None else 1 for p in pipeline.params}
    found = largest_regions(pipeline, inputs, params)
    available = {n: tuple((0, e) for e in image.extent) for n, image in inputs.items()}
    values = {p.name: params[p.name] for p in pipeline.params}

    def fits(regions: Mapping[str, Region]) -> bool:
        need = required_regions(normalise(pipeline), regions, values, available)
        return all(
            low >= has and low + extent <= has + size
            for name in available
            for (low, extent), (has, size) in zip(need.get(name, ()), available[name], strict=False)
        )

    assert fits(found)
    for output, region in found.items():
        for dim, (low, extent) in enumerate(region):
            assert extent >= 1
            unbounded = fits(found | {output: grown(region, dim, 500, 500)})
            assert unbounded or not fits(found | {output: grown(region, dim, 1, 0)})
            assert unbounded or not fits(found | {output: grown(region, dim, 0, 1)})
            if unbounded:
                d = pipeline.stage(output).dims[dim]
                of_images = any(d in i.dims for i in pipeline.inputs)
                assert (low, extent) == ((0, extent_of[d]) if of_images else pipeline.estimate(output)[dim])


def test_by_the_analysis_of_a_pipeline() -> None:
    image = Image(np.zeros((20, 30), np.float32), (-3, 4))
    assert largest_regions(pairs(), {"image": image}, {}) == {"twice": ((-3, 29), (4, 20))}
    bounded = pairs(Boundary("repeat_edge"))
    assert largest_regions(bounded, {"image": image}, {}) == {"twice": ((-3, 30), (4, 20))}


def test_the_largest_input_gives_a_size_that_boundaries_leave_open() -> None:
    """Whatever the inputs are called: the coarse table of gains comes first by its name."""
    edge = {"kind": "repeat_edge"}
    document = {
        "format": 1, "name": "shaded",
        "inputs": [
            {"name": name, "type": "float32", "dims": ["x", "y"], "boundary": edge} for name in ("gain", "photo")
        ],
        "stages": [{"name": "out", "dims": ["x", "y"], "value": "photo(x - 1, y) * gain(x // 8, y // 8)"}],
        "outputs": ["out"], "estimates": {"out": [[0, 8], [0, 8]]},
    }  # fmt: skip
    sizes = {"gain": (3, 4), "photo": (20, 30)}
    images = {name: Image(np.zeros(size, np.float32), (0, 0)) for name, size in sizes.items()}
    assert largest_regions(load(document), images, {}) == {"out": ((0, 30), (0, 20))}


def test_an_output_that_has_a_boundary_ends_where_its_domain_does() -> None:
    document = {
        "format": 1,
        "name": "halved",
        "params": [{"name": "more", "type": "int32", "min": 0, "max": 9}],
        "inputs": [{"name": "image", "type": "float32", "dims": ["x", "y"], "boundary": {"kind": "repeat_edge"}}],
        "stages": [
            {
                "name": "half",
                "dims": ["x", "y"],
                "value": "image(2 * x, y)",
                "boundary": {
                    "kind": "constant",
                    "value": "0",
                    "domain": [["image.min.x // 2", "image.extent.x // 2 + more"], ["image.min.y", "image.extent.y"]],
                },
            }
        ],
        "outputs": ["half"],
        "estimates": {"half": [[0, 8], [0, 8]]},
    }
    pipeline, image = load(document), Image(np.zeros((20, 31), np.float32), (-4, 4))
    assert largest_regions(pipeline, {"image": image}, {"more": 3}) == {"half": ((-2, 18), (4, 20))}
