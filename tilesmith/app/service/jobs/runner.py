"""The runner of a service, which takes jobs from the database and has a pool do them: threads here, or a Dask cluster.

A job is leased: while it runs, its lease is prolonged; a job whose service is gone is started again by whoever
notices. Stopping puts running jobs back into the queue. Cancelling kills what the job runs.
"""

from __future__ import annotations

import contextvars
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

import structlog
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_when_event_set,
    wait_random_exponential,
)

from tilesmith.app.runtime.errors import LOST, Cancelled
from tilesmith.app.runtime.telling import telling
from tilesmith.app.service import tracing
from tilesmith.app.service.db import Database, now_us
from tilesmith.app.service.errors import ApiError, from_core, from_os, from_platform, problem_document
from tilesmith.app.service.jobs import repository
from tilesmith.app.service.jobs.compare import run_in_turns
from tilesmith.app.service.jobs.files import INPUT, LIBRARY, Artifacts, read_artifacts
from tilesmith.app.service.jobs.housekeeping import Housekeeping
from tilesmith.app.service.jobs.pool import Pool
from tilesmith.app.service.jobs.repository import Claim
from tilesmith.app.service.jobs.schemas import CompareRequest, CompareResult, RunRequest, TuneRequest
from tilesmith.app.service.jobs.service import Jobs
from tilesmith.app.service.jobs.states import State
from tilesmith.app.service.jobs.tune import Outcome, answer, candidates, tune_candidates
from tilesmith.app.service.jobs.work import Built, Task, build_library, run_library
from tilesmith.app.service.measurements import repository as measurement_rows
from tilesmith.app.service.metrics import Metrics
from tilesmith.app.service.platforms.machine_names import machine_name
from tilesmith.app.service.schedules import repository as schedule_rows
from tilesmith.app.service.schedules.answers import ANSWER, Answer, Decided, Generated, compact
from tilesmith.app.service.schedules.engine import Engine
from tilesmith.app.service.schedules.service import candidates_of, source_of, store
from tilesmith.app.service.settings import Settings
from tilesmith.app.service.tracing import Tracing
from tilesmith.platforms import PlatformError
from tilesmith.scheduler.errors import TilesmithError

R = TypeVar("R")

log = structlog.get_logger("tilesmith.jobs")

IDLE_S = 1.0  # how often the queue is looked at when nobody says that there is something in it
MAINTENANCE_S = 5.0
WATCH_S = 0.1
BACK_OFF_S, LONGEST_BACK_OFF_S = 0.1, 5.0  # between attempts at what failed for no fault of the job's
MOST_AT_ONCE = 64
"""Jobs that a service has in the hands of a pool of other processes at once; threads that wait for them."""
HOST, ANY = "host", "any"
KILL_S = 10.0  # that what a cancelled job runs may take to be gone


