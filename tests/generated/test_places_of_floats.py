"""Indices that floats are rounded to: exactly what they read is required, and read in every mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from support.calls import Region, call
from support.machines import here
from support.native import build
from support.places import Params, assert_computes, assert_exact, document, inferred

from tilesmith.platforms import Platform
from tilesmith.scheduler.compiler import compile_pipeline, generate
from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.document import load_text
from tilesmith.scheduler.ir.pipeline.arguments import Image
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.ir.schedule.schedule import Schedule
from tilesmith.scheduler.search import root_schedule

F32 = "float32"
RATIO = "float32(big.extent.{0}) / float32(small.extent.{0})"
HALF_PIXELS = "int32(floor((float32({0}) + 0.5) * (float32(big.extent.{0}) / float32(n)) - 0.5))"
REGION: Region = ((0, 64), (0, 48))
PART: Region = ((-9, 33), (5, 7))

SCALE = {"name": "s", "type": F32, "default": 2.0}
RANGED = {**SCALE, "min": 1.5, "max": 8.0}
COUNT = {"name": "n", "type": "int32", "default": 64, "min": 1, "max": 4096}
INDICES: dict[str, tuple[str, str, Mapping[str, object] | None, Params]] = {
    "constants": ("x + int32(ceil(2.0))", "y + int32(round(float64(2.5) * float64(3.0)))", None, {}),
    "a quotient": ("int32(floor(float32(x) / 4.0))", "int32(floor(float32(y) * 0.25))", None, {}),
    "a quotient rounded down": ("int32(float32(x) // 3.7)", "int32((float32(y) - 20.0) // s)", RANGED, {"s": 2.7}),
    "a divisor with a range": ("int32(floor(float32(x) / s))", "int32(ceil(float32(y) / s))", RANGED, {"s": 2.7}),
    "any factor": ("int32(floor((float32(x) - 20.3) * s))", "int32(float32(y) - s)", SCALE, {"s": -2.3}),
    "any divisor": ("int32(round(abs(float32(x) - 20.0) / s))", "y", SCALE, {"s": -3.3}),
    "clamps": ("int32(clamp(float32(x) * 2.0 - 7.5, 0.0, s))", "int32(max(float32(y) * 0.7, s))", SCALE, {"s": 30.3}),
    "two variables": ("int32(float32(y) * 0.7 - float32(x) * 0.3)", "int32(sqrt(max(float32(y), 0.0)))", None, {}),
    "integers of params": ("x + p", "y * p", {"name": "p", "type": "int32", "default": 1}, {"p": -3}),
}


@pytest.mark.parametrize("name", INDICES)
def test_what_is_read_is_required(name: str) -> None:
    at_x, at_y, param, values = INDICES[name]
    of = document({"out": f"image({at_x}, {at_y})"}, {"image": F32}, [param] if param else [])
    for region in (REGION, PART):
        assert_exact(of, region, values, {})


def test_a_factor_that_two_images_say() -> None:
    at = ", ".join(f"{d} // int32(ceil({RATIO.format(d)}))" for d in "xy")
    of = document({"twice": "small(x, y) * 2.0", "out": f"big(x, y) + twice({at})"}, {"big": F32, "small": F32})
    images: dict[str, Region] = {"big": REGION, "small": ((0, 8), (0, 6))}
    assert_exact(of, REGION, {}, images)
    assert_computes(of, REGION, {}, images)


@pytest.mark.parametrize("n", [9, 100])
def test_a_resize_by_what_is_known_at_run_time(n: int) -> None:
    """Were places rounded otherwise in relaxed code, one of them would be outside of the image, or another pixel."""
    left, right = (f"clamp({HALF_PIXELS.format('x')} + {k}, 0, big.extent.x - 1)" for k in (0, 1))
    of = document({"row": f"big({left}, y) + big({right}, y)", "out": "row(x, y + 1)"}, {"big": "int32"}, [COUNT])
    region, images = ((0, n), (0, 48)), {"big": ((0, 121), (1, 48))}
    assert inferred(of, region, {"n": n}, images)["big"][0] == ((6, 109) if n == 9 else (0, 121))
    assert_exact(of, region, {"n": n}, images)
    assert_computes(of, region, {"n": n}, images)


@pytest.mark.parametrize("by", [2.3, -2.3])
def test_what_a_quotient_leaves_is_below_the_divisor(by: float) -> None:
    """A remainder of floats is between 0 and the divisor, but for what rounding adds."""
    at = "int32(float32(x) * 1.7 % 19.5), int32(floor((float32(y) - 7.0) * 0.37 % s))"
    of = document({"out": f"image({at})"}, {"image": "int32"}, [SCALE])
    for region in (REGION, PART):
        assert inferred(of, region, {"s": by}, {})["image"] == ((0, 20), (-1, 4) if by > 0 else (-3, 4))
        assert_computes(of, region, {"s": by}, {})


def test_remainders_of_data_are_bounded() -> None:
    of = document({"out": "image(int32(clamp(data(x, y), -4.0, 4.0) * 3.0 % 5.5), y)"}, {"image": "int32", "data": F32})
    assert inferred(of, REGION, {}, {})["image"][0] == (0, 6)
    assert_computes(of, REGION, {}, {})


@pytest.mark.parametrize("name", ["a divisor with a range", "any factor"])
def test_code_reads_no_more(name: str) -> None:
    at_x, at_y, param, values = INDICES[name]
    stages = {"pair": "image(x, y) + image(x + 1, y)", "out": f"pair({at_x}, {at_y}) + pair(x, y)"}
    assert_computes(document(stages, {"image": "int32"}, [param] if param else []), PART, values, {})


@pytest.mark.parametrize(
    "index", ["int32(exp(float32(x)))", "int32(float32(x) / (float32(x) - 3.5))", "int32(v(x))", "int32(v(x) % 2.0)"]
)
def test_what_has_no_bounds_is_refused(index: str) -> None:
    with pytest.raises(DocumentError, match="unbounded_index"):
        document({"v": {"dims": ["x"], "value": "image(x, 0) * 2.0"}, "out": f"image({index}, y)"}, {"image": F32})


PLACE = "float32(x) * 0.3 - float32(y) * 0.7"
RAMP = """
format: 1
name: ramp
inputs:
  - {{name: a, type: float32, dims: [x], boundary: {{kind: repeat_edge}}}}
