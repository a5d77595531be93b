"""Holdings: how much each client has stored, kept as it changes, and the limits for one that shows a token.

Schedules count, with the forms that cannot be made again, documents of pipelines, platforms and strategies, and results
of projects. Limits are looked at before something is made: they hold but for what is being made meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, update

from tilesmith.app.service.db import Database
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules.engine import TOKEN, asker
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.tables import holdings

REMEDY = "delete some, which takes the scope admin, or ask for a higher limit"


@dataclass(frozen=True, slots=True)
class Holding:
    """The number of schedules of a client, and the bytes of all that it has stored."""

    schedules: int = 0
    bytes: int = 0


def owner() -> str:
    """The client whose request is being answered."""
    return asker.get()


_CHANGED = (
    update(holdings)
    .where(holdings.c.owner == bindparam("whose"))
    .values(schedules=holdings.c.schedules + bindparam("more"), bytes=holdings.c.bytes + bindparam("size"))
)


def change(db: Database, connection: Connection, whose: str, schedules: int, size: int) -> None:
    """Adds to what a client has, or takes off from it."""
    db.insert_new(connection, holdings, {"owner": whose, "schedules": 0, "bytes": 0})
    connection.execute(_CHANGED, {"whose": whose, "more": schedules, "size": size})


def check(db: Database, settings: Settings, schedules: int = 0) -> None:
    """ApiError `token_full` where the client that asks shows a token that has as much as it may, and wants to store so
    many schedules, or a document."""
    whose = owner()
    if not whose.startswith(TOKEN):
        return
    c = holdings.c
    with db.read() as connection:
        row = connection.execute(select(c.schedules, c.bytes).where(c.owner == whose)).first()
    if row is None:
        return
    limit, most = settings.schedules_per_token, settings.stored_bytes_per_token
    if schedules and row.schedules + schedules > limit:
        raise _full("schedules_per_token", limit, f"{row.schedules:,} schedules of this token are stored")
    if row.bytes >= most:
        raise _full("stored_bytes_per_token", most, f"{row.bytes:,} bytes of this token are stored")


def of_tokens(db: Database) -> Mapping[str, Holding]:
    """Holdings of tokens, by their ids."""
    c = holdings.c
    with db.read() as connection:
        rows = connection.execute(select(c.owner, c.schedules, c.bytes).where(c.owner.startswith(TOKEN)))
        return {row.owner.removeprefix(TOKEN): Holding(row.schedules, row.bytes) for row in rows}


def _full(setting: str, limit: int, detail: str) -> ApiError:
    name = f"TILESMITH_{setting.upper()}"
    return ApiError("token_full", f"{detail}; {name} is the limit: {REMEDY}", extra={"setting": name, "limit": limit})
