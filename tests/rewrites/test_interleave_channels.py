"""Interleaving of channels: which stages lie like the interleaved images around them."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.frontends.document.document import load
from tilesmith.scheduler.ir.pipeline.pipeline import Pipeline
from tilesmith.scheduler.rewrites.interleave_channels import interleaved

PLANES, PIXELS = ("x", "y", "c"), ("c", "x", "y")


def pipeline_of(first: str, second: str, channels: int = 3, storage: tuple[str, ...] = PIXELS) -> Pipeline:
    """The stage `mid` of an interleaved image `a` and of `m`, which has one channel, and the output `out`."""
    return load(
        {
            "format": 1,
            "name": "pixels",
            "inputs": [
                {"name": "a", "type": "uint8", "dims": ["x", "y", "c"], "storage": ["c", "x", "y"]},
                {"name": "m", "type": "uint8", "dims": ["x", "y"]},
            ],
            "stages": [
                {"name": "mid", "dims": ["x", "y", "c"], "value": first},
                {"name": "out", "dims": ["x", "y", "c"], "storage": list(storage), "value": second},
            ],
            "outputs": ["out"],
            "estimates": {"out": [[0, 64], [0, 48], [0, channels]]},
        }
    )


ALIKE = "a(x - 1, y, c) + a(x + 1, y + 2, c)"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ALIKE, "mid(x, y - 1, c) + a(x, y, c)"),
        ("max(a(x + r, y, c) for r in range(-3, 4))", "mid(x, y // 2, c)"),
        ("a(x, m(3, y), c) * m(0, 0)", "mid(x, y, c)"),  # the same along the whole row
    ],
)
def test_stages_between_interleaved_images_are_interleaved(first: str, second: str) -> None:
    before = pipeline_of(first, second)
    after = interleaved(before)
    assert [s.storage for s in before.stages] == [PLANES, PIXELS]
    assert [s.storage for s in after.stages] == [PIXELS, PIXELS]
    assert interleaved(after) is after


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ALIKE, "mid(x, y, 2 - c)"),  # another channel
        (ALIKE, "mid(x, y, c) + mid(x, y, 0)"),
        (ALIKE, "mid(x, y, c) + uint8(c)"),  # a channel tells
        (ALIKE, "mid(x, y, c) + uint8(x)"),
        (ALIKE, "mid(x, y, c) + m(x, y)"),  # as many lanes as pixels
        (ALIKE, "mid(2 * x, y, c)"),
        (ALIKE, "mid(y, x, c)"),
        ("a(x, y, c) + m(x, y)", "mid(x, y, c)"),
        ("a(m(x, y), y, c)", "mid(x, y, c)"),
        ("m(x, y) + m(x, c)", "mid(x, y, c)"),  # no pixels
    ],
)
def test_others_lie_as_they_were_written(first: str, second: str) -> None:
    before = pipeline_of(first, second)
    assert interleaved(before) is before


@pytest.mark.parametrize("channels", [1, 5, 64])
def test_vectors_run_along_many_channels(channels: int) -> None:
    before = pipeline_of(ALIKE, "mid(x, y, c)", channels)
    assert interleaved(before) is before


def test_outputs_keep_their_storage() -> None:
    before = pipeline_of(ALIKE, "mid(x, y, c)", storage=PLANES)
    assert interleaved(before) is before
