"""Models of ONNX for tests: made of nodes, computed by onnxruntime, by the interpreter, and by compiled C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from tilesmith.app.inprocess.layout import region_of
from tilesmith.app.runtime.regions import largest_regions
from tilesmith.scheduler.frontends.importer import ImportedPipeline
from tilesmith.scheduler.interpreter.interpreter import interpret
from tilesmith.scheduler.ir.pipeline.arguments import Image

Arrays = Mapping[str, np.ndarray[Any, np.dtype[Any]]]


def floats(*shape: int, seed: int = 0, low: float = -2, high: float = 2) -> np.ndarray:
    """Floats between two ends."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(np.float32)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Arrays | Mapping[str, tuple[Any, Sequence[int | str]]],
    constants: Arrays | None = None,
    outputs: Sequence[str] = ("result",),
    opset: int = 17,
) -> onnx.ModelProto:
    """A model; inputs are arrays, or (type, shape) where a str is a size that is left open."""
    kinds = {n: (v.dtype, v.shape) if isinstance(v, np.ndarray) else v for n, v in inputs.items()}
    graph = helper.make_graph(
        list(nodes),
        "network",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), s)
            for n, (t, s) in kinds.items()
        ],
        [helper.make_empty_tensor_value_info(n) for n in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()],
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return onnx.shape_inference.infer_shapes(found)


def by_onnxruntime(found: onnx.ModelProto, inputs: Arrays) -> list[np.ndarray]:
    """The outputs as onnxruntime computes them."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(found.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(inputs)))


def interpreted(found: ImportedPipeline, inputs: Arrays) -> list[np.ndarray]:
    """The outputs as the interpreter computes them, of the regions that a call has without a word about it."""
    pipeline = found.pipeline
    given = dict(zip((i.name for i in pipeline.inputs), inputs.values(), strict=False)) | dict(found.weights)
    images = {n: Image(a, tuple(low for low, _ in region_of(a.shape))) for n, a in given.items()}
    results = interpret(pipeline, images, {}, largest_regions(pipeline, images, {}))
    return [results[name][0] for name in pipeline.outputs]


def close(found: np.ndarray, wanted: np.ndarray) -> bool:
    """True for arrays of one shape that are equal within 1e-4 of the larger of 1 and what is wanted."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    return bool(np.allclose(found, wanted, rtol=1e-4, atol=1e-4, equal_nan=True))