stages:
  - name: at
    dims: [x, y]
    value: {place}
  - name: weight
    dims: [x, y]
    value: clamp({at} - floor({at}), 0.0, 1.0)
  - name: between
    dims: [x, y]
    value: >-
      lerp(a(clamp(int32(floor({at})), -300, 300) + 300), a(clamp(int32(floor({at})), -300, 300) + 301), weight(x, y))
outputs: [between]
estimates: {{a: [[0, 602]], between: [[0, 300], [0, 300]]}}
"""


@pytest.mark.parametrize("at", [PLACE, "at(x, y)"])
@pytest.mark.parametrize("make", [root_schedule, lambda p, m: compile_pipeline(p, m).schedule])
def test_a_weight_is_of_the_point_that_is_read(at: str, make: Callable[[Pipeline, Platform], Schedule]) -> None:
    """The place is contracted where it is a value, and rounded where it is an index: their floors are one, of stages in
    memory, too."""
    pipeline = load_text(RAMP.format(place=PLACE, at=at), yaml=True)
    source = generate(pipeline, make(pipeline, here()), here())
    images = {"a": Image(np.arange(-300, 302, dtype=np.float32), (0,))}
    status, got = call(build(source, ("-O1",)), source, pipeline, images, {}, {"between": ((0, 300), (0, 300))})
    x, y = np.meshgrid(np.arange(300), np.arange(300))
    assert status == 0
    np.testing.assert_allclose(got["between"][0], 0.3 * x - 0.7 * y, atol=1e-3)
    floors = re.findall(r"ts_floor_f32x\d+\((\w+?)(?:_f32x\d+)?[(),]", source.code)
    assert floors
    named = set(re.findall(r" (t_\d+(?:_[ab])?) = ts_opaque_", source.code))  # those that are used besides
    assert set(floors) <= {"ts_opaque", *named}
