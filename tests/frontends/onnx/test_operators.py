"""Every operator of ONNX that is read, against onnxruntime, on small random tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import by_onnxruntime, close, floats, interpreted, model

from tilesmith.scheduler.frontends.onnx.importer import from_onnx
from tilesmith.scheduler.frontends.onnx.node import OPERATORS

IMAGE = floats(2, 3, 7, 9)
POSITIVE = floats(2, 3, 4, 5, low=0.1, high=3)


@dataclass(frozen=True)
class Case:
    """A node: `tensors` are its inputs, `constants` more of them that the model has."""

    op: str
    tensors: tuple[Any, ...]
    constants: tuple[Any, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 17
    outputs: int = 1

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, np.shape(t))) for t in self.tensors)
        attributes = ",".join(f"{k}={v}" for k, v in self.attributes.items())
        return f"{self.op}-{self.opset}({shapes};{len(self.constants)};{attributes})".replace(" ", "")


def case(op: str, *tensors: Any, constants: Any = (), opset: int = 17, outputs: int = 1, **attributes: Any) -> Case:
    return Case(op, tensors, tuple(constants), attributes, opset, outputs)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def kernel(*shape: int) -> np.ndarray:
    return floats(*shape, seed=1, low=-1, high=1)


BOOLS = floats(3, 4) > 0
WHOLE = (floats(3, 4, seed=5) * 10).astype(np.int32)
POINTWISE = [
    *(
        case(op, IMAGE)
        for op in ("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Floor", "Ceil", "Round", "Sin", "Cos", "Sign")
    ),
    *(case(op, IMAGE) for op in ("Softplus", "Softsign", "Erf", "LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid")),
    *(case(op, IMAGE) for op in ("HardSwish", "ThresholdedRelu", "Identity", "Dropout", "IsNaN")),
    *(case(op, POSITIVE) for op in ("Log", "Sqrt", "Reciprocal")),
    *(case(op, floats(3, 4, low=-1, high=1)) for op in ("Tan", "Asin", "Acos", "Atan")),
    case("Mish", IMAGE, opset=18),
    case("Gelu", IMAGE, opset=20),
    case("Gelu", IMAGE, opset=20, approximate="tanh"),
    case("Relu", IMAGE.astype(np.float64)),
    case("Abs", WHOLE),
    case("Sign", WHOLE),
    case("Not", BOOLS),
    case("LeakyRelu", IMAGE, alpha=0.3),
    case("Elu", IMAGE, alpha=0.5),
    case("Celu", IMAGE, alpha=2.0),
    case("HardSigmoid", IMAGE, alpha=0.3, beta=0.4),
    case("PRelu", IMAGE, constants=[kernel(3, 1, 1)]),
    *(case(op, POSITIVE, POSITIVE[::-1] + 0.5) for op in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow")),
    *(case(op, IMAGE, constants=[kernel(9)]) for op in ("Add", "Sub", "Mul", "Div", "Min", "Max")),
    *(case(op, floats(3, 1, 5), floats(2, 1, 4, 1)) for op in ("Add", "Mul", "Less")),
    *(case(op, WHOLE, WHOLE[::-1] + 30) for op in ("Add", "Sub", "Mul", "Div", "Min", "Max")),
    case("Div", np.array([[7, -7], [7, -7]], np.int32), np.array([[2, 2], [-2, -2]], np.int32)),
    *(
        case(op, WHOLE, WHOLE[::-1])
        for op in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
    ),
    *(case(op, BOOLS, BOOLS[::-1]) for op in ("And", "Or", "Xor")),
    *(case(op, IMAGE, IMAGE[::-1], IMAGE * 2) for op in ("Sum", "Mean", "Min", "Max")),
    *(case("Pow", POSITIVE, constants=[np.float32(e)]) for e in (2, 3, 0.5, -1, 1.7)),
    *(case("Mul", IMAGE, constants=[np.float32(v)]) for v in (0.1, -3e-12, 1e20)),
    case("Add", IMAGE, constants=[np.float32(np.inf)]),
    case("Clip", IMAGE, constants=[np.float32(-0.5), np.float32(1)]),
    case("Clip", IMAGE, constants=[np.float32(-0.5), np.float32(np.inf)]),
    case("Clip", IMAGE, constants=[None, np.float32(1)]),
    case("Clip", IMAGE, opset=6, min=-0.5, max=0.5),
    case("Mod", IMAGE, POSITIVE[:, :, :1, :1], fmod=1),
    case("Mod", np.array([7, 8], np.uint8), np.array([3, 3], np.uint8)),
    case("Where", BOOLS, floats(3, 4), floats(4)),
    *(case("Cast", IMAGE * 50, to=t) for t in (TensorProto.INT32, TensorProto.DOUBLE, TensorProto.BOOL)),
    case("Cast", BOOLS, to=TensorProto.FLOAT),
    case("Cast", WHOLE, to=TensorProto.FLOAT),
    case("CastLike", WHOLE, floats(1)),
    case("QuantizeLinear", IMAGE, constants=[np.float32(0.02), np.uint8(100)]),
    case("QuantizeLinear", IMAGE * 9, constants=[kernel(3) + 1.1, np.array([3, -2, 0], np.int8)], axis=1),
    case("QuantizeLinear", IMAGE, constants=[np.float32(0.02)]),
    case("DequantizeLinear", (IMAGE * 50).astype(np.int8), constants=[np.float32(0.02), np.int8(3)]),
    case("DequantizeLinear", (IMAGE * 50).astype(np.int8), constants=[kernel(7)], axis=2),
]  # fmt: skip

CONVOLUTIONS = [
    case("Conv", IMAGE, constants=[kernel(4, 3, 3, 3), kernel(4)], pads=[1, 1, 1, 1]),
    case("Conv", IMAGE, constants=[kernel(4, 3, 3, 3)], strides=[2, 2]),
    case("Conv", IMAGE, constants=[kernel(4, 3, 3, 2)], strides=[2, 3], pads=[0, 1, 2, 1], dilations=[2, 1]),
    case("Conv", IMAGE, constants=[kernel(4, 3, 1, 1), kernel(4)]),
    case("Conv", IMAGE, constants=[kernel(4, 3, 3, 3)], auto_pad="SAME_UPPER", strides=[2, 2]),
    case("Conv", IMAGE, constants=[kernel(4, 3, 2, 2)], auto_pad="SAME_LOWER"),
    case("Conv", IMAGE, constants=[kernel(4, 3, 2, 2)], auto_pad="SAME_UPPER"),
    case("Conv", IMAGE, constants=[kernel(4, 3, 3, 3)], auto_pad="VALID"),
    case("Conv", IMAGE, constants=[kernel(3, 1, 3, 3), kernel(3)], group=3, pads=[1, 1, 1, 1]),
    case("Conv", IMAGE, constants=[kernel(6, 1, 3, 3)], group=3),
    case("Conv", floats(1, 4, 6, 6), constants=[kernel(6, 2, 3, 3), kernel(6)], group=2),
    case("Conv", floats(1, 3, 9), constants=[kernel(2, 3, 3)], pads=[1, 1]),
    case("Conv", floats(1, 2, 5, 6, 7), constants=[kernel(3, 2, 2, 3, 3)], pads=[0, 1, 1, 0, 1, 1]),
    case("Conv", IMAGE, kernel(4, 3, 3, 3), pads=[1, 1, 1, 1]),
    case("Conv", IMAGE, constants=[kernel(16, 3, 3, 3), kernel(16)], pads=[1, 1, 1, 1]),
    case("Conv", IMAGE, kernel(16, 3, 3, 3), pads=[1, 1, 1, 1]),
    case("Conv", floats(1, 16, 5, 6), constants=[kernel(16, 1, 3, 3), kernel(16)], group=16),
    case("Conv", floats(1, 16, 5, 6), constants=[kernel(32, 8, 3, 3)], group=2, strides=[2, 2]),
    case("Conv", floats(1, 16, 5, 6), constants=[kernel(2, 16, 1, 1)]),
    case("ConvTranspose", floats(2, 16, 5, 6), constants=[kernel(16, 16, 3, 3), kernel(16)], strides=[2, 2]),
    case("ConvTranspose", floats(2, 16, 5, 6), kernel(16, 16, 2, 2), strides=[2, 2]),
    case("ConvTranspose", floats(2, 16, 5, 6), constants=[kernel(16, 2, 2, 2)], group=8, strides=[2, 2]),
    case("ConvTranspose", IMAGE, constants=[kernel(3, 4, 2, 2), kernel(4)], strides=[2, 2]),
    case("ConvTranspose", IMAGE, constants=[kernel(3, 4, 3, 3)], strides=[2, 2], pads=[1, 1, 1, 1]),
    case("ConvTranspose", IMAGE, constants=[kernel(3, 4, 3, 3)], strides=[2, 2], output_padding=[1, 1]),
    case("ConvTranspose", IMAGE, constants=[kernel(3, 4, 3, 3)], strides=[2, 2], output_shape=[14, 18]),
    case("ConvTranspose", IMAGE, constants=[kernel(3, 4, 3, 3)], auto_pad="SAME_UPPER", strides=[2, 2]),
    case("ConvTranspose", IMAGE, constants=[kernel(3, 4, 3, 3)], auto_pad="SAME_LOWER", strides=[2, 2]),
    case("ConvTranspose", IMAGE, constants=[kernel(3, 2, 4, 3)], strides=[3, 1], pads=[1, 0, 0, 1]),
    case("ConvTranspose", IMAGE, constants=[kernel(3, 2, 3, 3)], dilations=[2, 2]),
    case("ConvTranspose", floats(1, 4, 4, 5), constants=[kernel(4, 3, 3, 3)], group=2, strides=[2, 2]),
    case("ConvTranspose", floats(1, 4, 4, 5), constants=[kernel(4, 1, 2, 2)], group=4, strides=[2, 2]),
]

POOLS = [
    case("MaxPool", floats(1, 16, 7, 8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    case("GlobalAveragePool", floats(1, 16, 7, 8)),
    case("MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2]),
    case("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    case("MaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1),
    case("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1),
    case("MaxPool", IMAGE, kernel_shape=[2, 2], dilations=[2, 3]),
    case("MaxPool", IMAGE, kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2]),
    case("MaxPool", (IMAGE * 50).astype(np.int8), kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    case("MaxPool", IMAGE.astype(np.float64), kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    case("AveragePool", IMAGE, kernel_shape=[2, 2], strides=[2, 2]),
    case("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    case("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    case("AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 0, 0, 1], strides=[2, 2]),
    case("AveragePool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, opset=19),
    case("AveragePool", IMAGE, kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1, opset=19),
    case("AveragePool", IMAGE, kernel_shape=[2, 2], dilations=[2, 2], pads=[1, 1, 1, 1], opset=19),
    case("AveragePool", IMAGE, kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
    case("AveragePool", floats(1, 2, 11), kernel_shape=[3], strides=[2]),
    case("GlobalAveragePool", IMAGE),
    case("GlobalMaxPool", IMAGE),
]

NORMALISATIONS = [
    case("BatchNormalization", IMAGE, constants=[kernel(3), kernel(3), kernel(3), floats(3, low=0.5)]),
    case("BatchNormalization", IMAGE, kernel(3), kernel(3), kernel(3), floats(3, low=0.5), epsilon=0.01),
    case("BatchNormalization", floats(4, 3), constants=[kernel(3), kernel(3), kernel(3), floats(3, low=0.5)]),
    case("InstanceNormalization", IMAGE, constants=[kernel(3), kernel(3)]),
    case("LayerNormalization", IMAGE, constants=[kernel(9), kernel(9)]),
    case("LayerNormalization", IMAGE, constants=[kernel(3, 7, 9)], axis=1),
    case("GroupNormalization", floats(2, 4, 3, 5), constants=[kernel(4), kernel(4)], num_groups=2, opset=21),
    case("LRN", floats(1, 6, 4, 5), size=3),
    case("LRN", floats(1, 6, 4, 5), size=5, alpha=0.5, beta=0.5, bias=2.0),
    case("Softmax", IMAGE),
    case("Softmax", IMAGE, axis=1),
    case("Softmax", IMAGE, opset=11, axis=1),
    case("LogSoftmax", IMAGE, axis=1),
]

REDUCTIONS = [
    *(case(op, POSITIVE, axes=[1, 3], keepdims=k) for op in ("ReduceMean", "ReduceMax", "ReduceL2") for k in (0, 1)),
    *(
        case(op, POSITIVE, axes=[-1])
        for op in ("ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare", "ReduceLogSum")
    ),
    case("ReduceSum", POSITIVE, constants=[ints(2, 3)], keepdims=0),
    case("ReduceSum", POSITIVE),
    case("ReduceSum", POSITIVE, noop_with_empty_axes=1),
    case("ReduceMean", POSITIVE, constants=[ints(1)], opset=18),
    case("ArgMax", POSITIVE, axis=1),
    case("ArgMin", POSITIVE, axis=-1, keepdims=0),
]

RESIZES = [
    *(
        case("Resize", IMAGE, constants=[None, np.float32(s)], coordinate_transformation_mode=how, mode=mode)
        for how in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
        for mode in ("nearest", "linear", "cubic")
        for s in ([1, 1, 2, 2], [1, 1, 0.5, 3])
        if (how, mode) != ("align_corners", "nearest")
    ),
    *(
        case("Resize", IMAGE, constants=[None, None, ints(2, 3, 10, 6)], mode=mode, coordinate_transformation_mode=how)
        for mode in ("nearest", "linear", "cubic")
        for how in ("half_pixel", "align_corners")
        if (how, mode) != ("align_corners", "nearest")
    ),
    *(
        case("Resize", IMAGE, constants=[None, np.float32([1, 1, 2, 1.5])], nearest_mode=n)
        for n in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    ),
    case("Resize", IMAGE, constants=[None, np.float32([1, 1, 2, 2])], mode="cubic", cubic_coeff_a=-0.5),
    case("Resize", IMAGE, constants=[np.float32([1, 1, 2, 2])], opset=10),
    case("Resize", IMAGE, constants=[None, np.float32([2, 3])], axes=[2, 3], mode="linear", opset=18),
    case("Upsample", IMAGE, constants=[np.float32([1, 1, 2, 3])], opset=9),
    case("Upsample", IMAGE, constants=[np.float32([1, 1, 2, 2])], opset=9, mode="linear"),
]

VIEWS = [
    case("Transpose", IMAGE, perm=[0, 2, 3, 1]),
    case("Transpose", IMAGE),
    case("Flatten", IMAGE),
    case("Flatten", IMAGE, axis=2),
    case("Flatten", IMAGE, axis=0),
    *(
        case("Reshape", floats(2, 6, 4), constants=[ints(*s)])
        for s in ([2, 2, 3, 4], [12, 4], [0, -1], [48], [2, 3, 8], [8, 6], [1, 2, 6, 1, 4], [4, 3, -1])
    ),
    case("Squeeze", floats(1, 3, 1, 4), constants=[ints(0)]),
    case("Squeeze", floats(1, 3, 1, 4)),
    case("Squeeze", floats(1, 3, 1, 4), opset=11, axes=[-2]),
    case("Unsqueeze", floats(3, 4), constants=[ints(0, 2)]),
    case("Unsqueeze", floats(3, 4), opset=11, axes=[1]),
    case("Slice", IMAGE, constants=[ints(1, 0), ints(5, 100), ints(2, 3), ints(2, 3)]),
    case("Slice", IMAGE, constants=[ints(-3), ints(-(1 << 62)), ints(3), ints(-2)]),
    case("Slice", IMAGE, opset=9, starts=[1, 2], ends=[3, -1], axes=[1, 3]),
    case("Split", IMAGE, constants=[ints(2, 7)], axis=3, outputs=2),
    case("Split", IMAGE, axis=1, outputs=3),
    case("Concat", IMAGE, IMAGE[:, :2], floats(2, 1, 7, 9), axis=1),
    case("Concat", IMAGE, IMAGE[..., :2], axis=-1),
    case("Concat", IMAGE, axis=1),
    *(
        case("Pad", IMAGE, constants=[ints(0, 0, 1, 2, 0, 0, 3, 0)], mode=m, opset=19)
        for m in ("constant", "reflect", "edge", "wrap")
    ),
    case("Pad", IMAGE, constants=[ints(0, 1, 1, 2, 0, 0, 3, 0), np.float32(1.5)]),
    case("Pad", IMAGE, constants=[ints(0, 0, -1, -2, 0, 0, -1, 0)]),
    case("Pad", IMAGE, opset=9, pads=[0, 0, 1, 1, 0, 0, 1, 1], value=2.0),
    case("Pad", IMAGE, constants=[ints(1, 2, 0, 1), None, ints(2, 3)], opset=18),
    case("Expand", floats(3, 1), constants=[ints(2, 1, 5)]),
    case("Tile", floats(3, 2), constants=[ints(1, 3)]),
    case("Gather", IMAGE, constants=[np.array(1, np.int64)], axis=1),
    case("Gather", IMAGE, constants=[ints(2, -1, 0, 0)], axis=3),
    case("DepthToSpace", floats(2, 12, 3, 4), blocksize=2),
    case("DepthToSpace", floats(2, 12, 3, 4), blocksize=2, mode="CRD"),
    case("SpaceToDepth", floats(2, 3, 4, 6), blocksize=2),
    case("Shape", IMAGE),
]

PRODUCTS = [
    case("MatMul", floats(3, 4), constants=[kernel(4, 5)]),
    case("MatMul", floats(2, 3, 4), floats(4, 5)),
    case("MatMul", floats(2, 1, 3, 4), floats(3, 4, 5)),
    case("MatMul", floats(4), floats(4, 5)),
    case("MatMul", floats(2, 3, 4), floats(4)),
    case("MatMul", floats(4), floats(4, seed=3)),
    *(
        case("Gemm", floats(*((4, 3) if a else (3, 4))), constants=[kernel(*((5, 4) if b else (4, 5))), kernel(5)],
             transA=a, transB=b)
        for a in (0, 1) for b in (0, 1)
    ),
    case("Gemm", floats(3, 4), floats(4, 5), alpha=0.5),
    case("Gemm", floats(3, 4), floats(4, 5), floats(3, 1), alpha=0.5, beta=2.0),
]  # fmt: skip

CASES = [*POINTWISE, *CONVOLUTIONS, *POOLS, *NORMALISATIONS, *REDUCTIONS, *RESIZES, *VIEWS, *PRODUCTS]


def made(c: Case):
    inputs = {f"in{k}": np.asarray(t) for k, t in enumerate(c.tensors)}
    constants = {f"c{k}": np.asarray(t) for k, t in enumerate(c.constants) if t is not None}
    names = [*inputs, *("" if t is None else f"c{k}" for k, t in enumerate(c.constants))]
    outputs = [f"out{k}" for k in range(c.outputs)]
    return model([helper.make_node(c.op, names, outputs, **c.attributes)], inputs, constants, outputs, c.opset), inputs


@pytest.mark.parametrize("c", CASES, ids=str)
def test_an_operator_computes_what_onnxruntime_does(c):
    found, inputs = made(c)
    wanted = by_onnxruntime(found, inputs)
    for ours, theirs in zip(interpreted(from_onnx(found), inputs), wanted, strict=True):
        assert close(ours, theirs)


def test_every_operator_has_a_case():
    assert {c.op for c in CASES} >= OPERATORS.keys()
