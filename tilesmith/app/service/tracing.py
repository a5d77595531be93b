"""Traces by OpenTelemetry, where a collector is named: spans of requests, phases of searches, jobs and their steps.

What is inside a span says so by `span`, `phases` and `annotate`, which do nothing elsewhere. Needs the extra `otel`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer

_tracer: ContextVar[Tracer | None] = ContextVar("tracer", default=None)
QUIET = ("/healthz", "/readyz", "/metrics")
SCOPE = "tilesmith."
"""The beginning of the names of attributes that are ours alone."""


class Tracing:
    """Spans for the collector at `endpoint` (OTLP over HTTP); none where there is no endpoint."""

    def __init__(self, endpoint: str | None) -> None:
        self._tracer: Tracer | None = None
        self._provider: Any = None
        if endpoint is None:
            return
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        facts = {"name": "tilesmith", "version": version("tilesmith"), "instance.id": uuid.uuid4().hex}
        self._provider = TracerProvider(resource=Resource.create({f"service.{k}": v for k, v in facts.items()}))
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("tilesmith")

    @contextmanager
    def root(self, name: str, parent: Context | None = None, **attributes: Any) -> Iterator[None]:
        """A span with no other around it in this service."""
        if self._tracer is None:
            yield
            return
        token = _tracer.set(self._tracer)
        try:
            with self._tracer.start_as_current_span(name, parent, attributes=_named(attributes)):
                yield
        finally:
            _tracer.reset(token)

    def close(self) -> None:
        """Sends what has not been sent."""
        if self._provider is not None:
            self._provider.shutdown()


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[None]:
    """A span inside the present one."""
    tracer = _tracer.get()
    if tracer is None:
        yield
        return
    with tracer.start_as_current_span(name, attributes=_named(attributes)):
        yield


def phases(timings_ms: Mapping[str, float]) -> None:
    """Spans of phases that have just ended elsewhere, one after the other: the time of each in ms, `total` left out."""
    tracer = _tracer.get()
    if tracer is None:
        return
    lengths = {name: int(1e6 * ms) for name, ms in timings_ms.items() if name != "total"}
    at = time.time_ns() - sum(lengths.values())
    for name, length in lengths.items():
        tracer.start_span(name, start_time=at).end(at + length)
        at += length


def annotate(**attributes: Any) -> None:
    """Attributes of the present span."""
    if _tracer.get() is not None:
        from opentelemetry import trace

        trace.get_current_span().set_attributes(_named(attributes))


def _named(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("__", ".") if "__" in name else SCOPE + name: value for name, value in attributes.items()}


class TracedRequests:
    """The middleware that makes a span of each request: of the caller's trace, where it names one (`traceparent`)."""

    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        self.app = app
        self.tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.tracing._tracer is None or scope["path"] in QUIET:
            await self.app(scope, receive, send)
            return
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract(dict(Headers(scope=scope)))
        request_id = scope.get("state", {}).get("request_id", "")

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = trace.get_current_span()
                route = getattr(scope.get("route"), "path", "unmatched")
                found.update_name(f"{scope['method']} {route}")
                found.set_attributes({"http.route": route, "http.response.status_code": message["status"]})
            await send(message)

        with self.tracing.root(scope["method"], parent, request_id=request_id, http__request__method=scope["method"]):
            await self.app(scope, receive, sending)
