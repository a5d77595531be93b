"""Both clients: what they send, what they try again, what they raise; and that they are one in all that they say."""

import asyncio
import inspect
import json
import threading
import time

import httpx
import pytest
import tenacity.asyncio
import tenacity.nap

from tilesmith.app.client import AsyncClient, Client, ServiceError

PROBLEM = {
    "type": "/v1/errors#bad_document",
    "title": "The document is not valid",
    "status": 422,
    "code": "bad_document",
    "detail": "1 problem was found",
    "errors": [{"code": "unknown_name", "pointer": "/pipeline/stages/0/value", "message": "no such thing"}],
}


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that would have been made by this thread, in seconds; other threads, such as servers', do pause."""
    found = []
    sleep, asleep, here = time.sleep, asyncio.sleep, threading.get_ident()

    async def paused(seconds, *result):
        return found.append(seconds) if threading.get_ident() == here else await asleep(seconds, *result)

    def slept(seconds):
        found.append(seconds) if threading.get_ident() == here else sleep(seconds)

    monkeypatch.setattr(tenacity.nap.time, "sleep", slept)
    monkeypatch.setattr(asyncio, "sleep", paused)
    return found


class Awaited:
    """An AsyncClient called as a Client is: every call runs in an event loop, which is one for all of them."""

    def __init__(self, client):
        self.client, self.loop = client, asyncio.Runner()

    def __getattr__(self, name):
        method = getattr(self.client, name)
        return lambda *arguments, **named: self.loop.run(method(*arguments, **named))

    def __enter__(self):
        self.loop.run(self.client.__aenter__())
        return self

    def __exit__(self, *error):
        self.loop.run(self.client.__aexit__(*error))
        self.loop.close()


@pytest.fixture(params=["sync", "async"])
def service(request):
    """Makes a client of a service that gives some answers in turn; with the requests that it got."""
    made = []

    def of(*answers):
        waiting, requests = list(answers), []

        def handle(request):
            requests.append(request)
            answer = waiting.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        async def read_and_handle(request):
            await request.aread()
            return handle(request)

        def handle_read(request):
            request.read()
            return handle(request)

        if request.param == "sync":
            client = Client(attempts=4, token="secret", transport=httpx.MockTransport(handle_read))
        else:
            client = Awaited(AsyncClient(attempts=4, token="secret", transport=httpx.MockTransport(read_and_handle)))
        made.append(client)
        return client, requests

    yield of
    for client in made:
        with client:
            pass


def test_the_clients_have_the_same_methods():
    def methods(kind):
        return {
            name: inspect.signature(f)
            for name, f in vars(kind).items()
            if inspect.isfunction(f) and not name.startswith("_")
        }

    assert methods(Client) == methods(AsyncClient)
    assert all(inspect.iscoroutinefunction(getattr(AsyncClient, name)) for name in methods(Client))


def test_an_event_loop_has_many_requests_at_a_time():
    asked = asyncio.Event()

    async def handle(request):
        if request.url.path.endswith("/first"):
            await asked.wait()  # which the second sets: one after the other would never end
        else:
            asked.set()
        return httpx.Response(200, json={"id": request.url.path})

    async def both():
        async with AsyncClient(transport=httpx.MockTransport(handle)) as client:
            return await asyncio.gather(client.job("first"), client.job("second"))

    assert [job["id"] for job in asyncio.run(both())] == ["/v1/jobs/first", "/v1/jobs/second"]


def test_a_schedule_by_name_and_by_document(service):
    client, requests = service(*(httpx.Response(status, json={"id": "a"}) for status in (201, 200, 201, 200)))
    assert client.schedule("harris", strict=True) == {"id": "a"}
    assert client.schedule({"format": 1}, {"kind": "cpu"}) == {"id": "a"}
    assert client.schedule("harris", strategy="cbuf") == {"id": "a"}
    assert client.schedule("harris", "i7-6700", {"strategy": "mine"}) == {"id": "a"}
    assert [json.loads(r.content) for r in requests] == [
        {"pipeline_id": "harris", "platform_name": "host", "options": {"strict": True}},
        {"pipeline": {"format": 1}, "platform": {"kind": "cpu"}, "options": {}},
        {"pipeline_id": "harris", "platform_name": "host", "strategy_id": "cbuf", "options": {}},
        {"pipeline_id": "harris", "platform_name": "i7-6700", "strategy": {"strategy": "mine"}, "options": {}},
    ]
    assert requests[0].headers["Authorization"] == "Bearer secret"


