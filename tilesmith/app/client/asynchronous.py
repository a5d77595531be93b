"""The client for event loops: many requests at a time from one thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from tenacity import AsyncRetrying

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


class AsyncClient:
    """A connection to a service at `url`, from an event loop. An asynchronous context manager, which closes it.

    Its methods are those of `Client`, to be awaited, with the same arguments, results and errors.
    """

    def __init__(
        self,
        url: str = requests.URL,
        token: str | None = None,
        timeout_s: float = requests.TIMEOUT_S,
        attempts: int = requests.ATTEMPTS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=url, headers=requests.headers(token), timeout=timeout_s, transport=transport
        )
        self._retrying = AsyncRetrying(**requests.policy(attempts))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def schedule(
        self,
        pipeline: str | Mapping[str, Any],
        platform: str | Mapping[str, Any] = "host",
        strategy: str | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Schedule:
        """The schedule of a pipeline for a platform: see `Client.schedule`."""
        found: Schedule = as_json(await self._send(requests.schedule(pipeline, platform, strategy, options)))
        return found

    async def form(self, schedule_id: str, name: str) -> str:
        """One form of a schedule: see `Client.form`."""
        return (await self._send(requests.form(schedule_id, name))).text

    async def build(self, schedule_id: str) -> Job:
        """Starts the job that compiles a schedule's C."""
        found: Job = as_json(await self._send(requests.build(schedule_id)))
        return found

    async def run(self, schedule_id: str, inputs: Mapping[str, Path] | None = None, **request: Any) -> Job:
        """Starts the job that runs a schedule: see `Client.run`."""
        found: Job = as_json(await self._send(requests.run(schedule_id, inputs, request)))
        return found

    async def job(self, job_id: str) -> Job:
        """A job as it stands."""
        found: Job = as_json(await self._send(requests.job(job_id)))
        return found

    async def wait(self, job: Mapping[str, Any], timeout_s: float = requests.PATIENCE_S) -> Json:
        """The job once it has succeeded: see `Client.wait`."""
        found: Mapping[str, Any] = job
        while found["state"] not in FINISHED:
            asked = requests.events(found["id"], timeout_s)
            try:
                async with self._http.stream(asked.method, asked.path, **asked.arguments) as events:
                    async for _ in events.aiter_lines():
                        pass
            except httpx.ReadTimeout:
                raise too_long(found) from None
            found = dict(await self.job(found["id"]))
        return succeeded(dict(found))

    async def output(self, job_id: str, name: str, form: str = "npy", stretch: bool = False) -> bytes:
        """An output of a job that ran: see `Client.output`."""
        return (await self._send(requests.output(job_id, name, form, stretch))).content

    async def notes(self, schedule_id: str) -> Json:
        """The note and the tags that people put on a schedule."""
        found: Json = as_json(await self._send(requests.notes(schedule_id)))
        return found

    async def set_notes(self, schedule_id: str, note: str = "", tags: Sequence[str] = ()) -> Json:
        """Puts another note and other tags on a schedule."""
        body = {"note": note, "tags": list(tags)}
        found: Json = as_json(await self._send(requests.set_notes(schedule_id, body)))
        return found

    async def difference(self, a: str, b: str) -> Json:
        """The differences of two schedules: decisions in words, cost by stage, loop nests and C."""
        found: Json = as_json(await self._send(requests.difference(a, b)))
        return found

    async def import_file(self, importer: str, content: bytes) -> Json:
        """The document of a file in another format, with `notes` and `weights`."""
        found: Json = as_json(await self._send(requests.imported(importer, content)))
        return found

    async def compare(self, schedule_id: str, baseline_id: str) -> Json:
        """Starts the job that runs two schedules in turns; its result has `now_ms` and `baseline_ms`, a number a
        round."""
        found: Json = as_json(await self._send(requests.comparison(schedule_id, baseline_id)))
        return found

    async def record(self, project: str, branch: str, commit: str, results: Sequence[Mapping[str, Any]]) -> Json:
        """Keeps results of a commit, each with a `schedule_id` and, where there is one, `measured`; `items` are they,
        `changes` how they compare with what the branch had before."""
        body = {"branch": branch, "commit": commit, "results": list(results)}
        found: Json = as_json(await self._send(requests.record(project, body)))
        return found

    async def baseline(self, project: str, ref: str, ancestors: Sequence[str] = ()) -> Json:
        """The results that a commit is compared with, in `items`: `ref` is a branch or a commit; `ancestors` are the
        commit and those before it, the nearest first."""
        found: Json = as_json(await self._send(requests.baseline(project, ref, ancestors)))
        return found

    async def acknowledge(self, project: str, branch: str, commit: str, schedule_id: str, reason: str) -> Json:
        """The result that a person accepts at a commit, for a reason."""
        body = {"branch": branch, "commit": commit, "schedule_id": schedule_id, "reason": reason}
        found: Json = as_json(await self._send(requests.acknowledge(project, body)))
        return found

    async def history(self, project: str, **filters: Any) -> Json:
        """A page of the results of a project, the newest first; filters are `branch`, `commit`, `pipeline`, `platform`,
        `variant`, `limit` and `cursor`."""
        found: Json = as_json(await self._send(requests.history(project, filters)))
        return found

    async def delete_results(self, project: str, **filters: Any) -> Deleted:
        """The answer of `Client.delete_results`, awaited."""
        found: Deleted = as_json(await self._send(requests.delete_results(project, filters)))
        return found

    async def projects(self, **filters: Any) -> Json:
        """A page of the projects that have results; filters are `limit` and `cursor`."""
        found: Json = as_json(await self._send(requests.projects(filters)))
        return found

    async def trends(self, project: str, **filters: Any) -> Json:
        """Series of a branch over its commits; filters are `branch`, `pipeline` and `platform`."""
        found: Json = as_json(await self._send(requests.trends(project, filters)))
        return found

    async def badge(self, project: str, branch: str = "main") -> str:
        """The badge of a project's branch: SVG."""
        return (await self._send(requests.badge(project, branch))).text

    async def create_webhook(self, url: str, project: str | None = None, above: float = 0.05) -> Json:
        """A new webhook, with its secret, which is shown this once."""
        body = {"url": url, "above": above} | ({"project": project} if project else {})
        found: Json = as_json(await self._send(requests.create_webhook(body)))
        return found

    async def webhooks(self) -> Json:
        """All webhooks."""
        found: Json = as_json(await self._send(requests.webhooks()))
        return found

    async def remove_webhook(self, webhook_id: str) -> None:
        """Removes a webhook with its deliveries."""
        await self._send(requests.remove_webhook(webhook_id))

    async def deliveries(self, webhook_id: str, **filters: Any) -> Json:
        """A page of a webhook's deliveries, the newest first; filters are `limit` and `cursor`."""
        found: Json = as_json(await self._send(requests.deliveries(webhook_id, filters)))
        return found

    async def batch(self, asked: Sequence[Mapping[str, Any]]) -> Batch:
        """The answer of `Client.batch`, awaited."""
        found: Batch = as_json(await self._send(requests.batch(asked)))
        return found

    async def get(self, schedule_id: str) -> Schedule:
        """The answer of `Client.get`, awaited."""
        found: Schedule = as_json(await self._send(requests.form(schedule_id, "")))
        return found

    async def list_schedules(self, **filters: Any) -> ScheduleList:
        """The answer of `Client.list_schedules`, awaited."""
        found: ScheduleList = as_json(await self._send(requests.listed("schedules", filters)))
        return found

    async def candidates(self, schedule_id: str) -> CandidateList:
        """The answer of `Client.candidates`, awaited."""
        found: CandidateList = as_json(await self._send(requests.form(schedule_id, "candidates")))
        return found

    async def explain(self, schedule_id: str) -> Explanation:
        """The answer of `Client.explain`, awaited."""
        found: Explanation = as_json(await self._send(requests.form(schedule_id, "explain")))
        return found

    async def measurements(self, **filters: Any) -> MeasurementList:
        """The answer of `Client.measurements`, awaited."""
        found: MeasurementList = as_json(await self._send(requests.listed("measurements", filters)))
        return found

    async def validate(self, **documents: str | Mapping[str, Any]) -> Validation:
        """The answer of `Client.validate`, awaited."""
        found: Validation = as_json(await self._send(requests.validate(documents)))
        return found

    async def list_jobs(self, **filters: Any) -> JobList:
        """The answer of `Client.list_jobs`, awaited."""
        found: JobList = as_json(await self._send(requests.listed("jobs", filters)))
        return found

    async def cancel(self, job_id: str) -> Job:
        """The answer of `Client.cancel`, awaited."""
        found: Job = as_json(await self._send(requests.cancel(job_id)))
        return found

    async def pipelines(self, **filters: Any) -> PipelineList:
        """The answer of `Client.pipelines`, awaited."""
        found: PipelineList = as_json(await self._send(requests.listed("pipelines", filters)))
        return found

    async def pipeline(self, name_or_id: str) -> Pipeline:
        """The answer of `Client.pipeline`, awaited."""
        found: Pipeline = as_json(await self._send(requests.one("pipelines", name_or_id)))
        return found

    async def store_pipeline(self, document: Mapping[str, Any]) -> Pipeline:
        """The answer of `Client.store_pipeline`, awaited."""
        found: Pipeline = as_json(await self._send(requests.store("pipelines", document)))
        return found

    async def platforms(self, **filters: Any) -> PlatformList:
        """The answer of `Client.platforms`, awaited."""
        found: PlatformList = as_json(await self._send(requests.listed("platforms", filters)))
        return found

    async def platform(self, name: str) -> Platform:
        """The answer of `Client.platform`, awaited."""
        found: Platform = as_json(await self._send(requests.one("platforms", name)))
        return found

    async def store_platform(self, document: Mapping[str, Any]) -> Platform:
        """The answer of `Client.store_platform`, awaited."""
        found: Platform = as_json(await self._send(requests.store("platforms", document)))
        return found

    async def strategies(self, **filters: Any) -> StrategyList:
        """The answer of `Client.strategies`, awaited."""
        found: StrategyList = as_json(await self._send(requests.listed("strategies", filters)))
        return found

    async def strategy(self, name_or_id: str) -> Strategy:
        """The answer of `Client.strategy`, awaited."""
        found: Strategy = as_json(await self._send(requests.one("strategies", name_or_id)))
        return found

    async def store_strategy(self, document: Mapping[str, Any]) -> Strategy:
        """The answer of `Client.store_strategy`, awaited."""
        found: Strategy = as_json(await self._send(requests.store("strategies", document)))
        return found

    async def tokens(self) -> TokenList:
        """The answer of `Client.tokens`, awaited."""
        found: TokenList = as_json(await self._send(requests.listed("tokens", {})))
        return found

    async def create_token(
        self, name: str, scopes: Sequence[str], expires_at: datetime | None = None
    ) -> NewTokenDocument:
        """The answer of `Client.create_token`, awaited."""
        found: NewTokenDocument = as_json(await self._send(requests.create_token(name, scopes, expires_at)))
        return found

    async def capabilities(self) -> Capabilities:
        """The answer of `Client.capabilities`, awaited."""
        found: Capabilities = as_json(await self._send(requests.listed("capabilities", {})))
        return found

    async def error_codes(self) -> ErrorCodes:
        """The answer of `Client.error_codes`, awaited."""
        found: ErrorCodes = as_json(await self._send(requests.listed("errors", {})))
        return found

    async def schemas(self) -> SchemaList:
        """The answer of `Client.schemas`, awaited."""
        found: SchemaList = as_json(await self._send(requests.listed("schemas", {})))
        return found

    async def schema(self, name: str) -> Json:
        """The answer of `Client.schema`, awaited."""
        found: Json = as_json(await self._send(requests.one("schemas", name)))
        return found

    async def health(self) -> Health:
        """The answer of `Client.health`, awaited."""
        found: Health = as_json(await self._send(requests.health()))
        return found

    async def delete_schedule(self, schedule_id: str) -> None:
        """The answer of `Client.delete_schedule`, awaited."""
        await self._send(requests.delete_schedule(schedule_id))

    async def delete_pipeline(self, pipeline_id: str) -> None:
        """The answer of `Client.delete_pipeline`, awaited."""
        await self._send(requests.delete_pipeline(pipeline_id))

    async def delete_strategy(self, strategy_id: str) -> None:
        """The answer of `Client.delete_strategy`, awaited."""
        await self._send(requests.delete_strategy(strategy_id))

    async def revoke_token(self, token_id: str) -> None:
        """The answer of `Client.revoke_token`, awaited."""
        await self._send(requests.revoke_token(token_id))

    async def library(self, schedule_id: str) -> bytes:
        """The answer of `Client.library`, awaited."""
        return (await self._send(requests.form(schedule_id, "library.so"))).content

    async def metrics(self) -> str:
        """The answer of `Client.metrics`, awaited."""
        return (await self._send(requests.metrics())).text

    async def _send(self, request: Request) -> httpx.Response:
        return await self._retrying(self._once, request)

    async def _once(self, request: Request) -> httpx.Response:
        with request.opened() as arguments:
            return accepted(await self._http.request(request.method, request.path, **arguments))
