"""Inputs made up at the estimates: sizes, values, and the same ones every time."""

import numpy as np
import pytest

from tilesmith.app.runtime import estimates
from tilesmith.scheduler import pipelines
from tilesmith.scheduler.frontends.document.document import load


def document(value, type_="uint8", boundary=None, **sizes):
    image = {"name": "input", "type": type_, "dims": ["x", "y"]}
    return load(
        {
            "format": 1,
            "name": "p",
            "inputs": [image | ({"boundary": {"kind": boundary}} if boundary else {})],
            "stages": [{"name": "output", "dims": ["x", "y"], "value": value}],
            "outputs": ["output"],
            "estimates": {"output": [[2, 30], [5, 20]]} | sizes,
        }
    )


def test_what_the_outputs_read_is_made():
    pipeline = document("input(x - 1, 2 * y) + input(x + 3, 2 * y + 1)")
    assert estimates.input_regions(pipeline, {}) == {"input": ((1, 34), (10, 40))}
    image = estimates.images(pipeline, {})["input"]
    assert image.min == (1, 10)
    assert image.array.shape == (40, 34)


def test_an_estimate_of_the_input_counts():
    pipeline = document("input(x, y)", boundary="repeat_edge", input=[[0, 7], [0, 9]])
    assert estimates.input_regions(pipeline, {}) == {"input": ((0, 7), (0, 9))}


def test_a_boundary_is_filled_in():
    pipeline = document("input(x - 1, y) + input(x + 1, y)", boundary="mirror_image")
    assert estimates.input_regions(pipeline, {}) == {"input": ((1, 32), (5, 20))}


@pytest.mark.parametrize("type_", ["bool", "int8", "uint16", "int64", "uint64", "float32", "float64"])
def test_values_use_the_range_of_the_type(type_):
    pipeline = document("input(x, y)", type_, input=[[0, 100], [0, 100]], output=[[0, 100], [0, 100]])
    array = estimates.images(pipeline, {})["input"].array
    assert array.dtype == np.dtype(type_)
    if array.dtype.kind == "f":
        assert array.min() >= 0
        assert 0.99 < array.max() < 1
    elif array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        assert float(array.max()) - float(array.min()) > 0.9 * (float(info.max) - float(info.min))
    else:
        assert array.any()
        assert not array.all()


@pytest.mark.slow
@pytest.mark.parametrize("name", pipelines.names())
def test_the_shipped_pipelines_have_inputs_that_are_the_same_every_time(name):
    pipeline = pipelines.load(name)
    params = {p.name: p.default for p in pipeline.params}
    first, again = (estimates.images(pipeline, params) for _ in range(2))
    assert set(first) == {i.name for i in pipeline.inputs}
    for key, image in first.items():
        assert image.min == again[key].min
        assert np.array_equal(image.array, again[key].array)


def test_channels_of_pictures():
    colour, gray = pipelines.load("harris"), pipelines.load("sobel")
    assert estimates.channels(colour, colour.input("input"), {}) == 3
    assert estimates.channels(gray, gray.input("input"), {}) is None


def test_params_have_their_defaults():
    pipeline = pipelines.load("camera_pipe")
    given = {p.name: p.default for p in pipeline.params}
    assert given
    assert estimates.input_regions(pipeline, {}) == estimates.input_regions(pipeline, given)
