"""The errors of the API: one shape (RFC 9457 problem documents), stable codes, one table of them.

ApiError               what an endpoint raises: a code of CODES, a sentence, problems with JSON Pointers
problem_document()     the document that is sent for it, and kept for failed jobs
install()              makes every route of an application answer in that shape, unknown ones too
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from pydantic_core import PydanticCustomError
from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.routing import Match

from tilesmith.platforms import PlatformError
from tilesmith.scheduler.errors import DocumentError, FixedContradiction, Problem, ScheduleError, TilesmithError
from tilesmith.scheduler.frontends.document.names import close_to

log = structlog.get_logger("tilesmith")

PROBLEM_JSON = "application/problem+json"
MAX_PROBLEMS = 100

CODES: dict[str, tuple[int, str]] = {
    # the request
    "bad_json": (400, "The body is not JSON"),
    "bad_form": (400, "The form cannot be read"),
    "bad_cursor": (400, "The cursor is not one of this list"),
    "bad_host": (400, "The request is for another host"),
    "bad_request": (422, "The request is not valid"),
    "not_found": (404, "There is nothing at this address"),
    "method_not_allowed": (405, "The address does not take this method"),
    "body_too_large": (413, "The body is too large"),
    "head_too_large": (431, "The head of the request is too large"),
    "request_timeout": (408, "The request arrives too slowly"),
    "too_many_connections": (503, "Too many connections"),
    "unsupported_media_type": (415, "The body is of the wrong media type"),
    "http_error": (400, "The request cannot be served"),
    # who asks
    "unauthorized": (401, "A token is needed"),
    "too_many_failures": (429, "Too many unknown tokens"),
    "forbidden": (403, "The token does not allow this"),
    "cross_origin": (403, "The request comes from a page of another site"),
    # what is asked for
    "schedule_not_found": (404, "No such schedule"),
    "pipeline_not_found": (404, "No such pipeline"),
    "platform_not_found": (404, "No such platform"),
    "strategy_not_found": (404, "No such strategy"),
    "importer_not_found": (404, "No such importer"),
    "job_not_found": (404, "No such job"),
    "artefact_not_found": (404, "The job has no such artefact"),
    "candidate_not_found": (404, "The schedule has no such candidate"),
    "token_not_found": (404, "No such token"),
    "project_not_found": (404, "No such project"),
    "webhook_not_found": (404, "No such webhook"),
    "address_refused": (422, "Webhooks may not lead there"),
    "baseline_not_found": (404, "Nothing was recorded for the reference"),
    "schema_not_found": (404, "No such JSON Schema"),
    "not_built": (404, "The schedule has not been built"),
    "platform_name_taken": (409, "Another platform has this name"),
    "job_finished": (409, "The job has finished"),
    "schedule_in_use": (409, "A job works on the schedule"),
    "key_used": (409, "The idempotency key was used for something else"),
    # the caller's document
    "bad_document": (422, "The document is not valid"),
    "limit_exceeded": (422, "The document is beyond a limit"),
    "bad_source": (422, "No pipeline can be made of the source"),
    "bad_image": (422, "The image is not what the input wants"),
    "no_schedule": (422, "No valid schedule"),
    "strategy_refused": (422, "The strategy does not fit the pipeline"),
    "no_backend": (422, "No code is generated for this kind of platform"),
    "illegal_schedule": (422, "The schedule is not legal"),
    "fixed_contradiction": (422, "No schedule has all that is fixed"),
    "bad_argument": (422, "An argument does not fit the pipeline"),
    "region_outside_input": (422, "The region needs more of an input than there is"),
    # work that failed
    "compile_failure": (422, "The C compiler failed"),
    "compile_timeout": (504, "The C compiler took too long"),
    "run_failure": (422, "The compiled code failed"),
    "run_timeout": (504, "The compiled code took too long"),
    "timeout": (504, "Scheduling took too long"),
    "out_of_memory": (507, "Not enough memory within the limit"),
    "not_confined": (503, "Programs cannot be confined here"),
    "worker_lost": (500, "The process that did the work is gone"),
    # the service
    "queue_full": (429, "Too many jobs are waiting"),
    "token_limit": (429, "The token has as much as it may"),
    "token_full": (507, "The token has stored as much as it may"),
    "busy": (503, "Too many requests at once"),
    "store_busy": (503, "The store is locked"),
    "store_full": (503, "The store has no space left"),
    "store_unavailable": (503, "The store does not answer"),
    "not_ready": (503, "The service is not ready"),
    "internal": (500, "A fault of the service"),
}
"""code -> (HTTP status, title). Codes are never renamed; docs/api.md explains each."""

RETRY_AFTER_S = {
    "queue_full": 10,
    "token_limit": 5,
    "busy": 1,
    "too_many_connections": 1,
    "store_busy": 1,
    "store_full": 60,
    "store_unavailable": 5,
    "not_ready": 2,
}


class ApiError(HTTPException):
    """Ends a request (or a job) with a problem document of `code`."""

    def __init__(
        self,
        code: str,
        detail: str,
        problems: Iterable[Problem] = (),
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        self.code = code
        self.problems = tuple(problems)
        self.extra = dict(extra or {})
        sent = dict(headers or {})
        if code in RETRY_AFTER_S:
            sent.setdefault("Retry-After", str(RETRY_AFTER_S[code]))
        super().__init__(status or CODES[code][0], detail, sent)

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            ApiError,
            (self.code, self.detail, self.problems, self.extra, dict(self.headers or {}), self.status_code),
        )


def at(error: ApiError, prefix: str) -> ApiError:
    """The error of a part of a request, whose problems are pointed at from the whole."""
    moved = [replace(p, pointer=prefix + p.pointer) for p in error.problems]
    return ApiError(error.code, str(error.detail), moved, error.extra, error.headers, error.status_code)


def problem_document(error: ApiError, instance: str | None = None, request_id: str | None = None) -> dict[str, Any]:
    """The RFC 9457 document of an error. `errors` lists every problem found, up to MAX_PROBLEMS."""
    document: dict[str, Any] = {
        "type": f"/v1/errors#{error.code}",
        "title": CODES[error.code][1],
        "status": error.status_code,
        "code": error.code,
        "detail": error.detail,
    }
    if instance is not None:
        document["instance"] = instance
    if request_id is not None:
        document["request_id"] = request_id
    if error.problems:
        document["errors"] = [_entry(p) for p in error.problems[:MAX_PROBLEMS]]
        if len(error.problems) > MAX_PROBLEMS:
            document["errors_left_off"] = len(error.problems) - MAX_PROBLEMS
    return document | error.extra


def _entry(problem: Problem) -> dict[str, Any]:
    entry: dict[str, Any] = {"code": problem.code, "pointer": problem.pointer, "message": problem.message}
    if problem.column is not None:
        entry["column"] = problem.column
    if problem.hint:
        entry["hint"] = problem.hint
    return entry


def token_limit(setting: str, value: float, detail: str) -> ApiError:
    """The error of who has as much of something as a token may have; `setting` is the field of the settings."""
    name = f"TILESMITH_{setting.upper()}"
    return ApiError("token_limit", f"{detail}; {name} is the limit", extra={"setting": name, "limit": value})


def from_core(error: TilesmithError, prefix: str = "") -> ApiError:
    """An error of the core as an error of the API; `prefix` is the JSON Pointer to the document in the body."""
    if isinstance(error, DocumentError):
        problems = tuple(Problem(p.code, prefix + p.pointer, p.message, p.hint, p.column) for p in error.problems)
        code = "limit_exceeded" if any(_is_limit(p.code) for p in problems) else "bad_document"
        count = len(problems)
        return ApiError(code, "1 problem was found" if count == 1 else f"{count} problems were found", problems)
    if isinstance(error, FixedContradiction):
        place = prefix if prefix.endswith("fixed") else "/options/fixed"
        problems = tuple(Problem(p.code, place + p.pointer, p.message, p.hint) for p in error.problems)
        return ApiError(error.code, "; ".join(p.message for p in error.problems)[:1000], problems)
    code = error.code if error.code in CODES else "internal"
    extra: dict[str, Any] = {}
    output = getattr(error, "output", None)
    if isinstance(output, str) and output:
        extra["output"] = output[-20_000:]
    if isinstance(error, ScheduleError) and code == "internal":
        code = "no_schedule"
    if code == "internal":
        return ApiError("internal", "the fault has been logged")
    return ApiError(code, str(error), extra=extra)


def from_platform(error: PlatformError, prefix: str = "") -> ApiError:
    """A platform that is unknown or wrongly described."""
    problems = [Problem(p.code, prefix + p.pointer, p.message, p.hint) for p in error.problems]
    if [p.code for p in problems] == ["unknown_platform"]:
        return ApiError("platform_not_found", problems[0].message, problems)
    return from_core(DocumentError(tuple(problems)))


def _is_limit(code: str) -> bool:
    return code == "limit_exceeded" or code.endswith(("_too_large", "_too_deep"))


def from_pydantic(errors: Iterable[Mapping[str, Any]], model: type[BaseModel] | None = None) -> ApiError:
    """The problems that pydantic found with a request, as pointers into it. With `model`, its fields are offered for
    one that it does not have. The first MAX_PROBLEMS are told, and how many more there are."""
    problems, found = [], list(errors)
    for e in found[:MAX_PROBLEMS]:
        if e["type"] == "json_invalid":
            return ApiError("bad_json", str(e.get("ctx", {}).get("error", e["msg"])))
        context = e.get("ctx", {})
        place = [str(part) for part in (*e["loc"], *context.get("at", ()))]
        if place[:1] == ["body"]:
            place = place[1:]
        pointer = "".join("/" + p.replace("~", "~0").replace("/", "~1") for p in place)
        code, message, hint = str(e["type"]), str(e["msg"]), context.get("hint")
        if code == "value_error":  # a rule of ours, in our words
            code, message = "bad_value", message.removeprefix("Value error, ")
        if e["type"] == "extra_forbidden":
            message, known = f"there is no field {place[-1][:100]!r}", _fields_at(model, place[:-1])
            hint = close_to(place[-1], known) or (f"there are: {', '.join(known)}" if known else None)
        elif code == "dict_type":
            beside = [f for f in _fields_at(model, place[:-1]) if f in (f"{place[-1]}_name", f"{place[-1]}_id")]
            hint = f"one that is known by its name goes into {' or '.join(beside)}" if beside else hint
        problems.append(Problem(code, pointer[:500], message[:500], hint))
    extra = {"errors_left_off": len(found) - MAX_PROBLEMS} if len(found) > MAX_PROBLEMS else None
    return ApiError("bad_request", "the request is not of the documented form", problems, extra)


def misplaced(message: str, *at: str, hint: str | None = None) -> PydanticCustomError:
    """The error that a validator of a whole object raises where a part of it, `at`, does not go with the rest."""
    return PydanticCustomError("bad_value", "{message}", {"message": message, "at": at, "hint": hint})


def _fields_at(model: type[BaseModel] | None, place: Iterable[str]) -> tuple[str, ...]:
    """The fields of the object at `place` of a request; none where it is no model."""
    for name in place:
        field = model.model_fields.get(name) if model is not None else None
        kinds = (field.annotation, *get_args(field.annotation)) if field is not None else ()
        model = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)
    return tuple(model.model_fields) if model is not None else ()


def from_store(error: SQLAlchemyError) -> ApiError:
    """A failure of the database, as what a client can do about it."""
    if isinstance(error, DataError):
        return ApiError("bad_request", "a value is none that the store can hold, so nothing has it")
    original = getattr(error, "orig", None)
    text = str(original or error).lower()
    if "disk is full" in text or "no space left" in text or getattr(original, "sqlstate", None) == "53100":
        return ApiError("store_full", "there is no space left for the store; nothing was kept")
    if "locked" in text or "busy" in text or isinstance(error, PoolTimeout):
        return ApiError("store_busy", "the store is locked by another writer; try again")
    return ApiError("store_unavailable", "the store does not answer; try again later")


def from_os(error: OSError) -> ApiError:
    """A failure of the file system: full, or our own fault."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return ApiError("store_full", "there is no space left in the data folder; nothing was kept")
    return ApiError("internal", "the fault has been logged")


