"""Integers that follow from params by way of floats: a call computes and requires what it takes at its params."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from support.calls import call
from support.machines import here
from support.native import build, source_of

from tilesmith.scheduler.features.pipeline.required_regions import required_regions
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.interpreter.interpreter import Image, interpret
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.passes import normalise
from tilesmith.scheduler.search import SearchOptions, autoschedule

RADIUS = "int32(min(float32(n) * scale, 9.5))"


def blur(radius: str = RADIUS) -> Pipeline:
    """A blur of a radius that params say, and a read that is as far away as data says, up to it."""
    image = {"name": "image", "type": "uint8", "dims": ["x", "y"]}
    far = f"clamp(int32(image(x, y)) - 99, -{radius}, {radius})"
    stages = [
        {"name": "twice", "dims": ["x", "y"], "value": "int32(image(x, y)) * 2"},
        {"name": "rows", "dims": ["x", "y"], "value": f"sum(twice(x + r, y) for r in range(-{radius}, {radius} + 1))"},
        {"name": "out", "dims": ["x", "y"], "value": f"rows(x, y - {radius}) + rows(x + {far}, y)"},
    ]
    document = {
        "format": 1,
        "name": "derived",
        "params": [
            {"name": "n", "type": "int32", "default": 3, "min": 0, "max": 7},
            {"name": "scale", "type": "float32", "default": 1.0, "min": 0, "max": 2},
        ],
        "inputs": [image],
        "stages": stages,
        "outputs": ["out"],
        "estimates": {"out": [[0, 40], [0, 24]]},
    }
    return load(document)


def test_a_radius_is_a_param_that_follows() -> None:
    plain = normalise(blur())
    (radius,) = [p for p in plain.params if p.value is not None]
    assert (radius.default, radius.min, radius.max) == (3, 0, 9)
    assert normalise(plain) is plain
    assert normalise(plain).params[:2] == blur().params


@pytest.mark.parametrize("radius", ["n + 1", "7 * n", "int32(exp(float32(n) * scale))"])
def test_what_bounds_see_through_or_machines_differ_in_is_left(radius: str) -> None:
    assert len(normalise(blur(f"clamp({radius}, 0, 9)")).params) == 2


@pytest.mark.parametrize("params", [{"n": 0, "scale": 2.0}, {"n": 3, "scale": 0.7}, {"n": 7, "scale": 2.0}])
def test_a_call_takes_what_its_params_make_it_take(params: Mapping[str, float]) -> None:
    of, platform = blur(), here()
    schedule = autoschedule(of, platform, SearchOptions()).schedule
    source = source_of(of, schedule, platform)
    library = build(source, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"))
    r = int(min(params["n"] * np.float32(params["scale"]), np.float32(9.5)))
    for region in (((0, 40), (0, 24)), ((-3, 5), (7, 1))):
        (x, w), (y, h) = region
        needed = required_regions(normalise(of), {"out": region}, params, {})
        assert needed["image"] == ((x - 2 * r, w + 4 * r), (y - r, h + r))
        pixels = np.random.default_rng(r).integers(80, 120, (h + r, w + 4 * r), dtype=np.uint8)
        image = Image(pixels, (x - 2 * r, y - r))
        expected = interpret(of, {"image": image}, params, {"out": region})["out"]
        status, got = call(library, source, of, {"image": image}, params, {"out": region})
        assert status == 0
        np.testing.assert_array_equal(got["out"][0], expected[0])
        if r:
            small = Image(pixels[:, 1:].copy(), (x - 2 * r + 1, y - r))
            assert call(library, source, of, {"image": small}, params, {"out": region})[0] == 1
