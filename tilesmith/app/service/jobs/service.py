"""Jobs: submitted, looked at, cancelled; their results. The rows of the database are the truth."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import BaseModel
from sqlalchemy.exc import IntegrityError

from tilesmith.app.runtime.errors import WorkerError
from tilesmith.app.runtime.held_folders import left
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.errors import ApiError, token_limit
from tilesmith.app.service.jobs import repository
from tilesmith.app.service.jobs.expected import delay_us
from tilesmith.app.service.jobs.files import INPUT, OBJECTS, JobFiles, read_artifacts
from tilesmith.app.service.jobs.schemas import (
    BuildRequest,
    CompareRequest,
    Job,
    JobSummary,
    Kind,
    RunRequest,
    TuneRequest,
)
from tilesmith.app.service.jobs.states import FINISHED
from tilesmith.app.service.schedules.answers import compact
from tilesmith.app.service.schedules.engine import TOKEN, asker
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.times import instant, maybe_instant
from tilesmith.app.service.tokens.service import Holder
from tilesmith.app.service.tracing import annotate
from tilesmith.scheduler.errors import Problem

if TYPE_CHECKING:
    from tilesmith.app.runtime.object_store import ObjectStore

log = structlog.get_logger("tilesmith.jobs")


SWEPT_AT_ONCE = 200
"""Folders that are open at once while it is looked up whose they are."""
idempotency_key: ContextVar[str | None] = ContextVar("idempotency_key", default=None)
"""The header Idempotency-Key of the request that is being answered."""


class Jobs:
    """Submits jobs and answers questions about them. `wake` is called when there is something to do."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._settings = settings
        self.files = JobFiles(settings.data_dir)
        self.store = _object_store(settings)
        self.wake: Callable[[], None] = lambda: None
        self.cancelled: Callable[[str], None] = lambda job_id: None

    def submit_build(self, schedule_id: str, request: BuildRequest) -> Job:
        """A job that compiles the schedule; ApiError `schedule_not_found`, `queue_full`."""
        return self._submit(self.new_id(), "build", schedule_id, request)

    def submit_run(self, schedule_id: str, request: RunRequest, uploads: Mapping[str, Path], job_id: str = "") -> Job:
        """A job that compiles and runs the schedule on `uploads` (by input, in the job's own folder already)
        or on estimates; ApiError `schedule_not_found`, `queue_full`, `bad_request`."""
        for name, limit in (("repeat", self._settings.run_repeats), ("threads", self._settings.run_threads)):
            if (getattr(request, name) or 0) > limit:
                problem = Problem("less_than_equal", f"/{name}", f"Input should be at most {limit}")
                raise ApiError("bad_request", f"{name} is at most {limit}", (problem,))
        if request.estimates and uploads:
            raise ApiError("bad_request", "either estimates or images, not both")
        return self._submit(job_id or self.new_id(), "run", schedule_id, request)

    def submit_tune(self, schedule_id: str, request: TuneRequest) -> Job:
        """A job that times the candidates of the schedule; the one that is at it already, where there is one. ApiError
        `schedule_not_found`, `queue_full`."""
        content = request.model_dump_json(exclude_defaults=True).encode()
        running = repository.unfinished(self._db, schedule_id, "tune", content)
        return self.get(running) if running is not None else self._submit(self.new_id(), "tune", schedule_id, request)

    def submit_compare(self, schedule_id: str, request: CompareRequest) -> Job:
        """A job that runs the schedule and a baseline in turns; ApiError `schedule_not_found`, `queue_full`."""
        if not repository.has_schedule(self._db, request.baseline):
            raise ApiError("schedule_not_found", f"there is no schedule {request.baseline!r}")
        return self._submit(self.new_id(), "compare", schedule_id, request)

    def again(self, job_id: str) -> Job:
        """A new job that is asked what this one was. ApiError `job_not_found`, `artefact_not_found` where its images
        are gone, `queue_full`."""
        row = repository.find(self._db, job_id)
        if row is None:
            raise ApiError("job_not_found", f"there is no job {job_id[:64]!r}")
        match row.kind:
            case "build":
                return self.submit_build(row.schedule_id, BuildRequest())
            case "tune":
                return self.submit_tune(row.schedule_id, TuneRequest.model_validate_json(row.request))
            case "compare":
                return self.submit_compare(row.schedule_id, CompareRequest.model_validate_json(row.request))
        request = RunRequest.model_validate_json(row.request)
        new_id = self.new_id()
        kept = read_artifacts(row.artifacts)
        inputs = {name: digest for name, digest in kept.items() if name.startswith(INPUT)}
        if request.estimates or inputs:
            return self._submit(new_id, "run", row.schedule_id, request, inputs)
        with self.files.filling(new_id):
            if not self.files.copy_uploads(job_id, new_id):
                raise ApiError(
                    "artefact_not_found", "the images that the job ran on are gone: run the schedule on them anew"
                )
            return self._submit(new_id, "run", row.schedule_id, request)

    @staticmethod
    def new_id() -> str:
        return str(uuid.uuid4())

    def _submit(
        self, job_id: str, kind: Kind, schedule_id: str, request: BaseModel, inputs: Mapping[str, str] | None = None
    ) -> Job:
        if not repository.has_schedule(self._db, schedule_id):
            raise ApiError("schedule_not_found", f"there is no schedule {schedule_id[:64]!r}")
        content = request.model_dump_json(exclude_defaults=True).encode()
        owner, key = asker.get(), idempotency_key.get()
        row = {"id": job_id, "kind": kind, "schedule_id": schedule_id, "request": content, "owner": owner}
        if key is not None:
            row |= {
                "once": _hash(owner.encode(), key.encode()),
                "fingerprint": _hash(kind.encode(), schedule_id.encode(), content, *self._uploaded(job_id)),
            }
        if self.store is not None:
            uploads = {path.name: self.store.put(path) for path in self.files.uploads(job_id)}
            row["artifacts"] = compact({**(inputs or {}), **uploads}).encode()
        limit, own = self._settings.job_queue_limit, self._settings.job_queue_per_token
        delay = delay_us(request, repository.call_ms(self._db, schedule_id))
        try:
            added = repository.add(self._db, row, limit, own if owner.startswith(TOKEN) else limit, now_us(), delay)
        except IntegrityError:  # another was quicker: it has asked with the same key, or deleted the schedule
            if not repository.has_schedule(self._db, schedule_id):
                raise ApiError("schedule_not_found", f"there is no schedule {schedule_id[:64]!r}") from None
            added = repository.add(self._db, row, limit, own if owner.startswith(TOKEN) else limit, now_us(), delay)
        if self.store is not None:
            self.files.remove(job_id)  # whoever does the job has them from the store
        if added.earlier is not None:
            self.files.remove(job_id)
            if added.fingerprint != row["fingerprint"]:
                raise ApiError("key_used", f"the Idempotency-Key was used for another request, job {added.earlier}")
            return self.get(added.earlier)
        if added.full:
            raise ApiError("queue_full", f"{limit} jobs are waiting; try again later")
        if added.owner_full:
            raise token_limit("job_queue_per_token", own, f"{own} jobs of this token are waiting")
        annotate(job_id=job_id, schedule_id=schedule_id)
        log.info("job queued", job=job_id, kind=kind, schedule=schedule_id)
        self.wake()
        return self.get(job_id)

    def sweep(self) -> None:
        """Removes the files of jobs that are gone, and what is left of those that killed services were at."""
        ids = self.files.ids()
        for begin in range(0, len(ids), SWEPT_AT_ONCE):
            self.tidy(ids[begin : begin + SWEPT_AT_ONCE])

    def tidy(self, job_ids: Sequence[str]) -> None:
        """Removes files here of these jobs that nobody needs: all of a job that is gone, or has ended with its results
        in the object store; uploads of one that has ended and was not to keep them, results of one that failed."""
        with ExitStack() as stack:
            free = [i for i in job_ids if stack.enter_context(left(self.files.folder(i)))]
            rows = repository.ends(self._db, free)
            for job_id in free:
                row = rows.get(job_id)
                if row is None or (self.store is not None and row.state in FINISHED):
                    self.files.remove(job_id)
                elif row.state in FINISHED:
                    if row.state == "cancelled" or not json.loads(row.request).get("keep_inputs", False):
                        self.files.remove_uploads(job_id)
                    if row.state != "succeeded":
                        self.files.remove_results(job_id)

    def _uploaded(self, job_id: str) -> list[bytes]:
        """The digests of the images that were uploaded for a job."""
        digests = []
        for path in self.files.uploads(job_id):
            with path.open("rb") as file:
                digests.append(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
        return digests

    def get(self, job_id: str) -> Job:
        """ApiError `job_not_found`."""
        return _job(self._row(job_id))

    def _row(self, job_id: str) -> Any:
        row = repository.find(self._db, job_id)
        if row is None:
            raise ApiError("job_not_found", f"there is no job {job_id[:64]!r}")
        return row

    def cancel(self, job_id: str, holder: Holder) -> Job:
        """Cancels a queued job now, asks the worker of a running one to stop. ApiError `job_finished` where it is
        too late, `forbidden` where it is another token's and the holder of this one no admin; cancelling twice is no
        error."""
        owner = self._row(job_id).owner
        if holder.scope != "admin" and owner.startswith(TOKEN) and owner != f"{TOKEN}{holder.id}":
            raise ApiError("forbidden", "the job is another token's: cancel it with that one, or with the scope admin")
        if not repository.move(self._db, job_id, "queued", "cancelled", now_us()) and repository.request_cancel(
            self._db, job_id
        ):
            self.cancelled(job_id)
        job = self.get(job_id)
        if job.state in FINISHED and job.state != "cancelled":
            raise ApiError("job_finished", f"the job has {job.state} already")
        if job.state == "cancelled":
            self.tidy([job_id])
        return job

    def output(self, job_id: str, name: str, component: int) -> tuple[Path, list[str]]:
        """The .npy of a result, and the output's dims; ApiError `artefact_not_found`."""
        job = self.get(job_id)
        numbers = {n: i for i, n in enumerate(dict.fromkeys(o["name"] for o in (job.result or {}).get("outputs", [])))}
        for output in (job.result or {}).get("outputs", []):
            if (output["name"], output["component"]) == (name, component):
                path = self.file(job_id, self.files.output(job_id, numbers[name], component))
                if path is not None:
                    return path, output["dims"]
        raise ApiError(
            "artefact_not_found",
            "the job has no such result, has not succeeded (yet), or its files made room for others: run it again",
        )

    def file(self, job_id: str, path: Path) -> Path | None:
        """A file of a job, from its folder here or from the object store; None where it is gone."""
        if path.is_file():
            self.files.touch(job_id)
            return path
        if self.store is None:
            return None
        digest = read_artifacts(repository.artifacts(self._db, job_id)).get(path.name)
        return None if digest is None else _fetched(self.store, digest)

    def library(self, schedule_id: str) -> bytes:
        """The compiled code of a schedule; ApiError `not_built`."""
        row = repository.library(self._db, schedule_id)
        if row is not None:
            path: Path | None = Path(row.path)
            if self.store is not None and row.sha256 is not None:
                path = _fetched(self.store, row.sha256)
            with suppress(FileNotFoundError):
                if path is not None:
                    return path.read_bytes()
        raise ApiError("not_built", f"POST /v1/schedules/{schedule_id}/builds first, and wait for the job")


def _hash(*parts: bytes) -> str:
    """A hash of parts that may have anything in them."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _object_store(settings: Settings) -> ObjectStore | None:
    """The object store; None where everything stays in the data folder."""
    if settings.artifacts_url is None:
        return None
    from tilesmith.app.runtime.object_store import ObjectStore

    return ObjectStore(settings.artifacts_url, settings.data_dir.absolute() / OBJECTS)


def _fetched(store: ObjectStore, digest: str) -> Path | None:
    """The file of an object; None where it is gone."""
    try:
        return store.fetch(digest)
    except WorkerError as error:
        log.warning("object lost", error=str(error))
        return None


def _job(row: Any) -> Job:
    base = f"/v1/jobs/{row.id}"
    return Job(
        id=row.id,
        kind=row.kind,
        schedule_id=row.schedule_id,
        state=row.state,
        phase=row.phase,
        attempts=row.attempts,
        request=json.loads(row.request),
        result=json.loads(row.result) if row.result is not None else None,
        error=json.loads(row.error) if row.error is not None else None,
        created_at=instant(row.created_us),
        started_at=maybe_instant(row.started_us),
        finished_at=maybe_instant(row.finished_us),
        links={"self": base, "events": f"{base}/events", "schedule": f"/v1/schedules/{row.schedule_id}"},
    )


def summary(row: Any) -> JobSummary:
    """An entry of a list from its row."""
    return JobSummary(
        id=row.id,
        kind=row.kind,
        schedule_id=row.schedule_id,
        state=row.state,
        created_at=instant(row.created_us),
        href=f"/v1/jobs/{row.id}",
    )
