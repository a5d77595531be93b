"""Whole small networks of ONNX: blocks of those that are well known, with random weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx_models import floats, model


@dataclass
class Network:
    """A network that is being put together: each method adds a node and gives the name of its result."""

    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=dict)

    def add(self, op: str, *inputs: str, channels: int | None = None, **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"/{name}", **attributes))
        self.channels[name] = channels or self.channels.get(inputs[0], 0)
        return name

    def weight(self, *shape: int, low: float = -1, high: float = 1) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights[name] = floats(*shape, seed=len(self.weights), low=low, high=high)
        return name

    def conv(self, x: str, made: int, size: int = 3, stride: int = 1, group: int = 1) -> str:
        read = self.channels[x] // group
        bound = (3 / (read * size * size)) ** 0.5
        weights, bias = self.weight(made, read, size, size, low=-bound, high=bound), self.weight(made)
        how = {"strides": [stride, stride], "pads": [size // 2] * 4, "group": group}
        return self.add("Conv", x, weights, bias, channels=made, **how)

    def norm(self, x: str) -> str:
        c = self.channels[x]
        return self.add("BatchNormalization", x, *(self.weight(c) for _ in range(3)), self.weight(c, low=0.5))

    def made(self, inputs: dict[str, Any], outputs: list[str], opset: int = 17) -> onnx.ModelProto:
        return model(self.nodes, inputs, self.weights, outputs, opset)


def resnet() -> onnx.ModelProto:
    """A stem, a residual block with a projection, a head."""
    n = Network(channels={"image": 3})
    x = n.add("Relu", n.norm(n.conv("image", 8, 7, 2)))
    x = n.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = n.norm(n.conv(n.add("Relu", n.norm(n.conv(x, 16, 3, 2))), 16))
    y = n.add("Relu", n.add("Add", y, n.norm(n.conv(x, 16, 1, 2))))
    y = n.add("Flatten", n.add("GlobalAveragePool", y))
    y = n.add("Softmax", n.add("Gemm", y, n.weight(10, 16), n.weight(10), transB=1), axis=1)
    return n.made({"image": (np.float32, [1, 3, 32, 40])}, [y])


def mobilenet() -> onnx.ModelProto:
    """An inverted residual with a depthwise convolution and squeeze-and-excite."""
    n = Network(channels={"image": 8})
    n.weights |= {"zero": np.float32(0), "six": np.float32(6)}
    x = n.add("Clip", n.norm(n.conv("image", 24, 1)), "zero", "six")
    x = n.add("Clip", n.norm(n.conv(x, 24, 3, group=24)), "zero", "six")
    s = n.add("Relu", n.conv(n.add("GlobalAveragePool", x), 6, 1))
    x = n.add("Mul", x, n.add("HardSigmoid", n.conv(s, 24, 1)))
    return n.made({"image": (np.float32, [1, 8, 14, 15])}, [n.add("Add", n.norm(n.conv(x, 8, 1)), "image")])


def unet() -> onnx.ModelProto:
    """Two levels down and up: a pool, a transposed convolution, a resize, two concatenations."""
    n = Network(channels={"image": 1})
    n.weights["scales"] = np.float32([1, 1, 2, 2])
    top = n.add("Relu", n.conv("image", 4))
    middle = n.add("Relu", n.conv(n.add("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2]), 8))
    low = n.add("Relu", n.conv(n.add("AveragePool", middle, kernel_shape=[2, 2], strides=[2, 2]), 8))
    up = n.add("ConvTranspose", low, n.weight(8, 8, 2, 2), n.weight(8), channels=8, strides=[2, 2])
    x = n.add("Relu", n.conv(n.add("Concat", middle, up, channels=16, axis=1), 4))
    x = n.add("Resize", x, "", "scales", mode="linear", coordinate_transformation_mode="half_pixel")
    x = n.conv(n.add("Concat", top, x, channels=8, axis=1), 2)
    return n.made({"image": (np.float32, [1, 1, 24, 32])}, [n.add("Sigmoid", x)])


def super_resolution(sizes: Any = (1, 1, 20, 28)) -> onnx.ModelProto:
    """Convolutions at the small size, a pixel shuffle, and the enlarged image added to it."""
    n = Network(channels={"image": 1})
    n.weights["scales"] = np.float32([1, 1, 2, 2])
    x = n.add("Relu", n.conv("image", 8, 5))
    x = n.add("PRelu", n.conv(x, 8), n.weight(8, 1, 1))
    x = n.add("DepthToSpace", n.conv(x, 4), channels=1, blocksize=2, mode="CRD")
    large = n.add("Resize", "image", "", "scales", mode="cubic", coordinate_transformation_mode="half_pixel")
    return n.made({"image": (np.float32, sizes)}, [n.add("Add", x, large)])


NETWORKS = {"resnet": resnet, "mobilenet": mobilenet, "unet": unet, "super_resolution": super_resolution}