class Stopped(Exception):
    """The job was taken from the worker: `why` is "cancel", "stop" (the service ends) or "lost" (the lease)."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class JobRunner:
    """Threads that take jobs and watch over them. `work` replaces what a job does in tests; the `engine` makes C, and
    the candidates of a search."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        jobs: Jobs,
        metrics: Metrics,
        new_pool: Callable[[int], Pool],
        engine: Engine,
        work: Callable[[Task, Claim, Watch], dict[str, Any]] | None = None,
    ) -> None:
        self._db = db
        self._settings = settings
        self._jobs = jobs
        self._metrics = metrics
        self._new_pool = new_pool
        self._work = work or do
        self._engine = engine
        self._pool: Pool | None = None
        self.name = uuid.uuid4().hex
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._draining = threading.Event()
        self._wake = threading.Condition()
        self._watches: dict[str, Watch] = {}
        self._turn = threading.Lock()
        self._lanes: Counter[str] = Counter()
        self._housekeeping = Housekeeping(db, settings, jobs, metrics, self.name)
        self.tracing = Tracing(None)
        self.host_machine: Callable[[], str] = lambda: ""
        self.found_machines: Callable[[Mapping[str, Any]], Collection[str]] = lambda documents: ()

    def start(self) -> None:
        """Begins to take jobs. What an earlier service left behind is put right first. May be called again where the
        store failed: no thread has been started then."""
        self._jobs.wake = self.wake
        self._jobs.cancelled = self.cancelled
        self.maintain(now_us())
        if self._settings.job_workers:
            machines = self.found_machines({})
            self._pool = self._new_pool(self._settings.job_workers)
            self._pool.remember(machines)
        self._start(self._maintain_forever, "maintenance")
        threads = self._settings.job_workers
        if threads and self._settings.pool is not None:
            threads = MOST_AT_ONCE
        for number in range(threads):
            self._start(self._work_forever, str(number))

    def _start(self, target: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=target, name=f"tilesmith-jobs-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def drain(self, seconds: float) -> None:
        """Takes no more jobs, and waits up to so long for those that run. `stop` puts back what runs then."""
        log.info("draining", running=len(self._watches), seconds=seconds)
        until = time.monotonic() + seconds
        self._draining.set()
        self.wake()
        for thread in self._threads[1:]:  # the first is maintenance, which keeps the leases of others in order
            thread.join(max(0.0, until - time.monotonic()))
        log.info("drained", running=len(self._watches))

    @property
    def draining(self) -> bool:
        """True if no more jobs are taken, as the service is about to end."""
        return self._draining.is_set()

    def stop(self) -> None:
        """Puts running jobs back into the queue and ends the threads."""
        self._stopping.set()
        self.wake()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def pool_state(self) -> str:
        """The state of a pool elsewhere, as readiness tells it."""
        if self._pool is None or not self._pool.remote:
            return "ok"
        if self._pool.away(ANY):
            return "no workers"
        return "ok" if self._pool.threads() else "does not answer"

    @property
    def alive(self) -> bool:
        """True if every thread still runs."""
        return bool(self._threads) and all(t.is_alive() for t in self._threads)

    def wake(self) -> None:
        """There is something to do."""
        with self._wake:
            self._wake.notify_all()

    def cancelled(self, job_id: str) -> None:
        """A running job shall stop, if it is one of ours."""
        watch = self._watches.get(job_id)
        if watch is not None:
            watch.cancel()

    def _wait(self, seconds: float) -> None:
        with self._wake:
            if not (self._stopping.is_set() or self._draining.is_set()):
                self._wake.wait(seconds)

    def _work_forever(self) -> None:
        while not (self._stopping.is_set() or self._draining.is_set()):
            try:
                with self._turn:  # one looks at the queue at a time
                    if self._stopping.is_set() or self._draining.is_set():
                        return
                    taken = self._take()
                    if taken is None:
                        self._wait(IDLE_S)
                if taken is not None:
                    self._see_through(*taken)
            except SQLAlchemyError as error:
                log.warning("the store failed; jobs wait", error=str(error))
                self._wait(IDLE_S)
            except Exception as error:  # the boundary of a thread: without it nobody would do its jobs
                log.error("fault", exc_info=error)
                self._wait(IDLE_S)

    def _maintain_forever(self) -> None:
        while not self._stopping.is_set():
            try:
                self._housekeeping.prune()
                self._stopping.wait(MAINTENANCE_S)
                self.maintain(now_us())
            except SQLAlchemyError as error:
                log.warning("the store failed; jobs wait", error=str(error))
            except Exception as error:  # the boundary of a thread, as above
                log.error("fault", exc_info=error)

    def _take(self) -> tuple[Claim, Watch] | None:
        """A job that can be begun now; None where none waits, or nobody is free for it."""
        busy: frozenset[str] = frozenset()
        if self._pool is not None:
            free, busy = self._pool.room(self._lanes)
            if not free:
                return None
            if busy and self.host_machine() in busy:
                busy |= {HOST}
        claim = repository.claim(self._db, self.name, self._lease(), now_us(), busy)
        if claim is None:
            return None
        watch = Watch(self, claim, self._lane(claim.schedule_id))
        self._watches[claim.id] = watch
        self._lanes[watch.lane] += 1
        return claim, watch

    def _lane(self, schedule_id: str) -> str:
        """The kind of machine that a job of the schedule is for, as the pool has it."""
        form = None if self._pool is None else schedule_rows.find_form(self._db, schedule_id, "platform.json")
        if self._pool is None or form is None:
            return ""
        return self._pool.lane(machine_name(json.loads(form.content)))

    def _see_through(self, claim: Claim, watch: Watch) -> None:
        """Has a job that was taken done."""
        self._metrics.wait_seconds.observe(max(0.0, (now_us() - claim.created_us) / 1e6))
        self._metrics.running.inc()
        with (
            structlog.contextvars.bound_contextvars(job=claim.id, schedule=claim.schedule_id),
            self.tracing.root(f"job {claim.kind}", job_id=claim.id, schedule_id=claim.schedule_id),
        ):
            tracing.annotate(attempt=claim.attempts, machine=watch.lane)
            try:
                self._do(claim, watch)
            finally:
                self._metrics.running.dec()
                self._lanes[watch.lane] -= 1
                if self._watches.get(claim.id) is watch:  # a job whose lease was lost may have been taken again
                    del self._watches[claim.id]
        self.wake()

    def _do(self, claim: Claim, watch: Watch) -> None:
        started = time.perf_counter()
        log.info("job started", kind=claim.kind, attempt=claim.attempts)
        try:
            result = self._work(self.task(claim.id, claim.schedule_id), claim, watch)
        except Stopped as stopped:
            self._stopped(claim, stopped.why)
        except Exception as error:  # the boundary of a job: whatever it was, it costs this job and no other
            if isinstance(error, OperationalError) or getattr(error, "code", None) == LOST:
                self._again(claim, "the store failed" if isinstance(error, OperationalError) else str(error))
            else:
                self._fail(claim, _as_problem(error))
        else:
            kept = {"artifacts": compact(watch.kept()).encode()} if watch.artifacts else {}
            self._end(claim, "succeeded", result=compact(result).encode(), **kept)
        self._metrics.job_seconds.labels(claim.kind).observe(time.perf_counter() - started)

    def task(self, job_id: str, schedule_id: str) -> Task:
        """A schedule with all that a job on it needs. ApiError `schedule_not_found`."""
        kept = schedule_rows.kept(self._db, schedule_id)
        if not kept:
            raise ApiError("schedule_not_found", "the schedule is gone")
        settings = self._settings
        return Task(
            job_id=job_id,
            pipeline=kept["pipeline.json"],
            platform=kept["platform.json"],
            source=source_of(self._db, self._engine, schedule_id),
            data_dir=settings.data_dir.absolute(),
            build_timeout_s=settings.build_timeout_s,
            build_cache_bytes=settings.build_cache_bytes,
            run_timeout_s=settings.run_timeout_s,
            run_memory_bytes=settings.run_memory_bytes,
            limits=settings.limits,
            image_bytes=settings.image_bytes,
        )

    def _stopped(self, claim: Claim, why: str) -> None:
        if why == "cancel":
            self._end(claim, "cancelled")
        elif why == "stop":
            repository.move(self._db, claim.id, "running", "queued", now_us(), self.name, attempts=claim.attempts - 1)
            self._metrics.requeued.labels("stop").inc()
            log.info("job put back into the queue")

    def _again(self, claim: Claim, why: str) -> None:
        """Puts a job back whose worker was lost, or gives it up where that has happened too often."""
        self._stopping.wait(min(BACK_OFF_S * 2**claim.attempts, LONGEST_BACK_OFF_S))
        if claim.attempts >= self._settings.job_attempts:
            self._fail(claim, ApiError("worker_lost", f"{why}, {claim.attempts} times"))
        elif self.stored(repository.move, claim.id, "running", "queued", now_us(), self.name):
            self._metrics.requeued.labels("lost").inc()
            log.warning("job put back into the queue", why=why, attempt=claim.attempts)

    def _fail(self, claim: Claim, error: ApiError) -> None:
        self._end(claim, "failed", error=compact(problem_document(error, f"/v1/jobs/{claim.id}")).encode())

    def _end(self, claim: Claim, state: State, **values: bytes) -> None:
        if self.stored(repository.move, claim.id, "running", state, now_us(), self.name, **values):
            if not json.loads(claim.request).get("keep_inputs", False):
                self._jobs.files.remove_uploads(claim.id)
            self._metrics.jobs.labels(claim.kind, state).inc()
            tracing.annotate(state=state)
            log.info("job ended", state=state)

    def stored(self, action: Callable[..., R], *arguments: Any, **values: Any) -> R:
        """The result of `action(db, ...)`. A store that is locked, full or away is waited for until the service stops:
        what was worked out is not lost by it."""
        retrying = Retrying(
            retry=retry_if_exception_type(OperationalError),
            wait=wait_random_exponential(multiplier=BACK_OFF_S, max=LONGEST_BACK_OFF_S),
            stop=stop_when_event_set(self._stopping),
            sleep=sleep_using_event(self._stopping),
            before_sleep=lambda _: log.warning("the store failed; finished work waits for it"),
            reraise=True,
        )
        return retrying(action, self._db, *arguments, **values)

    def _lease(self) -> int:
        return now_us() + int(1e6 * self._settings.job_lease_s)

    def maintain(self, now: int) -> None:
        """Keeps the queue in order, and the machines of the pool known. `now` in µs."""
        self._housekeeping.maintain(now, self._watches)
        self._look_after_pool()

    def _look_after_pool(self) -> None:
        """Keeps the machines of the pool known."""
        if self._pool is not None:
            self._pool.remember(self.found_machines(self._pool.documents()))
            for machine, threads in self._pool.threads().items():
                self._metrics.pool_threads.labels(machine).set(threads)


class Watch:
    """The runner as a job sees it: it runs something, and records the step that the job is at."""

    def __init__(self, runner: JobRunner, claim: Claim, lane: str = "") -> None:
        self._runner = runner
        self._claim = claim
        self._cancel = threading.Event()
        self._renewed = time.monotonic()
        self.lane = lane
        self.artifacts: Artifacts = read_artifacts(claim.artifacts)

    def cancel(self) -> None:
        self._cancel.set()

    def kept(self) -> Artifacts:
        """The artifacts that outlive the job: not its inputs, unless it was asked to keep them."""
        keep = bool(json.loads(self._claim.request).get("keep_inputs", False))
        return {name: digest for name, digest in self.artifacts.items() if keep or not name.startswith(INPUT)}

    def keep_library(self, built: Built) -> None:
        digest = self.artifacts.get(LIBRARY)
        self._runner.stored(repository.keep_library, self._claim.schedule_id, built.key, built.path, now_us(), digest)

    def task(self, schedule_id: str) -> Task:
        """Another schedule that the job works on."""
        return self._runner.task(self._claim.id, schedule_id)

    def say(self, phase: str) -> None:
        """Record the step that the job is at."""
        self._runner.stored(repository.progress, self._claim.id, self._runner.name, phase, now_us())

    def generate(self, decided: Decided) -> Generated:
        """The C of a candidate."""
        return self._runner._engine.generate(decided)

    def schedule(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """The document of the job's schedule, and its forms, those of its candidates among them."""
        db, schedule_id = self._runner._db, self._claim.schedule_id
        kept = schedule_rows.kept(db, schedule_id)
        if not kept:
            raise ApiError("schedule_not_found", "the schedule is gone")
        candidates = candidates_of(db, self._runner._engine, schedule_id)
        return json.loads(kept.pop(ANSWER)), candidates | kept

    def keep_tuned(self, answer: Answer, outcome: Outcome) -> None:
        stored = self._runner.stored
        stored(store, answer, self._claim.owner)
        tuned = outcome.tuned
        stored(
            measurement_rows.add_tuned,
            answer.id,
            self._claim.id,
            tuned.samples,
            tuned.threads,
            outcome.conditions,
            now_us(),
        )
        median = next(s.median_ms for s in tuned.samples if s.rank == tuned.chosen)
        if median is not None:
            stored(schedule_rows.set_measured, answer.id, median)

    def keep_run(self, result: Mapping[str, Any], estimated: bool) -> None:
        claim = self._claim
        self._runner.stored(measurement_rows.add_run, claim.schedule_id, claim.id, result, estimated, now_us())
        if estimated:
            self._runner.stored(schedule_rows.set_measured, claim.schedule_id, result["median_ms"])

    def step(self, phase: str, function: Callable[..., Any], task: Task, *arguments: Any) -> Any:
        """`function(task, *arguments)` made in the pool, its artifacts in the object store where there is one; raises
        Stopped where the job has to end before."""
        url, pool = self._runner._settings.artifacts_url, self._runner._pool
        if url is None or pool is None:
            return self.run(phase, function, task, *arguments)
        from tilesmith.app.service.jobs.delivery import deliver

        inputs = {name: digest for name, digest in self.artifacts.items() if name.startswith(INPUT)}
        delivered = self.run(phase, deliver, url, pool.remote, inputs, function, task, *arguments)
        self.artifacts |= delivered.artifacts
        return delivered.value

    def run(self, phase: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The function's result, made in the pool; raises Stopped where the job has to end before."""
        runner = self._runner
        self.say(phase)
        if runner._pool is None:
            return function(*arguments)
        context = contextvars.copy_context()
        context.run(telling.set, self.say)
        with tracing.span(phase):
            return self._waited_for(context.run(runner._pool.submit_to, self.lane, function, *arguments), runner._pool)

    def _waited_for(self, future: Future[Any], pool: Pool) -> Any:
        """The future's result; Stopped."""
        while True:
            try:
                return future.result(WATCH_S)
            except FutureTimeout:
                if future.done():
                    raise  # the job's own
            except (CancelledError, Cancelled):
                raise Stopped("cancel") from None
            why = self._reason_to_stop()
            if why is not None:
                pool.cancel(future)
                wait([future], KILL_S)
                raise Stopped(why)

    def _reason_to_stop(self) -> str | None:
        runner = self._runner
        if self._cancel.is_set():
            return "cancel"
        if runner._stopping.is_set() or (runner._pool is not None and runner._pool.away(self.lane)):
            return "stop"
        if time.monotonic() - self._renewed < runner._settings.job_lease_s / 5:
            return None
        self._renewed = time.monotonic()
        try:
            cancelled = repository.renew(runner._db, self._claim.id, runner.name, runner._lease())
        except OperationalError:
            return None  # a store that is locked is no reason to stop
        return "lost" if cancelled is None else "cancel" if cancelled else None


def do(task: Task, claim: Claim, watch: Watch) -> dict[str, Any]:
    """A job of any kind: the build, then the run, alone or in turns with another's; or tuning."""
    if claim.kind == "tune":
        return _tune(task, claim, watch)
    built: Built = watch.step("building", build_library, task)
    watch.keep_library(built)
    if claim.kind == "build":
        return built.description
    if claim.kind == "compare":
        other = watch.task(CompareRequest.model_validate(json.loads(claim.request)).baseline)
        watch.step("building", build_library, other)
        compared: CompareResult = watch.step("running", run_in_turns, task, other)
        return compared.model_dump()
    request = RunRequest.model_validate(json.loads(claim.request))
    result: dict[str, Any] = watch.step("running", run_library, task, request)
    watch.keep_run(result, request.estimates and request.regions is None and not request.params)
    return result


def _tune(task: Task, claim: Claim, watch: Watch) -> dict[str, Any]:
    """Keeps the tuned schedule; the samples, and where it is."""
    request = TuneRequest.model_validate(json.loads(claim.request))
    base, forms = watch.schedule()
    offered = candidates(task, request.candidates, base, forms, watch.generate)
    outcome: Outcome = watch.step("building", tune_candidates, task, offered)
    watch.keep_tuned(answer(request, base, forms, outcome), outcome)
    return outcome.tuned.to_document() | {
        "schedule_id": request.schedule_id,
        "href": f"/v1/schedules/{request.schedule_id}",
    }


def _as_problem(error: Exception) -> ApiError:
    """Why a job failed, as a problem document says it."""
    found: ApiError
    match error:
        case ApiError():
            found = error
        case TilesmithError():
            found = from_core(error)
        case PlatformError():
            found = from_platform(error)
        case MemoryError():
            found = ApiError("out_of_memory", "the images do not fit the memory")
        case OSError():
            found = from_os(error)
        case _:
            found = ApiError("internal", "the fault has been logged")
    if found.code == "internal":
        log.error("fault", exc_info=error)
    return found
