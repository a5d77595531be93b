"""Requests to the service, as values that either client sends, and the policy by which they are sent again.

A request that the service turns away for the moment (429, 503) is sent again, after as long as it asks for or with
growing pauses; so is one that finds nobody listening.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote

import httpx
from tenacity import RetryCallState, retry_if_exception, stop_after_attempt, wait_exponential
from tenacity.retry import RetryBaseT
from tenacity.stop import StopBaseT
from tenacity.wait import WaitBaseT

from tilesmith.app.client.answers import Busy

LONGEST_PAUSE_S = 30.0
URL = "http://127.0.0.1:8000"
TIMEOUT_S = 60.0
ATTEMPTS = 6
PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request: a method, a path, what httpx takes beside them, and image files to send by name."""

    method: str
    path: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """The arguments for httpx, with the files open at their beginning: each attempt reads them anew."""
        with ExitStack() as stack:
            files = {name: (path.name, stack.enter_context(path.open("rb"))) for name, path in self.files.items()}
            yield {**self.arguments, **({"files": files} if files else {})}


def headers(token: str | None) -> dict[str, str]:
    """The headers of every request of who has this token."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def schedule(
    pipeline: str | Mapping[str, Any],
    platform: str | Mapping[str, Any],
    strategy: str | Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Request:
    body: dict[str, Any] = {"pipeline_id": pipeline} if isinstance(pipeline, str) else {"pipeline": pipeline}
    body |= {"platform_name": platform} if isinstance(platform, str) else {"platform": platform}
    if strategy is not None:
        body |= {"strategy_id": strategy} if isinstance(strategy, str) else {"strategy": strategy}
    return Request("POST", "/v1/schedules", {"json": body | {"options": options}})


def batch(requests: Sequence[Mapping[str, Any]]) -> Request:
    return Request("POST", "/v1/schedules/batch", {"json": {"requests": [dict(r) for r in requests]}})


def form(schedule_id: str, name: str) -> Request:
    """A form of a schedule; without a name the schedule itself."""
    return Request("GET", f"/v1/schedules/{schedule_id}/{name}".rstrip("/"))


def listed(what: str, filters: Mapping[str, Any]) -> Request:
    """A list, or another resource without a name of its own."""
    return Request("GET", f"/v1/{what}", {"params": {name: _query(v) for name, v in filters.items() if v is not None}})


def one(what: str, name: str) -> Request:
    return Request("GET", f"/v1/{what}/{quote(name, safe='')}")


def store(what: str, document: Mapping[str, Any]) -> Request:
    return Request("POST", f"/v1/{what}", {"json": dict(document)})


def notes(schedule_id: str) -> Request:
    return Request("GET", f"/v1/schedules/{schedule_id}/notes")


def set_notes(schedule_id: str, body: Mapping[str, Any]) -> Request:
    return Request("PUT", f"/v1/schedules/{schedule_id}/notes", {"json": dict(body)})


def difference(a: str, b: str) -> Request:
    return Request("GET", "/v1/compare", {"params": {"a": a, "b": b}})


def imported(importer: str, content: bytes) -> Request:
    headers = {"Content-Type": "application/octet-stream"}
    return Request("POST", f"/v1/imports/{quote(importer, safe='')}", {"content": content, "headers": headers})


def validate(documents: Mapping[str, str | Mapping[str, Any]]) -> Request:
    return Request("POST", "/v1/validate", {"json": dict(documents)})


def cancel(job_id: str) -> Request:
    return Request("DELETE", f"/v1/jobs/{job_id}")


def delete_schedule(schedule_id: str) -> Request:
    return Request("DELETE", f"/v1/schedules/{schedule_id}")


def delete_pipeline(pipeline_id: str) -> Request:
    return Request("DELETE", f"/v1/pipelines/{pipeline_id}")


def delete_strategy(strategy_id: str) -> Request:
    return Request("DELETE", f"/v1/strategies/{strategy_id}")


def health() -> Request:
    return Request("GET", "/readyz")


def metrics() -> Request:
    return Request("GET", "/metrics")


def _query(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def build(schedule_id: str) -> Request:
    return Request("POST", f"/v1/schedules/{schedule_id}/builds", {"json": {}})


def run(schedule_id: str, inputs: Mapping[str, Path] | None, request: Mapping[str, Any]) -> Request:
    body = {"data": {"request": json.dumps(request)}} if inputs else {"json": request}
    return Request("POST", f"/v1/schedules/{schedule_id}/runs", body, inputs or {})


def job(job_id: str) -> Request:
    return Request("GET", f"/v1/jobs/{job_id}")


def events(job_id: str, timeout_s: float) -> Request:
    return Request("GET", f"/v1/jobs/{job_id}/events", {"timeout": timeout_s})


def create_token(name: str, scopes: Sequence[str], expires_at: datetime | None) -> Request:
    body = {"name": name, "scopes": list(scopes)}
    expiry = {} if expires_at is None else {"expires_at": expires_at.isoformat()}
    return Request("POST", "/v1/tokens", {"json": body | expiry})


def revoke_token(token_id: str) -> Request:
    return Request("DELETE", f"/v1/tokens/{token_id}")


def output(job_id: str, name: str, form: str, stretch: bool) -> Request:
    query = {"stretch": "true"} if stretch else {}
    return Request("GET", f"/v1/jobs/{job_id}/outputs/{name}.{form}", {"params": query})


def comparison(schedule_id: str, baseline_id: str) -> Request:
    return Request("POST", f"/v1/schedules/{schedule_id}/comparisons", {"json": {"baseline": baseline_id}})


def record(project: str, body: Mapping[str, Any]) -> Request:
    return Request("POST", f"/v1/projects/{project}/results", {"json": body})


def baseline(project: str, ref: str, ancestors: Sequence[str]) -> Request:
    return Request("POST", f"/v1/projects/{project}/baseline", {"json": {"ref": ref, "ancestors": list(ancestors)}})


def acknowledge(project: str, body: Mapping[str, Any]) -> Request:
    return Request("POST", f"/v1/projects/{project}/acknowledgements", {"json": body})


def history(project: str, filters: Mapping[str, Any]) -> Request:
    return Request("GET", f"/v1/projects/{project}/results", {"params": filters})


def delete_results(project: str, filters: Mapping[str, Any]) -> Request:
    return Request("DELETE", f"/v1/projects/{project}/results", {"params": filters})


def projects(filters: Mapping[str, Any]) -> Request:
    return Request("GET", "/v1/projects", {"params": filters})


def trends(project: str, filters: Mapping[str, Any]) -> Request:
    return Request("GET", f"/v1/projects/{project}/trends", {"params": filters})


def badge(project: str, branch: str) -> Request:
    return Request("GET", f"/v1/projects/{project}/badge.svg", {"params": {"branch": branch}})


def create_webhook(body: Mapping[str, Any]) -> Request:
    return Request("POST", "/v1/webhooks", {"json": body})


def webhooks() -> Request:
    return Request("GET", "/v1/webhooks")


def remove_webhook(webhook_id: str) -> Request:
    return Request("DELETE", f"/v1/webhooks/{webhook_id}")


def deliveries(webhook_id: str, filters: Mapping[str, Any]) -> Request:
    return Request("GET", f"/v1/webhooks/{webhook_id}/deliveries", {"params": filters})


class Policy(TypedDict):
    """The arguments of tenacity's two classes that say when a request is sent again."""

    stop: StopBaseT
    wait: WaitBaseT
    retry: RetryBaseT
    reraise: bool


def policy(attempts: int) -> Policy:
    """The policy of a client that tries so often."""
    return {
        "stop": stop_after_attempt(attempts),
        "wait": _pause,
        "retry": retry_if_exception(_may_try_again),
        "reraise": True,
    }


def _may_try_again(error: BaseException) -> bool:
    return isinstance(error, Busy | httpx.ConnectError)


def _pause(state: RetryCallState) -> float:
    """Pause in seconds before the next attempt: as the service asks, otherwise 0.2 s, 0.4 s, 0.8 s, ..."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, Busy) and error.pause_s is not None:
        return min(error.pause_s, LONGEST_PAUSE_S)
    return float(wait_exponential(multiplier=0.2, max=LONGEST_PAUSE_S)(state))
