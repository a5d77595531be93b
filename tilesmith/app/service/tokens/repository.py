"""Rows of the table of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select, update

from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.tables import tokens


def add(db: Database, token_id: str, name: str, digest: str, scopes: str, expires_us: int | None) -> None:
    row = {"id": token_id, "name": name, "hash": digest, "scopes": scopes, "expires_us": expires_us}
    with db.write() as connection:
        connection.execute(insert(tokens).values(**row, created_us=now_us()))


def exists(db: Database) -> bool:
    """True if a token was ever made, revoked ones included."""
    with db.read() as connection:
        return connection.execute(select(tokens.c.id).limit(1)).first() is not None


def find(db: Database, digest: str) -> Any | None:
    """The name, the scopes, the expiry and the last use of the token of that hash; None where there is none or it was
    revoked."""
    c = tokens.c
    with db.read() as connection:
        query = select(c.id, c.name, c.scopes, c.expires_us, c.used_us).where(c.hash == digest, c.revoked_us.is_(None))
        return connection.execute(query).first()


def use(db: Database, token_id: str, used_us: int) -> None:
    """Records the time at which a token was used."""
    with db.write() as connection:
        connection.execute(update(tokens).where(tokens.c.id == token_id).values(used_us=used_us))


def every(db: Database) -> Sequence[Any]:
    """All tokens, the oldest first, revoked ones included."""
    with db.read() as connection:
        c = tokens.c
        columns = (c.id, c.name, c.scopes, c.created_us, c.expires_us, c.used_us, c.revoked_us)
        return connection.execute(select(*columns).order_by(c.created_us, c.id)).all()


def revoke(db: Database, token_id: str) -> bool:
    """Marks the token as revoked; False where there is none."""
    with db.write() as connection:
        known = connection.execute(select(tokens.c.id).where(tokens.c.id == token_id)).first()
        connection.execute(
            update(tokens).where(tokens.c.id == token_id, tokens.c.revoked_us.is_(None)).values(revoked_us=now_us())
        )
        return known is not None
