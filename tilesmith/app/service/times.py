"""Times of the store for people."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(us: int) -> datetime:
    """Microseconds since 1970 as a time, UTC."""
    return datetime.fromtimestamp(us / 1e6, UTC)


def maybe_instant(us: int | None) -> datetime | None:
    return None if us is None else instant(us)
