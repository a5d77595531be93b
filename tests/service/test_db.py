"""The store: migrations that match the tables, transactions, SQLite and PostgreSQL."""

from __future__ import annotations

import json
import lzma
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, select, text
from sqlalchemy.exc import IntegrityError, OperationalError

from tilesmith.app.service import migrations
from tilesmith.app.service.db import Database, downgrade, is_current, upgrade, wait_for
from tilesmith.app.service.schedules import repository as schedule_rows
from tilesmith.app.service.schedules.packing import unpack_one
from tilesmith.app.service.tables import made_forms, metadata, pipelines


@pytest.fixture
def sqlite(tmp_path):
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request):
    with closing(Database(request.getfixturevalue(request.param))) as db:
        upgrade(db)
        yield db
        downgrade(db, "base")


def test_migrations_make_the_tables(database):
    assert is_current(database)
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_migrations_go_back_and_forth(database):
    downgrade(database, "base")
    assert not is_current(database)
    with database.read() as connection:
        assert set(inspect(connection).get_table_names()) <= {"alembic_version"}
    upgrade(database)
    upgrade(database)
    assert is_current(database)


def test_lists_get_what_answers_say_and_give_it_back(database):
    """0006: times and words of a schedule out of its answer, which becomes a form; and back."""
    downgrade(database, "0003")
    body = {
        "predicted": {"unit": "microseconds", "total": 1500},
        "tuning": {"chosen": 2, "samples": [{"rank": 1, "median_ms": 9.0}, {"rank": 2, "median_ms": 2.5}]},
    }
    counted = {"predicted": {"unit": "arithmetic operations", "total": 7}}
    with database.write() as connection:
        for number, content in enumerate([body, counted, {}]):
            connection.execute(text(OLD_SCHEDULE), {"id": f"s{number}", "body": json.dumps(content).encode()})
        connection.execute(text("INSERT INTO libraries VALUES ('s0', 'k', 'p', 1)"))
    upgrade(database)
    with database.read() as connection:
        rows = connection.execute(text("SELECT predicted_ms, measured_ms, tags FROM schedules ORDER BY id")).all()
        assert rows == [(1.5, 2.5, ""), (None, None, ""), (None, None, "")]
        tallies = "SELECT pipeline, made, first_us, predicted_ms, measured_ms FROM schedule_tallies"
        assert connection.execute(text(tallies)).all() == [("Blur", 3, 1, 1.5, 2.5)]
        assert connection.execute(text("SELECT count(*) FROM libraries")).scalar_one() == 1
    assert json.loads(schedule_rows.find(database, "s0").content) == body
    downgrade(database, "0003")
    with database.read() as connection:
        kept = connection.execute(text("SELECT body FROM schedules WHERE id = 's1'")).scalar_one()
        assert json.loads(kept) == counted
        assert connection.execute(text("SELECT count(*) FROM schedule_forms")).scalar_one() == 0
        assert connection.execute(text("SELECT count(*) FROM libraries")).scalar_one() == 1
    upgrade(database)


FORM = "INSERT INTO schedule_forms VALUES (:id, :name, 'application/json', :etag, :content)"
FORMS = {
    "answer": b'{"id":"s"}',
    "schedule.json": b'{"groups":[]}',
    "loopnest.txt": b"loops",
    "schedule.h": b"Func f;",
    "explain": b'{"decisions":[]}',
    "explain.txt": b"words",
    "code.c": b"int f(void);",
    "code.h": b"int f();",
    "source.json": b'{"code":"int f(void);","header":"int f();"}',
    "candidates/1/schedule.json": b"{}",
    "candidates/1/loopnest.txt": b"loops",
    "candidates/1/predicted.json": b"{}",
}


def test_forms_are_packed_and_unpacked_again(database):
    """0011: what cannot be made again is kept together, the rest apart, and what follows from these is left out."""
    downgrade(database, "0010")
    tuned = FORMS | {"explain": b'{"decisions":[],"tuning":{}}'}
    with database.write() as connection:
        for schedule_id, forms in (("a", FORMS), ("b", tuned)):
            connection.execute(text(UNMEASURED), {"id": schedule_id})
            rows = [{"id": schedule_id, "name": n, "etag": f"e{n}", "content": c} for n, c in forms.items()]
            connection.execute(text(FORM), rows)
    upgrade(database)
    assert schedule_rows.find(database, "a").content == FORMS["answer"]
    kept = {"answer", "schedule.json", "explain", "candidates/1/schedule.json"}
    assert schedule_rows.kept(database, "a") == {name: FORMS[name] for name in kept}
    assert schedule_rows.kept(database, "b") == {name: tuned[name] for name in kept | {"explain.txt"}}
    for name in ("loopnest.txt", "schedule.h", "source.json", "candidates/1/loopnest.txt"):
        assert schedule_rows.find_form(database, "a", name).content == FORMS[name]
    downgrade(database, "0010")
    with database.read() as connection:
        rows = connection.execute(text("SELECT name, content FROM schedule_forms WHERE schedule_id = 'a'")).all()
        assert {row.name: bytes(row.content) for row in rows} == {
            name: content
            for name, content in FORMS.items()
            if name not in ("explain.txt", "candidates/1/predicted.json")
        }
    upgrade(database)


