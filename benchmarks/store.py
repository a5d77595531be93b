"""Every list, search, filter and lookup of a store with many schedules.

    python -m benchmarks.store [--schedules 100000] [--url URL] [--keep FILE] [--repeats 100] [--json FILE]

The rows are synthetic, of a fixed seed: some pipelines and platforms have most schedules, most have few; a fifth of the
schedules have a job and a measurement. The store is SQLite, in a temporary folder or FILE, which is filled once, or the
PostgreSQL of URL likewise. The time is the CPU's, of the thread and of the server; the clock's where the server is on
another machine. The figure is the 99th percentile.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, select

from benchmarks import machine, report
from benchmarks.figures import Figure, as_data, table
from tilesmith.app.garbage import collect_rarely
from tilesmith.app.service.db import Database, upgrade
from tilesmith.app.service.jobs import repository as job_rows
from tilesmith.app.service.jobs.states import State
from tilesmith.app.service.measurements import repository as measurement_rows
from tilesmith.app.service.paging import PageRequest, Position
from tilesmith.app.service.pipelines import history
from tilesmith.app.service.pipelines import repository as pipeline_rows
from tilesmith.app.service.platforms.lists import schedules_of
from tilesmith.app.service.schedules import lists, repository
from tilesmith.app.service.schedules.lists import Filters
from tilesmith.app.service.schedules.packing import pack
from tilesmith.app.service.tables import (
    job_events,
    jobs,
    measurements,
    packed_forms,
    pipelines,
    schedule_names,
    schedule_tags,
    schedule_tallies,
    schedules,
)

LIMIT_MS = 50.0
BATCH = 10_000
WORDS = ("blur", "camera", "harris", "pyramid", "sharpen", "denoise", "edges", "bayer", "lens", "tone")
PLATFORMS = tuple(f"{kind}-{n}" for kind in ("xeon", "epyc", "i7", "graviton") for n in range(5))
SECOND_US = 1_000_000
FORMS = pack({"answer": b"{}"})


@dataclass(frozen=True)
class Filling:
    """The synthetic content of a store."""

    count: int

    @property
    def names(self) -> list[str]:
        number = max(10, self.count // 200)
        return [f"{WORDS[n % 10]}_{WORDS[n // 10 % 10]}_{n}" for n in range(number)]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Schedules, the oldest first."""
        rng, names = random.Random(1), self.names
        for n in range(self.count):
            name = names[min(int(rng.paretovariate(0.5)) - 1, len(names) - 1)]
            yield {
                "id": rng.randbytes(16).hex(),
                "pipeline_id": f"{name}-{rng.randrange(3)}".encode().hex()[-32:],
                "pipeline": name,
                "platform": PLATFORMS[min(int(rng.paretovariate(1)) - 1, len(PLATFORMS) - 1)],
                "method": "taco2019" if rng.random() < 0.01 else "default",
                "strict": False,
                "degraded": "no time was left" if rng.random() < 0.01 else None,
                "groups": 1 + n % 7,
                "version": "1",
                "created_us": SECOND_US * (1_700_000_000 + n),
                "used_us": SECOND_US * (1_700_000_000 + n),
                "predicted_ms": None if rng.random() < 0.01 else rng.lognormvariate(0, 2),
                "measured_ms": rng.lognormvariate(0, 2) if rng.random() < 0.05 else None,
                "note": "",
                "tags": "release" if rng.random() < 0.001 else "",
            }

    def fill(self, db: Database) -> None:
        """Puts all of it into an empty store; indices are made afterwards, at a fraction of the time."""
        tallies: dict[tuple[str, ...], dict[str, Any]] = {}
        rows = self.rows()
        indices = [index for table in (schedules, jobs, measurements) for index in table.indexes]
        with db.write() as connection:
            for index in indices:
                index.drop(connection)
            documents = [
                {"id": f"{n:032x}", "name": name, "stages": 3, "document": b"{}", "created_us": n}
                for n, name in enumerate(self.names)
            ]
            connection.execute(pipelines.insert(), documents)
        done = 0
        while batch := list(islice(rows, BATCH)):
            with db.write() as connection:
                _insert(db, connection, schedules, batch)
                _insert(db, connection, packed_forms, [_form(row) for row in batch])
                tags = [{"tag": row["tags"], "schedule_id": row["id"]} for row in batch if row["tags"]]
                _insert(db, connection, schedule_tags, tags)
                _insert(db, connection, jobs, [_job(n, row) for n, row in enumerate(batch[::5])])
                _insert(db, connection, job_events, [_event(row) for row in batch[::5]])
                _insert(db, connection, measurements, [_measurement(row) for row in batch[::5]])
            for row in batch:
                _count(tallies, row)
            done += len(batch)
            report.progress(f"{done:,} schedules")
        names = {(kind, tally[kind]) for tally in tallies.values() for kind in ("pipeline", "platform", "method")}
        with db.write() as connection:
            connection.execute(schedule_tallies.insert(), list(tallies.values()))
            connection.execute(schedule_names.insert(), [{"kind": k, "name": n} for k, n in sorted(names)])
            for index in indices:
                report.progress(f"{index.name}")
                index.create(connection)
        if not db.is_sqlite:  # as the server does by itself some time later
            with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("VACUUM ANALYZE")


