"""Webhooks: told of regressions, signed, tried again; and no way into a private network."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from standardwebhooks import Webhook

from tilesmith.app.comparison.compare import compare
from tilesmith.app.comparison.results import Result, Series
from tilesmith.app.service.baselines.repository import Commit
from tilesmith.app.service.db import now_us
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.webhooks import sending
from tilesmith.app.service.webhooks import service as webhooks_service
from tilesmith.app.service.webhooks.service import ATTEMPTS, GROWTH, PAUSE_S

URL = "https://hooks.example.org/tilesmith"
AT = Commit("camera", "main", "a" * 40)


def result(predicted):
    return Result(Series("harris", "i7-6700", "default"), str(predicted), "p", predicted, "microseconds")


def grown(percent):
    return compare([result(100.0 + percent)], [result(100.0)], 0.05)


class Answers:
    """Answers that a webhook gives in turn; what it was sent."""

    def __init__(self, *answers):
        self.answers, self.sent = list(answers), []

    def __call__(self, url, body, headers, private):
        self.sent.append((url, body, dict(headers)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def hooks(service):
    """The webhooks of a service whose own thread makes no deliveries."""
    service.context.webhooks.stop()
    return service.context.webhooks


@pytest.fixture
def made(service):
    """made(...): a webhook with its secret."""
    return lambda **more: service.client.post("/v1/webhooks", json={"url": URL} | more).json()


def deliveries(service, webhook):
    return service.client.get(f"/v1/webhooks/{webhook['id']}/deliveries").json()["items"]


def test_a_regression_is_told_with_a_signature(service, hooks, made):
    webhook, hooks.send = made(project="camera"), Answers(204)
    hooks.told(AT, grown(6))
    assert hooks.deliver(now_us())
    assert not hooks.deliver(now_us())
    ((url, body, headers),) = hooks.send.sent
    assert url == URL
    event = Webhook(webhook["secret"]).verify(body, headers)
    assert event == json.loads(body)
    assert (event["type"], event["data"]["commit"]) == ("pipelines.regressed", AT.commit)
    assert event["data"]["regressions"][0]["change"] == pytest.approx(0.06)
    (kept,) = deliveries(service, webhook)
    assert (kept["state"], kept["attempts"], kept["status"], kept["next_at"]) == ("delivered", 1, 204, None)
    assert kept["event"] == event


@pytest.mark.parametrize(("percent", "told"), [(4, 0), (5, 1), (-20, 0), (0, 0)])
def test_the_limit_is_the_webhooks_own(service, hooks, made, percent, told):
    webhook = made()
    hooks.told(AT, grown(percent))
    assert len(deliveries(service, webhook)) == told


def test_a_webhook_of_another_project_is_not_told(service, hooks, made):
    other, every = made(project="zoom"), made(above=0.5)
    hooks.told(AT, grown(60))
    assert (deliveries(service, other), len(deliveries(service, every))) == ([], 1)


def test_what_is_recorded_is_told(service, hooks, made):
    assert service.context.baselines.told == hooks.told


def test_whoever_does_not_answer_is_asked_again_with_growing_pauses(service, hooks, made):
    webhook = made()
    hooks.send = Answers(500, httpx.ConnectError("nobody"), OSError("no such host"), 302, 429, 404)
    hooks.told(AT, grown(6))
    now = now_us()
    for attempt in range(1, ATTEMPTS + 1):
        assert not hooks.deliver(now - 1_000_000)
        assert hooks.deliver(now)
        now += PAUSE_S * GROWTH ** (attempt - 1) * 1_000_000
    (kept,) = deliveries(service, webhook)
    assert (kept["state"], kept["attempts"], kept["status"]) == ("failed", ATTEMPTS, 404)
    assert not hooks.deliver(now + 10**12)
    assert len({headers["webhook-id"] for _, _, headers in hooks.send.sent}) == 1
    assert len({headers["webhook-signature"] for _, _, headers in hooks.send.sent}) == ATTEMPTS


def test_the_error_of_the_last_attempt_is_kept(service, hooks, made):
    webhook, hooks.send = made(), Answers(httpx.ConnectError("nobody"))
    hooks.told(AT, grown(6))
    hooks.deliver(now_us())
    (kept,) = deliveries(service, webhook)
    assert (kept["state"], kept["error"]) == ("waiting", "ConnectError: nobody")
    assert kept["next_at"] > kept["created_at"]


def test_secrets_are_shown_once_and_webhooks_go_with_their_deliveries(service, hooks, made):
    webhook = made(project="camera")
    assert webhook["secret"] not in service.client.get("/v1/webhooks").text
    hooks.told(AT, grown(6))
    assert service.client.delete(f"/v1/webhooks/{webhook['id']}").status_code == 204
    assert service.client.get("/v1/webhooks").json()["items"] == []
    assert not hooks.deliver(now_us())
    for answer in (
        service.client.delete(f"/v1/webhooks/{webhook['id']}"),
        service.client.get(f"/v1/webhooks/{webhook['id']}/deliveries"),
    ):
        assert answer.json()["code"] == "webhook_not_found"


def test_old_deliveries_are_forgotten(service, hooks, made, start):
    webhook, hooks.send = made(), Answers(200, 200)
    hooks.told(AT, grown(6))
    hooks.deliver(now_us())
    hooks.told(AT, grown(7))
    hooks.deliver(now_us() + int(2e6 * service.context.settings.job_retention_s))
    assert deliveries(service, webhook) == []


def test_admins_only(service):
    token = service.context.tokens.create("ci", ("submit",)).token
    headers = {"Authorization": f"Bearer {token}"}
    assert service.client.get("/v1/webhooks", headers=headers).status_code == 403
    assert service.client.post("/v1/webhooks", json={"url": URL}, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/", "ftp://hooks.example.org/", "https://", "https://user:pw@hooks.example.org/",
        "https://hooks.example.org/#f", "https://127.0.0.1/", "https://10.1.2.3/", "https://169.254.169.254/latest",
        "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://[64:ff9b::a00:1]/", "https://[fe80::1]/", "https://[",
        "x",
    ],
)  # fmt: skip
def test_addresses_that_are_refused_at_once(service, url):
    answer = service.client.post("/v1/webhooks", json={"url": url})
    assert (answer.status_code, answer.json()["code"]) == (422, "address_refused")
    assert service.client.get("/v1/webhooks").json()["items"] == []


@pytest.mark.parametrize(
    ("address", "is_public"),
    [
        ("8.8.8.8", True), ("2606:4700::1111", True), ("::ffff:8.8.8.8", True), ("64:ff9b::808:808", True),
        ("0.0.0.0", False), ("100.64.0.1", False), ("192.168.0.1", False), ("224.0.0.1", False), ("fc00::1", False),
        ("::ffff:127.0.0.1", False), ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False), ("::", False),
        ("ff02::1", False),
    ],
)  # fmt: skip
def test_public_addresses(address, is_public):
    assert sending.public(address) is is_public


@pytest.mark.parametrize("addresses", [["10.0.0.1"], ["8.8.8.8", "127.0.0.1"]])
def test_a_name_with_a_private_address_is_refused_before_anything_is_sent(monkeypatch, addresses):
    monkeypatch.setattr(httpx, "Client", lambda **_: pytest.fail("it connects"))
    with pytest.raises(ApiError) as caught:
        sending.post(URL, b"{}", {}, private=False, resolve=lambda host, port: addresses)
    assert caught.value.code == "address_refused"


@pytest.fixture
def receiver():
    """A server that writes down what it gets, and leads on to somewhere else."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(307)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port, got
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_request_goes_to_the_address_that_was_looked_at(receiver):
    port, got = receiver
    url = f"http://hooks.example.org:{port}/path?x=1"
    status = sending.post(url, b'{"a": 1}', {"webhook-id": "7"}, private=True, resolve=lambda host, port: ["127.0.0.1"])
    assert status == 307
    ((path, headers, body),) = got  # and no second one: redirects are not followed
    assert (path, body, headers["Host"]) == ("/path?x=1", b'{"a": 1}', f"hooks.example.org:{port}")
    assert (headers["webhook-id"], headers["Content-Type"]) == ("7", "application/json")


def test_a_service_delivers_by_itself(start, receiver, monkeypatch):
    port, got = receiver
    arrived = threading.Event()
    service = start(private_webhooks=True)
    real = service.context.webhooks.send

    def send(*arguments):
        try:
            return real(*arguments)
        finally:
            arrived.set()

    service.context.webhooks.send = send
    made = service.client.post("/v1/webhooks", json={"url": f"http://127.0.0.1:{port}/"})
    assert made.status_code == 201, made.text
    service.context.webhooks.told(AT, grown(6))
    assert arrived.wait(20)
    assert got[0][0] == "/"
    assert webhooks_service.IDLE_S < 20
