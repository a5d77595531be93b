"""HTTP of every request: ids, headers, hosts, sizes; and bodies made to hurt."""

from __future__ import annotations

import http.client
import json
import threading

import httpx
import pytest
import structlog
from sqlalchemy.exc import OperationalError

from tilesmith.app.service.http import _as_api_error

HOSTILE = {
    "deep list": b"[" * 100_000,
    "deep object": b'{"pipeline":' * 50_000,
    "not UTF-8": b'{"pipeline_id": "\xff\xfe"}',
    "a lone surrogate": b'{"pipeline_id": "\\ud800"}',
    "a long number": b'{"pipeline_id": ' + b"9" * 100_000 + b"}",
    "nothing": b"",
    "null": b"null",
    "a number": b"1e999",
    "text": b'"' + b"x" * 1_000_000 + b'"',
    "NUL": b'{"pipeline_id": "\\u0000"}',
    "not JSON": b"pipeline: blur",
    "many keys": b"{" + b",".join(b'"k%d":1' % n for n in range(20_000)) + b"}",
    "a path": b'{"pipeline_id": "../../etc/passwd"}',
    "SQL": b'{"pipeline_id": "x\' OR 1=1 --"}',
}
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("url", ["/v1/schedules", "/v1/pipelines", "/v1/platforms", "/v1/tokens"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_are_refused_and_the_service_still_answers(shared, url, name):
    answer = shared.client.post(url, content=HOSTILE[name], headers=JSON)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 100_000
    assert shared.client.get("/healthz").status_code == 200


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(start):
    service = start(body_bytes=1000)
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=20)
    connection.putrequest("POST", "/v1/schedules")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(10**12))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413
    assert json.loads(answer.read())["code"] == "body_too_large"
    connection.close()


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(start):
    service = start(body_bytes=1000)
    sent = []

    def chunks():
        for _ in range(50):
            sent.append(1)
            yield b" " * 100

    answer = service.client.post("/v1/schedules", content=chunks(), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_uploads_have_a_limit_of_their_own(start):
    service = start(body_bytes=1000, upload_bytes=3000)
    url = f"/v1/schedules/{service.schedule()}/runs"
    assert service.client.post(url, files={"input": b"x" * 2000}).status_code == 202
    assert service.client.post(url, files={"input": b"x" * 4000}).json()["code"] == "body_too_large"


def test_a_request_id_is_kept_or_made(shared):
    kept = shared.client.get("/nothing", headers={"X-Request-ID": "abc-1.2_3"})
    assert kept.headers["x-request-id"] == kept.json()["request_id"] == "abc-1.2_3"
    for bad in ("a b", "x" * 65, "<script>", ""):
        made = shared.client.get("/nothing", headers={"X-Request-ID": bad})
        assert made.headers["x-request-id"] == made.json()["request_id"] != bad
        assert len(made.headers["x-request-id"]) == 32


@pytest.mark.parametrize("url", ["/v1/schedules", "/nothing", "/openapi.json", "/static/0/style.css"])
def test_every_answer_has_the_security_headers(shared, url):
    headers = shared.client.get(url).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; form-action 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("url", ["/", "/nothing"])
def test_pages_take_scripts_and_styles_from_files_of_the_service_alone(shared, url):
    policy = shared.client.get(url, headers={"Accept": "text/html"}).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", ""])
def test_without_tokens_only_requests_to_loopback_names_are_served(shared, host):
    answer = shared.client.get("/v1/schedules", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:80"])
def test_loopback_names_are_served(shared, host):
    assert shared.client.get("/v1/schedules", headers={"Host": host}).status_code == 200


def test_hosts_can_be_set(start):
    service = start(allowed_hosts=("tiles.example",))
    assert service.client.get("/healthz", headers={"Host": "tiles.example"}).status_code == 200
    assert service.client.get("/healthz").status_code == 400


def test_with_tokens_any_host_is_served(start):
    service = start(admin_token="sesame-open-sesame")
    assert service.client.get("/healthz", headers={"Host": "tiles.example"}).status_code == 200


def test_pages_of_other_sites_cannot_submit(service):
    url = f"/v1/schedules/{service.schedule()}/runs"
    for origin in ("https://evil.example", "null", service.url + ".evil.example"):
        answer = service.client.post(url, json={"estimates": True}, headers={"Origin": origin})
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin")
    for site in ("cross-site", "same-site"):
        answer = service.client.post(url, json={"estimates": True}, headers={"Sec-Fetch-Site": site})
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin")
    own = {"Origin": service.url, "Sec-Fetch-Site": "same-origin"}
    assert service.client.post(url, json={"estimates": True}, headers=own).status_code == 202


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
def test_bodies_have_to_say_that_they_are_json(shared, kind):
    answer = shared.client.post("/v1/schedules", content=b"{}", headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_others_are_answered_while_one_is_scheduled(service, pipeline):
    busy, over = threading.Event(), threading.Event()

    def meanwhile():
        busy.set()
        over.wait(20)

    service.scheduling.meanwhile = meanwhile
    with httpx.Client(base_url=service.url, timeout=30) as client:
        thread = threading.Thread(
            target=client.post, args=("/v1/schedules",), kwargs={"json": {"pipeline": pipeline()}}
        )
        thread.start()
        assert busy.wait(20)
        for url in ("/healthz", "/v1/schedules", "/", "/v1/pipelines/harris"):
            assert service.client.get(url).status_code == 200
        over.set()
        thread.join()


def test_metrics_have_no_series_per_path(service):
    for n in range(20):
        service.client.get(f"/nothing/{n}")
        service.client.get(f"/v1/schedules/{n}")
    text = service.client.get("/metrics").text
    assert 'route="unmatched"' in text
    assert 'route="/v1/schedules/{schedule_id}"' in text
    assert "/nothing/7" not in text


def test_paths_that_do_not_exist(shared):
    for url in ("/v1", "/v1/schedules/", "/V1/schedules", "/docs/", "/redoc", "/static/../settings.py", "/.git/config"):
        answer = shared.client.get(url)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), url


def test_a_store_that_is_away_before_a_request_is_looked_at_is_no_fault_of_ours():
    with structlog.testing.capture_logs() as logs:
        found = _as_api_error(OperationalError("SELECT 1", None, Exception("the server is in recovery")))
    assert found.code == "store_unavailable"
    assert [entry["event"] for entry in logs] == ["store failed"]
