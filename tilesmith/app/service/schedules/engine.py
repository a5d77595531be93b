"""Processes that do the work of schedule requests, so that neither a heavy nor a hostile document holds up the event
loop, shared fairly, with limits on how many wait and how long one may take."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import forkserver, get_context, parent_process
from types import FrameType
from typing import Any, TypeVar

import structlog
from pydantic import BaseModel

from tilesmith.app.garbage import collect_rarely
from tilesmith.app.plugins import load_plugins
from tilesmith.app.service.bodies import SMALL_BYTES, parse_model
from tilesmith.app.service.errors import ApiError, token_limit
from tilesmith.app.service.remembered import Remembered
from tilesmith.app.service.schedules.answers import (
    Answer,
    Decided,
    Generated,
    PipelineIdentity,
    Question,
    StrategyIdentity,
)
from tilesmith.app.service.schedules.fair_queue import FairQueue
from tilesmith.app.service.settings import Settings

log = structlog.get_logger("tilesmith.schedules")

RECURSION = 10_000  # frames: long chains of stages are followed to their end
THREADS = 2  # that do it where there are no processes

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
GRACE_S = 2.0  # what a process gets beyond its time before it is killed
WATCH_S = 0.25
STUCK_S = 10.0
"""The time after which a process that was killed, and is still not known to have ended, shows that the fork server does
not do its own: it is stopped."""
START_S = 60.0  # the longest time for a process to be forked, and for it to warm up
BACK_OFF_S, LONGEST_BACK_OFF_S = 0.1, 5.0  # between processes that do not come up
ATTEMPTS = 2
BYTES_A_STAGE = 512  # of a document, about
KNOWN = 64  # of late, whose processes are known
MOST_PASSED = 4  # times that another process has taken other work
LONG_NICE = 5
"""The niceness of processes that take long work: where that has a core for seconds, answers and short work go first."""
OURS = "service"
"""The client that the service's own work is of: no limit holds for it."""
TOKEN = "token "
"""The names of clients that show a token begin so."""

asker: ContextVar[str] = ContextVar("asker", default=OURS)
"""The client of the request that is being answered: its token, or its address where there are none."""


class _OutOfTime(BaseException):
    """Raised by the alarm in a worker; not an Exception, so that nothing on the way takes it for its own."""


@dataclass(eq=False, slots=True)
class _Work:
    """A call for a process, and the future of its result. A process that has worked `about` the same knows some of it;
    work is left to that one while it is busy, but not more often than it may be `passed` over."""

    client: str
    short: bool
    limit_s: float
    function: Callable[..., Any]
    arguments: tuple[object, ...]
    about: tuple[object, ...] = ()
    future: Future[Any] = field(default_factory=Future)
    passed: int = MOST_PASSED
    attempts: int = 0
    began: float = 0.0
    killed: bool = False


@dataclass(eq=False, slots=True)
class _Slot:
    """A place for one process, which may be replaced, and the work that it is at. It is `ready` once the process is
    there and has warmed up; `failures` counts those in a row that did not come so far."""

    only_short: bool
    executor: Executor | None = None
    ready: bool = False
    started: float = 0.0
    work: _Work | None = None
    failures: int = 0


