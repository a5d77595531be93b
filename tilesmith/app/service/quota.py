"""Quotas: of what can be made again, the least recently used leaves where there is too much, or the disk is nearly
full.

Forms that were made are rows of the store; results of jobs and libraries are files of the data folder. What an
unfinished job has is in use, and so is what was written in the last minutes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tilesmith.app.runtime.build import make_room
from tilesmith.app.service.db import Database
from tilesmith.app.service.jobs import repository as job_rows
from tilesmith.app.service.jobs.files import JobFiles
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.schedules import repository as schedule_rows
from tilesmith.app.service.settings import Settings

BATCH = 200
IN_USE_S = 600.0
RESERVE = 2
"""Room is made where the disk has less than so many times of what the service needs to be ready."""


@dataclass(frozen=True, slots=True, order=True)
class Folder:
    """The folder of a job: when it was last used, in seconds since 1970, its size, and its name, the job's id."""

    used_s: float
    bytes: int
    name: str


class Quota:
    """The limits of what is kept beside the answers. `pause` waits between batches; True ends the sweep."""

    def __init__(
        self, db: Database, settings: Settings, files: JobFiles, metrics: Metrics, pause: Callable[[float], bool]
    ) -> None:
        self._db = db
        self._settings = settings
        self._files = files
        self._metrics = metrics
        self._pause = pause

    def sweep(self) -> None:
        """Removes what is beyond the limits."""
        self._forms()
        self._files_of_jobs()

    def _forms(self) -> None:
        excess = schedule_rows.made_bytes(self._db) - self._settings.made_forms_bytes
        while excess > 0:
            began = time.monotonic()
            removed, size = schedule_rows.remove_made(self._db, excess, BATCH)
            self._metrics.removed.labels("form").inc(removed)
            excess -= size
            if not removed or self._pause(time.monotonic() - began):
                return

    def _files_of_jobs(self) -> None:
        folders = self._folders()
        lacking = RESERVE * self._settings.disk_free_bytes - self._free_bytes()
        excess = max(sum(f.bytes for f in folders) - self._settings.job_files_bytes, lacking)
        unfinished = job_rows.unfinished_ids(self._db) if excess > 0 else frozenset()
        gone = 0
        for folder in folders:
            if gone >= excess or time.time() - folder.used_s < IN_USE_S:
                break
            if folder.name not in unfinished:
                self._files.remove(folder.name)
                self._metrics.removed.labels("results").inc()
                gone += folder.bytes
        if gone < lacking:
            make_room(self._files.cache, lacking - gone)

    def _free_bytes(self) -> int:
        """The room on the disk of the data folder."""
        return shutil.disk_usage(self._settings.data_dir).free

    def _folders(self) -> list[Folder]:
        """The folders of jobs, the least recently used first."""
        found = []
        for path in map(self._files.folder, self._files.ids()):
            with suppress(OSError):  # somebody else has removed it
                size = sum(file.stat().st_size for file in path.iterdir())
                found.append(Folder(path.stat().st_mtime, size, path.name))
        return sorted(found)
