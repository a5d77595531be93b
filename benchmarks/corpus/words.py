"""Words that the cases of the corpus are written with: usual images, windows of weights, separable filters."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from tilesmith.language import Boundary, Image, Range, Stage, Term, Var, float32, repeat_edge
from tilesmith.scheduler.frontends.python.frontend import Type

x, y, z, c, i, j, k, m, n, t = (Var(name) for name in "xyzcijkmnt")
Kernel = Sequence[Sequence[float]]
Indices = tuple[Term | int, ...]


class Library:
    """A module that is imported when something of it is used: those who only schedule need not have it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


cv2, ndimage, signal = Library("cv2"), Library("scipy.ndimage"), Library("scipy.signal")
filters, feature, skcolor = Library("skimage.filters"), Library("skimage.feature"), Library("skimage.color")
restoration = Library("skimage.restoration")
EDGE, MIRROR, INTERIOR = 1, 2, 4
"""OpenCV's numbers of the boundaries `repeat_edge`, `mirror_image` and `mirror_interior`."""


def gray(name: str = "a", type: Type = float32, boundary: Boundary | None = repeat_edge) -> Image:
    """An image of one channel."""
    return Image(name, type, x, y, boundary=boundary)


def colour(
    name: str = "a", type: Type = float32, boundary: Boundary | None = repeat_edge, interleaved: bool = False
) -> Image:
    """An image of channels, in planes or interleaved."""
    return Image(name, type, x, y, c, boundary=boundary, storage=(c, x, y) if interleaved else None)


def stage(name: str, value: Term | tuple[Any, ...] | float, *dims: Var, **how: Any) -> Stage:
    """A stage over these dims, x and y if none are named."""
    made = Stage(name, **how)
    made[dims or (x, y)] = value
    return made


def total(terms: Iterable[Term]) -> Term:
    """The sum of at least one term."""
    first, *others = terms
    for t in others:
        first = first + t
    return first


def shifted(f: Image | Stage, right: int, down: int, *rest: Term | int) -> Term:
    """The value so far to the right and down; `rest` are the indices after x and y."""
    return f[(x + right if right else x, y + down if down else y, *rest)]


def window(f: Image | Stage, kernel: Kernel, *rest: Term | int, to: Type | None = None) -> Term:
    """The sum of the values around a point with the weights of a kernel, whose middle is at the point."""
    up, left = len(kernel) // 2, len(kernel[0]) // 2
    terms = []
    for q, weights in enumerate(kernel):
        for p, weight in enumerate(weights):
            if weight:
                value = shifted(f, p - left, q - up, *rest)
                value = to(value) if to else value
                terms.append(value if weight == 1 else value * weight)
    return total(terms)


def row(f: Image | Stage, weights: Sequence[float], *rest: Term | int, to: Type | None = None) -> Term:
    """The same of a row of weights."""
    return window(f, [weights], *rest, to=to)


def column(f: Image | Stage, weights: Sequence[float], *rest: Term | int, to: Type | None = None) -> Term:
    """The same of a column of weights."""
    return window(f, [[w] for w in weights], *rest, to=to)


def separable(name: str, f: Image | Stage, weights: Sequence[float], *rest: Var) -> Stage:
    """The filter of these weights along both dims, first in x."""
    first = stage(f"{name}_x", row(f, weights, *rest), x, y, *rest)
    return stage(name, column(first, weights, *rest), x, y, *rest)


def around(radius: int, names: str = "pq") -> tuple[Range, ...]:
    """Ranges from minus the radius to the radius."""
    return tuple(Range(name, -radius, radius + 1) for name in names)


def gaussian(sigma: float, radius: int) -> list[float]:
    """The weights of a Gaussian, whose sum is 1."""
    weights = [math.exp(-(d**2) / (2 * sigma**2)) for d in range(-radius, radius + 1)]
    return [w / math.fsum(weights) for w in weights]


SOBEL_X = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
SOBEL_Y = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]


def luma(f: Image | Stage) -> Term:
    """The gray value of three channels."""
    return 0.299 * f[x, y, 0] + 0.587 * f[x, y, 1] + 0.114 * f[x, y, 2]


@cache
def _session(operation: str, attributes: tuple[tuple[str, Any], ...], inputs: int) -> Any:
    """A session of onnxruntime for a model of one operation, on one thread or as many as OpenMP is told."""
    import onnxruntime
    from onnx import TensorProto, helper

    names = [f"i{number}" for number in range(inputs)]
    options: Any = {k: list(v) if isinstance(v, tuple) else v for k, v in attributes}
    node = helper.make_node(operation, names, ["o"], **options)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
    graph = helper.make_graph([node], "case", values, [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    return onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])


def onnx(operation: str, *inputs: Any, **attributes: Any) -> Any:
    """The value of one operation of ONNX by onnxruntime."""
    kept = tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in attributes.items()))
    session = _session(operation, kept, len(inputs))
    return session.run(None, {f"i{number}": a for number, a in enumerate(inputs)})[0]
