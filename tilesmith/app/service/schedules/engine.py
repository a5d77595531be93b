"""Processes that do the work of schedule requests, so that neither a heavy nor a hostile document holds up the event
loop, with a limit on how many wait and how long one may take."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context, parent_process
from types import FrameType
from typing import Any, TypeVar

import structlog

from tilesmith.app.garbage import collect_rarely
from tilesmith.app.plugins import load_plugins
from tilesmith.app.service.errors import ApiError
from tilesmith.app.service.schedules.answers import (
    Answer,
    Decided,
    Generated,
    PipelineIdentity,
    Question,
    StrategyIdentity,
)
from tilesmith.app.service.settings import Settings

log = structlog.get_logger("tilesmith.schedules")

RECURSION = 10_000  # frames: long chains of stages are followed to their end

T = TypeVar("T")
GRACE_S = 5.0  # what a process gets beyond its time before it is killed


class _OutOfTime(BaseException):
    """Raised by the alarm in a worker; not an Exception, so that nothing on the way takes it for its own."""


class Engine:
    """Runs `inspect`, `inspect_strategy`, `import_content`, `key`, `answer`, `derive` and `generate` of `functions`,
    in processes that begin with its `warm_up`: the module app.service.schedules.work, or a test's own."""

    def __init__(self, settings: Settings, functions: Any) -> None:
        self.settings = settings
        self.functions = functions
        self._waiting = 0
        self._pool: Executor | None = None
        self._closed = False
        self._lock = threading.Lock()

    async def inspect(self, document: object) -> PipelineIdentity:
        return await self.run(self.functions.inspect, document, self.settings.limits)

    async def inspect_strategy(self, document: object) -> StrategyIdentity:
        return await self.run(self.functions.inspect_strategy, document)

    async def import_content(self, importer: str, content: bytes) -> dict[str, Any]:
        return await self.run(self.functions.import_content, importer, content, self.settings.limits)

    async def key(self, question: Question) -> str:
        return await self.run(self.functions.key, question)

    async def answer(self, question: Question) -> Answer:
        return await self.run(self.functions.answer, question)

    async def derive(self, name: str, pipeline: bytes, platform: bytes, schedule: bytes) -> bytes:
        return await self.run(self.functions.derive, name, pipeline, platform, schedule, self.settings.limits)

    def generate(self, decided: Decided) -> Generated:
        """The C of a stored schedule, waited for; ApiError where there is none. For threads of jobs."""
        arguments = (self.functions.generate, decided, self.settings.limits)
        result: Generated | ApiError = ApiError("worker_lost", "the process that worked on the document is gone")
        for _ in range(2):
            pool = self.pool()
            try:
                result = pool.submit(_timed, self._limit_s(pool), *arguments).result()
                break
            except BrokenProcessPool:
                self._discard(pool)
        if isinstance(result, ApiError):
            raise result
        return result

    async def run(self, function: Callable[..., T | ApiError], *arguments: object) -> T:
        """The result of a function of plain data; raises the ApiError that it returns, `busy`, `timeout` or
        `worker_lost`."""
        if self._waiting >= self.settings.schedule_queue:
            raise ApiError("busy", "as many documents as the service takes at once are being worked on")
        self._waiting += 1
        try:
            result = await self._attempt(function, *arguments)
        finally:
            self._waiting -= 1
        if isinstance(result, ApiError):
            raise result
        return result

    async def _attempt(self, function: Callable[..., T | ApiError], *arguments: object) -> T | ApiError:
        """Twice where a process died: it may have been a neighbour's document that killed it."""
        for last in (False, True):
            pool = self.pool()
            try:
                future: Future[T | ApiError] = pool.submit(_timed, self._limit_s(pool), function, *arguments)
                return await asyncio.wrap_future(future)
            except BrokenProcessPool:
                self._discard(pool)
                if last:
                    return ApiError("worker_lost", "the process that worked on the document is gone")
        raise AssertionError("unreachable")

    def _limit_s(self, pool: Executor) -> float | None:
        return self.settings.schedule_timeout_s if isinstance(pool, ProcessPoolExecutor) else None

    def pool(self) -> Executor:
        """The pool, made when first wanted. ApiError `not_ready` once the engine is closed."""
        with self._lock:
            if self._closed:
                raise ApiError("not_ready", "the service is stopping")
            if self._pool is None:
                self._pool = self._new_pool()
            return self._pool

    def _new_pool(self) -> Executor:
        count = self.settings.schedule_workers
        if count == 0:
            return ThreadPoolExecutor(2, thread_name_prefix="tilesmith-schedule")
        start = get_context("forkserver")
        start.set_forkserver_preload(["tilesmith.app.service.schedules.work"])
        prepare = (self.settings.schedule_memory_bytes, self.settings.plugins, self.functions.warm_up)
        return ProcessPoolExecutor(count, mp_context=start, initializer=_prepare, initargs=prepare)

    def _discard(self, pool: Executor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None
        pool.shutdown(wait=False, cancel_futures=True)

    def warm_up(self) -> None:
        """Starts every process, so that the first request does not wait for it."""
        with suppress(ApiError, BrokenProcessPool, CancelledError):  # the service stops meanwhile
            for future in [self.pool().submit(_nothing) for _ in range(self.settings.schedule_workers)]:
                future.result()

    def close(self) -> None:
        """Ends the processes, whatever they are at, and what the pool shares with them."""
        with self._lock:
            pool, self._pool, self._closed = self._pool, None, True
        if pool is None:
            return
        if isinstance(pool, ProcessPoolExecutor):
            for worker in list((pool._processes or {}).values()):  # Python 3.14 has terminate_workers() for it
                worker.terminate()
        pool.shutdown(wait=isinstance(pool, ProcessPoolExecutor), cancel_futures=True)
        del pool
        gc.collect()  # semaphores go with the last who knows them; Python warns of those that are left


def _nothing() -> None:
    """Empty task that makes a process start."""


def _prepare(memory_bytes: int, plugins: tuple[str, ...], warm_up: Callable[[], object]) -> None:
    """In a new process: signals are the service's to handle, memory has a limit, plugins are loaded, and what a first
    request would wait for is done."""
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
        return ApiError("timeout", f"the document was worked on for {limit_s:g} s without an answer")
    except MemoryError:
        return ApiError("out_of_memory", "the document needs more memory than the service allows")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