class Engine:
    """Runs `inspect`, `inspect_strategy`, `import_content`, `key`, `answer`, `candidates`, `derive` and `generate` of
    in processes that begin with its `warm_up`: the module app.service.schedules.work, or a test's own.

    Clients share the processes fairly. One of them, where there are several, is for short work alone. A process that
    does not end its work in time is killed, and one that is gone is replaced: nobody else's work is lost by it.
    """

    def __init__(self, settings: Settings, functions: Any) -> None:
        self.settings = settings
        self.functions = functions
        count = settings.schedule_workers or THREADS
        self._slots = [_Slot(only_short=0 < n == count - 1) for n in range(count)]
        self._queue: FairQueue[_Work] = FairQueue()
        self._homes: Remembered[object, _Slot] = Remembered(KNOWN)
        self._unfinished = 0
        self._closed = threading.Event()
        self._watching: threading.Thread | None = None
        self._lock = threading.RLock()

    async def inspect(self, document: bytes) -> PipelineIdentity:
        return await self.run(self.functions.inspect, document, self.settings.limits, reading=True)

    async def inspect_strategy(self, document: bytes) -> StrategyIdentity:
        return await self.run(self.functions.inspect_strategy, document, reading=True)

    async def model(self, body: bytes, model: type[M]) -> M:
        """The model of JSON text; ApiError `bad_json`, `bad_request`, `limit_exceeded`."""
        return await self.read(_model, body, model)

    async def read(self, function: Callable[..., T | ApiError], body: bytes, *arguments: object) -> T:
        """The result of a function of JSON text, in a thread for a small one, in a process for a large one: that would
        hold up the event loop. Raises as `run` does."""
        if len(body) > SMALL_BYTES:
            return await self.run(function, body, *arguments, reading=True)
        result = await asyncio.to_thread(function, body, *arguments)
        if isinstance(result, ApiError):
            raise result
        return result

    async def import_content(self, importer: str, content: bytes) -> dict[str, Any]:
        return await self.run(self.functions.import_content, importer, content, self.settings.limits)

    async def key(self, question: Question, spent_s: float = 0.0) -> str:
        """The id of the answer, of a question that took `spent_s` to be read so far."""
        about = _document(question)
        return await self.run(self.functions.key, question, reading=True, spent_s=spent_s, about=about)

    async def answer(self, question: Question, schedule_id: str | None = None) -> Answer:
        about = (*_document(question), schedule_id)
        return await self.run(self.functions.answer, question, schedule_id, about=about)

    async def derive(self, name: str, pipeline: bytes, platform: bytes, schedule: bytes) -> bytes:
        return await self.run(self.functions.derive, name, pipeline, platform, schedule, self.settings.limits)

    async def candidates(self, question: Question, schedule_id: str, schedule: bytes) -> dict[str, str]:
        return await self.run(self.functions.candidates, question, schedule_id, schedule)

    async def code(self, decided: Decided, schedule_id: str) -> Generated:
        return await self.run(self.functions.generate, decided, self.settings.limits, about=(schedule_id,))

    def generate(self, decided: Decided) -> Generated:
        """The C of a stored schedule, waited for; ApiError where there is none. For threads of jobs."""
        made: Generated = self._waited(self.functions.generate, decided, self.settings.limits)
        return made

    def search(self, question: Question, schedule_id: str, schedule: bytes) -> dict[str, str]:
        """`candidates`, waited for. For threads of jobs."""
        found: dict[str, str] = self._waited(self.functions.candidates, question, schedule_id, schedule)
        return found

    def _waited(self, function: Callable[..., T | ApiError], *arguments: object) -> T:
        result: T | ApiError = self.submit(function, *arguments).result()
        if isinstance(result, ApiError):
            raise result
        return result

    async def run(
        self,
        function: Callable[..., T | ApiError],
        *arguments: object,
        reading: bool = False,
        spent_s: float = 0.0,
        about: tuple[object, ...] = (),
    ) -> T:
        """The result of a function of plain data; raises the ApiError that it returns, `busy`, `token_limit`, `timeout`
        or `worker_lost`. With `reading`, it has the time that a document may take to be read and checked, less
        what is `spent_s` of it. A process that has worked `about` the same is preferred."""
        made = self.submit(function, *arguments, reading=reading, spent_s=spent_s, about=about)
        result: T | ApiError = await asyncio.wrap_future(made)
        if isinstance(result, ApiError):
            raise result
        return result

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: object,
        reading: bool = False,
        spent_s: float = 0.0,
        about: tuple[object, ...] = (),
    ) -> Future[Any]:
        """The result to be, in the turn of who asks; ApiError `busy`, `token_limit`, `not_ready`."""
        limit_s = self.settings.schedule_timeout_s
        if reading:
            limit_s = max(self.settings.read_timeout_s - spent_s, self.settings.read_timeout_s / 8)
        short = _stages(arguments) <= self.settings.schedule_short_stages
        work = _Work(asker.get(), short, limit_s, function, arguments, about)
        with self._lock:
            self._check(work.client)
            self._unfinished += 1
            self._queue.push(work.client, work, work.short)
        self._dispatch()
        return work.future

    def _check(self, client: str) -> None:
        """ApiError where no more work is taken, of this client or at all."""
        if self._closed.is_set():
            raise ApiError("not_ready", "the service is stopping")
        if client == OURS:
            return
        limit = self.settings.schedule_queue_per_token
        if client.startswith(TOKEN) and self._queue.active(client) >= limit:
            raise token_limit("schedule_queue_per_token", limit, f"{limit} documents of this token are being worked on")
        if self._unfinished >= self.settings.schedule_queue:
            raise ApiError("busy", "as many documents as the service takes at once are being worked on")

    def _dispatch(self) -> None:
        """Gives what waits to the slots that are free, first what they know; slots without a process get one."""
        with self._lock:
            for suits in (self._suits, _any):
                for slot in self._slots:
                    if self._closed.is_set() or not len(self._queue):
                        return
                    if slot.executor is None:
                        self._start(slot)
                    while slot.ready and slot.work is None:
                        work = self._queue.pop(slot.only_short, partial(suits, slot))
                        if work is None:
                            break
                        self._begin(slot, work)

    def _suits(self, slot: _Slot, work: _Work) -> bool:
        """False where another slot knows what the work is about, which is left to that one this time."""
        homes = [home for x in work.about if (home := self._homes.get(x)) is not None]
        if not homes or slot in homes or work.passed == 0:
            return True
        work.passed -= 1
        return False

    def _start(self, slot: _Slot) -> Future[Any]:
        """Begins a slot's process, which takes a while; the time of no work runs meanwhile."""
        if self._watching is None and self.settings.schedule_workers:
            self._watching = threading.Thread(target=self._watch, name="tilesmith-engine", daemon=True)
            self._watching.start()
        slot.executor = executor = self._new_executor(0 if slot.only_short else LONG_NICE)
        slot.started = time.monotonic()
        with _fork_server_within(START_S):
            started = _submitted(executor, _nothing)
        started.add_done_callback(partial(self._started, slot, executor))
        return started

    def _started(self, slot: _Slot, executor: Executor, started: Future[Any]) -> None:
        """A process is ready for work, or did not come up: then another is tried a little later."""
        error = None if started.cancelled() else started.exception()
        lost = None
        with self._lock:
            if slot.executor is not executor or self._closed.is_set():
                return
            slot.ready = error is None and not started.cancelled()
            slot.failures = 0 if slot.ready else slot.failures + 1
            if not slot.ready:
                self._replace(slot)
                if slot.failures >= ATTEMPTS:
                    lost = self._queue.pop(slot.only_short)
                if lost is not None:
                    self._leave(lost)
        if lost is not None and (lost.attempts or lost.future.set_running_or_notify_cancel()):
            lost.future.set_result(ApiError("worker_lost", "no process can be started that works on documents"))
        if slot.ready:
            self._dispatch()
        else:
            log.warning("a process could not be started", error=str(error), failures=slot.failures)
            again = threading.Timer(min(BACK_OFF_S * 2**slot.failures, LONGEST_BACK_OFF_S), self._dispatch)
            again.daemon = True
            again.start()

    def _begin(self, slot: _Slot, work: _Work) -> None:
        work.began = time.monotonic()
        if not work.attempts and not work.future.set_running_or_notify_cancel():
            self._leave(work)
            return
        work.attempts += 1
        for x in work.about:
            self._homes.put(x, slot)
        slot.work = work
        limit_s = work.limit_s if self.settings.schedule_workers else None
        assert slot.executor is not None
        made = _submitted(slot.executor, _timed, limit_s, work.function, *work.arguments)
        made.add_done_callback(partial(self._done, slot, work))

    def _done(self, slot: _Slot, work: _Work, made: Future[Any]) -> None:
        """Work has come to an end, or its process has: then it is tried in another, since it may have been killed for
        no fault of the work's."""
        error = None if made.cancelled() else made.exception()
        lost = made.cancelled() or isinstance(error, BrokenProcessPool)
        with self._lock:
            slot.work = None
            if lost:
                self._replace(slot)
            self._leave(work)
            again = lost and not work.killed and work.attempts < ATTEMPTS and not self._closed.is_set()
            if again:
                self._unfinished += 1
                self._queue.push(work.client, work, work.short)
        if again:
            pass
        elif work.killed:
            work.future.set_result(_out_of_time(work.limit_s))
        elif lost:
            work.future.set_result(ApiError("worker_lost", "the process that worked on the document is gone"))
        elif error is not None:
            work.future.set_exception(error)
        else:
            work.future.set_result(made.result())
        self._dispatch()

    def _leave(self, work: _Work) -> None:
        self._unfinished -= 1
        self._queue.end(work.client, work.short, time.monotonic() - work.began)

    def _new_executor(self, nice: int) -> Executor:
        if self.settings.schedule_workers == 0:
            return ThreadPoolExecutor(1, thread_name_prefix="tilesmith-schedule")
        start = get_context("forkserver")
        start.set_forkserver_preload(["tilesmith.app.service.schedules.work"])
        prepare = (self.settings.schedule_memory_bytes, self.settings.plugins, self.functions.warm_up, nice)
        return ProcessPoolExecutor(1, mp_context=start, initializer=_prepare, initargs=prepare)

    def _replace(self, slot: _Slot) -> None:
        """Lets go of a slot's process; the next work has a new one."""
        if slot.executor is not None:
            slot.executor.shutdown(wait=False, cancel_futures=True)
        slot.executor, slot.ready = None, False

    def _watch(self) -> None:
        """Kills processes whose work goes on beyond its time, those that the alarm in them could not end, or that do
        not begin in theirs; and the fork server where it does not see one end."""
        while not self._closed.wait(WATCH_S):
            with self._lock:
                now = time.monotonic()
                late = [
                    s for s in self._slots if _overdue_s(s, now) > 0 and isinstance(s.executor, ProcessPoolExecutor)
                ]
                stuck = any(_overdue_s(slot, now) > STUCK_S for slot in late)
                killed = 0
                for slot in late:
                    assert isinstance(slot.executor, ProcessPoolExecutor)
                    _kill(slot.executor)
                    if slot.work is not None and not slot.work.killed:
                        slot.work.killed = True
                        killed += 1
            if killed:
                log.warning("processes did not end their work in time and were killed", processes=killed)
            if stuck:
                _kill_fork_server()

    def warm_up(self) -> None:
        """Starts every process, so that the first request does not wait for it."""
        with suppress(ApiError, BrokenProcessPool, CancelledError, RuntimeError):  # the service stops meanwhile
            with self._lock:
                waiting = [] if self._closed.is_set() else [s for s in self._slots if s.executor is None]
                started = [self._start(slot) for slot in waiting]
            for future in started:
                future.result()

    def close(self) -> None:
        """Ends the processes, whatever they are at, and what the pools share with them."""
        with _fork_server_within(STUCK_S):
            self._close()

    def _close(self) -> None:
        with self._lock:
            self._closed.set()
            executors = [s.executor for s in self._slots if s.executor is not None]
            for slot in self._slots:
                slot.executor, slot.ready = None, False
            while (work := self._queue.pop(False)) is not None:
                self._leave(work)
                if work.attempts or work.future.set_running_or_notify_cancel():
                    work.future.set_result(ApiError("not_ready", "the service is stopping"))
        had_processes = False
        for executor in executors:
            if isinstance(executor, ProcessPoolExecutor):
                had_processes = True
                _kill(executor)
        for executor in executors:
            executor.shutdown(wait=isinstance(executor, ProcessPoolExecutor), cancel_futures=True)
        if had_processes:
            executors.clear()
            gc.collect()  # semaphores go with the last who knows them; Python warns of those that are left


