"""Rows of webhooks and of deliveries. A delivery is taken by one conditional UPDATE, so that of several services on one
store one makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import delete, insert, or_, select, tuple_, update

from tilesmith.app.service.db import Database
from tilesmith.app.service.paging import Key
from tilesmith.app.service.tables import webhook_deliveries, webhooks

State = Literal["waiting", "delivered", "failed"]


@dataclass(frozen=True, slots=True)
class Due:
    """A delivery to be made now: the `attempts`-th time."""

    id: str
    url: str
    secret: str
    body: bytes
    attempts: int


def add(db: Database, row: dict[str, Any]) -> None:
    with db.write() as connection:
        connection.execute(insert(webhooks).values(row))


def every(db: Database) -> Sequence[Any]:
    """All webhooks, the oldest first."""
    with db.read() as connection:
        return connection.execute(select(webhooks).order_by(webhooks.c.created_us, webhooks.c.id)).all()


def of_project(db: Database, project: str) -> Sequence[Any]:
    """The webhooks that a project's results are told to."""
    c = webhooks.c
    with db.read() as connection:
        return connection.execute(select(webhooks).where(or_(c.project == project, c.project.is_(None)))).all()


def exists(db: Database, webhook_id: str) -> bool:
    with db.read() as connection:
        return connection.execute(select(webhooks.c.id).where(webhooks.c.id == webhook_id)).first() is not None


def remove(db: Database, webhook_id: str) -> bool:
    """Removes a webhook with its deliveries; False where there is none."""
    with db.write() as connection:
        connection.execute(delete(webhook_deliveries).where(webhook_deliveries.c.webhook_id == webhook_id))
        return connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id)).rowcount == 1


def queue(db: Database, rows: Sequence[dict[str, Any]]) -> None:
    """Adds deliveries that are due at once."""
    with db.write() as connection:
        connection.execute(insert(webhook_deliveries), rows)


def take(db: Database, now_us: int, lease_us: int) -> Due | None:
    """The delivery that has been due for the longest, not due again before `lease_us`; None where none is."""
    d, w = webhook_deliveries.c, webhooks.c
    query = select(d.id, d.attempts, d.body, d.next_us, w.url, w.secret).join(webhooks, w.id == d.webhook_id)
    query = query.where(d.state == "waiting", d.next_us <= now_us).order_by(d.next_us, d.id).limit(1)
    with db.read() as connection:
        row = connection.execute(query).first()
    if row is None:
        return None
    mine = (d.id == row.id, d.state == "waiting", d.next_us == row.next_us)
    changed = update(webhook_deliveries).where(*mine).values(next_us=lease_us, attempts=row.attempts + 1)
    with db.write() as connection:
        if connection.execute(changed).rowcount != 1:
            return None
    return Due(row.id, row.url, row.secret, row.body, row.attempts + 1)


def end(db: Database, delivery_id: str, state: State, status: int | None, error: str | None, next_us: int) -> None:
    """Keeps what became of an attempt."""
    changed = {"state": state, "status": status, "error": error, "next_us": next_us}
    with db.write() as connection:
        connection.execute(update(webhook_deliveries).where(webhook_deliveries.c.id == delivery_id).values(changed))


def page(db: Database, webhook_id: str, after: Key | None, count: int) -> Sequence[Any]:
    """Up to `count` deliveries of a webhook, the newest first, after the key (created_us, id)."""
    d = webhook_deliveries.c
    query = select(webhook_deliveries).where(d.webhook_id == webhook_id)
    query = query.order_by(d.created_us.desc(), d.id.desc()).limit(count)
    if after is not None:
        query = query.where(tuple_(d.created_us, d.id) < tuple_(*after))
    with db.read() as connection:
        return connection.execute(query).all()


def forget_before(db: Database, time_us: int) -> None:
    """Removes deliveries that were made, or given up, and are older."""
    d = webhook_deliveries.c
    with db.write() as connection:
        connection.execute(delete(webhook_deliveries).where(d.state != "waiting", d.created_us < time_us))
