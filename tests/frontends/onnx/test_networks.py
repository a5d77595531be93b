"""Whole networks of ONNX, compiled and called, against onnxruntime; open sizes; chains of operators by chance."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_models import by_onnxruntime, close, floats, interpreted, model
from onnx_networks import NETWORKS, Network, super_resolution

import tilesmith as ts
from tilesmith.scheduler.frontends.document.document import load, to_document
from tilesmith.scheduler.frontends.onnx.importer import from_onnx


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_is_compiled_computes_what_onnxruntime_does(name, tmp_path):
    found = NETWORKS[name]()
    path = tmp_path / "network.onnx"
    onnx.save(found, path)
    image = floats(*(d.dim_value for d in found.graph.input[0].type.tensor_type.shape.dim))
    result = ts.compile(path)(image)
    assert close(result, by_onnxruntime(found, {"image": image})[0])


@pytest.mark.parametrize("name", NETWORKS)
def test_the_document_of_a_network_is_canonical_and_has_its_weights(name):
    found = from_onnx(NETWORKS[name]())
    document = to_document(found.pipeline)
    assert load(document) == found.pipeline
    assert list(found.weights) == [i.name for i in found.pipeline.inputs][1:]
    for name, array in found.weights.items():
        assert found.pipeline.input(name).type.numpy == array.dtype
        assert len(found.pipeline.input(name).dims) == array.ndim


def test_sizes_that_are_left_open_are_those_of_the_call():
    found = super_resolution(["N", 1, "H", "W"])
    ours = from_onnx(found)
    for shape in ((1, 1, 6, 9), (2, 1, 11, 7)):
        image = floats(*shape)
        (result,) = interpreted(ours, {"image": image})
        assert close(result, by_onnxruntime(found, {"image": image})[0])


def test_open_sizes_meet_reductions_normalisation_pools_and_padding():
    n = Network(channels={"image": 2})
    x = n.add("InstanceNormalization", n.conv("image", 4), n.weight(4), n.weight(4))
    x = n.add("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    n.weights["pads"] = np.array([0, 0, 1, 2, 0, 0, 2, 1], np.int64)
    x = n.add("Pad", x, "pads", mode="reflect")
    found = n.made({"image": (np.float32, [1, 2, "H", "W"])}, [x, n.add("Softmax", n.add("Flatten", x), axis=1)])
    image = floats(1, 2, 9, 12)
    for ours, theirs in zip(
        interpreted(from_onnx(found), {"image": image}), by_onnxruntime(found, {"image": image}), strict=True
    ):
        assert close(ours, theirs)


def test_open_sizes_can_be_fixed():
    found = from_onnx(super_resolution(["N", 1, "H", "W"]), {"N": 1, "H": 8, "W": 10})
    assert dict(found.pipeline.estimates)["image"] == ((0, 10), (0, 8), (0, 1), (0, 1))
    assert "extent" not in str(to_document(found.pipeline))


def test_what_is_worked_out_from_constants_is_no_stage():
    n = Network(channels={"image": 2})
    n.weights |= {"one": np.int64(1), "minus": np.array([-1], np.int64), "zero": np.array([0], np.int64)}
    size = n.add("Gather", n.add("Shape", "image"), "one", axis=0)
    shape = n.add("Concat", n.add("Unsqueeze", size, "zero"), "minus", axis=0)
    found = n.made({"image": (np.float32, [1, 2, 3, 4])}, [n.add("Reshape", "image", shape)])
    ours = from_onnx(found)
    assert [s.name for s in ours.pipeline.stages] == [found.graph.output[0].name]
    assert not ours.weights
    image = floats(1, 2, 3, 4)
    assert close(interpreted(ours, {"image": image})[0], image.reshape(2, -1))


def test_a_convolution_and_what_follows_it_point_by_point_are_one_stage():
    n = Network(channels={"image": 2})
    found = n.made({"image": (np.float32, [1, 2, 8, 8])}, [n.add("Relu", n.norm(n.conv("image", 4)))])
    assert len(from_onnx(found).pipeline.stages) == 1


STEPS = {
    "relu": lambda n, x: n.add("Relu", x),
    "sigmoid": lambda n, x: n.add("Sigmoid", x),
    "conv": lambda n, x: n.conv(x, 3),
    "wide": lambda n, x: n.conv(x, 16),
    "strided": lambda n, x: n.conv(x, 2, 3, 2),
    "point": lambda n, x: n.conv(x, 4, 1),
    "depthwise": lambda n, x: n.conv(x, n.channels[x], 3, group=n.channels[x]),
    "norm": lambda n, x: n.norm(x),
    "max": lambda n, x: n.add("MaxPool", x, kernel_shape=[2, 2], pads=[1, 0, 0, 1]),
    "mean": lambda n, x: n.add("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "twice": lambda n, x: n.add("Add", x, n.add("Tanh", x)),
    "concat": lambda n, x: n.add("Concat", x, n.add("Neg", x), channels=2 * n.channels[x], axis=1),
    "turned": lambda n, x: n.add("Transpose", n.add("Transpose", x, perm=[0, 1, 3, 2]), perm=[0, 1, 3, 2]),
    "softmax": lambda n, x: n.add("Softmax", x, axis=1),
    "squeeze": lambda n, x: n.add("Mul", x, n.add("GlobalAveragePool", x)),
}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6))
def test_chains_of_operators(steps):
    n = Network(channels={"image": 2})
    x = "image"
    for step in steps:
        x = STEPS[step](n, x)
    found = n.made({"image": (np.float32, [1, 2, 13, 12])}, [x])
    image = floats(1, 2, 13, 12)
    assert close(interpreted(from_onnx(found), {"image": image})[0], by_onnxruntime(found, {"image": image})[0])


def test_every_output_is_a_stage_of_its_own():
    nodes = [
        onnx.helper.make_node("Identity", ["image"], ["same"]),
        onnx.helper.make_node("Relu", ["image"], ["above"]),
    ]
    found = from_onnx(model(nodes, {"image": (np.float32, [2, 3])}, {}, ["same", "above"]))
    image = floats(2, 3)
    same, above = interpreted(found, {"image": image})
    assert close(same, image)
    assert close(above, np.maximum(image, 0))


def test_long_chains_point_by_point_are_several_stages():
    n = Network(channels={"image": 1})
    x = "image"
    for _ in range(150):
        x = n.add("Neg", n.add("Add", x, "image"))
    found = n.made({"image": (np.float32, [1, 1, 2, 3])}, [x])
    ours, image = from_onnx(found), floats(1, 1, 2, 3)
    assert 1 < len(ours.pipeline.stages) < 20
    assert close(interpreted(ours, {"image": image})[0], by_onnxruntime(found, {"image": image})[0])


def test_many_tensors_one_behind_the_other():
    n = Network(channels={"image": 1})
    parts = [n.add("Add", "image", n.weight(1)) for _ in range(300)]
    found = n.made({"image": (np.float32, [1, 1, 2, 3])}, [n.add("Concat", *parts, axis=1)])
    image = floats(1, 1, 2, 3)
    assert close(interpreted(from_onnx(found), {"image": image})[0], by_onnxruntime(found, {"image": image})[0])


def test_masks_that_the_model_has():
    n = Network(channels={"image": 1})
    n.weights |= {"mask": floats(3, 4) > 0, "zero": np.float32(0)}
    found = n.made({"image": (np.float32, [2, 3, 4])}, [n.add("Where", "mask", "image", "zero")])
    image = floats(2, 3, 4)
    assert close(interpreted(from_onnx(found), {"image": image})[0], by_onnxruntime(found, {"image": image})[0])


def test_sizes_that_are_worked_out_at_the_call():
    n = Network(channels={"image": 1})
    n.weights |= {"rows": np.array([2], np.int64), "two": np.array([2], np.int64), "rest": np.array([-1], np.int64)}
    shape = n.add("Shape", "image")
    rows = n.add("Gather", shape, "rows", axis=0)
    half = n.add("Concat", n.add("Div", rows, "two"), "two", "rest", axis=0)
    found = n.made(
        {"image": (np.float32, [1, 1, "H", "W"])}, [n.add("Reshape", "image", half), n.add("Mul", shape, "two")]
    )
    image = floats(1, 1, 6, 10)
    wanted = by_onnxruntime(found, {"image": image})
    for ours, theirs in zip(interpreted(from_onnx(found), {"image": image}), wanted, strict=True):
        assert close(ours, theirs)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("how", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
def test_open_sizes_are_resized_to_others(mode, how):
    n = Network(channels={"image": 1})
    wide = n.add("Shape", "image", start=2)
    first = n.add("Shape", "image", end=2)
    n.weights["more"] = np.array([5, 3], np.int64)
    size = n.add("Concat", first, n.add("Add", wide, "more"), axis=0)
    rounding = {"nearest_mode": "round_prefer_ceil"} if how == "half_pixel" else {"nearest_mode": "floor"}
    large = n.add("Resize", "image", "", "", size, mode=mode, coordinate_transformation_mode=how, **rounding)
    found = n.made({"image": (np.float32, ["N", 1, "H", "W"])}, [large])
    image = floats(1, 1, 8, 16)
    ours, (wanted,) = from_onnx(found), by_onnxruntime(found, {"image": image})
    assert close(interpreted(ours, {"image": image})[0], wanted)
