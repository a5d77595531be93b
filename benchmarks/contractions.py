"""Dense contractions: products of matrices, as a sum and as an update, and convolutions over channels in both layouts.
The time of each over that of a library in the same run: NumPy's product (the kernel of its OpenBLAS is told), and
onnxruntime's `Conv`, which has channels outermost; and over the schedules by `taco2019` and with every stage at root.

python -m benchmarks.contractions [--repeats 7] [--only NAME] [--json FILE]

OpenBLAS takes the kernel that the variable OPENBLAS_CORETYPE says: unset it for the one of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import threadpoolctl

from benchmarks import report, schedules
from benchmarks.schedules import Finding, contenders, in_turns, platform_of
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline

REPEATS = 7
SIDE = 1024
CHANNELS, WIDTH, HEIGHT, BATCH = 128, 100, 80, 5
"""Of the convolution, as Halide's `conv_layer` has them."""

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Case:
    """A contraction: its pipeline, and a library's function of the same sizes, for a number of threads."""

    pipeline: Pipeline
    peer: Callable[[int], Run]


def _document(name: str, inputs: dict[str, dict[str, int]], dims: dict[str, int], **stage: object) -> Pipeline:
    made = {"name": "f", "dims": [*dims], **stage}
    sizes = {**inputs, "f": dims}
    return load(
        {
            "format": 1,
            "name": name,
            "inputs": [{"name": i, "type": "float32", "dims": [*of]} for i, of in inputs.items()],
            "stages": [made],
            "outputs": ["f"],
            "estimates": {i: [[0, n] for n in of.values()] for i, of in sizes.items()},
        }
    )


def _numpy(_threads: int) -> Run:
    rng = np.random.default_rng(1)
    a, b = (rng.random((SIDE, SIDE), np.float32) for _ in "ab")
    result = np.empty_like(a)
    return lambda: np.matmul(a, b, out=result)


def _onnxruntime(threads: int) -> Run:
    import onnxruntime
    from onnx import TensorProto, helper

    shapes = {
        "x": [BATCH, CHANNELS, HEIGHT + 2, WIDTH + 2],
        "w": [CHANNELS, CHANNELS, 3, 3],
        "y": [BATCH, CHANNELS, HEIGHT, WIDTH],
    }
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])], "conv", [values["x"], values["w"]], [values["y"]]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    given = {name: rng.random(shapes[name], np.float32) for name in "xw"}
    return lambda: session.run(None, given)


def cases() -> list[Case]:
    """What is measured."""
    n, square = SIDE, {"x": SIDE, "y": SIDE}
    matrices = {"a": square, "b": square}
    image, weights = {"x": WIDTH + 2, "y": HEIGHT + 2}, {"x": 3, "y": 3}
    out = {"x": WIDTH, "y": HEIGHT}
    product = f"sum(a(r, y) * b(x, r) for r in range({n}))"
    update = {"domain": {"r": [0, n]}, "at": ["x", "y"], "value": "f(x, y) + a(r, y) * b(x, r)"}
    over = f"for i in range({CHANNELS}) for q in range(3) for p in range(3)"
    outer, inner = {"c": CHANNELS, "n": BATCH}, {"i": CHANNELS, "o": CHANNELS}
    return [
        Case(_document("product_as_sum", matrices, square, value=product), _numpy),
        Case(_document("product_as_update", matrices, square, value="0.0", updates=[update]), _numpy),
        Case(
            _document(
                "convolution_channels_outermost",
                {"a": image | outer, "w": weights | inner},
                out | outer,
                value=f"sum(a(x + p, y + q, i, n) * w(p, q, i, c) {over})",
            ),
            _onnxruntime,
        ),
        Case(
            _document(
                "convolution_channels_innermost",
                {"a": {"c": CHANNELS} | image | {"n": BATCH}, "w": {"o": CHANNELS, "i": CHANNELS} | weights},
                {"c": CHANNELS} | out | {"n": BATCH},
                value=f"sum(a(i, x + p, y + q, n) * w(c, i, p, q) {over})",
            ),
            _onnxruntime,
        ),
    ]


def measure(case: Case, threads: int, repeats: int) -> Finding:
    """The times of the schedules, of which the others take seconds, and of the library's function."""
    runs = contenders(case.pipeline, platform_of(threads))
    with threadpoolctl.threadpool_limits(threads):
        found = in_turns({**runs, "library": case.peer(threads)}, threads, repeats, once=("taco2019", "root"))
    milliseconds = found["milliseconds"]
    return {
        **found,
        "predicted_ms": runs["default"].predicted_ms,
        "over_library": milliseconds["default"] / milliseconds["library"],
    }


def main() -> None:
    kernels = [of["architecture"] for of in threadpoolctl.threadpool_info() if of["user_api"] == "blas"]
    schedules.main(
        "Dense contractions against libraries, and other schedules of them.",
        REPEATS,
        [(case.pipeline.name, partial(measure, case)) for case in cases()],
        {
            "ms": lambda f: report.number(f["milliseconds"]["default"]),
            "library, ms": lambda f: report.number(f["milliseconds"]["library"]),
            "predicted, ms": lambda f: report.number(f["predicted_ms"]),
            "over library": lambda f: f"{f['over_library']:.2f}",
            "over taco2019": lambda f: f"{f['over_taco2019']:.2f}",
            "over root": lambda f: f"{f['over_root']:.2f}",
        },
        {"kernel of OpenBLAS": ", ".join(kernels)},
    )


if __name__ == "__main__":
    main()
