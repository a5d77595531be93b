"""Pipelines as resources: those that ship with the product, and those that users store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tilesmith.app.service.db import Database
from tilesmith.app.service.named_documents import NamedDocuments
from tilesmith.app.service.pipelines import repository
from tilesmith.app.service.schedules.answers import PipelineIdentity, identity
from tilesmith.app.service.settings import Settings
from tilesmith.scheduler import pipelines as shipped


@cache
def _shipped() -> Mapping[str, PipelineIdentity]:
    """Identities of the shipped pipelines by name: files of the package, read once a process."""
    return {name: identity(shipped.load(name)) for name in shipped.names()}


class Pipelines(NamedDocuments[PipelineIdentity]):
    """Shipped and stored pipelines."""

    def __init__(self, db: Database, settings: Settings) -> None:
        super().__init__("pipeline", _shipped, repository, db, settings)
