"""Documents about tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from tilesmith.app.service.times import Dated

Scope = Literal["read", "submit", "admin"]
LAST_YEAR = 2200


class TokenRequest(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "ci", "scopes": ["submit"]}]})

    name: str = Field(min_length=1, max_length=64, description="For people: who holds it")
    scopes: tuple[Scope, ...] = Field(
        min_length=1, max_length=3, description="`admin` includes `submit` includes `read`"
    )
    expires_at: Annotated[AwareDatetime | None, Dated] = Field(
        default=None, description="From then on it is refused; default: never"
    )

    @field_validator("expires_at")
    @classmethod
    def _not_over(cls, at: datetime | None) -> datetime | None:
        if at is not None and at <= datetime.now(UTC):
            raise ValueError("that time is over")
        if at is not None and at.year >= LAST_YEAR:
            raise ValueError(f"that is too far away: leave it out, or choose a time before {LAST_YEAR}")
        return at


class Token(BaseModel):
    """A token without its text."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = Field(default=None, description="Known to an hour")
    revoked_at: datetime | None = None
    schedules: int = Field(default=0, description="Schedules that it has stored")
    stored_bytes: int = Field(default=0, description="Bytes of these, and of the documents that it has stored")


class TokenList(BaseModel):
    """All tokens, revoked ones included."""

    items: list[Token]


class NewTokenDocument(BaseModel):
    """A token just made: its text is not shown again."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    expires_at: datetime | None = None
    token: str
