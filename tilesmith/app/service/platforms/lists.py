"""The list of platforms: built-in and stored ones by name."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import func, select

from tilesmith.app.service.db import Database
from tilesmith.app.service.paging import Page, PageRequest, Sorted, in_order, names_beyond, next_page
from tilesmith.app.service.platforms.service import Known
from tilesmith.app.service.tables import platforms, schedule_tallies

KIND = "platform names"


def listed(db: Database, built_in: Mapping[str, Known], paging: PageRequest) -> Page[Known]:
    """The page of platforms that is asked for; ApiError `bad_cursor`."""
    position = paging.position(KIND, (str,))
    query = in_order(select(platforms.c.name, platforms.c.document), [Sorted(platforms.c.name)], position)
    with db.read() as connection:
        rows = connection.execute(query.limit(paging.limit + 1)).all()
    stored = {row.name: Known(row.name, "stored", json.loads(row.document)) for row in rows}
    found = stored | dict(built_in)
    names = names_beyond(found, position)[: paging.limit + 1]
    return next_page([found[n] for n in names], [(n,) for n in names], KIND, paging.limit, position)


def schedules_of(db: Database, names: list[str]) -> dict[str, int]:
    """Numbers of schedules that these platforms have."""
    t = schedule_tallies.c
    query = select(t.platform, func.sum(t.made).label("made")).where(t.platform.in_(names)).group_by(t.platform)
    with db.read() as connection:
        counts = {row.platform: row.made for row in connection.execute(query)}
    return {name: counts.get(name, 0) for name in names}