def _any(_slot: _Slot, _work: _Work) -> bool:
    return True


def _document(question: Question) -> tuple[bytes, ...]:
    """The document that work is about, where it is one in bytes."""
    return (question.pipeline,) if isinstance(question, Question) and isinstance(question.pipeline, bytes) else ()


def _model(body: bytes, model: type[M]) -> M | ApiError:
    try:
        return parse_model(body, model)
    except ApiError as error:
        return error


def _submitted(executor: Executor, function: Callable[..., Any], *arguments: object) -> Future[Any]:
    """The future of a call. Where the executor has lost its process, or can start none, it is the future that fails."""
    try:
        return executor.submit(function, *arguments)
    except (OSError, EOFError, RuntimeError) as error:  # BrokenProcessPool is a RuntimeError
        broken: Future[Any] = Future()
        broken.set_exception(BrokenProcessPool(str(error)))
        return broken


def _kill(executor: ProcessPoolExecutor) -> None:
    for process in list((executor._processes or {}).values()):  # Python 3.14 has kill_workers() for it
        process.kill()


@contextmanager
def _fork_server_within(seconds: float) -> Iterator[None]:
    """Bound of a wait for the fork server: it is killed after so many seconds, and the wait fails."""
    timer = threading.Timer(seconds, _kill_fork_server)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _kill_fork_server() -> None:
    """Ends the process that the others are forked of; whoever waits for it fails, and the next start has another."""
    pid = getattr(forkserver._forkserver, "_forkserver_pid", None)
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            log.warning("the fork server does not answer and was killed")


