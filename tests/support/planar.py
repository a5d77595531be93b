"""Pipelines over x and y, written as the text of their stages' values."""

from __future__ import annotations

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline


def planar(values: dict[str, str], width: int, height: int, type_: str = "float32", boundary: str = "") -> Pipeline:
    """Stages by name, in order, of which the last one is the output, of one image `input` of `type_`, which has a
    boundary of that kind if any."""
    *_, output = values
    bounded = {"boundary": {"kind": boundary}} if boundary else {}
    return load(
        {
            "format": 1,
            "name": "planar",
            "inputs": [{"name": "input", "type": type_, "dims": ["x", "y"], **bounded}],
            "stages": [{"name": n, "dims": ["x", "y"], "value": v} for n, v in values.items()],
            "outputs": [output],
            "estimates": {output: [[0, width], [0, height]]},
        }
    )
