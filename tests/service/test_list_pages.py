"""Pages of schedules in every filter and order, from anywhere in the list, as sorting all rows has them."""

from __future__ import annotations

from contextlib import closing
from random import Random

import pytest
from sqlalchemy import select

from benchmarks.store import SECOND_US, Filling
from tilesmith.app.service.db import Database, downgrade, upgrade
from tilesmith.app.service.paging import Position
from tilesmith.app.service.schedules import lists
from tilesmith.app.service.schedules.lists import ORDERS, Filters
from tilesmith.app.service.tables import schedules

COUNT = 9


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database(request, tmp_path_factory):
    urls = {"sqlite": lambda: f"sqlite:///{tmp_path_factory.mktemp('lists')}/store.db"}
    with closing(Database(urls.get(request.param, lambda: request.getfixturevalue("postgres"))())) as db:
        upgrade(db)
        Filling(400).fill(db)
        yield db
        downgrade(db, "base")


@pytest.fixture
def small(monkeypatch):
    """Few names and few rows are many, so that either way is gone."""
    monkeypatch.setattr(lists, "SOURCES", 4)
    monkeypatch.setattr(lists, "FEW", 20)


def has(row, filters: Filters) -> bool:
    names = (row.pipeline, row.platform, row.method)
    found = [any(word in name for name in names) or row.id.startswith(word) for word in (filters.search or "").split()]
    found.append(filters.pipeline in (None, row.pipeline, row.pipeline_id))
    found.append(filters.platform in (None, row.platform) and filters.method in (None, row.method))
    found.append((filters.since or 0) <= row.created_us < (filters.until or 1 << 62))
    return all(found)


def place(row, order: str) -> tuple[float | int | str, ...]:
    """The key by which all rows are sorted; rows without a time come last in both directions."""
    name = order.removeprefix("-")
    if name in ("predicted", "measured"):
        ms = getattr(row, f"{name}_ms")
        return (ms is None) != order.startswith("-"), ms or 0, row.id
    named = {"name": (row.pipeline,), "platform": (row.platform,)}.get(name, ())
    return *named, row.created_us, row.id


def filters_of(rows) -> list[Filters]:
    first, middle = rows[0], rows[len(rows) // 2]
    start = 1_700_000_000 * SECOND_US
    return [
        Filters(),
        Filters(pipeline=first.pipeline),
        Filters(pipeline=first.pipeline_id),
        Filters(pipeline=first.pipeline, platform=first.platform),
        Filters(platform=first.platform, method="default"),
        Filters(search="blur"),
        Filters(search="xeon"),
        Filters(search="blur camera"),
        Filters(since=start + 50 * SECOND_US),
        Filters(search=f"{middle.pipeline} {first.platform}"),
        Filters(search=f"{first.platform} {middle.id[:8]}"),
        *(Filters(since=start + 30 * SECOND_US, until=start + n * SECOND_US) for n in (20, 40, 300)),
    ]


@pytest.mark.parametrize("order", ORDERS)
def test_pages_are_those_of_all_rows_sorted(database, small, order: str) -> None:
    with database.read() as connection:
        rows = connection.execute(select(schedules)).all()
    back = order.startswith("-") or order == "newest"
    rng = Random(order)
    for filters in filters_of(sorted(rows, key=lambda row: row.created_us)):
        whole = sorted((r for r in rows if has(r, filters)), key=lambda row: place(row, order), reverse=back)
        whole = [row.id for row in whole]
        assert [row.id for row in lists.page(database, filters, order, None, COUNT)] == whole[:COUNT], filters
        row = rng.choice(rows)
        key = lists.key_of(row, order)
        among = sorted((r for r in rows if has(r, filters) or r is row), key=lambda r: place(r, order), reverse=back)
        at = [r.id for r in among].index(row.id)
        after, before = among[at + 1 : at + 1 + COUNT], among[max(at - COUNT, 0) : at][::-1]
        for backwards, expected in ((False, after), (True, before)):
            found = lists.page(database, filters, order, Position(key, backwards), COUNT)
            assert [r.id for r in found] == [r.id for r in expected], (filters, row.id, backwards)
