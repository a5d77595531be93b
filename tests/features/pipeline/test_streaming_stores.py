"""Streaming stores: lines of memory, and the vectors that they are made of."""

from __future__ import annotations

import pytest

from tilesmith.scheduler.features.pipeline.streaming_stores import line_vectors


@pytest.mark.parametrize(
    ("vector_bytes", "line_bytes", "count"),
    [
        (64, 64, 1), (32, 64, 2), (16, 64, 4), (128, 64, 1),
        (8, 64, 0),  # of smaller ones than there are such stores of
        (16, 128, 0),  # too many iterations at once
        (32, 128, 4), (64, 32, 1), (16, 16, 1),
    ],
)  # fmt: skip
def test_vectors_of_a_line(vector_bytes: int, line_bytes: int, count: int) -> None:
    assert line_vectors(vector_bytes, line_bytes, 16) == count
