"""The note and the tags that people put on a schedule."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator
from sqlalchemy import delete, select, update

from tilesmith.app.service.db import Database
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.tables import schedule_tags, schedules

NOTE_CHARACTERS = 2000
TAGS = 16

Tag = Annotated[str, StringConstraints(to_lower=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]


class Notes(BaseModel):
    """A note, and tags in their order."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"note": "In production since May", "tags": ["release-2"]}]}
    )

    note: str = Field(default="", max_length=NOTE_CHARACTERS)
    tags: list[Tag] = Field(
        default=[], max_length=TAGS, description="Letters, digits, `.`, `_`, `-`; kept in lower case"
    )

    @field_validator("note")
    @classmethod
    def _storable(cls, note: str) -> str:
        if "\0" in note:
            raise ValueError("a note has no NUL characters")
        return note.strip()

    @field_validator("tags")
    @classmethod
    def _sorted(cls, tags: list[str]) -> list[str]:
        return sorted(set(tags))


def find(db: Database, schedule_id: str) -> Notes:
    """ApiError `schedule_not_found`."""
    with db.read() as connection:
        query = select(schedules.c.note, schedules.c.tags).where(schedules.c.id == schedule_id)
        row = connection.execute(query).first()
    if row is None:
        raise _missing(schedule_id)
    return Notes(note=row.note, tags=row.tags.split())


def replace(db: Database, schedule_id: str, notes: Notes) -> None:
    """Puts these in place of those that are there; ApiError `schedule_not_found`."""
    s, tag = schedules.c, schedule_tags.c
    values = {"note": notes.note, "tags": " ".join(notes.tags)}
    with db.write() as connection:
        if connection.execute(update(schedules).where(s.id == schedule_id).values(values)).rowcount != 1:
            raise _missing(schedule_id)
        connection.execute(delete(schedule_tags).where(tag.schedule_id == schedule_id))
        if notes.tags:
            connection.execute(schedule_tags.insert(), [{"tag": t, "schedule_id": schedule_id} for t in notes.tags])


def _missing(schedule_id: str) -> ApiError:
    return ApiError("schedule_not_found", f"there is no schedule {schedule_id[:64]!r}")
