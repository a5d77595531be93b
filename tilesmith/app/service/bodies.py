"""Request bodies that endpoints read themselves: within limits of depth and of values, large ones in a process of the
pool."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, ValidationError

from tilesmith.app.service.errors import ApiError, from_pydantic

M = TypeVar("M", bound=BaseModel)

SMALL_BYTES = 64 << 10
"""Bodies up to here are read where they arrive: they take less time than a process takes to be asked."""
MOST_VALUES = 250_000
"""Lists, objects and what they hold, of one body; a document of 10,000 stages has less than half."""
DEEPEST = 80
"""Lists and objects inside each other, of one body: those of the deepest document, and the request around it."""
MOST_FIELDS = 64
"""Fields of a form that is no multipart one."""
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = re.compile(rb"[^\[\]{}]+")
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}

DESCRIBED: dict[str, type[BaseModel]] = {}
"""The models of events and of bodies that endpoints read themselves, by name: the OpenAPI document has their forms."""


def described(model: type[BaseModel]) -> dict[str, Any]:
    """The OpenAPI description of a JSON body of that model."""
    DESCRIBED[model.__name__] = model
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def media_type(request: Request) -> str:
    """The media type of the body, in lower case, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def json_body(request: Request) -> bytes:
    """The body, which must say that it is JSON: pages of other sites cannot send that unasked."""
    found = media_type(request)
    if found != "application/json" and not (found.startswith("application/") and found.endswith("+json")):
        raise ApiError("unsupported_media_type", "send Content-Type: application/json")
    return await request.body()


def text(media_type: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of an answer that is text."""
    return {200: {"content": {media_type: {"schema": {"type": "string"}}}}}


def binary(media_type: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of an answer that is a file of bytes."""
    return {200: {"content": {media_type: {"schema": {"type": "string", "contentMediaType": media_type}}}}}


def events(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of an answer that is a stream of server-sent events of that model."""
    DESCRIBED[model.__name__] = model
    return {200: {"content": {"text/event-stream": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}}}


def parse_form(body: bytes) -> dict[str, str] | ApiError:
    """The fields of a form that is no multipart one, or `bad_form`."""
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except ValueError as error:
        return ApiError("bad_form", str(error)[:200])


def parse_model(body: bytes, model: type[M]) -> M:
    """The model of JSON text, typed as it says: `false` is no number. ApiError `bad_json`, `bad_request`,
    `limit_exceeded`."""
    check_values(body)
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise from_pydantic(error.errors(include_url=False, include_input=False), model) from None


def parse_json(body: bytes) -> Any:
    """The value that the body is; ApiError `bad_json`, `limit_exceeded`."""
    check_values(body)
    try:
        return json.loads(body, parse_constant=_refuse)
    except RecursionError:
        raise ApiError("bad_json", "nested too deeply") from None
    except ValueError as error:
        raise ApiError("bad_json", str(error)[:200]) from None


def data(document: Any) -> Any:
    """The value of a document as data or as JSON, which crosses processes quicker, and says no more than it is."""
    return json.loads(document) if isinstance(document, bytes) else document


def check_values(body: bytes) -> None:
    """ApiError where the JSON has more values, or deeper ones, than any document: before something is made of each."""
    if len(body) <= SMALL_BYTES:
        return
    bare = _STRINGS.sub(b"", body)
    values = bare.count(b",") + bare.count(b"[") + bare.count(b"{")
    if values > MOST_VALUES:
        raise ApiError("limit_exceeded", f"the body has some {values} values; {MOST_VALUES} are read")
    steps = map(_STEPS.__getitem__, _NO_BRACKETS.sub(b"", bare))
    if max(accumulate(steps), default=0) > DEEPEST:
        raise ApiError("bad_json", "nested too deeply")


def _refuse(word: str) -> None:
    """NaN and infinities are not JSON."""
    raise ValueError(f"{word} is not JSON")
