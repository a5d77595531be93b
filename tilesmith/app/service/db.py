"""The store: an engine, transactions that say whether they write, and migrations run at start.

SQLite (WAL) by default, PostgreSQL by URL. The tables are in tilesmith/app/service/tables.py.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, Executable, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.sql.schema import Table
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

log = structlog.get_logger("tilesmith")

MIGRATION_LOCK = 7_461_205_331  # any constant: PostgreSQL's advisory lock of those who migrate


class LaterTables(Exception):
    """A later version of tilesmith has made the tables of the store."""


class StoreUnusable(Exception):
    """The store cannot be opened, or its tables not be brought up to date."""


def now_us() -> int:
    """The time as the store keeps it: microseconds since 1970, UTC."""
    return time.time_ns() // 1000


@cache
def _inserting(table: Table, is_sqlite: bool) -> Executable:
    """The statement that inserts a row unless there is one with its primary key, made once: that takes longer than to
    execute it."""
    build = sqlite.insert if is_sqlite else postgresql.insert
    return build(table).on_conflict_do_nothing().returning(*table.primary_key)


class Database:
    """The engine and its transactions. Safe to use from any thread."""

    def __init__(self, url: str, busy_ms: int = 5000) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite and self.url.database:
            _make_private(Path(self.url.database).absolute())
        self.engine = _sqlite_engine(url, busy_ms) if self.is_sqlite else _server_engine(url)
        self._writer = self.engine.execution_options(tilesmith_write=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads: on SQLite it never waits for a writer."""
        with self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes, committed at the end: on SQLite it takes the write lock first, so that it
        cannot fail half way for want of it."""
        with self._writer.begin() as connection:
            yield connection

    def insert_new(self, connection: Connection, table: Table, row: dict[str, Any]) -> bool:
        """Inserts the row unless one with its primary key exists; whether it was inserted."""
        return connection.execute(_inserting(table, self.is_sqlite), row).first() is not None

    def put(self, connection: Connection, table: Table, row: dict[str, Any]) -> None:
        """Inserts the row, or puts it in the place of the one with its primary key, whoever else does so meanwhile."""
        build = sqlite.insert if self.is_sqlite else postgresql.insert
        keys = [column.name for column in table.primary_key]
        others = {name: value for name, value in row.items() if name not in keys}
        connection.execute(build(table).values(**row).on_conflict_do_update(index_elements=keys, set_=others))

    def ping(self) -> None:
        """Raises SQLAlchemyError where the store does not answer, OSError where its file is gone, which those who have
        it open would not notice."""
        if self.is_sqlite:
            Path(self.url.database or "").stat()
        with self.read() as connection:
            connection.execute(text("SELECT 1"))

    def close(self) -> None:
        self.engine.dispose()


def _make_private(path: Path) -> None:
    """Makes the file, for this user alone: the log and the index that SQLite keeps beside it are as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # where it cannot be made SQLite says so
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            with contextlib.suppress(FileNotFoundError):
                path.with_name(name).chmod(0o600)


def _sqlite_engine(url: str, busy_ms: int) -> Engine:
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": busy_ms / 1000})

    @event.listens_for(engine, "connect")
    def _open(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # BEGIN is ours: the driver's own comes too late to take the write lock
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={int(busy_ms)}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA cache_size=-16384")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("tilesmith_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _server_engine(url: str) -> Engine:
    """Statements are planned for the values that they have: a plan for any values is right for none of a few pipelines
    that have most rows."""
    by_values = {"prepare_threshold": None} if make_url(url).get_driver_name() == "psycopg" else {}
    return create_engine(url, pool_pre_ping=True, connect_args=by_values)


def alembic_config() -> Config:
    """The configuration of Alembic: the migrations are inside the package."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def wait_for(
    database: Database, seconds: float, action: Callable[[Database], object] = lambda database: database.ping()
) -> None:
    """Does `action`, again and again until the server of the store has answered all of it; raises what it last failed
    with after so many seconds. A file is there or is made."""
    if database.is_sqlite:
        action(database)
        return
    for attempt in Retrying(
        retry=retry_if_exception_type(OperationalError),
        wait=wait_exponential(multiplier=0.1, max=2),
        stop=stop_after_delay(seconds),
        before_sleep=lambda _: log.warning("the store does not answer yet"),
        reraise=True,
    ):
        with attempt:
            action(database)


def upgrade(database: Database, revision: str = "head") -> None:
    """Brings the store to `revision`. Services that start at the same time take turns."""
    with database.write() as connection:
        _lock(database, connection)
        config = alembic_config()
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, revision)
        except CommandError as error:
            raise LaterTables(f"the tables of the store are of a later version: {error}") from None


def downgrade(database: Database, revision: str) -> None:
    """Takes the store back to `revision` ("base": no tables)."""
    with database.write() as connection:
        _lock(database, connection)
        config = alembic_config()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


def why(database: Database, error: SQLAlchemyError) -> str:
    """A sentence on a store that cannot be opened: its URL but for the password, and the first line of the reason."""
    reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    return f"the store {database.url.render_as_string(hide_password=True)} cannot be used: {reason}"


def is_current(database: Database) -> bool:
    """True if the store has the newest tables."""
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    with database.read() as connection:
        return MigrationContext.configure(connection).get_current_revision() == head


def _lock(database: Database, connection: Connection) -> None:
    if not database.is_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
