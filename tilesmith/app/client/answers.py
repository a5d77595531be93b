"""Answers of the service: refusals as errors, and jobs that have ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from tilesmith.scheduler.errors import TilesmithError

Json = dict[str, Any]

BUSY = (429, 503)
FINISHED = ("succeeded", "failed", "cancelled", "expired")


class ServiceError(TilesmithError):
    """The service refused, or a job failed. `code` is the service's, `document` its problem document (RFC 9457)."""

    def __init__(self, document: Mapping[str, Any], status: int) -> None:
        lines = [str(document.get("detail") or document.get("title") or f"the service answered {status}")]
        lines += [f"{e.get('pointer') or '/'}: {e.get('message')}" for e in document.get("errors", ())]
        super().__init__("\n".join(lines))
        self.code = str(document.get("code", "http_error"))
        self.document = dict(document)
        self.status = status


class Busy(ServiceError):
    """The service asks to come again, after `pause_s` seconds where it says so."""

    def __init__(self, document: Mapping[str, Any], status: int, pause_s: float | None) -> None:
        super().__init__(document, status)
        self.pause_s = pause_s


def accepted(answer: httpx.Response) -> httpx.Response:
    """The answer where the service did what it was asked for. Raises Busy or ServiceError."""
    if answer.is_success:
        return answer
    try:
        document = answer.json()
    except ValueError:
        document = {}
    if not isinstance(document, dict):
        document = {}
    if answer.status_code in BUSY:
        pause = answer.headers.get("Retry-After", "")
        raise Busy(document, answer.status_code, float(pause) if pause.isdecimal() else None)
    raise ServiceError(document, answer.status_code)


def as_json(answer: httpx.Response) -> Any:
    """The document of an answer, in the form that its route promises."""
    return answer.json()


def succeeded(job: Json) -> Json:
    """The job, which has ended, where it has succeeded. Raises ServiceError with the job's own problem."""
    if job["state"] != "succeeded":
        problem = job.get("error") or {"code": job["state"], "detail": f"the job is {job['state']}"}
        raise ServiceError(problem, 200)
    return job


def too_long(job: Mapping[str, Any]) -> ServiceError:
    """The error of a job of which nothing is heard any more."""
    return ServiceError({"code": "timeout", "detail": f"job {job['id']} takes too long"}, 504)
