"""Peers that are Python calls: NumPy (the reference interpreter, the floor) and OpenCV where it has the operation.

A peer makes its function of a contender's specification; the function returns the outputs, axes reversed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[[], tuple[np.ndarray, ...]]


def numpy_peer(spec: dict[str, Any]) -> Run:
    """The reference interpreter on whole arrays: NumPy without tiling, fusion or threads."""
    from benchmarks.documents import pipeline_of
    from tilesmith.scheduler.interpreter.interpreter import Image, interpret

    pipeline = pipeline_of(spec["document"])
    buffers = [a for a in spec["arguments"] if a["kind"] == "buffer"]
    inputs = {a["name"]: Image(np.load(a["file"]), tuple(low for low, _ in a["region"])) for a in buffers if a["file"]}
    params = {a["name"]: a["value"] for a in spec["arguments"] if a["kind"] == "scalar"}
    regions = {a["name"]: tuple((low, n) for low, n in a["region"]) for a in buffers if not a["file"]}

    def run() -> tuple[np.ndarray, ...]:
        outputs = interpret(pipeline, inputs, params, regions)
        return tuple(component for name in pipeline.outputs for component in outputs[name])

    return run


def opencv_peer(spec: dict[str, Any]) -> Run:
    """The operation by OpenCV's own functions, with as many threads as the others."""
    import cv2

    cv2.setNumThreads(int(os.environ["OMP_NUM_THREADS"]))
    image = np.load(next(a["file"] for a in spec["arguments"] if a["kind"] == "buffer" and a["file"]))
    return _OPENCV[spec["pipeline"]](image)


HEAVY = ("camera_pipe", "max_filter", "nl_means")
"""The pipelines that take the interpreter minutes, or gigabytes, at the sizes of their estimates."""


def supports(peer: str, pipeline: str) -> bool:
    """True if the peer can do that pipeline."""
    return pipeline in _OPENCV if peer == "opencv" else pipeline not in HEAVY


def _unsharp(image: np.ndarray) -> Run:
    import cv2

    gaussian = np.exp(-(np.arange(-3, 4) ** 2) / (2 * 1.5**2)) / (np.sqrt(2 * np.pi) * 1.5)
    taps = gaussian.astype(np.float32)

    def run() -> tuple[np.ndarray, ...]:
        red, green, blue = image
        gray = cv2.addWeighted(red, 0.299, green, 0.587, 0)
        cv2.scaleAdd(blue, 0.114, gray, gray)
        smooth = cv2.sepFilter2D(gray, cv2.CV_32F, taps, taps, borderType=cv2.BORDER_REPLICATE)
        ratio = cv2.divide(cv2.addWeighted(gray, 2, smooth, -1, 0), gray)
        return (np.stack([cv2.multiply(ratio, plane) for plane in image]),)

    return run


def _gaussian3x3(image: np.ndarray) -> Run:
    import cv2

    planes = np.empty_like(image)

    def run() -> tuple[np.ndarray, ...]:
        for source, target in zip(image, planes, strict=True):
            cv2.GaussianBlur(source, (3, 3), 0, target, borderType=cv2.BORDER_REPLICATE)
        return (planes,)

    return run


def _sobel(image: np.ndarray) -> Run:
    import cv2

    def run() -> tuple[np.ndarray, ...]:
        gx = cv2.Sobel(image, cv2.CV_32F, 1, 0, borderType=cv2.BORDER_REPLICATE)
        gy = cv2.Sobel(image, cv2.CV_32F, 0, 1, borderType=cv2.BORDER_REPLICATE)
        return (cv2.convertScaleAbs(cv2.magnitude(gx, gy)),)

    return run


def _laplacian_sharpen(image: np.ndarray) -> Run:
    import cv2

    kernel = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)
    planes = np.empty_like(image)

    def run() -> tuple[np.ndarray, ...]:
        for source, target in zip(image, planes, strict=True):
            cv2.filter2D(source, cv2.CV_8U, kernel, target, borderType=cv2.BORDER_REPLICATE)
        return (planes,)

    return run


def _harris(image: np.ndarray) -> Run:
    import cv2

    interleaved = np.ascontiguousarray(np.moveaxis(image, 0, -1))  # what OpenCV's images are

    def run() -> tuple[np.ndarray, ...]:
        gray = cv2.cvtColor(interleaved, cv2.COLOR_RGB2GRAY)
        return (cv2.cornerHarris(gray, blockSize=3, ksize=3, k=0.04)[3:-3, 3:-3],)

    return run


_OPENCV: dict[str, Callable[[np.ndarray], Run]] = {
    "unsharp": _unsharp,
    "gaussian3x3": _gaussian3x3,
    "harris": _harris,
    "sobel": _sobel,
    "laplacian_sharpen": _laplacian_sharpen,
}

PEERS: dict[str, Callable[[dict[str, Any]], Run]] = {"opencv": opencv_peer, "numpy": numpy_peer}