def test_forms_of_before_are_packed_anew(database):
    """0020: what was left to the answer is in each form again, whether deflate had a vocabulary or not."""
    vocabulary = Path(migrations.__file__).with_name("vocabulary.txt").read_bytes()

    def deflated(content):
        packer = zlib.compressobj(9, memLevel=9, zdict=vocabulary)
        return packer.compress(content) + packer.flush()

    answer = b'{"groups":[{"b":1}],"predicted":{"total":2.5}}'
    whole = {
        "explain": b'{"predicted":{"total":2.5}}',
        "platform.json": b'{"name":"host"}',
        "schedule.json": b'{"groups":[{"b":1}]}',
    }
    short = whole | {
        "explain": b'{"predicted":"as answered"}',
        "platform.json": deflated(whole["platform.json"]),
        "schedule.json": b'{"groups":"as answered"}',
    }
    heads = [[name, len(c), *([True] if name == "platform.json" else [])] for name, c in short.items()]
    others = {"a": (heads, short), "b": ([[name, len(c)] for name, c in whole.items()], whole)}
    downgrade(database, "0019")
    texts = {"x": b"int f;"} | {f"n{n:03}": b"%d" % n for n in range(600)}  # more than are repacked at a time
    put = text("INSERT INTO made_forms (schedule_id, name, content) VALUES (:id, :name, :content)")
    with database.write() as connection:
        for schedule_id, (head, forms) in others.items():
            compressed = deflated if schedule_id == "a" else zlib.compress
            packed = lzma.compress(json.dumps(head).encode() + b"\n" + b"".join(forms.values()))
            row = {"id": schedule_id, "answer": compressed(answer), "others": packed}
            connection.execute(text(UNMEASURED), row)
            connection.execute(text("INSERT INTO kept_forms VALUES (:id, :answer, :others)"), row)
            made = [{"id": schedule_id, "name": name, "content": compressed(t)} for name, t in texts.items()]
            connection.execute(put, made)
    for _ in range(2):  # and after a way back
        upgrade(database)
        for schedule_id in others:
            assert schedule_rows.kept(database, schedule_id) == {"answer": answer, **whole}
            with database.read() as connection:
                c = made_forms.c
                made = connection.execute(select(c.name, c.content, c.bytes).where(c.schedule_id == schedule_id)).all()
            assert {m.name: unpack_one(m.content) for m in made} == texts
            assert all(m.bytes == len(m.content) for m in made)
        downgrade(database, "0016")
    with database.read() as connection:
        row = connection.execute(text("SELECT answer, others FROM kept_forms WHERE schedule_id = 'a'")).one()
        assert zlib.decompress(row.answer) == answer
        head, _, joined = lzma.decompress(row.others).partition(b"\n")
        assert json.loads(head) == [[name, len(content)] for name, content in whole.items()]
        assert joined == b"".join(whole.values())
    upgrade(database)


UNMEASURED = """INSERT INTO schedules (id, pipeline_id, pipeline, platform, method, strict, groups, version, created_us)
  VALUES (:id, 'p', 'Blur', 'host', 'default', false, 1, '0', 1)"""
OLD_SCHEDULE = """INSERT INTO schedules
  (id, pipeline_id, pipeline, platform, method, strict, groups, version, created_us, etag, body)
  VALUES (:id, 'p', 'Blur', 'host', 'default', false, 1, '0', 1, '"e"', :body)"""


