"""Retention: what is old, and nobody has a use for by a sign that the store has, is deleted.

In batches, each a short transaction, with as long a pause after it: others write in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import structlog
from sqlalchemy.exc import SQLAlchemyError

from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.jobs.files import JobFiles
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.pipelines import repository as pipeline_rows
from tilesmith.app.service.quota import Quota
from tilesmith.app.service.schedules import repository as schedule_rows
from tilesmith.app.service.schedules.service import Uses
from tilesmith.app.service.settings import Settings

log = structlog.get_logger("tilesmith.retention")

SWEEP_S = 60.0
BATCH = 100


class Retention:
    """A thread that deletes what the settings do not keep."""

    def __init__(self, db: Database, settings: Settings, files: JobFiles, metrics: Metrics, uses: Uses) -> None:
        self._db = db
        self._settings = settings
        self._files = files
        self._metrics = metrics
        self._uses = uses
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._quota = Quota(db, settings, files, metrics, self._stopping.wait)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._sweep_forever, name="tilesmith-retention", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _sweep_forever(self) -> None:
        while not self._stopping.is_set():
            try:
                self.sweep(now_us())
            except (SQLAlchemyError, OSError) as error:
                log.warning("nothing is deleted for now", error=str(error))
            self._stopping.wait(SWEEP_S)

    def sweep(self, now: int) -> None:
        """Deletes all that is to go at the time `now`, in microseconds."""
        settings = self._settings
        used = self._uses.taken()
        for start in range(0, len(used), BATCH):
            schedule_rows.mark_used(self._db, used[start : start + BATCH], now)
        if settings.schedule_retention_s is not None:
            self._old_schedules(now - int(1e6 * settings.schedule_retention_s))
        if settings.schedule_retention_count is not None:
            self._old_schedules(now, schedule_rows.count(self._db) - settings.schedule_retention_count)
        if settings.pipeline_retention_s is not None:
            before = now - int(1e6 * settings.pipeline_retention_s)
            self._in_batches("pipeline", lambda: pipeline_rows.remove_unused(self._db, before, BATCH))
        self._quota.sweep()

    def _old_schedules(self, before: int, most: int | None = None) -> None:
        """Deletes schedules that nobody has used since, the least recently used first, at most so many."""
        batches = self._unused(before, most)

        def remove() -> int:
            ids = next(batches, [])
            removed, job_ids = schedule_rows.remove_several(self._db, ids) if ids else ((), ())
            for job_id in job_ids:
                self._files.remove(job_id)
            return len(removed)

        self._in_batches("schedule", remove)

    def _unused(self, before: int, most: int | None) -> Iterator[list[str]]:
        after = (0, "")
        while most is None or most > 0:
            found = schedule_rows.unused(self._db, before, after, BATCH if most is None else min(BATCH, most))
            if not found:
                return
            yield [schedule_id for _, schedule_id in found]
            after = found[-1]
            most = None if most is None else most - len(found)

    def _in_batches(self, kind: str, remove: Callable[[], int]) -> None:
        """Calls `remove` until nothing is left."""
        total = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            removed = remove()
            if not removed:
                break
            self._metrics.removed.labels(kind).inc(removed)
            total += removed
            self._stopping.wait(time.monotonic() - began)
        if total:
            log.info("deleted what is no longer kept", kind=kind, count=total)