def test_it_comes_again_when_asked_to(service, pauses):
    client, requests = service(
        httpx.Response(429, headers={"Retry-After": "7"}, json={"code": "queue_full"}),
        httpx.Response(503, json={"code": "busy"}),
        httpx.ConnectError("nobody there"),
        httpx.Response(201, json={"id": "a"}),
    )
    assert client.schedule("harris") == {"id": "a"}
    assert len(requests) == 4
    assert pauses[0] == 7
    assert pauses[1:] == sorted(pauses[1:])


def test_it_gives_up_in_the_end(service, pauses):
    client, requests = service(*[httpx.Response(503, json={"code": "busy", "detail": "too much"})] * 4)
    with pytest.raises(ServiceError, match="too much") as caught:
        client.job("j")
    assert caught.value.code == "busy"
    assert len(requests) == 4


def test_a_refusal_is_told_whole_and_not_tried_again(service, pauses):
    client, requests = service(httpx.Response(422, json=PROBLEM))
    with pytest.raises(ServiceError, match="1 problem was found\n/pipeline/stages/0/value: no such thing") as caught:
        client.schedule({})
    assert (caught.value.code, caught.value.status, caught.value.document) == ("bad_document", 422, PROBLEM)
    assert len(requests) == 1
    assert not pauses


@pytest.mark.parametrize(("status", "body"), [(502, {"text": "<html>"}), (500, {"json": ["?"]})])
def test_an_answer_that_is_no_problem_document(service, status, body):
    client, _ = service(httpx.Response(status, **body))
    with pytest.raises(ServiceError, match="answered 50"):
        client.form("a", "code.c")


def test_files_are_sent_whole_on_every_try(service, tmp_path, pauses):
    (tmp_path / "a.npy").write_bytes(b"the content of a file")
    client, requests = service(httpx.Response(503, json={}), httpx.Response(202, json={"id": "j"}))
    assert client.run("s", {"input": tmp_path / "a.npy"}, repeat=3) == {"id": "j"}
    for request in requests:
        assert b"the content of a file" in request.content
        assert b'{"repeat": 3}' in request.content


def test_waiting_follows_the_events(service):
    done = {"id": "j", "state": "succeeded", "result": {"times_ms": [1.0]}}
    client, requests = service(httpx.Response(200, text="event: state\n\n"), httpx.Response(200, json=done))
    assert client.wait({"id": "j", "state": "queued"}) == done
    assert [r.url.path for r in requests] == ["/v1/jobs/j/events", "/v1/jobs/j"]


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ({"id": "j", "state": "failed", "error": {"code": "compile_failure", "detail": "no"}}, "compile_failure"),
        ({"id": "j", "state": "cancelled"}, "cancelled"),
    ],
)
def test_a_job_that_did_not_succeed_is_an_error(service, job, code):
    client, _ = service()
    with pytest.raises(ServiceError) as caught:
        client.wait(job)
    assert caught.value.code == code


def test_projects_and_webhooks(service):
    calls = {
        ("POST", "/v1/schedules/a/comparisons"): ("compare", ("a", "b"), {"baseline": "b"}),
        ("POST", "/v1/projects/p/results"): (
            "record",
            ("p", "main", "c", [{"schedule_id": "a"}]),
            {"branch": "main", "commit": "c", "results": [{"schedule_id": "a"}]},
        ),
        ("POST", "/v1/projects/p/baseline"): ("baseline", ("p", "main", ("c",)), {"ref": "main", "ancestors": ["c"]}),
        ("POST", "/v1/projects/p/acknowledgements"): (
            "acknowledge",
            ("p", "main", "c", "a", "why"),
            {"branch": "main", "commit": "c", "schedule_id": "a", "reason": "why"},
        ),
        ("GET", "/v1/projects/p/results"): ("history", ("p",), None),
        ("GET", "/v1/projects/p/trends"): ("trends", ("p",), None),
        ("GET", "/v1/projects"): ("projects", (), None),
        ("GET", "/v1/projects/p/badge.svg"): ("badge", ("p",), None),
        ("POST", "/v1/webhooks"): (
            "create_webhook",
            ("https://a", "p"),
            {"url": "https://a", "above": 0.05, "project": "p"},
        ),
        ("GET", "/v1/webhooks"): ("webhooks", (), None),
        ("DELETE", "/v1/webhooks/w"): ("remove_webhook", ("w",), None),
        ("DELETE", "/v1/strategies/s"): ("delete_strategy", ("s",), None),
        ("GET", "/v1/webhooks/w/deliveries"): ("deliveries", ("w",), None),
    }
    client, requests = service(*[httpx.Response(200, json={})] * len(calls))
    for name, arguments, _ in calls.values():
        getattr(client, name)(*arguments)
    assert [(r.method, r.url.path) for r in requests] == list(calls)
    for request, (_, _, body) in zip(requests, calls.values(), strict=True):
        assert (json.loads(request.content) if request.content else None) == body