def _insert(db: Database, connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts the rows, which have the same columns; PostgreSQL takes them by COPY, at a tenth of the time."""
    if db.is_sqlite and rows:
        connection.execute(table.insert(), rows)
    if db.is_sqlite or not rows:
        return
    defaults: dict[str, Any] = {c.name: c.default for c in table.columns if c.default is not None}
    missing = {name: default.arg for name, default in defaults.items() if name not in rows[0]}
    names = ", ".join(f'"{name}"' for name in (*rows[0], *missing))
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table.name}" ({names}) FROM STDIN') as copy:
        for row in rows:
            copy.write_row((*row.values(), *missing.values()))


def _form(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"schedule_id": row["id"], "content": FORMS}


def _job(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": _uuid(row),
        "kind": ("build", "run", "tune", "compare")[number % 4],
        "schedule_id": row["id"],
        "state": "failed" if number % 50 == 0 else "succeeded",
        "request": b"{}",
        "created_us": row["created_us"],
        "finished_us": row["created_us"] + SECOND_US,
    }


def _event(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"job_id": _uuid(row), "number": 1, "at_us": row["created_us"], "type": "state", "data": b"{}"}


def _measurement(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": _uuid(row),
        "schedule_id": row["id"],
        "kind": "run",
        "job_id": _uuid(row),
        "estimated": True,
        "median_ms": 1.0,
        "times_ms": b"[1.0]",
        "machine": "a machine",
        "measured_us": row["created_us"] + SECOND_US,
        "pipeline": row["pipeline"],
        "platform": row["platform"],
    }


def _uuid(row: Mapping[str, Any]) -> str:
    h = row["id"]
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def _count(tallies: dict[tuple[str, ...], dict[str, Any]], row: Mapping[str, Any]) -> None:
    key = tuple(row[name] for name in repository.TALLIED)
    first = dict(zip(repository.TALLIED, key, strict=True)) | {"made": 0, "first_us": row["created_us"]}
    found = tallies.setdefault(key, first | {"predicted_ms": None, "measured_ms": None})
    found["made"] += 1
    found["latest_us"] = row["created_us"]
    for time_ms in ("predicted_ms", "measured_ms"):
        found[time_ms] = min((v for v in (found[time_ms], row[time_ms]) if v is not None), default=None)


Choice = Callable[[random.Random], Filters]


@dataclass(frozen=True)
class Store:
    """The store that is asked, with what there is to ask for."""

    db: Database
    names: Sequence[str]
    some: Sequence[Any]

    def questions(self) -> dict[str, Callable[[random.Random], object]]:
        """Requests, each of something else."""
        found: dict[str, Callable[[random.Random], object]] = {
            "one schedule": lambda rng: repository.find(self.db, self._row(rng).id),
            "one summary": lambda rng: lists.summary(self.db, self._row(rng).id),
            "a schedule that is not there": lambda rng: repository.find(self.db, rng.randbytes(16).hex()),
            "one job": lambda rng: job_rows.find(self.db, _uuid({"id": self._row(rng).id})),
            "measurements of a schedule": lambda rng: measurement_rows.of_schedule(self.db, self._row(rng).id),
            "names of pipelines": lambda rng: history.listed(self.db, {}, "", PageRequest(None, 50)),
            "names of pipelines that have a word": lambda rng: history.listed(
                self.db, {}, rng.choice(WORDS), PageRequest(None, 50)
            ),
            "versions of a pipeline": lambda rng: history.versions(self.db, {}, self._row(rng).pipeline),
            "best of a pipeline": lambda rng: history.best(self.db, self._row(rng).pipeline),
            "newest of a pipeline": lambda rng: history.newest(self.db, self._row(rng).pipeline, 20),
            "stored pipelines": lambda rng: pipeline_rows.page(self.db, None, (rng.choice(self.names), "0"), 51),
            "stored pipelines of a name": lambda rng: pipeline_rows.page(self.db, rng.choice(self.names), None, 51),
            "schedules of platforms": lambda rng: schedules_of(self.db, list(PLATFORMS)),
        }
        for what, filters in self._filters().items():
            for order in lists.ORDERS:
                found[f"schedules {what}, {order}"] = partial(self._page, filters, order)
            found[f"number of schedules {what}"] = partial(self._count, filters)
        states: tuple[State | None, ...] = (None, "failed", "queued")
        for state in states:
            for kind in (None, "tune"):
                found[f"jobs {state or ''} {kind or ''}"] = partial(self._jobs, state, kind)
        found["jobs of a schedule"] = lambda rng: job_rows.listed(
            self.db, self._row(rng).id, None, None, PageRequest(None, 50)
        )
        for name in ("pipeline", "platform", "machine", "kind"):
            found[f"measurements by {name}"] = partial(self._measurements, name)
        return found

    def _named(self, rng: random.Random, name: str) -> Any:
        return getattr(
            self._row(rng), name, {"machine": rng.choice(("a machine", "another")), "kind": "tune"}.get(name)
        )

    def _row(self, rng: random.Random) -> Any:
        return rng.choice(self.some)

    def _filters(self) -> dict[str, Choice]:
        row = self._row
        return {
            "all": lambda rng: Filters(),
            "of a pipeline": lambda rng: Filters(pipeline=row(rng).pipeline),
            "of a version": lambda rng: Filters(pipeline=row(rng).pipeline_id),
            "of a rare pipeline": lambda rng: Filters(pipeline=rng.choice(self.names[-len(self.names) // 2 :])),
            "of no pipeline": lambda rng: Filters(pipeline="nothing"),
            "of a platform": lambda rng: Filters(platform=row(rng).platform),
            "of a pipeline and a platform": lambda rng: Filters(row(rng).pipeline, row(rng).platform),
            "of a method": lambda rng: Filters(method=row(rng).method),
            "of the rare method": lambda rng: Filters(method="taco2019"),
            "degraded": lambda rng: Filters(degraded=True),
            "with a tag": lambda rng: Filters(tag="release"),
            "of a day": lambda rng: Filters(since=row(rng).created_us, until=row(rng).created_us + 86_400 * SECOND_US),
            "with a common word": lambda rng: Filters(search=rng.choice(WORDS)),
            "with a name": lambda rng: Filters(search=row(rng).pipeline),
            "with two words": lambda rng: Filters(search=f"{rng.choice(WORDS)} {row(rng).platform}"),
            "with the start of an id": lambda rng: Filters(search=row(rng).id[:10]),
            "with a word that is nowhere": lambda rng: Filters(search="nowhere"),
        }

    def _jobs(self, state: State | None, kind: str | None, _rng: random.Random) -> None:
        job_rows.listed(self.db, None, state, kind, PageRequest(None, 50))

    def _measurements(self, name: str, rng: random.Random) -> None:
        measurement_rows.page(self.db, measurement_rows.Filters(**{name: self._named(rng, name)}), None, 51)

    def _count(self, filters: Choice, rng: random.Random) -> None:
        lists.count(self.db, filters(rng))

    def _page(self, filters: Choice, order: lists.Order, rng: random.Random) -> None:
        """A first page, or one from the middle of the list."""
        wanted = filters(rng)
        among = [row for row in self.some if _has(row, wanted)]
        middle = None
        if among and rng.random() < 0.7:
            middle = Position(lists.key_of(rng.choice(among), order), rng.random() < 0.5)
        lists.page(self.db, wanted, order, middle, 51)


def _has(row: Any, filters: Filters) -> bool:
    """True if a row has what is filtered by name and time."""
    names = {"pipeline": (row.pipeline, row.pipeline_id), "platform": (row.platform,), "method": (row.method,)}
    named = all(getattr(filters, name) in (None, *values) for name, values in names.items())
    return named and (filters.since or 0) <= row.created_us < (filters.until or 1 << 62)


def measure(db: Database, clock: Callable[[], float], repeats: int, only: str = "") -> list[Figure]:
    with db.read() as connection:
        names = connection.execute(select(pipelines.c.name).order_by(pipelines.c.id)).scalars().all()
        every = select(schedules).order_by(schedules.c.id).limit(2000)  # their ids are random, so any are
        store = Store(db, names, connection.execute(every).all())
    collect_rarely()  # as services do
    figures = []
    for name, ask in store.questions().items():
        if only not in name:
            continue
        rng, samples = random.Random(name), []
        ask(rng)
        for _ in range(repeats):
            begun = clock()
            ask(rng)
            samples.append(1000 * (clock() - begun))
        worst = sorted(samples)[int(0.99 * (len(samples) - 1))]
        figures.append(Figure(name, worst, "ms", LIMIT_MS, tuple(samples)))
    return figures


def clock_of(db: Database) -> Callable[[], float]:
    """A clock in seconds: the CPU time of this thread and, where PostgreSQL is on this machine, of the process that
    serves its one connection; where it is elsewhere, the time that passes."""
    if db.is_sqlite:
        return time.thread_time
    with db.write() as connection:
        connection.exec_driver_sql("SET max_parallel_workers_per_gather = 0")  # their time would not be seen
        pid, here = connection.exec_driver_sql("SELECT pg_backend_pid(), inet_server_addr() IS NULL").one()
    server = Path(f"/proc/{pid}/schedstat")
    if not here or not server.exists():
        return time.perf_counter
    return lambda: time.thread_time() + int(server.read_text().split()[0]) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__.partition("\n")[0])
    parser.add_argument("--schedules", type=int, default=100_000, metavar="N")
    parser.add_argument("--url", help="a PostgreSQL, which is filled where it is empty")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="an SQLite store, which is filled where it is not")
    parser.add_argument("--repeats", type=int, default=100, metavar="N")
    parser.add_argument("--only", default="", metavar="TEXT", help="what is asked has this in its name")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = (arguments.keep or Path(folder) / "store.db").absolute()
        db = Database(arguments.url or f"sqlite:///{path}")
        upgrade(db)
        with db.read() as connection:
            empty = connection.execute(select(schedules.c.id).limit(1)).first() is None
        if empty:
            Filling(arguments.schedules).fill(db)
        figures = measure(db, clock_of(db), arguments.repeats, arguments.only)
        db.close()
    print(table(figures))
    report.write(arguments.json, {"machine": machine.describe(), "figures": as_data(figures)})


if __name__ == "__main__":
    main()
