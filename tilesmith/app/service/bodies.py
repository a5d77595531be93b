"""Request bodies that endpoints read themselves."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request

from tilesmith.app.service.errors import ApiError


def media_type(request: Request) -> str:
    """The media type of the body, in lower case, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def json_body(request: Request) -> bytes:
    """The body, which must say that it is JSON: pages of other sites cannot send that unasked."""
    found = media_type(request)
    if found != "application/json" and not (found.startswith("application/") and found.endswith("+json")):
        raise ApiError("unsupported_media_type", "send Content-Type: application/json")
    return await request.body()


def parse_json(body: bytes) -> Any:
    """The value that the body is; ApiError `bad_json`."""
    try:
        return json.loads(body, parse_constant=_refuse)
    except RecursionError:
        raise ApiError("bad_json", "nested too deeply") from None
    except ValueError as error:
        raise ApiError("bad_json", str(error)[:200]) from None


def _refuse(word: str) -> None:
    """NaN and infinities are not JSON."""
    raise ValueError(f"{word} is not JSON")
