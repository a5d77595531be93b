"""Around every request: its id, its size, where it comes from, what it cost, and an answer whatever happens."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilesmith.app.service.bodies import MOST_FIELDS
from tilesmith.app.service.connections import DISCARDED_BYTES
from tilesmith.app.service.errors import ApiError, from_os, from_store, response
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.settings import Settings

log = structlog.get_logger("tilesmith.http")

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
EVENTS = re.compile(r"/v1/jobs/[^/]+/events")
UPLOADS = re.compile(r"(/v1)?/schedules/[^/]+/runs")
IMPORTS = re.compile(r"/v1/imports/[^/]+")
DOCUMENTS = re.compile(
    r"/v1/(schedules(/batch)?|pipelines|platforms|strategies|validate|projects/[^/]+/results)|/playground(/problems)?"
)
OTHER_BYTES = 128 << 10
"""Largest body of a request whose body is no document: it is read where it arrives."""
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
QUIET = ("/healthz", "/readyz", "/metrics")
LOCAL_NAMES = ("localhost",)
DISCARDING_S = 1.0
"""The time that the body of a refused request has to arrive."""

SECURITY_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # with none at all, browsers send forms of our pages with the origin "null"
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Headers of answers that do not bring their own, as pages do."""


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


@dataclass(slots=True)
class _Body:
    """The bytes of a body that came so far, and where it is a form with `fields`, the ends of fields among them.
    `held`: they stay in memory while the request is answered."""

    limit: int
    held: bool
    fields: bool
    received: int = 0
    ends: int = 0


class Requests:
    """The outermost middleware, plain ASGI for the sake of its cost."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        metrics: Metrics,
        tokens: TokensInForce,
        authenticate: Callable[[Request], Awaitable[None]],
    ) -> None:
        self.app = app
        self.settings = settings
        self.metrics = metrics
        self.tokens = tokens
        self.authenticate = authenticate
        self._held = 0

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
                own = {name for name, _ in message.get("headers", ())}
                ours = [header for header in SECURITY_HEADERS if header[0] not in own]
                request_id = (b"x-request-id", exchange.request_id.encode())
                message = {**message, "headers": [*message.get("headers", ()), request_id, *ours]}
            elif message["type"] == "http.response.body":
                if bodiless:
                    message = {**message, "body": b""}
                exchange.sent += len(message.get("body", b""))
            await send(message)

        uploads = _is_upload(scope, headers)
        limit = self._limit(scope, uploads)
        body = _Body(limit, held=not uploads, fields=_media_type(headers) == FORM)
        try:
            refused = await self._refusal(scope, headers, body)
            if refused is not None:
                await response(Request(scope), await _turned_away(refused, headers, receive))(scope, receive, sending)
                return
            await self.app(scope, self._limited(body, receive), sending)
        except Exception as error:  # the boundary of the process: whatever it was, the client gets an answer
            if exchange.status:
                raise
            await response(Request(scope), _as_api_error(error))(scope, receive, sending)
        finally:
            self._held -= body.received if body.held else 0

    async def _refusal(self, scope: Scope, headers: Headers, body: _Body) -> ApiError | None:
        """Why the request is not looked at, if so: another host (DNS rebinding), another site, too large, or changing
        something without a token."""
        host = _host_name(headers.get("host", ""))
        if not self._is_ours(host):
            return ApiError("bad_host", "the Host header names no host of this service (setting allowed_hosts)")
        if scope["method"] not in SAFE_METHODS and _from_elsewhere(headers):
            return ApiError("cross_origin", "pages of other sites may not use this service")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 20 or int(length) > body.limit:
            return _too_large(body.limit)
        if _media_type(headers) == MULTIPART and body.held:
            return ApiError("unsupported_media_type", "only pictures to run on come as multipart/form-data")
        if scope["method"] not in SAFE_METHODS:
            try:
                await self.authenticate(Request(scope))
            except ApiError as error:
                return error
        return None

    def _is_ours(self, host: str) -> bool:
        allowed: Sequence[str] = self.settings.allowed_hosts
        if allowed:
            return "*" in allowed or host in allowed
        return host in LOCAL_NAMES or _is_loopback_address(host) or self.tokens()

    def _limit(self, scope: Scope, uploads: bool) -> int:
        if uploads:
            return self.settings.upload_bytes
        if IMPORTS.fullmatch(scope["path"]):
            return self.settings.import_bytes
        document = DOCUMENTS.fullmatch(scope["path"])
        return self.settings.body_bytes if document else min(self.settings.body_bytes, OTHER_BYTES)

    def _limited(self, body: _Body, receive: Receive) -> Receive:
        """`receive` that raises once the body, of whatever claimed length, passes its limit, or all bodies theirs."""

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                size = len(message.get("body", b""))
                body.received += size
                self._held += size if body.held else 0
                if body.fields:
                    body.ends += message.get("body", b"").count(b"&")
                    if body.ends >= MOST_FIELDS:
                        raise ApiError("bad_form", f"a form has at most {MOST_FIELDS} fields")
                if body.received > body.limit:
                    raise _too_large(body.limit)
                if body.held and self._held > self.settings.held_bytes:
                    raise ApiError("busy", "the bodies of other requests take all the memory there is for them")
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


def _too_large(limit: int) -> ApiError:
    return ApiError("body_too_large", f"the body may have {limit} bytes", headers={"Connection": "close"})


async def _turned_away(refused: ApiError, headers: Headers, receive: Receive) -> ApiError:
    """The refusal of a request. A short body is thrown away first, since who still sends may not see the answer; after
    any other the connection is closed."""
    length = headers.get("content-length", "0")
    bodiless = length == "0" and "transfer-encoding" not in headers
    if not bodiless and length.isdecimal() and int(length) <= DISCARDED_BYTES and "expect" not in headers:
        received, bodiless = 0, False
        try:
            async with asyncio.timeout(DISCARDING_S):
                while not bodiless and received <= DISCARDED_BYTES:
                    message = await receive()
                    received += len(message.get("body", b""))
                    bodiless = not message.get("more_body", False)
        except TimeoutError:
            pass
    if not bodiless:
        refused.headers = {**(refused.headers or {}), "Connection": "close"}
    return refused


def _as_api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ClientDisconnect):
        return ApiError("request_timeout", "the client went away before its body had come")
    if isinstance(error, (DBAPIError, PoolTimeout)):
        log.warning("store failed", error=str(getattr(error, "orig", error)))
        return from_store(error)
    log.error("fault", exc_info=error)
    if isinstance(error, OSError):
        return from_os(error)
    return ApiError("internal", "the fault has been logged")


def _from_elsewhere(headers: Headers) -> bool:
    """True if a browser says that a page of another site asks: it sends its user's password along all the same."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    other = origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    return other or site not in ("same-origin", "none")


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_upload(scope: Scope, headers: Headers) -> bool:
    return UPLOADS.fullmatch(scope["path"]) is not None and _media_type(headers) == MULTIPART


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
