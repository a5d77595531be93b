"""Strategies as resources: those that ship with the product, by name or id, and those that users store, by id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules.answers import StrategyIdentity, strategy_identity
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.strategies import repository
from tilesmith.scheduler.strategies import catalog


@dataclass(frozen=True, slots=True)
class Known:
    """A strategy and where it is from."""

    strategy: StrategyIdentity
    shipped: bool


@cache
def _shipped() -> Mapping[str, StrategyIdentity]:
    """Identities of the shipped strategies by name: files of the package, read once a process."""
    return {name: strategy_identity(catalog.load(name)) for name in catalog.names()}


class Strategies:
    """Shipped and stored strategies."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._settings = settings

    @property
    def shipped(self) -> Mapping[str, StrategyIdentity]:
        """The shipped ones by name."""
        return _shipped()

    def find(self, name_or_id: str) -> Known:
        """ApiError `strategy_not_found`."""
        for name, strategy in self.shipped.items():
            if name_or_id in (name, strategy.id):
                return Known(strategy, True)
        stored = repository.find(self._db, name_or_id)
        if stored is None:
            raise ApiError("strategy_not_found", f"there is no strategy {name_or_id[:64]!r}")
        return Known(stored, False)

    def document(self, name_or_id: str) -> dict[str, Any]:
        """The canonical document of a strategy; ApiError `strategy_not_found`."""
        document: dict[str, Any] = json.loads(self.find(name_or_id).strategy.document)
        return document

    def add(self, strategy: StrategyIdentity) -> bool:
        """Stores a checked strategy; whether it was new. A shipped one is known already."""
        if any(strategy.id == s.id for s in self.shipped.values()):
            return False
        holdings.check(self._db, self._settings)
        return repository.add(self._db, strategy, holdings.owner())
