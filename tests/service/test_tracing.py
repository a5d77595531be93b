"""Traces: what a collector is sent of requests, searches and jobs."""

from __future__ import annotations

import gzip
import http.server
import threading
from contextlib import closing

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tilesmith.app.service import tracing

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector(http.server.ThreadingHTTPServer):
    """A collector that keeps the spans that it is sent."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def named(self, name):
        return [s for s in self.spans if s.name == name]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        found = ExportTraceServiceRequest.FromString(body)
        self.server.spans += [s for r in found.resource_spans for scope in r.scope_spans for s in scope.spans]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def collector():
    with closing(Collector()) as server:
        server.close = server.server_close
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def attributes(span):
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


def work(task, claim, watch):
    watch.run("building", int)
    return {}


def test_requests_searches_and_jobs_are_traced(start, collector, pipeline):
    service = start(work, job_workers=1, otlp_endpoint=collector.url)
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-ID": "mine"}
    answer = service.client.post("/v1/schedules", json={"pipeline": pipeline()}, headers=headers)
    schedule = answer.json()["id"]
    job = service.client.post(f"/v1/schedules/{schedule}/builds", json={}).json()["id"]
    service.ended(job)
    service.client.get("/healthz")
    service.context.runner.stop()
    service.context.tracing.close()

    (request,) = collector.named("POST /v1/schedules")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    found = attributes(request)
    assert found["tilesmith.request_id"] == "mine"
    assert (found["http.route"], found["http.response.status_code"]) == ("/v1/schedules", 201)
    (parse,) = collector.named("parse")
    assert (parse.trace_id, parse.parent_span_id) == (request.trace_id, request.span_id)
    assert parse.end_time_unix_nano - parse.start_time_unix_nano == 1_000_000
    (submitted,) = collector.named("POST /v1/schedules/{schedule_id}/builds")
    (done,) = collector.named("job build")
    assert attributes(submitted)["tilesmith.job_id"] == attributes(done)["tilesmith.job_id"] == job
    assert attributes(done)["tilesmith.schedule_id"] == schedule
    assert attributes(done)["tilesmith.state"] == "succeeded"
    (step,) = collector.named("building")
    assert step.parent_span_id == done.span_id
    assert not collector.named("GET /healthz")


def test_nothing_is_traced_where_there_is_no_collector():
    made = tracing.Tracing(None)
    with made.root("job"), tracing.span("step"):
        tracing.phases({"parse": 1.0})
        tracing.annotate(job_id="x")
    made.close()
