"""Peers that are Python calls: NumPy (the reference interpreter, the floor) and OpenCV where it has the operation.

A peer makes its function of a contender's specification; the function returns the outputs, axes reversed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tilesmith.app.bench.opencv import OPENCV, Run


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
    return OPENCV[spec["pipeline"]](image)


HEAVY = ("camera_pipe", "max_filter", "nl_means")
"""The pipelines that take the interpreter minutes, or gigabytes, at the sizes of their estimates."""


def supports(peer: str, pipeline: str) -> bool:
    """True if the peer can do that pipeline."""
    return pipeline in OPENCV if peer == "opencv" else pipeline not in HEAVY


PEERS: dict[str, Callable[[dict[str, Any]], Run]] = {"opencv": opencv_peer, "numpy": numpy_peer}
