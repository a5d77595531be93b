"""Pipelines by name: a name has versions, documents of other content, over time; and each has schedules.

Shipped pipelines, stored ones, and those that came with a request for a schedule count alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import func, select

from tilesmith.app.service.db import Database
from tilesmith.app.service.paging import Page, PageRequest, Sorted, in_order, names_beyond, next_page
from tilesmith.app.service.schedules.answers import PipelineIdentity
from tilesmith.app.service.schedules.lists import SUMMARY
from tilesmith.app.service.tables import pipelines, results, schedule_names, schedule_tallies, schedules

KIND = "pipeline names"
Source = Literal["shipped", "stored", "request"]
Shipped = Mapping[str, PipelineIdentity]


@dataclass(frozen=True, slots=True)
class Named:
    """A name, with how many versions and schedules it has; `latest_us` is when the newest schedule was made."""

    name: str
    shipped: bool
    versions: int
    schedules: int
    latest_us: int | None


@dataclass(frozen=True, slots=True)
class Version:
    """A document of a name: numbered from 1 in the order in which they were first seen, the shipped one first."""

    number: int
    id: str
    source: Source
    first_us: int | None
    schedules: int


def listed(db: Database, shipped: Shipped, search: str, paging: PageRequest) -> Page[Named]:
    """The page of names that is asked for, those that have the text in them; ApiError `bad_cursor`."""
    position = paging.position(KIND, (str,))
    found = set(shipped)
    with db.read() as connection:
        for column, here in ((pipelines.c.name, ()), (schedule_names.c.name, (schedule_names.c.kind == "pipeline",))):
            query = select(column).where(*here).distinct()
            if search:
                query = query.where(column.icontains(search, autoescape=True))
            rows = connection.execute(in_order(query, [Sorted(column)], position).limit(paging.limit + 1))
            found |= set(rows.scalars())
    wanted = {n for n in found if search.lower() in n.lower()}
    names = names_beyond(wanted, position)[: paging.limit + 1]
    page = next_page(names, [(n,) for n in names], KIND, paging.limit, position)
    counted = _counted(db, shipped, page.items)
    return Page(tuple(counted[n] for n in page.items), page.next_cursor, page.previous_cursor)


def _counted(db: Database, shipped: Shipped, names: Sequence[str]) -> dict[str, Named]:
    t, p = schedule_tallies.c, pipelines.c
    with db.read() as connection:
        made = connection.execute(select(schedule_tallies).where(t.pipeline.in_(names))).all()
        stored = connection.execute(select(p.name, p.id).where(p.name.in_(names))).all()
    ids: dict[str, set[str]] = {name: {shipped[name].id} if name in shipped else set() for name in names}
    count, latest = dict.fromkeys(names, 0), dict[str, int]()
    for row in stored:
        ids[row.name].add(row.id)
    for row in made:
        ids[row.pipeline].add(row.pipeline_id)
        count[row.pipeline] += row.made
        latest[row.pipeline] = max(row.latest_us, latest.get(row.pipeline, 0))
    return {n: Named(n, n in shipped, len(ids[n]), count[n], latest.get(n)) for n in names}


def versions(db: Database, shipped: Shipped, name: str) -> tuple[Version, ...]:
    """The versions of a name, the oldest first; none where nothing has that name."""
    t, p = schedule_tallies.c, pipelines.c
    made = select(t.pipeline_id.label("id"), func.min(t.first_us).label("first"), func.sum(t.made).label("made"))
    with db.read() as connection:
        rows = connection.execute(made.where(t.pipeline == name).group_by(t.pipeline_id)).all()
        stored = {
            row.id: row.created_us for row in connection.execute(select(p.id, p.created_us).where(p.name == name))
        }
    counts, first = {row.id: row.made for row in rows}, {row.id: row.first for row in rows}
    first |= {i: min(at, first.get(i, at)) for i, at in stored.items()}
    own = shipped[name].id if name in shipped else None
    ids = sorted({*first, *([own] if own else ())}, key=lambda i: (i != own, first.get(i, 0), i))
    return tuple(
        Version(
            number,
            i,
            "shipped" if i == own else "stored" if i in stored else "request",
            first.get(i),
            counts.get(i, 0),
        )
        for number, i in enumerate(ids, start=1)
    )


def best(db: Database, name: str) -> Sequence[Any]:
    """The least predicted and the least measured time of every version on every platform."""
    t = schedule_tallies.c
    query = select(
        t.pipeline_id,
        t.platform,
        func.min(t.predicted_ms).label("predicted_ms"),
        func.min(t.measured_ms).label("measured_ms"),
    )
    with db.read() as connection:
        found = connection.execute(query.where(t.pipeline == name).group_by(t.pipeline_id, t.platform))
        return sorted(found.all(), key=lambda row: (row.platform, row.pipeline_id))


def newest(db: Database, name: str, count: int) -> Sequence[Any]:
    """Summaries of its newest schedules."""
    s = schedules.c
    query = select(*SUMMARY).where(s.pipeline == name).order_by(s.created_us.desc(), s.id.desc())
    with db.read() as connection:
        return connection.execute(query.limit(count)).all()


def commits(db: Database, name: str, count: int) -> Sequence[Any]:
    """The newest results of commits that it has, with their project and branch."""
    query = select(results).where(results.c.pipeline == name)
    with db.read() as connection:
        return connection.execute(query.order_by(results.c.recorded_us.desc(), results.c.id).limit(count)).all()


def schedule_with(db: Database, name: str, pipeline_id: str) -> str | None:
    """The id of a schedule that has a version's document, where it has any."""
    s = schedules.c
    query = select(s.id).where(s.pipeline == name, s.pipeline_id == pipeline_id).limit(1)
    with db.read() as connection:
        return connection.execute(query).scalar_one_or_none()
