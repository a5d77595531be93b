"""Documents about tokens."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from tilesmith.app.service.tokens.service import Scope


class TokenRequest(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "ci", "scopes": ["submit"]}]})

    name: str = Field(min_length=1, max_length=64, description="For people: who holds it")
    scopes: tuple[Scope, ...] = Field(
        min_length=1, max_length=3, description="`admin` includes `submit` includes `read`"
    )


class Token(BaseModel):
    """A token without its text."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    revoked_at: datetime | None = None


class TokenList(BaseModel):
    """All tokens, revoked ones included."""

    items: list[Token]


class NewTokenDocument(BaseModel):
    """A token just made: its text is not shown again."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    token: str
