"""Strategies as resources: those that ship with the product, and those that users store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tilesmith.app.service.db import Database
from tilesmith.app.service.named_documents import NamedDocuments
from tilesmith.app.service.schedules.answers import StrategyIdentity, strategy_identity
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.strategies import repository
from tilesmith.scheduler.strategies import catalog


@cache
def _shipped() -> Mapping[str, StrategyIdentity]:
    """Identities of the shipped strategies by name: files of the package, read once a process."""
    return {name: strategy_identity(catalog.load(name)) for name in catalog.names()}


class Strategies(NamedDocuments[StrategyIdentity]):
    """Shipped and stored strategies."""

    def __init__(self, db: Database, settings: Settings) -> None:
        super().__init__("strategy", _shipped, repository, db, settings)
