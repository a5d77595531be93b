"""Answers that never change: a strong ETag, a long life in caches, 304 where the client has it already."""

from __future__ import annotations

from fastapi import Request, Response

from tilesmith.app.service.schedules.repository import Content

IMMUTABLE = "private, max-age=31536000, immutable"


def has_it(request: Request, etag: str) -> bool:
    """True if If-None-Match names the validator (RFC 9110, 13.1.2: the comparison is the weak one)."""
    held = request.headers.get("if-none-match")
    if held is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in held.split(",")]
    return "*" in tags or etag in tags


def immutable(request: Request, content: Content) -> Response:
    """The content, or 304."""
    headers = {"ETag": content.etag, "Cache-Control": IMMUTABLE, "Vary": "Authorization"}
    if has_it(request, content.etag):
        return Response(status_code=304, headers=headers)
    return Response(content.content, media_type=content.media_type, headers=headers)
