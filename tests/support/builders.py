"""Builders of loop programs for a machine with registers and lines of 64 bytes."""

from __future__ import annotations

from tilesmith.platforms.base import VectorUnit
from tilesmith.platforms.core import ORDINARY
from tilesmith.scheduler.ir.loop.builder import Builder


def builder(vectors: VectorUnit | None = None) -> Builder:
    return Builder(vectors or VectorUnit(64, 64, True), 64, ORDINARY)
