"""Addresses: one row pointer for all that reads the same row."""

from __future__ import annotations

import pytest
from support.lowered import evaluated, pipeline

from tilesmith.scheduler.ir.index import Index
from tilesmith.scheduler.ir.loop.builder import Builder
from tilesmith.scheduler.ir.loop.values import Buffer
from tilesmith.scheduler.lowering import addresses
from tilesmith.scheduler.lowering.addresses import offset_along


def test_neighbours_of_a_row_are_placed_once_a_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = []

    def offset(b: Builder, of: Buffer, d: int, at: Index) -> Index:
        placed.append(at)
        return offset_along(b, of, d, at)

    monkeypatch.setattr(addresses, "offset_along", offset)
    p = pipeline("f(x, y + 2) + f(x + 3, y + 2) + f(x, y)", dims=("x", "y"))
    evaluated(p)
    assert len(placed) == 2, "one row for two of the reads"
