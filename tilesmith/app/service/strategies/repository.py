"""Rows of strategies that users have stored; by content, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, select, tuple_

from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.paging import Key
from tilesmith.app.service.schedules.answers import StrategyIdentity
from tilesmith.app.service.tables import strategies

SUMMARY = (strategies.c.id, strategies.c.name, strategies.c.created_us)


def add(db: Database, found: StrategyIdentity, owner: str) -> bool:
    """Add a strategy of that client's; True if it was new."""
    size = len(found.document)
    row = {"id": found.id, "name": found.name, "document": found.document, "created_us": now_us()}
    with db.write() as connection:
        new = db.insert_new(connection, strategies, row | {"owner": owner, "bytes": size})
        if new:
            holdings.change(db, connection, owner, 0, size)
        return new


def find(db: Database, strategy_id: str) -> StrategyIdentity | None:
    c = strategies.c
    with db.read() as connection:
        row = connection.execute(select(c.id, c.name, c.document).where(c.id == strategy_id)).first()
    return StrategyIdentity(row.id, row.name, row.document) if row else None


def remove(db: Database, strategy_id: str) -> bool:
    """Deletes a strategy; False where there is none."""
    c = strategies.c
    with db.write() as connection:
        gone = connection.execute(delete(strategies).where(c.id == strategy_id).returning(c.owner, c.bytes)).first()
        if gone is not None:
            holdings.change(db, connection, gone.owner, 0, -gone.bytes)
        return gone is not None


def page(db: Database, after: Key | None, count: int) -> Sequence[Any]:
    """Up to `count` summaries by (name, id), after that key."""
    query = select(*SUMMARY).order_by(strategies.c.name, strategies.c.id).limit(count)
    if after is not None:
        query = query.where(tuple_(strategies.c.name, strategies.c.id) > tuple_(*after))
    with db.read() as connection:
        return connection.execute(query).all()
