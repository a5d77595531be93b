"""The client that waits for each answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from tenacity import Retrying

from tilesmith.app.client import requests
from tilesmith.app.client.answers import FINISHED, Json, accepted, as_json, succeeded, too_long
from tilesmith.app.client.models import (
    Batch,
    CandidateList,
    Capabilities,
    Deleted,
    ErrorCodes,
    Explanation,
    Health,
    Job,
    JobList,
    MeasurementList,
    NewTokenDocument,
    Pipeline,
    PipelineList,
    Platform,
    PlatformList,
    Schedule,
    ScheduleList,
    SchemaList,
    Strategy,
    StrategyList,
    TokenList,
    Validation,
)
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
    ) -> Schedule:
        """The schedule of a pipeline (a document, or the name or id of a known one) for a platform (likewise), by a
        strategy (likewise), or by the method of the options. With `tune=K` it is the untuned one, with the job that
        tunes in `jobs`, until that has succeeded."""
        found: Schedule = as_json(self._send(requests.schedule(pipeline, platform, strategy, options)))
        return found

    def form(self, schedule_id: str, name: str) -> str:
        """One form of a schedule: `code.c`, `code.h`, `loopnest.txt`, `schedule.h`, `explain.txt`, ..."""
        return self._send(requests.form(schedule_id, name)).text

    def build(self, schedule_id: str) -> Job:
        """Starts the job that compiles a schedule's C."""
        found: Job = as_json(self._send(requests.build(schedule_id)))
        return found

    def run(self, schedule_id: str, inputs: Mapping[str, Path] | None = None, **request: Any) -> Job:
        """Starts the job that runs a schedule: on image files by name of the input, or, without, as `request` says
        (`estimates=True`). `request` takes `params`, `regions`, `mins`, `threads`, `repeat`, `outputs`, `convert`."""
        found: Job = as_json(self._send(requests.run(schedule_id, inputs, request)))
        return found

    def job(self, job_id: str) -> Job:
        """A job as it stands."""
        found: Job = as_json(self._send(requests.job(job_id)))
        return found

    def wait(self, job: Mapping[str, Any], timeout_s: float = requests.PATIENCE_S) -> Json:
        """The job once it has succeeded, followed through its event stream.

        Raises ServiceError with the job's own problem where it failed, or was cancelled; `timeout` where it takes
        longer than `timeout_s` between two events.
        """
        found: Mapping[str, Any] = job
        while found["state"] not in FINISHED:
            asked = requests.events(found["id"], timeout_s)
            try:
                with self._http.stream(asked.method, asked.path, **asked.arguments) as events:
                    for _ in events.iter_lines():
                        pass
            except httpx.ReadTimeout:
                raise too_long(found) from None
            found = dict(self.job(found["id"]))
        return succeeded(dict(found))

    def output(self, job_id: str, name: str, form: str = "npy", stretch: bool = False) -> bytes:
        """An output of a job that ran: `npy`, or `png`, with `stretch` from black to white."""
        return self._send(requests.output(job_id, name, form, stretch)).content

    def notes(self, schedule_id: str) -> Json:
        """The note and the tags that people put on a schedule."""
        found: Json = as_json(self._send(requests.notes(schedule_id)))
        return found

    def set_notes(self, schedule_id: str, note: str = "", tags: Sequence[str] = ()) -> Json:
        """Puts another note and other tags on a schedule."""
        body = {"note": note, "tags": list(tags)}
        found: Json = as_json(self._send(requests.set_notes(schedule_id, body)))
        return found

    def difference(self, a: str, b: str) -> Json:
        """The differences of two schedules: decisions in words, cost by stage, loop nests and C."""
        found: Json = as_json(self._send(requests.difference(a, b)))
        return found

    def import_file(self, importer: str, content: bytes) -> Json:
        """The document of a file in another format, with `notes` and `weights`."""
        found: Json = as_json(self._send(requests.imported(importer, content)))
        return found

    def compare(self, schedule_id: str, baseline_id: str) -> Json:
        """Starts the job that runs two schedules in turns; its result has `now_ms` and `baseline_ms`, a number a
        round."""
        found: Json = as_json(self._send(requests.comparison(schedule_id, baseline_id)))
        return found

    def record(self, project: str, branch: str, commit: str, results: Sequence[Mapping[str, Any]]) -> Json:
        """Keeps results of a commit, each with a `schedule_id` and, where there is one, `measured`; `items` are they,
        `changes` how they compare with what the branch had before."""
        body = {"branch": branch, "commit": commit, "results": list(results)}
        found: Json = as_json(self._send(requests.record(project, body)))
        return found

    def baseline(self, project: str, ref: str, ancestors: Sequence[str] = ()) -> Json:
        """The results that a commit is compared with, in `items`: `ref` is a branch or a commit; `ancestors` are the
        commit and those before it, the nearest first."""
        found: Json = as_json(self._send(requests.baseline(project, ref, ancestors)))
        return found

    def acknowledge(self, project: str, branch: str, commit: str, schedule_id: str, reason: str) -> Json:
        """The result that a person accepts at a commit, for a reason."""
        body = {"branch": branch, "commit": commit, "schedule_id": schedule_id, "reason": reason}
        found: Json = as_json(self._send(requests.acknowledge(project, body)))
        return found

    def history(self, project: str, **filters: Any) -> Json:
        """A page of the results of a project, the newest first; filters are `branch`, `commit`, `pipeline`, `platform`,
        `variant`, `limit` and `cursor`."""
        found: Json = as_json(self._send(requests.history(project, filters)))
        return found

    def delete_results(self, project: str, **filters: Any) -> Deleted:
        """Deletes results of a project, all or those that the filters of `history` take; how many there were."""
        found: Deleted = as_json(self._send(requests.delete_results(project, filters)))
        return found

    def projects(self, **filters: Any) -> Json:
        """A page of the projects that have results; filters are `limit` and `cursor`."""
        found: Json = as_json(self._send(requests.projects(filters)))
        return found

    def trends(self, project: str, **filters: Any) -> Json:
        """Series of a branch over its commits; filters are `branch`, `pipeline` and `platform`."""
        found: Json = as_json(self._send(requests.trends(project, filters)))
        return found

    def badge(self, project: str, branch: str = "main") -> str:
        """The badge of a project's branch: SVG."""
        return (self._send(requests.badge(project, branch))).text

    def create_webhook(self, url: str, project: str | None = None, above: float = 0.05) -> Json:
        """A new webhook, with its secret, which is shown this once."""
        body = {"url": url, "above": above} | ({"project": project} if project else {})
        found: Json = as_json(self._send(requests.create_webhook(body)))
        return found

    def webhooks(self) -> Json:
        """All webhooks."""
        found: Json = as_json(self._send(requests.webhooks()))
        return found

    def remove_webhook(self, webhook_id: str) -> None:
        """Removes a webhook with its deliveries."""
        self._send(requests.remove_webhook(webhook_id))

    def deliveries(self, webhook_id: str, **filters: Any) -> Json:
        """A page of a webhook's deliveries, the newest first; filters are `limit` and `cursor`."""
        found: Json = as_json(self._send(requests.deliveries(webhook_id, filters)))
        return found

    def batch(self, asked: Sequence[Mapping[str, Any]]) -> Batch:
        """The answers to several requests for schedules, each as the API takes one, in their order: `status`, and
        `schedule` or `problem`."""
        found: Batch = as_json(self._send(requests.batch(asked)))
        return found

    def get(self, schedule_id: str) -> Schedule:
        """One schedule."""
        found: Schedule = as_json(self._send(requests.form(schedule_id, "")))
        return found

    def list_schedules(self, **filters: Any) -> ScheduleList:
        """A page of schedules: `pipeline`, `platform`, `method`, `degraded`, `q`, `order`, `limit`, `cursor`."""
        found: ScheduleList = as_json(self._send(requests.listed("schedules", filters)))
        return found

    def candidates(self, schedule_id: str) -> CandidateList:
        """The best schedules that the search found."""
        found: CandidateList = as_json(self._send(requests.form(schedule_id, "candidates")))
        return found

    def explain(self, schedule_id: str) -> Explanation:
        """Every decision of a schedule."""
        found: Explanation = as_json(self._send(requests.form(schedule_id, "explain")))
        return found

    def measurements(self, **filters: Any) -> MeasurementList:
        """A page of measurements, the newest first: `schedule`, `pipeline`, `platform`, `machine`, `kind`, `estimated`,
        `limit`, `cursor`."""
        found: MeasurementList = as_json(self._send(requests.listed("measurements", filters)))
        return found

    def validate(self, **documents: str | Mapping[str, Any]) -> Validation:
        """The problems of a `pipeline`, a `platform`, a `strategy`, each as data or as JSON or YAML text."""
        found: Validation = as_json(self._send(requests.validate(documents)))
        return found

    def list_jobs(self, **filters: Any) -> JobList:
        """A page of jobs, the newest first: `schedule`, `state`, `kind`, `limit`, `cursor`."""
        found: JobList = as_json(self._send(requests.listed("jobs", filters)))
        return found

    def cancel(self, job_id: str) -> Job:
        """Cancels a job, now or as soon as what it runs is killed."""
        found: Job = as_json(self._send(requests.cancel(job_id)))
        return found

    def pipelines(self, **filters: Any) -> PipelineList:
        """A page of pipelines: `name`, `limit`, `cursor`."""
        found: PipelineList = as_json(self._send(requests.listed("pipelines", filters)))
        return found

    def pipeline(self, name_or_id: str) -> Pipeline:
        """A pipeline with its document."""
        found: Pipeline = as_json(self._send(requests.one("pipelines", name_or_id)))
        return found

    def store_pipeline(self, document: Mapping[str, Any]) -> Pipeline:
        """Stores a pipeline."""
        found: Pipeline = as_json(self._send(requests.store("pipelines", document)))
        return found

    def platforms(self, **filters: Any) -> PlatformList:
        """A page of platforms: `limit`, `cursor`."""
        found: PlatformList = as_json(self._send(requests.listed("platforms", filters)))
        return found

    def platform(self, name: str) -> Platform:
        """A platform with its document."""
        found: Platform = as_json(self._send(requests.one("platforms", name)))
        return found

    def store_platform(self, document: Mapping[str, Any]) -> Platform:
        """Stores a platform."""
        found: Platform = as_json(self._send(requests.store("platforms", document)))
        return found

    def strategies(self, **filters: Any) -> StrategyList:
        """A page of strategies: `limit`, `cursor`."""
        found: StrategyList = as_json(self._send(requests.listed("strategies", filters)))
        return found

    def strategy(self, name_or_id: str) -> Strategy:
        """A strategy with its document."""
        found: Strategy = as_json(self._send(requests.one("strategies", name_or_id)))
        return found

    def store_strategy(self, document: Mapping[str, Any]) -> Strategy:
        """Stores a strategy."""
        found: Strategy = as_json(self._send(requests.store("strategies", document)))
        return found

    def tokens(self) -> TokenList:
        """All tokens, without their texts."""
        found: TokenList = as_json(self._send(requests.listed("tokens", {})))
        return found

    def create_token(self, name: str, scopes: Sequence[str], expires_at: datetime | None = None) -> NewTokenDocument:
        """Makes a token; its text, `token`, is nowhere but in this answer."""
        found: NewTokenDocument = as_json(self._send(requests.create_token(name, scopes, expires_at)))
        return found

    def capabilities(self) -> Capabilities:
        """Types, functions, methods, versions, limits."""
        found: Capabilities = as_json(self._send(requests.listed("capabilities", {})))
        return found

    def error_codes(self) -> ErrorCodes:
        """The codes of errors."""
        found: ErrorCodes = as_json(self._send(requests.listed("errors", {})))
        return found

    def schemas(self) -> SchemaList:
        """The JSON Schemas that there are."""
        found: SchemaList = as_json(self._send(requests.listed("schemas", {})))
        return found

    def schema(self, name: str) -> Json:
        """One JSON Schema."""
        found: Json = as_json(self._send(requests.one("schemas", name)))
        return found

    def health(self) -> Health:
        """The checks of the service, as `/readyz` answers them."""
        found: Health = as_json(self._send(requests.health()))
        return found

    def delete_schedule(self, schedule_id: str) -> None:
        """Deletes a schedule with its forms and jobs; ServiceError `schedule_in_use` while a job of it is at work."""
        self._send(requests.delete_schedule(schedule_id))

    def delete_pipeline(self, pipeline_id: str) -> None:
        """Deletes a stored pipeline by its id, not the schedules of it."""
        self._send(requests.delete_pipeline(pipeline_id))

    def delete_strategy(self, strategy_id: str) -> None:
        """Deletes a stored strategy by its id, not the schedules that it made."""
        self._send(requests.delete_strategy(strategy_id))

    def revoke_token(self, token_id: str) -> None:
        """Revokes a token: it is refused from now on."""
        self._send(requests.revoke_token(token_id))

    def library(self, schedule_id: str) -> bytes:
        """The shared library of a schedule, once it was built."""
        return (self._send(requests.form(schedule_id, "library.so"))).content

    def metrics(self) -> str:
        """Counters, as Prometheus reads them."""
        return (self._send(requests.metrics())).text

    def _send(self, request: Request) -> httpx.Response:
        return self._retrying(self._once, request)

    def _once(self, request: Request) -> httpx.Response:
        with request.opened() as arguments:
            return accepted(self._http.request(request.method, request.path, **arguments))
