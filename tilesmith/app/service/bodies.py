"""Request bodies that endpoints read themselves."""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from tilesmith.app.service.errors import ApiError, from_pydantic

M = TypeVar("M", bound=BaseModel)

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


async def model_body(request: Request, model: type[M]) -> M:
    """The JSON body as a model; ApiError `unsupported_media_type`, `bad_json`, `bad_request`. It is read in a thread:
    a large one would hold up the others."""
    return await asyncio.to_thread(parse_model, await json_body(request), model)


def parse_model(body: bytes, model: type[M]) -> M:
    """The model of JSON text, typed as it says: `false` is no number. ApiError `bad_json`, `bad_request`."""
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise from_pydantic(error.errors(include_url=False, include_input=False), model) from None


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
