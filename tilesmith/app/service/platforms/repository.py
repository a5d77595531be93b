"""Rows of platforms that users have stored; by name, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.paging import Key
from tilesmith.app.service.tables import platforms

SUMMARY = (platforms.c.name, platforms.c.kind, platforms.c.created_us)


def add(db: Database, name: str, content_id: str, kind: str, document: bytes, owner: str) -> bool:
    """Add a platform of that client's; True if it was new."""
    row = {"name": name, "id": content_id, "kind": kind, "document": document, "created_us": now_us()}
    with db.write() as connection:
        new = db.insert_new(connection, platforms, row)
        if new:
            holdings.change(db, connection, owner, 0, len(document))
        return new


def find(db: Database, name: str) -> tuple[str, bytes] | None:
    """Content hash and document."""
    with db.read() as connection:
        row = connection.execute(select(platforms.c.id, platforms.c.document).where(platforms.c.name == name)).first()
    return (row.id, row.document) if row else None


def documents(db: Database, kind: str) -> Sequence[Any]:
    """Name and document of all platforms of a kind."""
    with db.read() as connection:
        query = select(platforms.c.name, platforms.c.document).where(platforms.c.kind == kind)
        return connection.execute(query).all()


def page(db: Database, after: Key | None, count: int) -> Sequence[Any]:
    """Up to `count` summaries by name, after that one."""
    query = select(*SUMMARY).order_by(platforms.c.name).limit(count)
    if after is not None:
        query = query.where(platforms.c.name > after[0])
    with db.read() as connection:
        return connection.execute(query).all()
