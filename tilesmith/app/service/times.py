"""Times of the store for people, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


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
