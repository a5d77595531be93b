"""Constant folding: nodes whose inputs are all known, by the reference evaluation of ONNX. Sizes are bounded before."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilesmith.scheduler.frontends.tensors.tensor import Refused

_LARGEST = 1 << 26  # elements
_FOLDED = frozenset({
    "Identity", "Cast", "Neg", "Abs", "Sqrt", "Reciprocal", "Exp", "Log", "Floor", "Ceil", "Not", "Shape", "Size",
    "Gather", "Unsqueeze", "Squeeze", "Concat", "Slice", "Reshape", "Transpose", "Flatten", "Split", "Add", "Sub",
    "Mul", "Div", "Min", "Max", "Pow", "Mod", "Equal", "Less", "Greater", "And", "Or", "Where", "ReduceProd",
    "ReduceSum", "ReduceMin", "ReduceMax", "ConstantOfShape", "Range", "Expand", "Tile", "DequantizeLinear",
})  # fmt: skip
"""Operators that are worked out where their inputs are known. All others become stages, of inputs that are weights."""
_REPEATED = frozenset({"Expand", "ConstantOfShape"})

Array = np.ndarray[Any, np.dtype[Any]]


def folds(op: str) -> bool:
    """True for operators that are worked out."""
    return op in _FOLDED


def evaluate(proto: Any, opset: int, inputs: dict[str, Array]) -> list[Array]:
    """The values of the outputs of a node. Refused where they are too large, or not to be had."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    if _elements(proto.op_type, list(inputs.values()), proto.input, inputs) > _LARGEST:
        raise Refused(f"a constant of more than {_LARGEST:,} elements")
    names = [n for n in proto.input if n]
    types = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(inputs[n].dtype), None) for n in
             dict.fromkeys(names)]  # fmt: skip
    outputs = [helper.make_empty_tensor_value_info(n) for n in proto.output if n]
    graph = helper.make_graph([proto], "constant", types, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        found = ReferenceEvaluator(model).run(None, inputs)
    except Exception as error:  # whatever the reference raises of what it cannot evaluate
        raise Refused(f"a constant that cannot be worked out: {str(error)[:200]}") from None
    return [np.asarray(value) for value in found]


def _elements(op: str, arrays: list[Array], names: Any, inputs: dict[str, Array]) -> int:
    """The most elements that the result may have."""
    if op in _REPEATED and names:
        wanted = [max(int(v), 1) for v in inputs[names[-1]].reshape(-1)[:8]]
        return prod(wanted) * (inputs[names[0]].size if op == "Expand" else 1)
    if op == "Tile":
        return arrays[0].size * prod(max(int(v), 1) for v in inputs[names[1]].reshape(-1)[:8])
    if op == "Range":
        start, end, step = (float(inputs[n].reshape(-1)[0]) for n in names)
        return int(abs((end - start) / step)) + 1 if step else 0
    if op == "Gather":
        return arrays[0].size * arrays[-1].size
    try:
        return prod(np.broadcast_shapes(*(a.shape for a in arrays)))
    except ValueError:
        return sum(a.size for a in arrays)
