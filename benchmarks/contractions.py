"""Dense contractions: products of matrices, as a sum and as an update, and convolutions over channels in both layouts.
The time of each over that of a library in the same run: NumPy's product (the kernel of its OpenBLAS is told), and
onnxruntime's `Conv`, which has channels outermost; and over the schedules by `taco2019` and with every stage at root.

python -m benchmarks.contractions [--repeats 7] [--only NAME] [--json FILE]

OpenBLAS takes the kernel that the variable OPENBLAS_CORETYPE says: unset it for the one of the machine.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks import machine, report
from benchmarks.scans import Contender
from tilesmith.platforms.cpu.detect import host
from tilesmith.scheduler.compiler import Options
from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.search.vectorize_and_parallelize import root_schedule

REPEATS = 7
THREADS = (1, 2)
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


def measure(case: Case, threads: int, repeats: int) -> dict[str, Any]:
    """The times of the schedules and of the library's function, in turns: the least of each, in milliseconds."""
    ctypes.CDLL("libgomp.so.1").omp_set_num_threads(threads)
    platform = host().model_copy(update={"threads": threads})
    ways = {"default": Options(), "taco2019": Options(method="taco2019")}
    ways["root"] = Options(schedule=root_schedule(case.pipeline, platform))
    contenders = {name: Contender(case.pipeline, platform, options) for name, options in ways.items()}
    clock = time.thread_time if threads == 1 else time.perf_counter
    best: dict[str, float] = {}
    with threadpoolctl.threadpool_limits(threads):
        peer = case.peer(threads)
        for _ in range(repeats + 1):
            for name, c in contenders.items():
                if name == "default" or name not in best:  # the others take seconds
                    best[name] = min(best.get(name, np.inf), c.seconds(clock))
            begin = clock()
            peer()
            best["library"] = min(best.get("library", np.inf), clock() - begin)
    return {
        "pipeline": case.pipeline.name,
        "threads": threads,
        "milliseconds": {name: seconds * 1e3 for name, seconds in best.items()},
        "predicted_ms": contenders["default"].predicted_ms,
        **{f"over_{name}": best["default"] / best[name] for name in ("library", "taco2019", "root")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Dense contractions against libraries, and other schedules of them.")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N")
    parser.add_argument("--only", metavar="NAME", help="those whose name has this in it")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    kernels = [of["architecture"] for of in threadpoolctl.threadpool_info() if of["user_api"] == "blas"]
    print(f"kernel of OpenBLAS: {', '.join(kernels)}")
    found = []
    for case in cases():
        if arguments.only is None or arguments.only in case.pipeline.name:
            report.progress(case.pipeline.name)
            found += [measure(case, threads, arguments.repeats) for threads in THREADS]
    rows = [
        [
            f["pipeline"],
            str(f["threads"]),
            *(report.number(f["milliseconds"][name]) for name in ("default", "library")),
            report.number(f["predicted_ms"]),
            *(f"{f[key]:.2f}" for key in ("over_library", "over_taco2019", "over_root")),
        ]
        for f in found
    ]
    heads = ["pipeline", "threads", "ms", "library, ms", "predicted, ms", "over library", "over taco2019", "over root"]
    print(report.table(heads, rows))
    report.write(arguments.json, {"machine": machine.describe(), "blas": kernels, "contractions": found})


if __name__ == "__main__":
    main()
