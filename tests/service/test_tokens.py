"""Tokens: hashed at rest, scoped, revocable; and no service without them on an address that others reach."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner

from tilesmith.app.cli import app
from tilesmith.app.service.main import serve
from tilesmith.app.service.settings import RefusedAddress, check_address, is_loopback
from tilesmith.app.service.tables import tokens
from tilesmith.app.service.tokens import repository
from tilesmith.app.service.tokens.service import FRESH_S

READ = ["/v1/schedules", "/v1/pipelines", "/v1/platforms", "/v1/jobs", "/v1/capabilities", "/metrics"]


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_without_tokens_everything_is_open(service):
    for url in [*READ, "/v1/tokens"]:
        assert service.client.get(url).status_code == 200


def test_from_the_first_token_on_one_is_needed(service):
    made = service.client.post("/v1/tokens", json={"name": "ci", "scopes": ["admin"]}).json()
    for url in [*READ, "/v1/tokens"]:
        refused = service.client.get(url)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
        assert "Bearer" in refused.headers["www-authenticate"]
        assert service.client.get(url, headers=bearer(made["token"])).status_code == 200
        assert service.client.get(url, headers=bearer(made["token"] + "x")).status_code == 401
        assert service.client.get(url, headers={"Authorization": "Bearer"}).status_code == 401
    for url in ("/healthz", "/readyz", "/v1/errors"):
        assert service.client.get(url).status_code == 200


@pytest.mark.parametrize("scope", ["read", "submit", "admin"])
def test_scopes(service, scope, pipeline):
    token = service.context.tokens.create("x", (scope,)).token
    rank = ["read", "submit", "admin"].index(scope)
    client, headers = service.client, bearer(token)
    asked = {
        0: client.get("/v1/schedules", headers=headers),
        1: client.post("/v1/schedules", json={"pipeline": pipeline()}, headers=headers),
        2: client.get("/v1/tokens", headers=headers),
    }
    for needed, answer in asked.items():
        if needed <= rank:
            assert answer.is_success
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_a_revoked_token_is_refused_and_the_service_stays_closed(service):
    admin = service.context.tokens.create("admin", ("admin",))
    other = service.context.tokens.create("other", ("read",))
    assert service.client.get("/v1/schedules", headers=bearer(other.token)).status_code == 200
    assert service.client.delete(f"/v1/tokens/{other.id}", headers=bearer(admin.token)).status_code == 204
    assert service.client.get("/v1/schedules", headers=bearer(other.token)).status_code == 401
    listed = service.client.get("/v1/tokens", headers=bearer(admin.token)).json()["items"]
    assert [(t["name"], t["revoked_at"] is not None) for t in listed] == [("admin", False), ("other", True)]
    assert service.client.delete("/v1/tokens/none", headers=bearer(admin.token)).json()["code"] == "token_not_found"
    service.client.delete(f"/v1/tokens/{admin.id}", headers=bearer(admin.token))
    assert service.client.get("/v1/schedules").status_code == 401


def test_a_token_that_another_service_revoked_is_refused_a_second_later(start, monkeypatch):
    first, second = start(), start()
    made = first.context.tokens.create("x", ("read",))
    at = [100.0]
    monkeypatch.setattr("tilesmith.app.service.tokens.service.time", SimpleNamespace(monotonic=lambda: at[0]))

    def status(service):
        return service.client.get("/v1/schedules", headers=bearer(made.token)).status_code

    assert (status(first), status(second)) == (200, 200)
    first.context.tokens.revoke(made.id)
    assert status(first) == 401
    at[0] += FRESH_S
    assert status(second) == 401


def test_a_token_is_looked_up_once_a_second(service, monkeypatch):
    token = service.context.tokens.create("x", ("read",)).token
    looked, find = [], repository.find
    monkeypatch.setattr(repository, "find", lambda db, digest: (looked.append(digest), find(db, digest))[1])
    for _ in range(3):
        assert service.client.get("/v1/schedules", headers=bearer(token)).status_code == 200
    assert len(looked) <= 2  # a second may have ended meanwhile


def test_tokens_of_another_service_on_the_store_count(start):
    first, second = start(), start()
    first.context.tokens.create("x", ("read",))
    assert second.client.get("/v1/schedules").status_code == 401


def test_tokens_are_hashed_at_rest(service):
    made = service.context.tokens.create("x", ("read",))
    with service.context.db.read() as connection:
        row = connection.execute(select(tokens)).one()
    assert made.token not in str(row)
    assert len(row.hash) == 64


def test_the_admin_token_of_the_settings(start):
    service = start(admin_token="sesame-open-sesame")
    assert service.client.get("/v1/tokens").status_code == 401
    assert service.client.get("/v1/tokens", headers=bearer("sesame-open-sesame")).status_code == 200
    assert service.client.get("/v1/tokens", headers=bearer("sesam")).status_code == 401
    assert "sesame-open-sesame" not in repr(service.context.settings)


def test_pages_take_the_token_as_the_password_of_the_browser(start):
    service = start(admin_token="sesame-open-sesame")
    refused = service.client.get("/", headers={"Accept": "text/html"})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert "text/html" in refused.headers["content-type"]
    assert service.client.get("/", auth=("anyone", "sesame-open-sesame")).status_code == 200
    assert service.client.get("/", auth=("anyone", "wrong")).status_code == 401
    assert service.client.get("/", headers={"Authorization": "Basic !!"}).status_code == 401
    assert (
        service.client.get("/", headers={"Authorization": "Basic " + base64.b64encode(b"x").decode()}).status_code
        == 401
    )


def test_what_pages_link_to_takes_it_too(start):
    service = start(admin_token="sesame-open-sesame")
    refused = service.client.get("/v1/jobs")
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert service.client.get("/v1/jobs", auth=("anyone", "sesame-open-sesame")).status_code == 200
    assert service.client.get("/v1/jobs", auth=("anyone", "wrong")).status_code == 401
    assert service.client.get("/v1/tokens", auth=("anyone", "sesame-open-sesame")).status_code == 401, (
        "programs manage tokens"
    )
    assert service.client.post("/v1/schedules", json={}, auth=("anyone", "sesame-open-sesame")).status_code == 401


@pytest.mark.parametrize("scopes", [[], ["root"], ["read"] * 4])
def test_scopes_that_there_are_not(service, scopes):
    answer = service.client.post("/v1/tokens", json={"name": "x", "scopes": scopes})
    assert answer.json()["code"] == "bad_request"
    assert service.client.get("/v1/tokens").status_code == 200, "no token was made"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("", False),
        ("no such host", False),
    ],
)
def test_addresses(host, loopback):
    assert is_loopback(host) is loopback
    check_address(host, tokens=True)
    if loopback:
        check_address(host, tokens=False)
    else:
        with pytest.raises(RefusedAddress):
            check_address(host, tokens=False)


def test_serve_refuses_to_be_reached_without_tokens(tmp_path, monkeypatch):
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: pytest.fail("it serves"))
    monkeypatch.setattr("tilesmith.app.service.main.logs.configure", lambda *_: None)
    with pytest.raises(RefusedAddress):
        serve(host="0.0.0.0", database=f"sqlite:///{tmp_path}/t.db")


def test_a_token_expires(service, monkeypatch):
    expires = datetime.now(UTC) + timedelta(days=1)
    body = {"name": "ci", "scopes": ["admin"], "expires_at": expires.isoformat()}
    made = service.client.post("/v1/tokens", json=body).json()
    (listed,) = service.client.get("/v1/tokens", headers=bearer(made["token"])).json()["items"]
    assert datetime.fromisoformat(listed["expires_at"]) == datetime.fromisoformat(made["expires_at"]) == expires
    monkeypatch.setattr("tilesmith.app.service.tokens.service.now_us", lambda: int(1e6 * expires.timestamp()))
    refused = service.client.get("/v1/tokens", headers=bearer(made["token"]))
    assert (refused.status_code, refused.json()["detail"]) == (401, "the token has expired")


@pytest.mark.parametrize("at", ["2020-01-01T00:00:00Z", "2030-01-01T00:00:00", "9999-01-01T00:00:00Z", "tomorrow"])
def test_an_expiry_is_a_time_to_come_with_its_zone(shared, at):
    answer = shared.client.post("/v1/tokens", json={"name": "ci", "scopes": ["read"], "expires_at": at})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/expires_at")


def test_the_last_use_is_known_to_an_hour(service, monkeypatch):
    tokens = service.context.tokens
    token = tokens.create("ci", ("read",)).token
    (unused,) = tokens.every()
    assert unused.last_used_at is None
    written = []
    use = repository.use
    monkeypatch.setattr(repository, "use", lambda db, id_, at: (written.append(at), use(db, id_, at)))
    for minutes in (0, 1, 59, 61, 62):
        monkeypatch.setattr("tilesmith.app.service.tokens.service.now_us", lambda at=minutes: at * 60_000_000)
        tokens.authenticate(token)
    assert written == [0, 61 * 60_000_000]
    (used,) = tokens.every()
    assert used.last_used_at == datetime.fromtimestamp(61 * 60, UTC)


def test_a_store_that_cannot_be_written_refuses_no_reader(service, monkeypatch):
    token = service.context.tokens.create("ci", ("read",)).token

    def locked(*_):
        raise OperationalError("UPDATE", {}, Exception("database is locked"))

    monkeypatch.setattr(repository, "use", locked)
    assert service.client.get("/v1/schedules", headers=bearer(token)).status_code == 200


def test_the_command_asks_the_service(service, monkeypatch):
    monkeypatch.setenv("TILESMITH_SERVER", service.url)
    first = CliRunner().invoke(app, ["tokens", "create", "admin", "--scope", "admin"])
    assert first.exit_code == 0, first.output
    refused = CliRunner().invoke(app, ["tokens", "list"])
    assert refused.exit_code == 2
    assert "TILESMITH_TOKEN" in refused.stderr
    monkeypatch.setenv("TILESMITH_TOKEN", first.stdout.strip())
    made = json.loads(CliRunner().invoke(app, ["tokens", "create", "ci", "--days", "1", "--json"]).stdout)
    assert service.client.get("/v1/schedules", headers=bearer(made["token"])).status_code == 200
    assert CliRunner().invoke(app, ["tokens", "revoke", made["id"]]).exit_code == 0
    assert service.client.get("/v1/schedules", headers=bearer(made["token"])).status_code == 401
    assert "revoked" in CliRunner().invoke(app, ["tokens", "list"]).stdout
