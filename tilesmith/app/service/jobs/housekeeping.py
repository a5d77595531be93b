"""Housekeeping of the queue: jobs of lost services go on, and what is old goes.

Any service does it for all that share the database, the runner's thread of maintenance from time to time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Container
from typing import Any

import structlog

from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.errors import ApiError, problem_document
from tilesmith.app.service.jobs import repository
from tilesmith.app.service.jobs.service import Jobs
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.schedules.answers import compact
from tilesmith.app.service.settings import Settings

log = structlog.get_logger("tilesmith.jobs")

CLOCK_STEP_S = 1.0
PRUNE_S = 3600.0
FORGOTTEN_AT_ONCE = 500


class Housekeeping:
    """Leases, ages and files of the jobs in the database, as the service `worker` looks after them."""

    def __init__(self, db: Database, settings: Settings, jobs: Jobs, metrics: Metrics, worker: str) -> None:
        self._db = db
        self._settings = settings
        self._jobs = jobs
        self._metrics = metrics
        self._worker = worker
        self._clocks = now_us() / 1e6, time.monotonic()
        self._set_at = -math.inf
        self._pruned = -math.inf

    def maintain(self, now: int, running: Container[str]) -> None:
        """Requeues jobs of lost services, expires those that waited too long, forgets old ones. `now` in µs; `running`
        are the worker's own jobs."""
        settings = self._settings
        for row in repository.stale(self._db, now) if self._leases_hold() else ():
            if row.worker != self._worker or row.id not in running:  # ours are late, not lost: the machine is busy
                self._recover(row, now)
        for job_id in repository.queued_before(self._db, now - int(1e6 * settings.job_queue_ttl_s)):
            if repository.move(self._db, job_id, "queued", "expired", now):
                self._jobs.files.remove(job_id)
                log.warning("job expired", job=job_id)
        for job_id in repository.finished_before(
            self._db, now - int(1e6 * settings.job_retention_s), FORGOTTEN_AT_ONCE
        ):
            self._jobs.files.remove(job_id)
            repository.forget(self._db, job_id)
            self._metrics.removed.labels("job").inc()
        self._metrics.queued.set(repository.queued(self._db))

    def prune(self) -> None:
        """Removes what nobody refers to, at most once in PRUNE_S: files of jobs, and objects in the store."""
        if time.monotonic() - self._pruned <= PRUNE_S:
            return
        self._pruned = time.monotonic()
        self._jobs.sweep()
        if self._jobs.store is None:
            return
        try:
            removed = self._jobs.store.prune(
                repository.referenced(self._db),
                self._settings.job_files_bytes,
                repository.referenced(self._db, unfinished=True),
            )
        except OSError as error:
            log.warning("the object store failed", error=str(error))
        else:
            log.info("objects pruned", removed=removed)

    def _leases_hold(self) -> bool:
        """False for the time of a lease after the clock was set: leases look older than they are, or younger."""
        wall_s, steady_s = now_us() / 1e6, time.monotonic()
        step_s = (wall_s - self._clocks[0]) - (steady_s - self._clocks[1])
        self._clocks = wall_s, steady_s
        if abs(step_s) > CLOCK_STEP_S:
            log.warning("the clock was set", by_s=round(step_s, 3))
            self._set_at = steady_s
        return steady_s - self._set_at >= self._settings.job_lease_s

    def _recover(self, row: Any, now: int) -> None:
        """A running job whose service is silent: cancelled where that was asked for, tried again, or given up."""
        if row.cancel_requested:
            repository.move(self._db, row.id, "running", "cancelled", now, row.worker)
        elif row.attempts < self._settings.job_attempts:
            repository.move(self._db, row.id, "running", "queued", now, row.worker)
            self._metrics.requeued.labels("lost").inc()
            self._jobs.wake()
        else:
            error = ApiError("worker_lost", f"the service that ran the job was lost {row.attempts} times")
            document = compact(problem_document(error, f"/v1/jobs/{row.id}")).encode()
            repository.move(self._db, row.id, "running", "failed", now, row.worker, error=document)
        self._jobs.tidy([row.id])
        log.warning("job of a lost service", job=row.id, attempts=row.attempts)
