"""Boundaries of inputs: what the search knows of an input does not depend on what lies beyond it."""

from __future__ import annotations

import pytest

from scheduler.analysis.estimated_bounds import estimated_regions
from scheduler.features.pipeline_features import gather
from scheduler.frontends.document.document import load
from scheduler.ir.pipeline.pipeline import Pipeline
from scheduler.rewrites.normalize import normalise

KINDS = ("repeat_edge", "repeat_image", "mirror_image", "mirror_interior")


def pipeline_of(kind: str | None) -> Pipeline:
    """A stencil on one channel of an image, upsampled."""
    image = {"name": "a", "type": "uint8", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]}
    document = {
        "format": 1,
        "name": "stencil",
        "inputs": [image if kind is None else {**image, "boundary": {"kind": kind}}],
        "stages": [
            {"name": "s", "dims": ["x", "y"], "value": "a(x - 1, y, 2) // 2 + a(x + 1, y, 0) // 2"},
            {"name": "out", "dims": ["x", "y"], "value": "s(x, y) + s(x, y + 1) + a(x // 2, 2 * y, 1)"},
        ],
        "outputs": ["out"],
        "estimates": {"out": [[0, 640], [0, 480]]},
    }
    return load(document)


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_sees_the_inside_of_an_image(kind: str) -> None:
    """The places that are read and how far they reach are those of the pipeline without a boundary."""
    plain, bounded = pipeline_of(None), pipeline_of(kind)
    assert estimated_regions(normalise(bounded)) == estimated_regions(normalise(plain))
    seen, expected = gather(bounded).stages, gather(plain).stages
    assert [s.reads for s in seen.values()] == [s.reads for s in expected.values()]
    assert all(span.known for s in seen.values() for r in s.reads for span in r.roughly)
