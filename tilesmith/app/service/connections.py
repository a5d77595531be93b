"""Connections within limits: how many, how large the head of a request may be, how long head, body and answer may take.

uvicorn parses HTTP by httptools, which bounds neither. A connection that waits for a request gives way to a new one
where there are too many, those of the same client first: half a request holds nothing for long.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tilesmith.app.service.errors import PROBLEM_JSON, ApiError, problem_document
from tilesmith.app.service.settings import Settings

LEAST_BYTES_PER_S = 16 << 10
"""The least rate at which a client sends or takes a body once the time that it has in any case is over."""
DISCARDED_BYTES = 1 << 20
"""The most of a request that is read and thrown away after it was answered."""


class HeadTooLarge(Exception):
    """The request line and the header fields are longer than they may be."""


class OpenConnections:
    """The connections of a service by client address, with those that wait for a request, the longest waiting first."""

    def __init__(self, most: int, most_of_client: int) -> None:
        self.most, self.most_of_client = most, most_of_client
        self._clients: dict[BoundedProtocol, str] = {}
        self._waiting: dict[BoundedProtocol, None] = {}
        self._counts: Counter[str] = Counter()

    def admit(self, connection: BoundedProtocol, client: str) -> bool:
        """True if there is room, made where needed by ending a connection that waits."""
        crowded = self._counts[client] >= self.most_of_client
        if crowded or len(self._clients) >= self.most:
            idle = next((c for c in self._waiting if not crowded or self._clients[c] == client), None)
            if idle is None:
                return False
            self.remove(idle)
            idle.abort()
        self._clients[connection] = client
        self._counts[client] += 1
        self.waits(connection)
        return True

    def waits(self, connection: BoundedProtocol) -> None:
        """The connection has no request that is being answered."""
        if connection in self._clients:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None

    def works(self, connection: BoundedProtocol) -> None:
        """The connection has a request."""
        self._waiting.pop(connection, None)

    def remove(self, connection: BoundedProtocol) -> None:
        """The connection is gone."""
        self._waiting.pop(connection, None)
        client = self._clients.pop(connection, None)
        if client is not None:
            self._counts[client] -= 1
            if not self._counts[client]:
                del self._counts[client]


class BoundedProtocol(HttpToolsProtocol):
    """A connection of uvicorn, with the bounds of the settings."""

    def __init__(self, *arguments: Any, settings: Settings, among: OpenConnections, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._settings, self._among = settings, among
        self._in_head = True
        self._ended = False
        self._head_bytes = self._fields = self._body_bytes = self._discarded = 0
        self._body_began = 0.0
        self._deadline: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._among.admit(self, client_of(transport.get_extra_info("peername"))):
            self._await(self._settings.head_timeout_s, self._head_is_late)
        else:
            self._end(ApiError("too_many_connections", "close connections that are not in use"))
            self._close()  # nothing waits for a connection that is not counted

    def connection_lost(self, exc: Exception | None) -> None:
        self._among.remove(self)
        self._await(None)
        self._stop_taking()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._ended:
            self._discard(len(data))
            return
        self._head_bytes += len(data) if self._in_head else 0
        super().data_received(data)
        if self._in_head and not self._ended and not self.transport.is_closing():
            if self._head_bytes > self._settings.head_bytes:
                self._end(self._head_too_large())
            elif self._deadline is None and self._head_bytes:
                self._await(self._settings.head_timeout_s, self._head_is_late)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._fields = 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + len(b": \r\n"))
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._fields += size
        if self._fields > self._settings.head_bytes:
            raise HeadTooLarge

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._in_head = False
        self._head_bytes = self._body_bytes = self._discarded = 0
        self._body_began = self.loop.time()
        self._among.works(self)
        self._await(self._settings.transfer_timeout_s, self._body_is_late)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self.cycle.response_complete:
            self._discard(len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True
        self._await(None)

    def on_response_complete(self) -> None:
        if self._ended:
            return
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_later()
        elif self.cycle.response_complete:
            self._among.waits(self)

    def send_400_response(self, msg: str) -> None:
        """The answer to what is no HTTP, or has too long a head."""
        too_large = self._in_head and self._fields > self._settings.head_bytes
        self._end(self._head_too_large() if too_large else ApiError("http_error", msg))

    def shutdown(self) -> None:
        if self._ended:
            self._close()
        else:
            super().shutdown()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._abort_later()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._abort_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_taking()

    def _head_too_large(self) -> ApiError:
        return ApiError("head_too_large", f"the head of a request may have {self._settings.head_bytes} bytes")

    def _head_is_late(self) -> None:
        self._deadline = None
        if self.cycle is not None and not self.cycle.response_complete:  # the one before is still being answered
            self._await(self._settings.head_timeout_s, self._head_is_late)
        else:
            self._end(ApiError("request_timeout", "the head of the request did not arrive"))

    def _body_is_late(self) -> None:
        self._deadline = None
        due = self._body_began + self._settings.transfer_timeout_s + self._body_bytes / LEAST_BYTES_PER_S
        left = due - self.loop.time()
        if left > 0 or self.flow.read_paused:  # what is not read cannot be sent
            self._await(max(left, 1.0), self._body_is_late)
        elif self.cycle.response_started:
            self._close()
        else:
            self._end(ApiError("request_timeout", "the body of the request arrives too slowly"))

    def _await(self, seconds: float | None, late: Callable[[], None] | None = None) -> None:
        """Replaces the deadline of what the client has to send."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None or late is None else self.loop.call_later(seconds, late)

    def _end(self, error: ApiError) -> None:
        """Answers with a problem document, and closes. Nothing is sent into an answer that has begun.

        What the client goes on sending is thrown away for a while: a socket that is closed with bytes unread resets the
        connection, and the answer is lost on its way (RFC 9112, section 9.6).
        """
        self._unset_keepalive_if_required()
        said = self.cycle is None or self.cycle.response_complete or not self.cycle.response_started
        if said:
            content = json.dumps(problem_document(error)).encode()
            status = HTTPStatus(error.status_code)
            head = [f"HTTP/1.1 {status.value} {status.phrase}", f"content-type: {PROBLEM_JSON}"]
            head += [f"content-length: {len(content)}", "connection: close"]
            head += [f"{name}: {value}" for name, value in (error.headers or {}).items()]
            self.transport.write("\r\n".join((*head, "", "")).encode() + content)
        if said and self.transport.can_write_eof():
            self._ended = True
            self.transport.write_eof()
            self._disconnect()
            self.flow.resume_reading()
            self._among.waits(self)
            self._await(self._settings.head_timeout_s, self._close)
        else:
            self._close()

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > DISCARDED_BYTES:
            self._close()

    def _close(self) -> None:
        self._await(None)
        self._disconnect()
        self.transport.close()
        self._abort_later()

    def abort(self) -> None:
        """Ends the connection at once."""
        self._disconnect()
        self.transport.abort()

    def _disconnect(self) -> None:
        """The end of the connection as the application sees it: uvicorn says so later, when it may have written."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.flow.resume_writing()

    def _abort_later(self) -> None:
        """The end of a connection whose client does not take what it is sent."""
        self._stop_taking()
        size = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(self._settings.transfer_timeout_s + size / LEAST_BYTES_PER_S, self.abort)

    def _stop_taking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None


def client_of(peer: object) -> str:
    """The client that an address stands for: itself, or the network of 64 bits that one subscriber of IPv6 has. Empty
    for peers without an address."""
    host = str(peer[0]).partition("%")[0] if isinstance(peer, tuple | list) and peer else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return host


def bounded(settings: Settings) -> Any:
    """The protocol for uvicorn's option `http`, of one service."""
    among = OpenConnections(settings.connections, settings.connections_per_client)
    return partial(BoundedProtocol, settings=settings, among=among)
