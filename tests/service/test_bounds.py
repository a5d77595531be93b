"""Bounds of what stands in front: tokens before bodies, heads, slow clients, connections, unknown tokens."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
import uvicorn
from uvicorn.server import ServerState

from tilesmith.app.service.bodies import SMALL_BYTES, parse_json
from tilesmith.app.service.connections import DISCARDED_BYTES, BoundedProtocol, OpenConnections, client_of
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.tokens.failures import ADDRESSES, WINDOW_S, Failures
from tilesmith.scheduler.errors import DocumentError
from tilesmith.scheduler.frontends.document.limits import Limits
from tilesmith.scheduler.strategies import document as strategies

HEAD = b"POST /v1/schedules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@contextmanager
def connected(service):
    parts = urlsplit(service.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        yield connection


def answer(connection):
    """(status, problem document) of what comes until the other side closes."""
    received = b""
    while part := connection.recv(1 << 16):
        received += part
    head, _, content = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(content)


def is_closed(connection):
    """True once the other side has closed the connection, with nothing said."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_who_shows_no_token_is_refused_before_the_body_comes(start):
    urls = (b"/v1/schedules", b"/v1/tokens", b"/v1/projects/p/results", b"/playground")
    heads = [
        HEAD.replace(b"/v1/schedules", url) + authorization
        for url in urls
        for authorization in (b"", b"Authorization: Bearer wrong\r\n", b"Authorization: Basic !\r\n")
    ]
    service = start(admin_token="sesame-open-sesame", token_failures=len(heads))
    with ExitStack() as stack:
        connections = [stack.enter_context(connected(service)) for _ in heads]
        for head, connection in zip(heads, connections, strict=True):
            connection.sendall(head + b"Content-Length: 100000\r\n\r\n" + b"[" * 1000)
        for head, connection in zip(heads, connections, strict=True):
            status, problem = answer(connection)
            assert (status, problem["code"]) == (401, "unauthorized"), head


def test_a_short_body_of_who_is_refused_is_thrown_away_and_the_connection_stays(start):
    service = start(admin_token="sesame-open-sesame")
    for _ in range(2):
        refused = service.client.post("/v1/schedules", content=b"[" * 200_000)
        assert (refused.status_code, refused.headers.get("connection")) == (401, None)


def test_unknown_tokens_are_throttled_and_known_ones_are_not(start):
    service = start(admin_token="sesame-open-sesame", token_failures=3)
    known = {"Authorization": f"Bearer {service.context.tokens.create('x', ('read',)).token}"}
    assert service.client.get("/v1/jobs", headers=known).status_code == 200
    answers = [service.client.get("/v1/jobs", headers={"Authorization": f"Bearer {n}"}) for n in range(5)]
    assert [a.status_code for a in answers] == [401, 401, 401, 429, 429]
    assert answers[-1].json()["code"] == "too_many_failures"
    assert 0 < int(answers[-1].headers["retry-after"]) <= WINDOW_S
    for headers in (known, {"Authorization": "Bearer sesame-open-sesame"}):
        assert service.client.get("/v1/jobs", headers=headers).status_code == 200
    assert service.client.get("/v1/jobs").status_code == 401


def test_failures_are_forgotten_after_a_while():
    now = [1000.0]
    failures = Failures(2, lambda: now[0])
    assert failures.wait_s("a") == 0
    for client in ("a", "a", "b"):
        failures.add(client)
    assert (failures.wait_s("a"), failures.wait_s("b")) == (WINDOW_S, 0)
    now[0] += WINDOW_S
    assert failures.wait_s("a") == 0
    failures.add("a")
    assert failures.wait_s("a") == 0
    for n in range(2 * ADDRESSES):
        failures.add(str(n))
    assert len(failures._windows) == ADDRESSES


