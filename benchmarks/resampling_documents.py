"""Parts of documents of pipelines that resample: images and stages in planes or interleaved, and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 1536, 1024

Document = dict[str, Any]


def image(name: str, type_: str, dims: str = "xy", interleaved: bool = False, edge: bool = True) -> Document:
    """An input, whose edges are repeated if there is an `edge`; `dims` has one letter a dim."""
    found: Document = {"name": name, "type": type_, "dims": list(dims)}
    if interleaved:
        found["storage"] = ["c", *(d for d in dims if d != "c")]
    if edge:
        found["boundary"] = {"kind": "repeat_edge"}
    return found


def stage(name: str, dims: str, value: str, interleaved: bool = False, **more: Any) -> Document:
    """A stage; `more` is what else its document has."""
    found: Document = {"name": name, "dims": list(dims), "value": value, **more}
    if interleaved:
        found["storage"] = ["c", *(d for d in dims if d != "c")]
    return found


def document(
    inputs: Sequence[Document],
    stages: Sequence[Document],
    estimates: Mapping[str, Sequence[int]],
    params: Sequence[Document] = (),
    outputs: Sequence[str] = (),
) -> Document:
    """A pipeline without a name; `estimates` are extents, the output the last stage or those of `outputs`."""
    return {
        "format": 1,
        "params": list(params),
        "inputs": list(inputs),
        "stages": list(stages),
        "outputs": list(outputs) or [stages[-1]["name"]],
        "estimates": {name: [[0, n] for n in extents] for name, extents in estimates.items()},
    }


GRAY, RGB = (WIDTH, HEIGHT), (WIDTH, HEIGHT, 3)
BYTE = "uint8(clamp({}, 0.0, 255.0) + 0.5)"
"""A float as a byte, rounded."""
