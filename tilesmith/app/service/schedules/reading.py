"""The reading of schedule requests: a function of text that gives little back, so that it runs in another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilesmith.app.service.bodies import parse_model
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.platforms.reading import checked
from tilesmith.app.service.schedules.answers import compact
from tilesmith.app.service.schedules.schemas import BatchRequest, ScheduleRequest
from tilesmith.scheduler.errors import Problem

DOCUMENTS = ("pipeline", "strategy", "schedule", "estimates")


@dataclass(frozen=True, slots=True)
class Reading:
    """A request that is of the documented form: `documents` has those that are in it, as JSON, what is fixed among
    them, and `request` the rest. `platform` is checked, with defaults filled in."""

    request: ScheduleRequest
    documents: dict[str, bytes]
    platform: dict[str, Any] | None


def read(body: bytes) -> Reading | ApiError:
    """A ScheduleRequest, or what is wrong with it: `bad_json`, `bad_request`, `limit_exceeded`, `bad_document`."""
    try:
        request = parse_model(body, ScheduleRequest)
        platform = None if request.platform is None else checked(request.platform, "/platform")
    except ApiError as error:
        return error
    found = {name: compact(getattr(request, name)).encode() for name in DOCUMENTS if getattr(request, name) is not None}
    if request.options.fixed:
        found["fixed"] = compact(request.options.fixed).encode()
    bare: dict[str, Any] = dict.fromkeys((*DOCUMENTS, "platform"))
    bare["options"] = request.options.model_copy(update={"fixed": {}})
    return Reading(request.model_copy(update=bare), found, platform)


def read_several(body: bytes, most: int) -> list[bytes] | ApiError:
    """The requests of a BatchRequest as JSON, none of them looked at, or what is wrong with it."""
    try:
        requests = parse_model(body, BatchRequest).requests
    except ApiError as error:
        return error
    if len(requests) > most:
        problem = Problem("too_long", "/requests", f"List should have at most {most} items")
        return ApiError("bad_request", f"a batch has at most {most} requests", (problem,))
    return [compact(request).encode() for request in requests]