@pytest.mark.parametrize("large", [b"X: " + b"x" * 100_000, b"X: y\r\n" * 10_000])
@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
def test_a_long_head_is_refused(service, large, end):
    with connected(service) as connection:
        connection.sendall(HEAD + large + end)
        status, problem = answer(connection)
    assert (status, problem["code"]) == (431, "head_too_large")
    assert service.client.get("/v1/jobs?" + "q" * 40_000).status_code == 431
    assert service.client.get("/healthz").status_code == 200


def is_left(connection, seconds):
    """True once the other side takes nothing more, a thousand bytes a time."""
    try:
        for _ in range(100 * DISCARDED_BYTES // 1000):
            connection.sendall(b"x" * 1000)
            time.sleep(seconds)
    except ConnectionError:
        return True
    return False


def test_a_client_that_sends_on_after_a_refusal_gets_the_answer(service):
    with connected(service) as connection:
        connection.sendall(HEAD + b"X: " + b"x" * (DISCARDED_BYTES - 100_000))
        assert answer(connection)[0] == 431


def test_a_client_that_never_stops_sending_is_left(service):
    with connected(service) as connection:
        connection.sendall(HEAD + b"X: ")
        assert is_left(connection, seconds=0)


def test_a_refused_client_is_left_when_its_time_is_over(start):
    service = start(head_timeout_s=0.2)
    with connected(service) as connection:
        connection.sendall(b"\x16\x03\x01" * 100)
        assert answer(connection)[0] == 400
        assert is_left(connection, seconds=0.01)


def test_what_is_no_http_is_refused(service):
    with connected(service) as connection:
        connection.sendall(b"\x16\x03\x01" * 100)
        assert answer(connection)[1]["code"] == "http_error"


@pytest.mark.parametrize("sent", [b"", b"\r\n", HEAD, HEAD + b"X: "])
def test_half_a_head_is_waited_for_no_longer_than_its_time(start, sent):
    service = start(head_timeout_s=0.2)
    with connected(service) as connection:
        connection.sendall(sent)
        assert answer(connection)[1]["code"] == "request_timeout"


def test_half_a_body_is_waited_for_no_longer_than_its_time(start):
    service = start(transfer_timeout_s=0.2)
    with connected(service) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n[")
        assert answer(connection)[1]["code"] == "request_timeout"


class Transport(asyncio.Transport):
    """A transport that takes nothing."""

    def __init__(self):
        super().__init__()
        self.aborted = asyncio.Event()

    def is_closing(self):
        return False

    def get_write_buffer_size(self):
        return 64

    def abort(self):
        self.aborted.set()


def test_who_does_not_take_an_answer_is_cut_off():
    async def stalls():
        settings = Settings(transfer_timeout_s=0.01)
        among = OpenConnections(settings.connections, settings.connections_per_client)
        config = uvicorn.Config(lambda *_: None, log_config=None)
        transport = Transport()
        protocol = BoundedProtocol(config, ServerState(), {}, settings=settings, among=among)
        protocol.connection_made(transport)
        protocol.pause_writing()
        protocol.resume_writing()
        assert protocol._taking is None
        protocol.pause_writing()
        async with asyncio.timeout(20):
            await transport.aborted.wait()
        assert not protocol.flow.write_paused  # nobody waits for it any more

    asyncio.run(stalls())


def test_requests_that_wait_give_way_to_new_ones(start):
    service = start(connections_per_client=4)
    with ExitStack() as stack:
        held = [stack.enter_context(connected(service)) for _ in range(20)]
        for connection in held:
            connection.sendall(HEAD)
        assert service.client.get("/healthz").status_code == 200
        assert all(is_closed(connection) for connection in held[:-4])


def test_more_connections_than_may_be_are_refused_while_all_have_a_request(start):
    service = start(connections=2)
    with ExitStack() as stack:
        for _ in range(2):
            connection = stack.enter_context(connected(service))
            connection.sendall(HEAD + b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n")
            assert b"100 Continue" in connection.recv(1000)  # it is at work
        status, problem = answer(stack.enter_context(connected(service)))
    assert (status, problem["code"]) == (503, "too_many_connections")


def test_bodies_in_memory_have_a_limit_together(start):
    service = start(held_bytes=1000)
    refused = service.client.post("/v1/pipelines", content=b" " * 1001, headers={"Content-Type": "application/json"})
    assert (refused.status_code, refused.json()["code"]) == (503, "busy")
    for _ in range(3):
        answered = service.client.post(
            "/v1/pipelines", content=b" " * 900, headers={"Content-Type": "application/json"}
        )
        assert answered.json()["code"] == "bad_json"


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        (("10.0.0.1", 1), "10.0.0.1"),
        (("2001:db8:1:2:3:4:5:6", 1, 0, 0), "2001:db8:1:2::/64"),
        (("::ffff:10.0.0.1", 1, 0, 0), "10.0.0.1"),
        (("fe80::1%eth0", 1, 0, 2), "fe80::/64"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_subscriber_is_one_client(peer, client):
    assert client_of(peer) == client


def keys(count):
    return b",".join(b'"k%d":1' % n for n in range(count))


@pytest.mark.parametrize("url", ["/v1/schedules", "/v1/pipelines", "/v1/platforms", "/v1/strategies", "/v1/validate"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"a":[' + b"{}," * 130_000 + b"{}]}", "limit_exceeded"),
        (b"{" + keys(260_000) + b"}", "limit_exceeded"),
        (b'{"a":' * 100 + b'"' + b" " * SMALL_BYTES + b'"' + b"}" * 100, "bad_json"),
    ],
)
def test_a_body_of_more_than_any_document_has_is_not_made_values_of(real, url, body, code):
    refused = real.client.post(url, content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code in (400, 422)
    assert refused.json()["code"] == code


def test_commas_and_brackets_in_strings_are_no_values():
    text = json.dumps({"doc": '[{,\\"' * 300_000})
    assert parse_json(text.encode()) == json.loads(text)
    for cut in (b'"' + b'\\"' * 100_000, b'["' + b"\\" * 99_999, b'{"a' * 30_000):
        with pytest.raises(ApiError):
            parse_json(cut)


def test_the_first_hundred_errors_are_told_and_how_many_are_left(real):
    body = b'{"pipeline_id":"blur",' + keys(20_000) + b"}"
    refused = real.client.post("/v1/schedules", content=body, headers={"Content-Type": "application/json"}).json()
    assert (len(refused["errors"]), refused["errors_left_off"]) == (100, 19_900)


def test_only_documents_and_pictures_are_large(service):
    answers = [
        service.client.post("/v1/tokens", content=b" " * 200_000, headers={"Content-Type": "application/json"}),
        service.client.post("/schedules/none/notes", data={"note": "x" * 200_000}),
        service.client.post("/playground", data={f"f{n}": "" for n in range(65)}),
        service.client.post("/playground", files={"text": b"x"}),
    ]
    assert [a.status_code for a in answers] == [413, 413, 400, 415]


def test_decisions_for_more_stages_than_there_may_be_are_not_looked_at(real):
    body = b'{"pipeline_id":"blur","platform_name":"i7-6700","options":{"fixed":{' + keys(10_001) + b"}}}"
    refused = real.client.post("/v1/schedules", content=body, headers={"Content-Type": "application/json"}).json()
    assert (refused["code"], refused["errors"][0]["pointer"]) == ("limit_exceeded", "/options/fixed")


def test_text_of_more_values_than_any_document_is_not_made_values_of(real):
    text = '{"stages":[' + "{}," * 260_000 + "{}]}"
    checked = real.client.post("/v1/validate", json={"pipeline": text}).json()["pipeline"]
    assert [p["code"] for p in checked["problems"]] == ["limit_exceeded"]


def test_a_strategy_of_unknown_keys_is_read_no_further_than_its_problems_are_told():
    document = Keys()
    with pytest.raises(DocumentError) as caught:
        strategies.from_document(document)
    assert len(caught.value.problems) == document.asked == Limits().problems


class Keys(dict):
    """An object of more keys than anybody looks at."""

    asked = 0

    def __iter__(self):
        while True:
            self.asked += 1
            yield f"k{self.asked}"
