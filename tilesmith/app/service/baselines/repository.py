"""Rows of results. They are added, and deleted, and never changed: of a series at a commit, the newest counts."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, tuple_

from tilesmith.app.comparison.results import Measured, Result, Series
from tilesmith.app.service import holdings
from tilesmith.app.service.db import Database
from tilesmith.app.service.paging import Key
from tilesmith.app.service.schedules.answers import compact
from tilesmith.app.service.tables import results

BATCH = 1000


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a project, on a branch."""

    project: str
    branch: str
    commit: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A result with its place and who recorded it when."""

    id: str
    branch: str
    commit: str
    result: Result
    token: str | None
    recorded_us: int


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of the history of a project; None takes all."""

    branch: str | None = None
    commit: str | None = None
    pipeline: str | None = None
    platform: str | None = None
    variant: str | None = None


def add(db: Database, at: Commit, found: Iterable[Result], token: str | None, now_us: int) -> tuple[Stored, ...]:
    """Keeps results of a commit, all or none, as the client's that asks."""
    stored = tuple(Stored(str(uuid.uuid4()), at.branch, at.commit, r, token, now_us) for r in found)
    owner = holdings.owner()
    rows = [row | {"owner": owner, "bytes": _bytes(row)} for row in (_row(at.project, s) for s in stored)]
    with db.write() as connection:
        connection.execute(insert(results), rows)
        holdings.change(db, connection, owner, 0, sum(row["bytes"] for row in rows))
    return stored


def remove(db: Database, project: str, filters: Filters) -> int:
    """Deletes results of a project, some at a time; how many there were."""
    c, removed = results.c, 0
    some = select(c.id).where(c.project == project, *_where(filters)).limit(BATCH)
    while True:
        with db.write() as connection:
            gone = connection.execute(delete(results).where(c.id.in_(some)).returning(c.owner, c.bytes)).all()
            sizes: Counter[str] = Counter()
            for row in gone:
                sizes[row.owner] += row.bytes
            for owner, size in sizes.items():
                holdings.change(db, connection, owner, 0, -size)
        removed += len(gone)
        if len(gone) < BATCH:
            return removed


def of_branch(db: Database, project: str, branch: str) -> tuple[Stored, ...]:
    """Results of the latest commit of a branch: for each platform and way of scheduling, the latest that has any.
    Results that were only accepted make no commit the latest."""
    c = results.c
    number = func.row_number().over(partition_by=(c.platform, c.variant), order_by=(c.recorded_us.desc(), c.id))
    ranked = select(c.platform, c.variant, c.commit, number.label("number"))
    ranked = ranked.where(c.project == project, c.branch == branch, c.reason.is_(None))
    latest = ranked.subquery()
    same = [latest.c[n] == c[n] for n in ("platform", "variant", "commit")]
    query = select(results).join(latest, and_(*same)).where(latest.c.number == 1)
    return _newest(_found(db, query.where(c.project == project, c.branch == branch)))


def at_commits(db: Database, project: str, commits: Sequence[str]) -> tuple[Stored, ...]:
    """Every result of any of the commits, the newest first."""
    c = results.c
    return _found(db, select(results).where(c.project == project, c.commit.in_(commits)))


def page(db: Database, project: str, filters: Filters, after: Key | None, count: int) -> tuple[Stored, ...]:
    """Up to `count` results, the newest first, after the key (recorded_us, id)."""
    c = results.c
    query = select(results).where(c.project == project, *_where(filters)).limit(count)
    if after is not None:
        query = query.where(tuple_(c.recorded_us, c.id) < tuple_(*after))
    return _found(db, query)


def projects(db: Database, after: str | None, count: int) -> Sequence[Any]:
    """Up to `count` projects by name: `project`, `results` (how many), `recorded_us` (the latest)."""
    c = results.c
    query = select(c.project, func.count().label("results"), func.max(c.recorded_us).label("recorded_us"))
    query = query.group_by(c.project).order_by(c.project).limit(count)
    if after is not None:
        query = query.where(c.project > after)
    with db.read() as connection:
        return connection.execute(query).all()


def has_project(db: Database, project: str) -> bool:
    with db.read() as connection:
        query = select(results.c.id).where(results.c.project == project).limit(1)
        return connection.execute(query).first() is not None


def _newest(found: Iterable[Stored]) -> tuple[Stored, ...]:
    """The first of each series, of results that have the newest first."""
    kept: dict[Series, Stored] = {}
    for stored in found:
        kept.setdefault(stored.result.series, stored)
    return tuple(kept[s] for s in sorted(kept))


def _where(filters: Filters) -> list[ColumnElement[bool]]:
    names = ("branch", "commit", "pipeline", "platform", "variant")
    return [results.c[n] == getattr(filters, n) for n in names if getattr(filters, n) is not None]


def _found(db: Database, query: Any) -> tuple[Stored, ...]:
    with db.read() as connection:
        rows = connection.execute(query.order_by(results.c.recorded_us.desc(), results.c.id.desc())).all()
    return tuple(_stored(row) for row in rows)


def _row(project: str, stored: Stored) -> dict[str, Any]:
    r = stored.result
    return {
        "id": stored.id,
        "project": project,
        "branch": stored.branch,
        "commit": stored.commit,
        "pipeline": r.series.pipeline,
        "platform": r.series.platform,
        "variant": r.series.variant,
        "schedule_id": r.schedule_id,
        "pipeline_id": r.pipeline_id,
        "predicted": r.predicted,
        "unit": r.unit,
        "measured": compact(r.measured.to_document()).encode() if r.measured else None,
        "reason": r.reason,
        "token": stored.token,
        "recorded_us": stored.recorded_us,
    }


def _bytes(row: Mapping[str, Any]) -> int:
    """The bytes of the texts of a row, which is what its owner may be told to have stored."""
    return sum(len(value) for value in row.values() if isinstance(value, str | bytes))


def _stored(row: Any) -> Stored:
    measured = Measured(**json.loads(row.measured)) if row.measured is not None else None
    series = Series(row.pipeline, row.platform, row.variant)
    result = Result(series, row.schedule_id, row.pipeline_id, row.predicted, row.unit, measured, row.reason)
    return Stored(row.id, row.branch, row.commit, result, row.token, row.recorded_us)
