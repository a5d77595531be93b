"""Models that no pipeline can be made of: every reason is told, with its node; files that are hostile."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import floats, model
from onnx_networks import resnet

from tilesmith.scheduler.frontends.importer import ImportFailed
from tilesmith.scheduler.frontends.onnx.importer import OnnxImporter, from_onnx

IMAGE = {"image": (np.float32, [1, 2, 8, 8])}


def problems(found) -> list[tuple[str, str | None]]:
    with pytest.raises(ImportFailed) as refused:
        OnnxImporter().read(found if isinstance(found, bytes) else found.SerializeToString())
    return list(refused.value.problems)


def chain(*nodes: onnx.NodeProto, **constants: np.ndarray) -> onnx.ModelProto:
    graph = model([], IMAGE, constants, ["result"])
    graph.graph.node.extend(nodes)
    return graph


def test_all_that_cannot_be_said_is_told_with_its_node():
    found = chain(
        helper.make_node("NonMaxSuppression", ["image", "image"], ["a"], name="/head/nms"),
        helper.make_node("MaxPool", ["image"], ["b", "indices"], name="/pool", kernel_shape=[2, 2]),
        helper.make_node("Resize", ["image", "", "scales"], ["c"], name="/up", antialias=1, mode="linear"),
        helper.make_node("Add", ["a", "b"], ["result"], name="/add"),
        scales=np.float32([1, 1, 2, 2]),
    )
    assert [message for message, _ in problems(found)] == [
        "node '/head/nms' (NonMaxSuppression): the operator cannot be said",
        "node '/pool' (MaxPool): the indices of a pool",
        "node '/up' (Resize): attribute antialias = 1",
    ]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (helper.make_node("Conv", ["image", "w"], ["result"], auto_pad="ODD"), "auto_pad = 'ODD'"),
        (helper.make_node("Conv", ["image", "w"], ["result"], pads=[1, 1]), "attribute pads = [1, 1]"),
        (helper.make_node("Conv", ["image", "w"], ["result"], strides=[0, 1]), "stride 0"),
        (helper.make_node("Conv", ["image", "w"], ["result"], group=2), "weights of 4 x 2 channels in 2 groups"),
        (helper.make_node("Conv", ["image", "w"], ["result"], dilations=[9, 9]), "a window of 19 elements over 8"),
        (helper.make_node("Conv", ["image"], ["result"]), "input 1 is missing"),
        (helper.make_node("ConvTranspose", ["image", "w"], ["result"], strides=[1 << 40, 1]), "stride 1099511627776"),
        (helper.make_node("LeakyRelu", ["image"], ["result"], alpha=float("nan")), "the number nan"),
        (helper.make_node("Reshape", ["image", "shape"], ["result"]), "in the shape 5 x 5"),
        (helper.make_node("Reshape", ["image", "image"], ["result"]), "input 1 follows from data"),
        (helper.make_node("Add", ["image", "w"], ["result"]), "do not fit each other"),
        (helper.make_node("Sqrt", ["whole"], ["result"]), "sqrt of int32 elements"),
        (helper.make_node("Cast", ["image"], ["result"], to=TensorProto.FLOAT16), "elements of type float16"),
        (helper.make_node("Cast", ["image"], ["result"], to=999), "do not fit"),
        (helper.make_node("Transpose", ["image"], ["result"], perm=[0, 0, 1, 2]), "do not fit"),
        (helper.make_node("Concat", ["image", "image"], ["result"], axis="end"), "do not fit"),
        (helper.make_node("Expand", ["image", "deep"], ["result"]), "a tensor of 6 axes"),
        (helper.make_node("Relu", ["image"], ["result"], domain="com.acme"), "operators of 'com.acme'"),
        (helper.make_node("ConstantOfShape", ["huge"], ["result"]), "more than 67,108,864 elements"),
        (helper.make_node("Slice", ["image", "shape", "shape"], ["result"]), "a part without elements"),
    ],
    ids=lambda v: v.op_type if isinstance(v, onnx.NodeProto) else None,
)
def test_attributes_that_are_wrong_or_cannot_be_said(node, words):
    constants = {
        "w": floats(4, 2, 3, 3),
        "shape": np.array([5, 5], np.int64),
        "deep": np.ones(6, np.int64),
        "huge": np.array([1 << 40, 1 << 40], np.int64),
        "whole": np.ones((2, 2), np.int32),
    }
    found = chain(node, **constants)
    del found.graph.output[:]
    found.graph.output.append(helper.make_empty_tensor_value_info("result"))
    if node.op_type == "Sqrt":
        found.graph.input.append(helper.make_tensor_value_info("whole", TensorProto.INT32, [2, 2]))
        del found.graph.initializer[4]
    ((message, _),) = problems(found)
    assert words in message
    assert f"({node.op_type})" in message


def test_types_that_do_not_fit_are_told_of_the_tensor():
    ((message, _),) = problems(chain(helper.make_node("Where", ["image", "image", "image"], ["result"])))
    assert message == "the tensor 'result': A condition has to be bool, not float32."


def test_a_ring_of_nodes():
    ring = chain(helper.make_node("Add", ["image", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"]))
    ring.graph.node.append(helper.make_node("Relu", ["b"], ["result"]))
    assert "'b': nodes are out of order, or in a ring" in problems(ring)[0][0]
    assert len(problems(ring)) == 1


@pytest.mark.parametrize("length", [0, 1, 20, 200, 1000])
def test_a_file_that_is_cut_short(length):
    content = resnet().SerializeToString()
    assert length < len(content)
    for message, _ in problems(content[:length]):
        assert message


@pytest.mark.parametrize("content", [b"\x00" * 100, b"hello world", b"\xff" * 4096, b'{"format": 1}', b"\x0a\x03abc"])
def test_what_is_no_model(content):
    assert "this is no ONNX model" in problems(content)[0][0]


def test_changed_bytes_end_in_a_pipeline_or_in_reasons():
    content, rng = resnet().SerializeToString(), np.random.default_rng(3)
    ends = []
    for _ in range(150):
        changed = bytearray(content)
        for place in rng.integers(0, min(len(changed), 3000), 3):
            changed[place] = rng.integers(256)
        try:
            ends.append(OnnxImporter().read(bytes(changed)).pipeline.name != "")
        except ImportFailed as error:
            ends.append(bool(error.problems))
    assert all(ends)


def test_tensors_that_have_less_data_than_their_shape():
    found = resnet()
    found.graph.initializer[0].dims[0] = 1 << 40
    assert f"initializer '{found.graph.initializer[0].name}'" in problems(found)[0][0]


def test_inputs_of_no_or_huge_sizes():
    found = model([helper.make_node("Relu", ["image"], ["result"])], {"image": (np.float32, [1, 1 << 40])})
    assert "input 'image': the shape [1, 1099511627776]" in problems(found)[0][0]


def test_an_output_that_is_said_to_have_another_shape():
    found = model([helper.make_node("Relu", ["image"], ["result"])], IMAGE)
    found.graph.output[0].type.tensor_type.shape.dim[3].dim_value = 9
    assert "output 'result' is said to have the shape [1, 2, 8, 9]" in problems(found)[0][0]


def test_outputs_that_no_node_makes():
    found = chain(helper.make_node("Relu", ["image"], ["other"]))
    assert problems(found) == [("output 'result': no node makes it", None)]


def external(tmp_path, location: str) -> onnx.ModelProto:
    found = model([helper.make_node("Add", ["image", "w"], ["result"])], IMAGE, {"w": floats(8, 8)})
    tensor = found.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, location)
    (tmp_path / "inside").mkdir(exist_ok=True)
    (tmp_path / "inside" / "data.bin").write_bytes(tensor.raw_data)
    (tmp_path / "data.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    return found


def test_data_beside_a_model_is_read(tmp_path):
    path = tmp_path / "inside" / "model.onnx"
    found = external(tmp_path, "data.bin")
    path.write_bytes(found.SerializeToString())
    (weights,) = OnnxImporter().load(str(path)).weights.values()
    assert np.array_equal(weights, floats(8, 8))
    assert "lies in another file" in problems(found)[0][0]


@pytest.mark.parametrize("location", ["../data.bin", "/etc/passwd", "a/../../data.bin", "link.bin"])
def test_data_outside_of_the_folder_of_a_model_is_refused(tmp_path, location):
    path = tmp_path / "inside" / "model.onnx"
    found = external(tmp_path, location)
    (tmp_path / "inside" / "link.bin").symlink_to(tmp_path / "data.bin")
    path.write_bytes(found.SerializeToString())
    with pytest.raises(ImportFailed, match="outside of the model's folder"):
        OnnxImporter().load(str(path))


def test_data_that_is_missing(tmp_path):
    path = tmp_path / "inside" / "model.onnx"
    found = external(tmp_path, "nothing.bin")
    path.write_bytes(found.SerializeToString())
    with pytest.raises(ImportFailed, match="cannot be read"):
        OnnxImporter().load(str(path))


def test_functions_of_the_model_are_put_in_their_places():
    double = helper.make_function("local", "Double", ["v"], ["w"], [helper.make_node("Add", ["v", "v"], ["w"])],
                                  [helper.make_opsetid("", 17)])  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("Double", ["image"], ["result"], domain="local")],
        "g",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [2])],
        [helper.make_empty_tensor_value_info("result")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    found = from_onnx(helper.make_model(graph, functions=[double], opset_imports=opsets, ir_version=9))
    assert len(found.pipeline.stages) == 1


def test_names_that_are_no_text():
    content = resnet().SerializeToString()
    name = resnet().graph.node[0].output[0].encode()
    ((message, hint),) = problems(content.replace(name, b"\xff" * len(name), 1))
    assert "is no UTF-8" in message
    assert hint