def _overdue_s(slot: _Slot, now: float) -> float:
    """Seconds that a slot's process is beyond the time of its work, or of its start."""
    if slot.work is not None:
        return now - (slot.work.began + slot.work.limit_s + GRACE_S)
    return now - (slot.started + START_S) if slot.executor is not None and not slot.ready else 0.0


def _stages(arguments: Iterable[object]) -> int:
    """The stages of the documents that work is given, by their size where they are bytes: what makes it long."""
    found = 0
    for value in arguments:
        match value:
            case Question():
                found += _stages([value.pipeline])
            case Decided():
                found += _stages([value.pipeline])
            case {"stages": list(stages)}:
                found += len(stages)
            case bytes() | str():
                found += len(value) // BYTES_A_STAGE
    return found


def _nothing() -> None:
    """Empty task that makes a process start."""


def _prepare(memory_bytes: int, plugins: tuple[str, ...], warm_up: Callable[[], object], nice: int) -> None:
    """Sets a new process up: signals are the service's to handle, memory has a limit, plugins are loaded, and what a
    first request would wait for is done."""
    os.nice(nice)
    threading.Thread(target=_end_with_service, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _on_alarm)
    sys.setrecursionlimit(RECURSION)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    try:
        load_plugins(plugins)
        warm_up()
    except Exception:  # the boundary of the process: what is wrong will be answered to who asks for it
        log.exception("warm-up failed")
    gc.collect()
    collect_rarely()


def _end_with_service() -> None:
    """Ends this process when the service is gone, however it went: nobody else would."""
    service = parent_process()
    if service is not None:
        service.join()
        os._exit(0)


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    raise _OutOfTime


def _timed(limit_s: float | None, function: Callable[..., Any], *arguments: object) -> Any:
    """The function's result, or `timeout`; in a process, where `limit_s` is given, an alarm ends the work."""
    if limit_s is None:
        return function(*arguments)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        return function(*arguments)
    except _OutOfTime:
        return _out_of_time(limit_s)
    except MemoryError:
        return ApiError("out_of_memory", "the document needs more memory than the service allows")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _out_of_time(limit_s: float) -> ApiError:
    return ApiError("timeout", f"the document was worked on for {limit_s:g} s without an answer")
