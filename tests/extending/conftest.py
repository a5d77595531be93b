"""Fixtures of plugins: what they register is forgotten after the test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tilesmith.cost_models import registry as cost_models
from tilesmith.scheduler.codegen import registry as backends
from tilesmith.scheduler.frontends import registry as importers
from tilesmith.scheduler.ir.schedule.primitives import registry as primitives
from tilesmith.scheduler.strategies import registry as strategies

REGISTRIES: tuple[dict[str, Any], ...] = (
    cost_models._MODELS,
    backends._BACKENDS,
    importers._IMPORTERS,
    primitives._PRIMITIVES,
    strategies.RULES,
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
