"""Platforms as resources: the host, the catalog, and those that users store. A name means one machine for ever."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import structlog

from tilesmith import platforms as machines
from tilesmith.app.profiler.host import host
from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.platforms import repository
from tilesmith.app.service.platforms.machine_names import machine_name
from tilesmith.app.service.platforms.reading import checked, described
from tilesmith.app.service.schedules.answers import compact, content_hash

log = structlog.get_logger("tilesmith.platforms")

HOST = "host"
Source = Literal["host", "catalog", "stored"]


@dataclass(frozen=True, slots=True)
class Known:
    """A platform's document and where it is from."""

    name: str
    source: Source
    document: dict[str, Any]


class Platforms:
    """The host, the catalog's and the stored platforms."""

    def __init__(self, db: Database, host_document: Path | None = None, calibrate: bool = False) -> None:
        self._db = db
        self._host_document = host_document
        self._calibrate = calibrate
        self._machines: set[str] = set()

    @cached_property
    def built_in(self) -> dict[str, Known]:
        """The host, which is measured on first use, to calibrate, and the catalog, by name."""
        found = {name: Known(name, "catalog", described(machines.get(name))) for name in machines.catalog_names()}
        machine = host(self._host_document, self._calibrate, log.info, log.warning)
        found[HOST] = Known(HOST, "host", described(machine))
        return found

    def find(self, name: str) -> Known:
        """ApiError `platform_not_found`."""
        known = self.built_in.get(name)
        if known is not None:
            return known
        stored = repository.find(self._db, name)
        if stored is None:
            raise ApiError("platform_not_found", f"there is no platform {name[:64]!r}")
        return Known(name, "stored", json.loads(stored[1]))

    def document(self, name: str) -> dict[str, Any]:
        """Its document; ApiError `platform_not_found`."""
        return self.find(name).document

    def named_apart(self, machine: dict[str, Any]) -> dict[str, Any]:
        """The checked document, under a name of its own where its name means another machine: what is answered for a
        changed machine must not pass for an answer for the one that it was made from."""
        name = str(machine["name"])
        built_in = self.built_in.get(name)
        stored = None if built_in is not None else repository.find(self._db, name)
        known = built_in.document if built_in is not None else None if stored is None else json.loads(stored[1])
        if known is None or compact(known) == compact(machine):
            return machine
        return machine | {"name": f"{name[:55]}-{content_hash(compact(machine).encode())[:8]}"}

    def add(self, machine: dict[str, Any]) -> tuple[Known, bool]:
        """Stores a checked platform; whether it was new. ApiError `platform_name_taken` if its name means another."""
        name = str(machine["name"])
        content = json.dumps(machine, sort_keys=True, separators=(",", ":")).encode()
        built_in = self.built_in.get(name)
        if built_in is not None:
            return self._same(built_in, machine), False
        if repository.add(self._db, name, content_hash(content), str(machine["kind"]), content, holdings.owner()):
            return Known(name, "stored", machine), True
        return self._same(self.find(name), machine), False

    def keep_machines(self, documents: Mapping[str, Any]) -> frozenset[str]:
        """Stores the platforms of the pool's machines, which have names of their kind; the names of all that there have
        been. The first of a kind that was measured stands for all of them."""
        if not self._machines:
            self._machines |= {row.name for row in repository.documents(self._db, "cpu") if _is_machine(row)}
        for name, document in documents.items():
            if name in self._machines:
                continue
            try:
                _, new = self.add(checked({**document, "name": name}))
            except ApiError as error:
                if error.code != "platform_name_taken":
                    log.warning("a worker's platform is not valid", machine=name, detail=error.detail)
                    continue
                new = False
            self._machines.add(name)
            log.info("machine of the pool", machine=name, new=new)
        return frozenset(self._machines)

    def _same(self, known: Known, checked: dict[str, Any]) -> Known:
        if compact(known.document) != compact(checked):
            raise ApiError("platform_name_taken", f"the name {known.name!r} means another platform; choose a new one")
        return known


def _is_machine(row: Any) -> bool:
    """True if a stored platform has the name of its kind of machine, as those of workers have."""
    return machine_name(json.loads(row.document)) == str(row.name)
