"""Webhooks: whoever wants to be told of regressions is sent them, signed, until it answers or is given up.

Signatures are those of Standard Webhooks: `webhook-signature` is an HMAC-SHA256 of `webhook-id`, `webhook-timestamp`
and the body.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import structlog
from sqlalchemy.exc import SQLAlchemyError
from standardwebhooks import Webhook

from tilesmith.app.comparison.compare import Comparison, reaches
from tilesmith.app.service.baselines.repository import Commit
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules.answers import compact
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.webhooks import repository
from tilesmith.app.service.webhooks.repository import Due
from tilesmith.app.service.webhooks.sending import checked, post

log = structlog.get_logger("tilesmith.webhooks")

ATTEMPTS = 6
PAUSE_S, GROWTH = 10, 4
"""Pauses between attempts: 10 s, 40 s, ... 43 minutes."""
LEASE_S = 60
IDLE_S = 5.0

Post = Callable[[str, bytes, Mapping[str, str], bool], int]


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A webhook just made; `secret` is shown once."""

    id: str
    project: str | None
    url: str
    above: float
    secret: str


class Webhooks:
    """Webhooks, and the thread that makes deliveries. `post` replaces what sends, for tests."""

    def __init__(self, db: Database, settings: Settings, send: Post = post) -> None:
        self._db = db
        self._settings = settings
        self.send = send
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def create(self, url: str, project: str | None, above: float) -> NewWebhook:
        """A new webhook. ApiError `address_refused`."""
        checked(url, self._settings.private_webhooks)
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        made = NewWebhook(str(uuid.uuid4()), project, url, above, secret)
        row = {"id": made.id, "project": project, "url": url, "secret": secret, "above": above}
        repository.add(self._db, row | {"created_us": now_us()})
        return made

    def remove(self, webhook_id: str) -> None:
        """Nobody is told there any more. ApiError `webhook_not_found`."""
        if not repository.remove(self._db, webhook_id):
            raise ApiError("webhook_not_found", "there is no webhook of this id")

    def check(self, webhook_id: str) -> None:
        """ApiError `webhook_not_found` where there is none."""
        if not repository.exists(self._db, webhook_id):
            raise ApiError("webhook_not_found", "there is no webhook of this id")

    def told(self, at: Commit, compared: tuple[Comparison, ...]) -> None:
        """Queues what is to be told of results that were recorded."""
        rows = []
        for hook in repository.of_project(self._db, at.project):
            slower = [c for c in compared if c.change is not None and reaches(c.change, hook.above)]
            if slower:
                rows.append(_delivery(hook.id, _event(at, slower, hook.above)))
        if rows:
            repository.queue(self._db, rows)
            self._wake.set()

    def start(self) -> None:
        """Begins to make deliveries."""
        self._thread = threading.Thread(target=self._forever, name="tilesmith-webhooks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends after the delivery that is at hand."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def _forever(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                while not self._stopping.is_set() and self.deliver(now_us()):
                    pass
            except SQLAlchemyError as error:
                log.warning("the store failed; deliveries wait", error=str(error))
            self._wake.wait(IDLE_S)

    def deliver(self, now: int) -> bool:
        """Makes one delivery that is due at `now` (µs); False where none is."""
        due = repository.take(self._db, now, now + LEASE_S * 1_000_000)
        if due is None:
            return False
        status, error = self._attempt(due, now)
        delivered = status is not None and 200 <= status < 300
        if delivered or due.attempts >= ATTEMPTS:
            repository.end(self._db, due.id, "delivered" if delivered else "failed", status, error, now)
            repository.forget_before(self._db, now - int(1e6 * self._settings.job_retention_s))
        else:
            pause = PAUSE_S * GROWTH ** (due.attempts - 1)
            repository.end(self._db, due.id, "waiting", status, error, now + pause * 1_000_000)
        log.info("webhook", delivery=due.id, attempt=due.attempts, status=status, error=error)
        return True

    def _attempt(self, due: Due, now: int) -> tuple[int | None, str | None]:
        """The status of the answer, or what went wrong."""
        sent_at = datetime.fromtimestamp(now // 1_000_000, UTC)
        headers = {
            "webhook-id": due.id,
            "webhook-timestamp": str(now // 1_000_000),
            "webhook-signature": Webhook(due.secret).sign(due.id, sent_at, due.body.decode()),
            "User-Agent": "tilesmith",
        }
        try:
            return self.send(due.url, due.body, headers, self._settings.private_webhooks), None
        except ApiError as error:
            return None, str(error.detail)
        except (httpx.HTTPError, OSError) as error:
            return None, f"{type(error).__name__}: {error}"[:500]


def _event(at: Commit, slower: list[Comparison], above: float) -> dict[str, Any]:
    return {
        "type": "pipelines.regressed",
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "data": {
            "project": at.project,
            "branch": at.branch,
            "commit": at.commit,
            "limit": above,
            "regressions": [json.loads(compact(c.to_document())) for c in slower],
        },
    }


def _delivery(webhook_id: str, event: dict[str, Any]) -> dict[str, Any]:
    now = now_us()
    row = {"id": str(uuid.uuid4()), "webhook_id": webhook_id, "body": compact(event).encode(), "state": "waiting"}
    return row | {"attempts": 0, "status": None, "error": None, "created_us": now, "next_us": now}
