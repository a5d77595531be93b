"""Streaming stores: which vectors are written past the caches."""

from __future__ import annotations

from support.planes import X, Y, planes

from tilesmith.scheduler.ir.loop.values import Lane, Value
from tilesmith.scheduler.ir.pipeline.types import BOOL, FLOAT32
from tilesmith.scheduler.lowering.streaming_stores import streams


def test_vectors_that_stream_are_neighbours_in_memory() -> None:
    row, value = Lane(X, tuple(range(4))), Value(FLOAT32, 4, "v")
    assert streams(planes(), (row, Lane(Y)), value)
    assert not streams(planes(), (Lane(X, (0, 2, 4, 6)), Lane(Y)), value)
    assert not streams(planes(), (Lane(X), row), value)
    assert not streams(planes(columns=True), (row, Lane(Y)), value)
    assert not streams(planes(), (row, Lane(Y)), Value(FLOAT32, 1, "v"))
    assert not streams(planes(), (row, Lane(Y)), Value(BOOL, 4, "v"))
