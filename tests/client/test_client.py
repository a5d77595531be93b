"""The client: what it sends, what it tries again, what it raises."""

import json

import httpx
import pytest
import tenacity.nap

from tilesmith.app.client import Client, ServiceError

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
    """The pauses that would have been made, in seconds."""
    found = []
    monkeypatch.setattr(tenacity.nap.time, "sleep", found.append)
    return found


def service(*answers):
    """A client of a service that gives these answers in turn, and the requests that it got."""
    waiting, requests = list(answers), []

    def handle(request):
        request.read()
        requests.append(request)
        answer = waiting.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Client(attempts=4, token="secret", transport=httpx.MockTransport(handle)), requests


def test_a_schedule_by_name_and_by_document():
    client, requests = service(httpx.Response(201, json={"id": "a"}), httpx.Response(200, json={"id": "a"}))
    with client:
        assert client.schedule("harris", strict=True) == {"id": "a"}
        assert client.schedule({"format": 1}, {"kind": "cpu"}) == {"id": "a"}
    assert [json.loads(r.content) for r in requests] == [
        {"pipeline_id": "harris", "platform_name": "host", "options": {"strict": True}},
        {"pipeline": {"format": 1}, "platform": {"kind": "cpu"}, "options": {}},
    ]
    assert requests[0].headers["Authorization"] == "Bearer secret"


def test_it_comes_again_when_asked_to(pauses):
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


def test_it_gives_up_in_the_end(pauses):
    client, requests = service(*[httpx.Response(503, json={"code": "busy", "detail": "too much"})] * 4)
    with pytest.raises(ServiceError, match="too much") as caught:
        client.job("j")
    assert caught.value.code == "busy"
    assert len(requests) == 4


def test_a_refusal_is_told_whole_and_not_tried_again(pauses):
    client, requests = service(httpx.Response(422, json=PROBLEM))
    with pytest.raises(ServiceError, match="1 problem was found\n/pipeline/stages/0/value: no such thing") as caught:
        client.schedule({})
    assert (caught.value.code, caught.value.status, caught.value.document) == ("bad_document", 422, PROBLEM)
    assert len(requests) == 1
    assert not pauses


@pytest.mark.parametrize("answer", [httpx.Response(502, text="<html>"), httpx.Response(500, json=["?"])])
def test_an_answer_that_is_no_problem_document(answer):
    client, _ = service(answer)
    with pytest.raises(ServiceError, match="answered 50"):
        client.form("a", "code.c")


def test_files_are_sent_whole_on_every_try(tmp_path, pauses):
    (tmp_path / "a.npy").write_bytes(b"the content of a file")
    client, requests = service(httpx.Response(503, json={}), httpx.Response(202, json={"id": "j"}))
    assert client.run("s", {"input": tmp_path / "a.npy"}, repeat=3) == {"id": "j"}
    for request in requests:
        assert b"the content of a file" in request.content
        assert b'{"repeat": 3}' in request.content


def test_waiting_follows_the_events():
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
def test_a_job_that_did_not_succeed_is_an_error(job, code):
    client, _ = service()
    with pytest.raises(ServiceError) as caught:
        client.wait(job)
    assert caught.value.code == code
