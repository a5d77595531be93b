"""`tilesmith tokens`: the first token in the store, the others at the service."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.service.db import Database, upgrade
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.tokens.service import Tokens


@pytest.fixture
def tilesmith(tmp_path, monkeypatch):
    monkeypatch.setenv("TILESMITH_DATA_DIR", str(tmp_path))
    for name in ("TILESMITH_TOKEN", "TILESMITH_SERVER"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments, status=0):
        result = CliRunner().invoke(app, ["tokens", *arguments])
        assert result.exit_code == status, result.output
        return result

    return run


def test_the_first_token_is_made_in_the_store(tilesmith, tmp_path):
    token = tilesmith("create", "me", "--scope", "admin").stdout.strip()
    settings = Settings(data_dir=tmp_path)
    db = Database(settings.store_url)
    upgrade(db)
    Tokens(db, settings).authenticate(token).require("admin")
    db.close()


def test_tokens_are_listed_and_revoked(tilesmith):
    made = json.loads(tilesmith("create", "ci", "--days", "90", "--json").stdout)
    tilesmith("create", "for ever")
    lines = tilesmith("list").stdout.splitlines()
    assert len(lines) == 2
    assert re.fullmatch(
        rf"{made['id']}  submit +expires \d{{4}}-\d\d-\d\d +used never +0 schedules, 0.0 MiB +ci", lines[0]
    )
    assert "does not expire" in lines[1]
    assert made["token"] not in tilesmith("list", "--json").stdout
    tilesmith("revoke", made["id"])
    assert "revoked" in tilesmith("list").stdout.splitlines()[0]
    assert "no token of this id" in tilesmith("revoke", "none", status=2).stderr


def test_what_is_wrong_is_told(tilesmith):
    assert "scopes" in tilesmith("create", "x", "--scope", "all", status=2).stderr
    both = tilesmith("list", "--server", "http://127.0.0.1:1", "--database", "sqlite:///x.db", status=2)
    assert "do not go together" in both.stderr
    assert "no.such" in tilesmith("list", "--database", "postgresql+psycopg://no.such/x", status=2).stderr


def test_a_service_that_is_not_there(tilesmith, monkeypatch):
    answer = tilesmith("list", "--server", "http://127.0.0.1:1", status=2)
    assert "cannot be asked" in answer.stderr
