"""Around every request: its id, its size, where it comes from, what it cost, and an answer whatever happens."""

from __future__ import annotations

import ipaddress
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilesmith.app.service.errors import ApiError, from_os, from_store, response
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.settings import Settings

log = structlog.get_logger("tilesmith.http")

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
EVENTS = re.compile(r"/v1/jobs/[^/]+/events")
UPLOADS = re.compile(r"(/v1)?/schedules/[^/]+/runs")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
QUIET = ("/healthz", "/readyz", "/metrics")
LOCAL_NAMES = ("localhost",)

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"  # pages bring their own
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send forms of our pages with the origin "null"
    "Cross-Origin-Resource-Policy": "same-origin",
}


class TokensInForce(Protocol):
    """True if requests have to show a token."""

    def __call__(self) -> bool: ...


@dataclass
class Exchange:
    """State of one request while it is answered."""

    scope: Scope
    request_id: str
    method: str
    started: float = field(default_factory=time.perf_counter)
    status: int = 0
    sent: int = 0

    @property
    def route(self) -> str:
        """The path with the names of its parameters, so that metrics do not have a series a schedule."""
        found = self.scope.get("route")
        return str(getattr(found, "path", "unmatched"))


class Requests:
    """The outermost middleware, plain ASGI for the sake of its cost."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, tokens: TokensInForce) -> None:
        self.app = app
        self.settings = settings
        self.metrics = metrics
        self.tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        wished = headers.get("x-request-id", "")
        scope = dict(scope)
        exchange = Exchange(scope, wished if REQUEST_ID.fullmatch(wished) else uuid.uuid4().hex, scope["method"])
        scope.setdefault("state", {})["request_id"] = exchange.request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=exchange.request_id)
        try:
            await self._answer(exchange, headers, receive, send)
        finally:
            self._record(exchange)
            structlog.contextvars.clear_contextvars()

    async def _answer(self, exchange: Exchange, headers: Headers, receive: Receive, send: Send) -> None:
        scope = exchange.scope
        bodiless = scope["method"] == "HEAD" and not EVENTS.fullmatch(scope["path"])
        if bodiless:
            scope["method"] = "GET"  # answered as GET would be, but for the body

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                found = MutableHeaders(scope=message)
                found["X-Request-ID"] = exchange.request_id
                for name, value in SECURITY_HEADERS.items():
                    found.setdefault(name, value)
            elif message["type"] == "http.response.body":
                if bodiless:
                    message = {**message, "body": b""}
                exchange.sent += len(message.get("body", b""))
            await send(message)

        refused = self._refusal(scope, headers)
        try:
            if refused is not None:
                await response(Request(scope), refused)(scope, receive, sending)
                return
            await self.app(scope, self._limited(scope, receive), sending)
        except Exception as error:  # the boundary of the process: whatever it was, the client gets an answer
            if exchange.status:
                raise
            await response(Request(scope), _as_api_error(error))(scope, receive, sending)

    def _refusal(self, scope: Scope, headers: Headers) -> ApiError | None:
        """Why the request is not looked at, if so: another host (DNS rebinding), another site, or too large."""
        host = _host_name(headers.get("host", ""))
        if not self._is_ours(host):
            return ApiError("bad_host", "the Host header names no host of this service (setting allowed_hosts)")
        if scope["method"] not in SAFE_METHODS and _from_elsewhere(headers):
            return ApiError("cross_origin", "pages of other sites may not use this service")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 20 or int(length) > self._limit(scope):
            return self._too_large(scope)
        return None

    def _is_ours(self, host: str) -> bool:
        allowed: Sequence[str] = self.settings.allowed_hosts
        if allowed:
            return "*" in allowed or host in allowed
        return host in LOCAL_NAMES or _is_loopback_address(host) or self.tokens()

    def _limit(self, scope: Scope) -> int:
        return self.settings.upload_bytes if UPLOADS.fullmatch(scope["path"]) else self.settings.body_bytes

    def _too_large(self, scope: Scope) -> ApiError:
        return ApiError(
            "body_too_large",
            f"the body may have {self._limit(scope)} bytes",
            headers={"Connection": "close"},
        )

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """`receive` that raises once the body, of whatever claimed length, passes the limit."""
        limit, received = self._limit(scope), 0

        async def receiving() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > limit:
                    raise self._too_large(scope)
            return message

        return receiving

    def _record(self, exchange: Exchange) -> None:
        seconds = time.perf_counter() - exchange.started
        method = exchange.method if exchange.method in KNOWN_METHODS else "other"
        self.metrics.requests.labels(method, exchange.route, str(exchange.status)).inc()
        self.metrics.request_seconds.labels(method, exchange.route).observe(seconds)
        path = exchange.scope["path"]
        if path not in QUIET:
            log.info(
                "request",
                method=method,
                path=path[:200],
                status=exchange.status,
                bytes=exchange.sent,
                ms=round(1000 * seconds, 3),
            )


KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _as_api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    log.error("fault", exc_info=error)
    if isinstance(error, SQLAlchemyError):
        return from_store(error)
    if isinstance(error, OSError):
        return from_os(error)
    return ApiError("internal", "the fault has been logged")


def _from_elsewhere(headers: Headers) -> bool:
    """True if a browser says that a page of another site asks: it sends its user's password along all the same."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    other = origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    return other or site not in ("same-origin", "none")


def _host_name(header: str) -> str:
    """The host of a Host header, without its port, in lower case."""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def _is_loopback_address(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
