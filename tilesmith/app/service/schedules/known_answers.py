"""Known answers: requests for a schedule that were answered before, answered before routing.

Finding the route, its dependencies and the form of the answer would take several times as long as the answer does.
"""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilesmith.app.service.bodies import json_body
from tilesmith.app.service.context import Context, authenticated, bearer_token

PATH = "/v1/schedules"


class KnownAnswers:
    """Middleware that answers `POST /v1/schedules` where its very body was answered before and the store still has the
    answer, as the endpoint would; all else goes on to the application."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self.app = app
        self.context = context
        self._route = Route(PATH, endpoint=type(self), methods=["POST"])  # what metrics and traces call it by

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        (await authenticated(request, bearer_token(request))).require("submit")
        body = await json_body(request)
        asked = await self.context.schedules.known(body)
        if asked is None or asked.has_jobs:
            await self.app(scope, _again(body, receive), send)
            return
        scope["route"] = self._route
        content = asked.content
        headers = [
            (b"content-length", b"%d" % len(content.content)),
            (b"content-type", content.media_type.encode()),
            (b"location", asked.location.encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content.content})


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` of a request whose body was read."""
    first: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Message:
        return first.pop() if first else await receive()

    return receiving