def response(request: Request, error: ApiError) -> Response:
    """The answer to `request` for an error, with its request id: a problem document, or for the browser that asks
    for a page (app.state.error_page makes it) that page."""
    document = problem_document(error, request.url.path, getattr(request.state, "request_id", None))
    page: Callable[..., Response] | None = getattr(request.app.state, "error_page", None)
    if page is not None and _wants_page(request):
        return page(document, error.status_code, dict(error.headers or {}))
    return JSONResponse(document, error.status_code, dict(error.headers or {}), media_type=PROBLEM_JSON)


def _wants_page(request: Request) -> bool:
    """A browser at an address that is not the API's: a mistyped one, too."""
    return not request.url.path.startswith("/v1/") and "text/html" in request.headers.get("accept", "")


def install(app: FastAPI) -> None:
    """Every error of every route becomes a problem document."""

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:
            error.headers = {**(error.headers or {}), "Allow": ", ".join(_allowed(request))}
        return response(request, error if isinstance(error, ApiError) else _from_http(error))

    async def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return response(request, from_pydantic(error.errors()))

    async def on_core(request: Request, error: Exception) -> Response:
        assert isinstance(error, TilesmithError)
        found = from_core(error)
        if found.code == "internal":
            log.error("fault", exc_info=error)
        return response(request, found)

    async def on_platform(request: Request, error: Exception) -> Response:
        assert isinstance(error, PlatformError)
        return response(request, from_platform(error))

    async def on_store(request: Request, error: Exception) -> Response:
        assert isinstance(error, SQLAlchemyError)
        if not isinstance(error, (DBAPIError, PoolTimeout)):
            return await on_fault(request, error)
        log.warning("store failed", error=str(getattr(error, "orig", error)))
        return response(request, from_store(error))

    async def on_os(request: Request, error: Exception) -> Response:
        assert isinstance(error, OSError)
        log.error("file system failed", exc_info=error)
        return response(request, from_os(error))

    async def on_fault(request: Request, error: Exception) -> Response:
        log.error("fault", exc_info=error)
        return response(request, ApiError("internal", "the fault has been logged"))

    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(TilesmithError, on_core)
    app.add_exception_handler(PlatformError, on_platform)
    app.add_exception_handler(SQLAlchemyError, on_store)
    app.add_exception_handler(OSError, on_os)
    app.add_exception_handler(Exception, on_fault)


def _allowed(request: Request) -> list[str]:
    """The methods that the address takes: a framework's routes have one each, and know of no others."""
    found = {
        method
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        for route in request.app.routes
        if route.matches({**request.scope, "method": method})[0] is Match.FULL
    }
    named = request.app.openapi()["paths"].get(request.url.path)
    if named is not None:  # `batch` is no schedule's id, though a route of ids takes it
        found &= {method.upper() for method in named}
    return sorted(found | ({"HEAD"} if "GET" in found else set()))


def _from_http(error: HTTPException) -> ApiError:
    known = {
        401: "unauthorized",
        403: "forbidden",
        404: "not_found",
        405: "method_not_allowed",
        413: "body_too_large",
        415: "unsupported_media_type",
    }
    code = known.get(error.status_code, "http_error")
    return ApiError(code, str(error.detail), headers=error.headers, status=error.status_code)