def test_services_that_start_at_once_migrate_in_turn(database):
    downgrade(database, "base")
    others = [Database(database.url.render_as_string(hide_password=False)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(upgrade, others))
    for other in others:
        assert is_current(other)
        other.close()


def row(name="x"):
    return {"id": name, "name": name, "stages": 1, "document": b"{}", "created_us": 1}


def test_of_equal_rows_one_is_kept(database):
    with database.write() as connection:
        assert database.insert_new(connection, pipelines, row())
        assert not database.insert_new(connection, pipelines, row())
        assert database.insert_new(connection, pipelines, row("y"))


def test_a_transaction_that_fails_keeps_nothing(database):
    def twice():
        with database.write() as connection:
            connection.execute(pipelines.insert().values(row()))
            connection.execute(pipelines.insert().values(row()))

    with pytest.raises(IntegrityError):
        twice()
    with database.read() as connection:
        assert connection.execute(pipelines.select()).all() == []


def test_writers_wait_for_each_other(database):
    def add(number):
        with database.write() as connection:
            count = connection.execute(text("SELECT count(*) FROM pipelines")).scalar_one()
            connection.execute(pipelines.insert().values(row(f"p{number}-{count}")))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(20)))
    with database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM pipelines")).scalar_one() == 20


def test_sqlite_is_set_up_for_many_readers(sqlite):
    with closing(Database(sqlite, busy_ms=1234)) as db, db.read() as connection:
        found = {p: connection.exec_driver_sql(f"PRAGMA {p}").scalar_one() for p in ("journal_mode", "busy_timeout")}
        assert found == {"journal_mode": "wal", "busy_timeout": 1234}
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1


def test_files_of_the_store_are_this_users_alone(tmp_path):
    (tmp_path / "store.db").touch(0o644)
    with closing(Database(f"sqlite:///{tmp_path}/store.db")) as db:
        upgrade(db)
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)


def test_a_server_that_is_not_up_yet_is_waited_for(monkeypatch):
    with closing(Database("postgresql+psycopg://tilesmith@127.0.0.1:1/none")) as db:
        with pytest.raises(OperationalError):
            wait_for(db, 0.0)
        failures = [OperationalError("", {}, Exception("starting up"))] * 2

        def ping():
            if failures:
                raise failures.pop()

        monkeypatch.setattr(db, "ping", ping)
        wait_for(db, 60.0)
        assert failures == []
        asked = []

        def fails_once(asked_of):
            asked.append(asked_of)
            if len(asked) == 1:
                raise OperationalError("CREATE TABLE", None, Exception("the server is in recovery"))

        wait_for(db, 60.0, fails_once)
        assert asked == [db, db]


def test_a_service_on_postgres(start, postgres):
    service = start(database_url=postgres)
    schedule_id = service.schedule()
    assert service.schedule() == schedule_id
    assert service.client.get(f"/v1/schedules/{schedule_id}/code.c").status_code == 200
    job = service.client.post(f"/v1/schedules/{schedule_id}/builds", json={}).json()
    assert service.client.get("/v1/schedules", params={"q": "BLU"}).json()["items"][0]["id"] == schedule_id
    assert service.client.delete(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert service.client.get("/").status_code == 200
    results = {"branch": "main", "commit": "a" * 40, "results": [{"schedule_id": schedule_id}]}
    assert service.client.post("/v1/projects/camera/results", json=results).status_code == 201
    baseline = service.client.post("/v1/projects/camera/baseline", json={"ref": "main", "ancestors": ["b" * 40]})
    assert [r["schedule_id"] for r in baseline.json()["items"]] == [schedule_id]
    assert service.client.get("/v1/projects").json()["items"][0]["results"] == 1
    downgrade(service.context.db, "base")


def test_names_that_no_store_has_are_not_found_or_refused(start, postgres):
    for service in (start(), start(database_url=postgres)):
        for url in ("/v1/schedules/%00", "/v1/pipelines/%00", "/v1/jobs/%00", "/v1/schedules/%FF"):
            assert service.client.get(url).status_code in (404, 422)
    downgrade(service.context.db, "base")


def test_the_migrations_are_in_the_package():
    folder = Path(migrations.__file__).parent
    assert (folder / "env.py").is_file()
    assert list((folder / "versions").glob("0001_*.py"))


def test_of_rows_that_are_put_at_once_the_last_is_kept(database):
    row = {"name": "p", "id": "i", "kind": "cpu", "document": b"", "created_us": 0}

    def put(number):
        with database.write() as connection:
            database.put(connection, metadata.tables["platforms"], row | {"created_us": number})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(put, range(32)))
    put(99)
    with database.read() as connection:
        found = connection.execute(text("SELECT created_us FROM platforms")).all()
    assert [tuple(r) for r in found] == [(99,)]
