"""Fixtures of plugins: what they register is forgotten after the test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import cost_models.registry
import scheduler.codegen.registry
import scheduler.frontends.registry
import scheduler.ir.schedule.primitives.registry
import scheduler.strategies.document
import scheduler.strategies.registry

REGISTRIES: tuple[dict[str, Any], ...] = (
    cost_models.registry._MODELS,
    scheduler.codegen.registry._BACKENDS,
    scheduler.frontends.registry._IMPORTERS,
    scheduler.ir.schedule.primitives.registry._PRIMITIVES,
    scheduler.strategies.registry.RULES,
)


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    modules, registered = set(sys.modules), [dict(r) for r in REGISTRIES]
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for registry, before in zip(REGISTRIES, registered, strict=True):
        registry.clear()
        registry.update(before)
    for name in set(sys.modules) - modules:
        if name.startswith("/"):
            del sys.modules[name]
