"""The client that waits for each answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from tenacity import Retrying

from tilesmith.app.client import requests
from tilesmith.app.client.answers import FINISHED, Json, accepted, as_json, succeeded, too_long
from tilesmith.app.client.requests import Request


class Client:
    """A connection to a service at `url`. A context manager, which closes it.

    Every method raises ServiceError where the service refuses, httpx.HTTPError where it cannot be reached after
    `attempts` tries.
    """

    def __init__(
        self,
        url: str = requests.URL,
        token: str | None = None,
        timeout_s: float = requests.TIMEOUT_S,
        attempts: int = requests.ATTEMPTS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(base_url=url, headers=requests.headers(token), timeout=timeout_s, transport=transport)
        self._retrying = Retrying(**requests.policy(attempts))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def schedule(
        self,
        pipeline: str | Mapping[str, Any],
        platform: str | Mapping[str, Any] = "host",
        strategy: str | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Json:
        """The schedule of a pipeline (a document, or the name or id of a known one) for a platform (likewise), by a
        strategy (likewise), or by the method of the options. With `tune=K` it is the untuned one, with the job that
        tunes in `jobs`, until that has succeeded."""
        return as_json(self._send(requests.schedule(pipeline, platform, strategy, options)))

    def form(self, schedule_id: str, name: str) -> str:
        """One form of a schedule: `code.c`, `code.h`, `loopnest.txt`, `schedule.h`, `explain.txt`, ..."""
        return self._send(requests.form(schedule_id, name)).text

    def build(self, schedule_id: str) -> Json:
        """Starts the job that compiles a schedule's C."""
        return as_json(self._send(requests.build(schedule_id)))

    def run(self, schedule_id: str, inputs: Mapping[str, Path] | None = None, **request: Any) -> Json:
        """Starts the job that runs a schedule: on image files by name of the input, or, without, as `request` says
        (`estimates=True`). `request` takes `params`, `regions`, `mins`, `threads`, `repeat`, `outputs`, `convert`."""
        return as_json(self._send(requests.run(schedule_id, inputs, request)))

    def job(self, job_id: str) -> Json:
        """A job as it stands."""
        return as_json(self._send(requests.job(job_id)))

    def wait(self, job: Mapping[str, Any], timeout_s: float = requests.PATIENCE_S) -> Json:
        """The job once it has succeeded, followed through its event stream.

        Raises ServiceError with the job's own problem where it failed, or was cancelled; `timeout` where it takes
        longer than `timeout_s` between two events.
        """
        found = dict(job)
        while found["state"] not in FINISHED:
            asked = requests.events(found["id"], timeout_s)
            try:
                with self._http.stream(asked.method, asked.path, **asked.arguments) as events:
                    for _ in events.iter_lines():
                        pass
            except httpx.ReadTimeout:
                raise too_long(found) from None
            found = self.job(found["id"])
        return succeeded(found)

    def output(self, job_id: str, name: str, form: str = "npy", stretch: bool = False) -> bytes:
        """An output of a job that ran: `npy`, or `png`, with `stretch` from black to white."""
        return self._send(requests.output(job_id, name, form, stretch)).content

    def compare(self, schedule_id: str, baseline_id: str) -> Json:
        """Starts the job that runs two schedules in turns; its result has `now_ms` and `baseline_ms`, a number a
        round."""
        return as_json(self._send(requests.comparison(schedule_id, baseline_id)))

    def record(self, project: str, branch: str, commit: str, results: Sequence[Mapping[str, Any]]) -> Json:
        """Keeps results of a commit, each with a `schedule_id` and, where there is one, `measured`; `items` are they,
        `changes` how they compare with what the branch had before."""
        body = {"branch": branch, "commit": commit, "results": list(results)}
        return as_json(self._send(requests.record(project, body)))

    def baseline(self, project: str, ref: str, ancestors: Sequence[str] = ()) -> Json:
        """The results that a commit is compared with, in `items`: `ref` is a branch or a commit; `ancestors` are the
        commit and those before it, the nearest first."""
        return as_json(self._send(requests.baseline(project, ref, ancestors)))

    def acknowledge(self, project: str, branch: str, commit: str, schedule_id: str, reason: str) -> Json:
        """The result that a person accepts at a commit, for a reason."""
        body = {"branch": branch, "commit": commit, "schedule_id": schedule_id, "reason": reason}
        return as_json(self._send(requests.acknowledge(project, body)))

    def history(self, project: str, **filters: Any) -> Json:
        """A page of the results of a project, the newest first; filters are `branch`, `commit`, `pipeline`, `platform`,
        `variant`, `limit` and `cursor`."""
        return as_json(self._send(requests.history(project, filters)))

    def projects(self, **filters: Any) -> Json:
        """A page of the projects that have results; filters are `limit` and `cursor`."""
        return as_json(self._send(requests.projects(filters)))

    def trends(self, project: str, **filters: Any) -> Json:
        """Series of a branch over its commits; filters are `branch`, `pipeline` and `platform`."""
        return as_json(self._send(requests.trends(project, filters)))

    def badge(self, project: str, branch: str = "main") -> str:
        """The badge of a project's branch: SVG."""
        return (self._send(requests.badge(project, branch))).text

    def create_webhook(self, url: str, project: str | None = None, above: float = 0.05) -> Json:
        """A new webhook, with its secret, which is shown this once."""
        body = {"url": url, "above": above} | ({"project": project} if project else {})
        return as_json(self._send(requests.create_webhook(body)))

    def webhooks(self) -> Json:
        """All webhooks."""
        return as_json(self._send(requests.webhooks()))

    def remove_webhook(self, webhook_id: str) -> None:
        """Removes a webhook with its deliveries."""
        self._send(requests.remove_webhook(webhook_id))

    def deliveries(self, webhook_id: str, **filters: Any) -> Json:
        """A page of a webhook's deliveries, the newest first; filters are `limit` and `cursor`."""
        return as_json(self._send(requests.deliveries(webhook_id, filters)))

    def _send(self, request: Request) -> httpx.Response:
        return self._retrying(self._once, request)

    def _once(self, request: Request) -> httpx.Response:
        with request.opened() as arguments:
            return accepted(self._http.request(request.method, request.path, **arguments))
