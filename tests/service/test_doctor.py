"""`tilesmith doctor`: each check finds what it is there for, and says what to do."""

from __future__ import annotations

import json
import shutil
import time

import pytest
from sqlalchemy import insert
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.runtime import confinement, dask_pool
from tilesmith.app.service import doctor
from tilesmith.app.service.db import Database, downgrade
from tilesmith.app.service.tables import metadata

pytestmark = pytest.mark.slow


@pytest.fixture
def examined(tmp_path, monkeypatch):
    """examined(VARIABLE=value, ...): the findings by check, and the exit status."""
    monkeypatch.setenv("TILESMITH_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TILESMITH_CONFINEMENT", "required")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def examine(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        result = CliRunner().invoke(app, ["doctor", "--json"])
        document = json.loads(result.stdout)
        assert document["healthy"] is (result.exit_code == 0)
        return {c["check"]: c for c in document["checks"]}, result.exit_code

    return examine


@pytest.fixture
def store(tmp_path, migrated):
    """The default store, with its tables."""
    shutil.copy(migrated, tmp_path / "tilesmith.db")
    db = Database(f"sqlite:///{tmp_path}/tilesmith.db")
    yield db
    db.close()


def test_a_sound_installation(examined, store):
    found, status = examined()
    assert set(found) == {
        *["settings", "confinement", "compiler", "calibration", "disk", "database", "address", "clock", "pool"]
    }
    assert status == 0, found
    assert all(c["status"] == "ok" or c["remedy"] for c in found.values())
    assert found["compiler"]["status"] == "ok"
    assert "current" in found["database"]["detail"]


def test_everything_that_is_wrong(examined, store, monkeypatch):
    downgrade(store, "0003")
    monkeypatch.setattr(confinement, "mechanism", lambda: "none")
    monkeypatch.setattr(confinement, "why_not", lambda: "bubblewrap (not installed)")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: doctor.shutil._ntuple_diskusage(1, 1, 1 << 20))
    monkeypatch.setattr(doctor, "_unsynchronised", lambda: True)
    found, status = examined(TILESMITH_HOST="0.0.0.0", TILESMITH_JOB_WORKERS="0")
    assert status == 6
    said = {name: c["status"] for name, c in found.items()}
    assert said == {
        "settings": "ok",
        "confinement": "failed",
        "compiler": "failed",
        "calibration": "warning",
        "disk": "failed",
        "database": "warning",
        "address": "failed",
        "clock": "warning",
        "pool": "warning",
    }
    assert all(c["remedy"] for c in found.values() if c["status"] != "ok")
    assert "TILESMITH_ADMIN_TOKEN" in found["address"]["remedy"]
    assert "0003" in found["database"]["detail"]


def test_settings_come_first(examined):
    found, status = examined(TILESMITH_PORT="x")
    assert (list(found), status) == (["settings"], 6)
    assert found["settings"]["detail"].startswith("TILESMITH_PORT: ")


def test_a_pool_that_does_not_answer(examined, monkeypatch):
    monkeypatch.setattr(dask_pool, "CONNECT_S", 0.3)
    found, status = examined(TILESMITH_POOL="dask://127.0.0.1:1")
    assert (found["pool"]["status"], status) == ("failed", 6)
    assert "dask scheduler" in found["pool"]["remedy"]


def test_a_store_that_is_not_there_is_not_made(examined, tmp_path):
    found, _ = examined()
    assert found["database"]["status"] == "ok"
    assert not (tmp_path / "tilesmith.db").exists()


def test_a_database_that_does_not_answer_and_one_of_a_later_version(examined, store):
    found, status = examined(TILESMITH_DATABASE_URL="postgresql+psycopg://me:secret@127.0.0.1:1/x")
    assert (found["database"]["status"], status) == ("failed", 6)
    assert "secret" not in json.dumps(found)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    found, _ = examined(TILESMITH_DATABASE_URL=str(store.url))
    assert "later version" in found["database"]["detail"]


def test_rows_of_the_future_tell_that_the_clock_is_behind(examined, store):
    row = {"name": "p", "id": "i", "kind": "cpu", "document": b"{}", "created_us": 0}
    schedule = {c.name: 0 for c in metadata.tables["schedules"].columns} | {
        "id": "s",
        "created_us": int(1e6 * (time.time() + 3600)),
        **dict.fromkeys(("pipeline_id", "pipeline", "platform", "method", "version"), "x"),
    }
    with store.write() as connection:
        connection.execute(insert(metadata.tables["platforms"]).values(**row))
        connection.execute(insert(metadata.tables["schedules"]).values(**schedule))
    assert examined()[0]["clock"]["status"] == "failed"


def test_the_table_is_for_people(examined, monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda: [doctor.Finding("disk", "warning", "little", "make room")])
    monkeypatch.setattr("tilesmith.app.cli.examination.examine", doctor.examine)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["disk  warning  little", "               remedy: make room"]
