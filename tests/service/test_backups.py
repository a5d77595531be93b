"""Backups, restore and upgrade, as docs/operation.md says: of every schema that was released, and nothing is lost."""

from __future__ import annotations

import json
import lzma
import os
import re
import shlex
import sqlite3
import subprocess
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, func, insert, make_url, select, text
from support.tools import require_tool
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.service.db import Database, alembic_config, downgrade, is_current, upgrade
from tilesmith.app.service.schedules.packing import pack, pack_one

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "operation.md").read_text(encoding="utf-8")
REVISIONS = sorted(r.revision for r in ScriptDirectory.from_config(alembic_config()).walk_revisions())
BODY = {
    "id": "x",
    "pipeline": "x",
    "platform": "x",
    "method": "x",
    "predicted": {"total": 2000.0, "unit": "microseconds"},
}
TOKEN = "a" * 40
VALUES = {bool: False, int: 1, float: 1.0, str: "x", bytes: json.dumps(BODY).encode()}


def command(beginning):
    """The command of the page that begins so, as its words."""
    line = next(m[1] for m in re.finditer(r"^ {4}(.+)$", PAGE, re.M) if m[1].startswith(beginning))
    return shlex.split(line)


def filled(db):
    """Puts a row into every table of a store, whatever its version; the numbers of rows by table."""
    tables = MetaData()
    with db.write() as connection:
        tables.reflect(connection)
        for table in tables.sorted_tables:
            if table.name != "alembic_version":
                row = {c.name: VALUES[c.type.python_type] for c in table.columns if not c.nullable}
                if table.name == "schedule_forms" and "body" not in tables.tables["schedules"].columns:
                    row["name"] = "answer"  # since 0006 the answer itself is a form
                if table.name == "kept_forms":
                    row |= {"answer": zlib.compress(row["answer"]), "others": lzma.compress(b"[]\n")}
                if table.name == "packed_forms":
                    row["content"] = pack({"answer": row["content"]})
                if table.name == "made_forms":
                    row["content"] = (pack_one if "packed_forms" in tables.tables else zlib.compress)(row["content"])
                connection.execute(insert(table).values(**row))
    return counted(db)


def counted(db):
    tables = MetaData()
    with db.read() as connection:
        tables.reflect(connection)
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in tables.tables.items()
        }


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_released_schema_is_upgraded_with_all_that_it_has(tmp_path, start, revision):
    url = f"sqlite:///{tmp_path}/old.db"
    with closing(Database(url)) as db:
        upgrade(db, revision)
        before = filled(db)
    service = start(database_url=url, admin_token=TOKEN)  # the row of a token puts tokens in force
    service.client.headers["Authorization"] = f"Bearer {TOKEN}"
    assert is_current(service.context.db)
    after = counted(service.context.db)
    assert {name: after[name] for name in before if name in after and name != "schedule_forms"} == {
        name: count for name, count in before.items() if name in after and name != "schedule_forms"
    }
    found = service.client.get("/v1/schedules").json()["items"]
    assert [(s["id"], s["pipeline"]) for s in found] == [("x", "x")]
    assert service.client.get("/v1/schedules/x").json()["predicted"]["total"] == 2000.0


def test_tables_of_a_later_version_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("TILESMITH_DATA_DIR", str(tmp_path))
    with closing(Database(f"sqlite:///{tmp_path}/tilesmith.db")) as db:
        upgrade(db)
        with db.write() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        result = CliRunner().invoke(app, ["serve", "--port", "0", "--no-calibrate"])
        assert result.exit_code == 2
        assert "later version" in result.stderr
        assert "restore the backup" in result.stderr
        with db.read() as connection:
            assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one() == "9999"


@pytest.mark.parametrize("revision", ["0001", REVISIONS[-1]])
def test_a_copy_of_a_running_sqlite_store_is_restored_and_upgraded(tmp_path, revision):
    program, _, statement = command("sqlite3 ")
    assert program == "sqlite3"
    url = f"sqlite:///{tmp_path}/tilesmith.db"
    with closing(Database(url)) as db:
        upgrade(db, revision)
        before = filled(db)
        statement = statement.replace("/backups", str(tmp_path))
        with closing(sqlite3.connect(tmp_path / "tilesmith.db")) as connection:
            connection.execute(statement)
    copy = next(tmp_path.glob("tilesmith-*.db"))
    with closing(Database(f"sqlite:///{copy}")) as db:
        assert counted(db) == before
        upgrade(db)
        assert is_current(db)


def test_a_dump_of_postgres_is_restored_and_upgraded(tmp_path, postgres):
    url = make_url(postgres)
    programs = next(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"), Path("pg_dump")).parent
    require_tool(str(programs / "pg_dump"))
    file = tmp_path / "tilesmith.dump"

    def run(beginning):
        place = f"postgresql://{url.username}@/{url.database}?host={url.query['host']}"
        named = {"$DATABASE": place, "/backups/tilesmith.dump": str(file)}
        words = [re.sub(r"\$DATABASE|/backups/tilesmith.dump", lambda m: named[m[0]], w) for w in command(beginning)]
        subprocess.run([programs / words[0], *words[1:]], check=True, env={"PATH": os.environ["PATH"]})

    with closing(Database(postgres)) as db:
        upgrade(db, "0006")
        before = filled(db)
        run("pg_dump ")
        upgrade(db)
        downgrade(db, "base")
        with db.write() as connection:
            connection.execute(text("DROP TABLE alembic_version"))  # the database is as empty as a new one
        run("pg_restore ")
        assert counted(db) == before
        upgrade(db)
        assert is_current(db)
        assert counted(db)["schedules"] == 1
        downgrade(db, "base")
