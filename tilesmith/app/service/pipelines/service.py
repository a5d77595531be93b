"""Pipelines as resources: those that ship with the product, by name or id, and those that users store, by id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.pipelines import repository
from tilesmith.app.service.schedules.answers import PipelineIdentity, identity
from tilesmith.app.service.settings import Settings
from tilesmith.scheduler import pipelines as shipped


@dataclass(frozen=True, slots=True)
class Known:
    """A pipeline and where it is from."""

    pipeline: PipelineIdentity
    shipped: bool


@cache
def _shipped() -> Mapping[str, PipelineIdentity]:
    """Identities of the shipped pipelines by name: files of the package, read once a process."""
    found = {}
    for name in shipped.names():
        found[name] = identity(shipped.load(name))
    return found


class Pipelines:
    """Shipped and stored pipelines."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._settings = settings

    @property
    def shipped(self) -> Mapping[str, PipelineIdentity]:
        """The shipped ones by name."""
        return _shipped()

    def find(self, name_or_id: str) -> Known:
        """ApiError `pipeline_not_found`."""
        for name, pipeline in self.shipped.items():
            if name_or_id in (name, pipeline.id):
                return Known(pipeline, True)
        stored = repository.find(self._db, name_or_id)
        if stored is None:
            raise ApiError("pipeline_not_found", f"there is no pipeline {name_or_id[:64]!r}")
        return Known(stored, False)

    def document(self, name_or_id: str) -> dict[str, Any]:
        """The canonical document of a pipeline; ApiError `pipeline_not_found`."""
        document: dict[str, Any] = json.loads(self.find(name_or_id).pipeline.document)
        return document

    def add(self, pipeline: PipelineIdentity) -> bool:
        """Stores a checked pipeline; whether it was new. A shipped one is known already."""
        if any(pipeline.id == s.id for s in self.shipped.values()):
            return False
        holdings.check(self._db, self._settings)
        return repository.add(self._db, pipeline, holdings.owner())
