"""Compression of pages and their assets. The API's answers are left alone: their ETags are strong, programs want them
soon, and streams of events must not wait."""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

MINIMUM_BYTES = 1000
LEVEL = 6


class CompressedPages:
    """Middleware that compresses what is outside of /v1, for those who take gzip."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.compressed = GZipMiddleware(app, MINIMUM_BYTES, LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        page = (
            scope["type"] == "http" and not scope["path"].startswith("/v1/") and not scope["path"].endswith("/events")
        )
        await (self.compressed if page else self.app)(scope, receive, send)
