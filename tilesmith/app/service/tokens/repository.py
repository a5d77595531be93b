"""Rows of the table of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select, update

from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.tables import tokens


def add(db: Database, token_id: str, name: str, digest: str, scopes: str) -> None:
    with db.write() as connection:
        connection.execute(
            insert(tokens).values(id=token_id, name=name, hash=digest, scopes=scopes, created_us=now_us())
        )


def exists(db: Database) -> bool:
    """True if a token was ever made, revoked ones included."""
    with db.read() as connection:
        return connection.execute(select(tokens.c.id).limit(1)).first() is not None


def scopes_of(db: Database, digest: str) -> str | None:
    """The scopes of the token of that hash; None where there is none or it was revoked."""
    with db.read() as connection:
        query = select(tokens.c.scopes).where(tokens.c.hash == digest, tokens.c.revoked_us.is_(None))
        return connection.execute(query).scalar_one_or_none()


def name_of(db: Database, digest: str) -> str | None:
    """The name of the token of that hash."""
    with db.read() as connection:
        return connection.execute(select(tokens.c.name).where(tokens.c.hash == digest)).scalar_one_or_none()


def every(db: Database) -> Sequence[Any]:
    """All tokens, the oldest first, revoked ones included."""
    with db.read() as connection:
        columns = (tokens.c.id, tokens.c.name, tokens.c.scopes, tokens.c.created_us, tokens.c.revoked_us)
        return connection.execute(select(*columns).order_by(tokens.c.created_us, tokens.c.id)).all()


def revoke(db: Database, token_id: str) -> bool:
    """Marks the token as revoked; False where there is none."""
    with db.write() as connection:
        known = connection.execute(select(tokens.c.id).where(tokens.c.id == token_id)).first()
        connection.execute(
            update(tokens).where(tokens.c.id == token_id, tokens.c.revoked_us.is_(None)).values(revoked_us=now_us())
        )
        return known is not None
