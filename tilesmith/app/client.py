"""A client of the service: ask for schedules, fetch their forms, start jobs and wait for them.

Requests that the service turns away for the moment (429, 503) are sent again, after as long as it asks for
or with growing pauses; so are those that find nobody listening.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from tilesmith.scheduler.errors import TilesmithError

Json = dict[str, Any]

BUSY = (429, 503)
LONGEST_PAUSE_S = 30.0
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


class Client:
    """A connection to a service at `url`. A context manager, which closes it.

    Every method raises ServiceError where the service refuses, httpx.HTTPError where it cannot be reached after
    `attempts` tries.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        timeout_s: float = 60.0,
        attempts: int = 6,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout_s, transport=transport)
        self._retrying = Retrying(
            stop=stop_after_attempt(attempts), wait=_pause, retry=retry_if_exception(_may_try_again), reraise=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def schedule(
        self, pipeline: str | Mapping[str, Any], platform: str | Mapping[str, Any] = "host", **options: Any
    ) -> Json:
        """The schedule of a pipeline (a document, or the name or id of a known one) for a platform (likewise). With
        `tune=K` it is the untuned one, with the job that tunes in `jobs`, until that has succeeded."""
        body: Json = {"pipeline_id": pipeline} if isinstance(pipeline, str) else {"pipeline": pipeline}
        body |= {"platform_name": platform} if isinstance(platform, str) else {"platform": platform}
        return self._json("POST", "/v1/schedules", json=body | {"options": options})

    def form(self, schedule_id: str, name: str) -> str:
        """One form of a schedule: `code.c`, `code.h`, `loopnest.txt`, `schedule.h`, `explain.txt`, ..."""
        return self._send("GET", f"/v1/schedules/{schedule_id}/{name}").text

    def build(self, schedule_id: str) -> Json:
        """Starts the job that compiles a schedule's C."""
        return self._json("POST", f"/v1/schedules/{schedule_id}/builds", json={})

    def run(self, schedule_id: str, inputs: Mapping[str, Path] | None = None, **request: Any) -> Json:
        """Starts the job that runs a schedule: on image files by name of the input, or, without, as `request` says
        (`estimates=True`). `request` takes `params`, `regions`, `mins`, `threads`, `repeat`, `outputs`, `convert`."""
        url = f"/v1/schedules/{schedule_id}/runs"
        if not inputs:
            return self._json("POST", url, json=request)
        with ExitStack() as stack:
            files = {name: (path.name, stack.enter_context(path.open("rb"))) for name, path in inputs.items()}
            return self._json("POST", url, data={"request": json.dumps(request)}, files=files)

    def job(self, job_id: str) -> Json:
        """A job as it stands."""
        return self._json("GET", f"/v1/jobs/{job_id}")

    def wait(self, job: Mapping[str, Any], timeout_s: float = 600.0) -> Json:
        """The job once it has succeeded, followed through its event stream.

        Raises ServiceError with the job's own problem where it failed, or was cancelled; `timeout` where it takes
        longer than `timeout_s` between two events.
        """
        found = dict(job)
        while found["state"] not in FINISHED:
            try:
                with self._http.stream("GET", f"/v1/jobs/{found['id']}/events", timeout=timeout_s) as events:
                    for _ in events.iter_lines():
                        pass
            except httpx.ReadTimeout:
                raise ServiceError({"code": "timeout", "detail": f"job {found['id']} takes too long"}, 504) from None
            found = self.job(found["id"])
        if found["state"] != "succeeded":
            problem = found.get("error") or {"code": found["state"], "detail": f"the job is {found['state']}"}
            raise ServiceError(problem, 200)
        return found

    def output(self, job_id: str, name: str, form: str = "npy", stretch: bool = False) -> bytes:
        """An output of a job that ran: `npy`, or `png`, with `stretch` from black to white."""
        query = {"stretch": "true"} if stretch else {}
        return self._send("GET", f"/v1/jobs/{job_id}/outputs/{name}.{form}", params=query).content

    def _json(self, method: str, url: str, **arguments: Any) -> Json:
        answer: Json = self._send(method, url, **arguments).json()
        return answer

    def _send(self, method: str, url: str, **arguments: Any) -> httpx.Response:
        return self._retrying(self._once, method, url, **arguments)

    def _once(self, method: str, url: str, **arguments: Any) -> httpx.Response:
        for _, file in arguments.get("files", {}).values():
            file.seek(0)  # where an earlier attempt has read it
        answer = self._http.request(method, url, **arguments)
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


def _may_try_again(error: BaseException) -> bool:
    return isinstance(error, Busy | httpx.ConnectError)


def _pause(state: RetryCallState) -> float:
    """Pause in seconds before the next attempt: as the service asks, otherwise 0.2 s, 0.4 s, 0.8 s, ..."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, Busy) and error.pause_s is not None:
        return min(error.pause_s, LONGEST_PAUSE_S)
    return float(wait_exponential(multiplier=0.2, max=LONGEST_PAUSE_S)(state))
