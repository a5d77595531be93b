"""A model of ONNX that sharpens pictures of any size: `python examples/sharpen_onnx.py sharpen.onnx` writes it.

A picture is three planes with values from 0 to 1. Each is convolved with one kernel of 5 x 5: twice the point, less the
mean of its neighbours by a binomial window.
"""

from __future__ import annotations

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def sharpen() -> onnx.ModelProto:
    """The model: a depthwise convolution whose ends repeat the picture's, between 0 and 1."""
    binomial = np.outer(*(np.float32([1, 4, 6, 4, 1]) / 16,) * 2)
    kernel = -binomial
    kernel[2, 2] += 2
    constants = {
        "front": np.array([0], np.int64),
        "margin": np.array([0, 0, 2, 2, 0, 0, 2, 2], np.int64),
        "kernel": np.broadcast_to(kernel, (3, 1, 5, 5)),
        "black": np.float32(0),
        "white": np.float32(1),
    }
    nodes = [
        helper.make_node("Unsqueeze", ["image", "front"], ["batch"], name="as_batch"),
        helper.make_node("Pad", ["batch", "margin"], ["padded"], name="repeat_edge", mode="edge"),
        helper.make_node("Conv", ["padded", "kernel"], ["contrast"], name="contrast", group=3),
        helper.make_node("Squeeze", ["contrast", "front"], ["planes"], name="as_picture"),
        helper.make_node("Clip", ["planes", "black", "white"], ["sharp"], name="clip"),
    ]
    size = [3, "height", "width"]
    graph = helper.make_graph(
        nodes,
        "sharpen",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, size)],
        [helper.make_tensor_value_info("sharp", TensorProto.FLOAT, size)],
        [numpy_helper.from_array(np.ascontiguousarray(values), name) for name, values in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


if __name__ == "__main__":
    onnx.save(sharpen(), sys.argv[1])
