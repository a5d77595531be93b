"""The reading of platforms: functions of text or data that know no store, so that they run in another process."""

from __future__ import annotations

import json
from typing import Any

from tilesmith import platforms as machines
from tilesmith.app.service.bodies import parse_json
from tilesmith.app.service.errors import ApiError, from_core, from_platform
from tilesmith.platforms.documents import DOCUMENT_BYTES
from tilesmith.scheduler.errors import DocumentError, Problem


def checked(document: object, prefix: str = "") -> dict[str, Any]:
    """The document with defaults filled in; ApiError `bad_document` with pointers that start with `prefix`."""
    size = len(json.dumps(document))
    if size > DOCUMENT_BYTES:
        message = f"a platform has at most {DOCUMENT_BYTES} bytes, this has {size}"
        raise from_core(DocumentError((Problem("limit_exceeded", prefix, message),)))
    try:
        return described(machines.parse(document))
    except machines.PlatformError as error:
        raise from_platform(error, prefix) from None


def read(body: bytes) -> dict[str, Any] | ApiError:
    """The platform that JSON text describes, with defaults filled in, or what is wrong with it."""
    try:
        return checked(parse_json(body))
    except ApiError as error:
        return error


def described(platform: machines.Platform) -> dict[str, Any]:
    """The platform as JSON has it, keys sorted, so that equal platforms are equal texts."""
    document: dict[str, Any] = json.loads(json.dumps(machines.to_document(platform), sort_keys=True))
    return document
