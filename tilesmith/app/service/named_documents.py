"""Documents as resources: those that ship with the product, by name or id, and those that users store, by id."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules.answers import PipelineIdentity, StrategyIdentity
from tilesmith.app.service.settings import Settings

Identity = TypeVar("Identity", bound=PipelineIdentity | StrategyIdentity)


@dataclass(frozen=True, slots=True)
class Known(Generic[Identity]):
    """A document and where it is from."""

    identity: Identity
    shipped: bool


class Rows(Protocol[Identity]):
    """The repository of the stored ones."""

    def find(self, db: Database, id_: str, /) -> Identity | None: ...

    def add(self, db: Database, found: Identity, owner: str) -> bool: ...


class NamedDocuments(Generic[Identity]):
    """Shipped and stored documents of one kind, `pipeline` or `strategy`. `shipped` gives the former by name, `rows`
    has the latter."""

    def __init__(
        self,
        kind: str,
        shipped: Callable[[], Mapping[str, Identity]],
        rows: Rows[Identity],
        db: Database,
        settings: Settings,
    ) -> None:
        self._kind = kind
        self._shipped = shipped
        self._rows = rows
        self._db = db
        self._settings = settings

    @property
    def shipped(self) -> Mapping[str, Identity]:
        """The shipped ones by name."""
        return self._shipped()

    def find(self, name_or_id: str) -> Known[Identity]:
        """ApiError `pipeline_not_found`, or of the other kind."""
        for name, identity in self.shipped.items():
            if name_or_id in (name, identity.id):
                return Known(identity, True)
        stored = self._rows.find(self._db, name_or_id)
        if stored is None:
            raise ApiError(f"{self._kind}_not_found", f"there is no {self._kind} {name_or_id[:64]!r}")
        return Known(stored, False)

    def document(self, name_or_id: str) -> dict[str, Any]:
        """The canonical document; ApiError as `find`."""
        document: dict[str, Any] = json.loads(self.find(name_or_id).identity.document)
        return document

    def add(self, identity: Identity) -> bool:
        """Stores a checked document; whether it was new. A shipped one is known already."""
        if any(identity.id == s.id for s in self.shipped.values()):
            return False
        holdings.check(self._db, self._settings)
        return self._rows.add(self._db, identity, holdings.owner())
