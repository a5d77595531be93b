"""Rows of pipelines that users have stored; by content, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, exists, select, tuple_

from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.paging import Key
from tilesmith.app.service.schedules.answers import PipelineIdentity
from tilesmith.app.service.tables import pipelines, schedules

SUMMARY = (pipelines.c.id, pipelines.c.name, pipelines.c.stages, pipelines.c.created_us)


def add(db: Database, found: PipelineIdentity, owner: str) -> bool:
    """Add a pipeline of that client's; True if it was new."""
    row = {
        "id": found.id,
        "name": found.name,
        "stages": found.stages,
        "document": found.document,
        "created_us": now_us(),
        "owner": owner,
        "bytes": len(found.document),
    }
    with db.write() as connection:
        new = db.insert_new(connection, pipelines, row)
        if new:
            holdings.change(db, connection, owner, 0, len(found.document))
        return new


def find(db: Database, pipeline_id: str) -> PipelineIdentity | None:
    c = pipelines.c
    with db.read() as connection:
        row = connection.execute(select(c.id, c.name, c.stages, c.document).where(c.id == pipeline_id)).first()
    return PipelineIdentity(row.id, row.name, row.stages, row.document) if row else None


def remove(db: Database, pipeline_id: str) -> bool:
    """Deletes a pipeline; False where there is none."""
    with db.write() as connection:
        return _remove(db, connection, pipelines.c.id == pipeline_id) == 1


def remove_unused(db: Database, before_us: int, most: int) -> int:
    """Deletes up to so many pipelines that were stored before that time and have no schedule; how many."""
    c = pipelines.c
    used = exists().where(schedules.c.pipeline_id == c.id)
    some = select(c.id).where(c.created_us < before_us, ~used).limit(most)
    with db.write() as connection:
        return _remove(db, connection, c.id.in_(some))


def _remove(db: Database, connection: Connection, which: ColumnElement[bool]) -> int:
    c = pipelines.c
    rows = connection.execute(delete(pipelines).where(which).returning(c.owner, c.bytes)).all()
    for row in rows:
        holdings.change(db, connection, row.owner, 0, -row.bytes)
    return len(rows)


def page(db: Database, name: str | None, after: Key | None, count: int) -> Sequence[Any]:
    """Up to `count` summaries by (name, id), after that key."""
    query = select(*SUMMARY).order_by(pipelines.c.name, pipelines.c.id).limit(count)
    if name is not None:
        query = query.where(pipelines.c.name == name)
    if after is not None:
        query = query.where(tuple_(pipelines.c.name, pipelines.c.id) > tuple_(*after))
    with db.read() as connection:
        return connection.execute(query).all()
