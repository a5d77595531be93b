"""Times of the store for people, and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from pydantic import BeforeValidator


def _dated(value: object) -> object:
    if not (value is None or isinstance(value, datetime) or (isinstance(value, str) and re.match(r"\d{4}-", value))):
        raise ValueError("a time is as 2026-01-31T12:00:00Z")
    return value


Dated = BeforeValidator(_dated)
"""The rule that a time in a request is text, by RFC 3339: pydantic alone takes a number for seconds since 1970."""


def instant(us: int) -> datetime:
    """Microseconds since 1970 as a time, UTC."""
    return datetime.fromtimestamp(us / 1e6, UTC)


def maybe_instant(us: int | None) -> datetime | None:
    return None if us is None else instant(us)


def microseconds(at: datetime | None) -> int | None:
    """A time as the store keeps it; one without a zone is UTC."""
    if at is None:
        return None
    since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1)
